//! Content codings undone as the bytes come (RFC 9110 §8.4): what a flush point delivers is told
//! at once, so that an event stream that is compressed stays a stream.

use crate::model::limits;
use flate2::{Decompress, FlushDecompress, Status};
use std::io::Write;
use zstd::stream::raw::{Decoder as ZstdDecoder, InBuffer, Operation, OutBuffer};

/// Why a coding could not be undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CodingError {
    /// The bytes are not of that coding.
    #[error("the content coding is corrupt")]
    Corrupt,
    /// More comes out than any honest body gives.
    #[error("inflate-ratio: the body inflates beyond reason")]
    Bomb,
    /// No such coding is known.
    #[error("unknown content coding")]
    Unknown,
}

/// Output of one step, beyond which the rest of the input is not looked at.
const STEP_BYTES: usize = limits::MESSAGE_BYTES + 1;
/// Decoded bytes that are never a bomb, whatever the ratio.
const HARMLESS_BYTES: u64 = 1 << 20;

/// Undoes the codings of one body.
pub struct Decoder {
    /// In the order of undoing: the last applied first.
    stages: Vec<Stage>,
    spare: [Vec<u8>; 2],
    coded: u64,
    decoded: u64,
}

enum Stage {
    Gzip(Gzip),
    Deflate(Deflate),
    Brotli(Box<brotli::DecompressorWriter<Capped>>),
    Zstd(Box<ZstdDecoder<'static>>),
}

impl Decoder {
    /// For codings in the order in which they were applied; none if nothing is to be undone.
    pub fn new<'a>(codings: impl Iterator<Item = &'a str>) -> Result<Option<Decoder>, CodingError> {
        let mut stages = Vec::new();
        for coding in codings.flat_map(|list| list.split(',')).map(str::trim) {
            stages.push(match coding.to_ascii_lowercase().as_str() {
                "" | "identity" => continue,
                "gzip" | "x-gzip" => Stage::Gzip(Gzip::default()),
                "deflate" => Stage::Deflate(Deflate::default()),
                "br" => Stage::Brotli(Box::new(brotli::DecompressorWriter::new(Capped::default(), 16 << 10))),
                "zstd" => Stage::Zstd(Box::new(ZstdDecoder::new().map_err(|_| CodingError::Unknown)?)),
                _ => return Err(CodingError::Unknown),
            });
        }
        stages.reverse();
        let none = stages.is_empty();
        Ok((!none).then(|| Decoder { stages, spare: Default::default(), coded: 0, decoded: 0 }))
    }

    /// Undoes the next bytes.
    pub fn decode(&mut self, bytes: &[u8]) -> Result<&[u8], CodingError> {
        self.coded += bytes.len() as u64;
        let [from, into] = &mut self.spare;
        for (n, stage) in self.stages.iter_mut().enumerate() {
            std::mem::swap(from, into);
            into.clear();
            stage.decode(if n == 0 { bytes } else { from }, into)?;
        }
        self.decoded += into.len() as u64;
        let most = self.coded.saturating_mul(limits::INFLATE_RATIO as u64).max(HARMLESS_BYTES);
        if into.len() >= STEP_BYTES || self.decoded > most {
            return Err(CodingError::Bomb);
        }
        Ok(into)
    }
}

impl Stage {
    fn decode(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), CodingError> {
        match self {
            Stage::Gzip(gzip) => gzip.decode(bytes, out),
            Stage::Deflate(deflate) => deflate.decode(bytes, out),
            Stage::Brotli(writer) => {
                std::mem::swap(&mut writer.get_mut().0, out);
                let result = writer.write_all(bytes);
                std::mem::swap(&mut writer.get_mut().0, out);
                match result {
                    Err(_) if out.len() >= STEP_BYTES => Err(CodingError::Bomb),
                    result => result.map_err(|_| CodingError::Corrupt),
                }
            }
            Stage::Zstd(decoder) => unzstd(decoder, bytes, out),
        }
    }
}

/// Takes bytes up to [`STEP_BYTES`].
#[derive(Default)]
struct Capped(Vec<u8>);

impl Write for Capped {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.0.len() >= STEP_BYTES {
            return Err(std::io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// gzip members one after another (RFC 1952 §2.2).
#[derive(Default)]
struct Gzip {
    member: Option<Decompress>,
    members: u64,
}

impl Gzip {
    fn decode(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) -> Result<(), CodingError> {
        while !bytes.is_empty() {
            if self.member.is_none() && self.members > 0 && bytes.first() != Some(&0x1F) {
                // Padding behind the last member.
                return Ok(());
            }
            let member = self.member.get_or_insert_with(|| Decompress::new_gzip(15));
            let (used, ended) = inflate(member, bytes, out)?;
            bytes = bytes.get(used..).unwrap_or_default();
            if !ended {
                return Ok(());
            }
            self.member = None;
            self.members += 1;
        }
        Ok(())
    }
}

/// `deflate` is the zlib format (RFC 9110 §8.4.1.2), but some send bare DEFLATE.
#[derive(Default)]
struct Deflate {
    first: Vec<u8>,
    stream: Option<Decompress>,
    ended: bool,
}

impl Deflate {
    fn decode(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), CodingError> {
        if self.ended || bytes.is_empty() {
            return Ok(());
        }
        if let Some(stream) = &mut self.stream {
            self.ended = inflate(stream, bytes, out)?.1;
            return Ok(());
        }
        self.first.extend_from_slice(bytes);
        let [cmf, flags, ..] = *self.first else { return Ok(()) };
        let is_zlib = cmf & 0x0F == 8 && (u16::from(cmf) << 8 | u16::from(flags)) % 31 == 0;
        let stream = self.stream.insert(Decompress::new(is_zlib));
        self.ended = inflate(stream, &std::mem::take(&mut self.first), out)?.1;
        Ok(())
    }
}

/// Inflates all of `bytes` that the stream takes: how many, and whether the stream ended.
fn inflate(stream: &mut Decompress, bytes: &[u8], out: &mut Vec<u8>) -> Result<(usize, bool), CodingError> {
    let mut used = 0;
    loop {
        if out.capacity() - out.len() < 1024 {
            out.reserve(32 << 10);
        }
        let (before_in, before_out) = (stream.total_in(), stream.total_out());
        let rest = bytes.get(used..).unwrap_or_default();
        let status = stream.decompress_vec(rest, out, FlushDecompress::None).map_err(|_| CodingError::Corrupt)?;
        used += (stream.total_in() - before_in) as usize;
        if status == Status::StreamEnd {
            return Ok((used, true));
        }
        let idle = stream.total_in() == before_in && stream.total_out() == before_out;
        let full = out.capacity() == out.len();
        if idle || (used >= bytes.len() && !full) {
            return Ok((used, false));
        }
        if out.len() >= STEP_BYTES {
            return Err(CodingError::Bomb);
        }
    }
}

fn unzstd(decoder: &mut ZstdDecoder<'static>, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), CodingError> {
    let mut input = InBuffer::around(bytes);
    let mut block = [0; 16 << 10];
    loop {
        let mut output = OutBuffer::around(&mut block[..]);
        decoder.run(&mut input, &mut output).map_err(|_| CodingError::Corrupt)?;
        let written = output.as_slice().len();
        out.extend_from_slice(output.as_slice());
        if input.pos() >= bytes.len() && written < 16 << 10 {
            return Ok(());
        }
        if out.len() >= STEP_BYTES {
            return Err(CodingError::Bomb);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::{CodingError, Decoder};
    use flate2::{Compression, write};
    use std::io::Write;

    fn decoder(codings: &str) -> Decoder {
        Decoder::new([codings].into_iter()).unwrap().unwrap()
    }

    fn undo(codings: &str, coded: &[u8], piece: usize) -> Result<Vec<u8>, CodingError> {
        let mut decoder = decoder(codings);
        let mut all = Vec::new();
        for bytes in coded.chunks(piece) {
            all.extend_from_slice(decoder.decode(bytes)?);
        }
        Ok(all)
    }

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut coder = write::GzEncoder::new(Vec::new(), Compression::default());
        coder.write_all(text).unwrap();
        coder.finish().unwrap()
    }

    fn br(text: &[u8]) -> Vec<u8> {
        let mut coded = Vec::new();
        brotli::CompressorWriter::new(&mut coded, 4096, 5, 20).write_all(text).unwrap();
        coded
    }

    #[test]
    fn every_coding_in_any_pieces() {
        let text: Vec<u8> = (0..70_000u32).flat_map(|n| n.to_string().into_bytes()).collect();
        let mut zlib = write::ZlibEncoder::new(Vec::new(), Compression::default());
        zlib.write_all(&text).unwrap();
        let mut raw = write::DeflateEncoder::new(Vec::new(), Compression::default());
        raw.write_all(&text).unwrap();
        let coded = [
            ("gzip", gzip(&text)),
            ("x-gzip", gzip(&text)),
            ("deflate", zlib.finish().unwrap()),
            ("Deflate", raw.finish().unwrap()),
            ("br", br(&text)),
            ("zstd", zstd::encode_all(&*text, 3).unwrap()),
            ("identity, gzip", gzip(&text)),
            ("br, gzip", gzip(&br(&text))),
        ];
        for (coding, coded) in coded {
            for piece in [1 << 20, 1448, 13] {
                assert!(undo(coding, &coded, piece).unwrap() == text, "{coding} in pieces of {piece}");
            }
            assert!(undo(coding, &coded[..coded.len() / 2], 100).is_ok(), "{coding} cut is no error yet");
        }
    }

    #[test]
    fn members_and_padding() {
        let two = [gzip(b"one "), gzip(b"two"), vec![0; 7]].concat();
        assert_eq!(undo("gzip", &two, 5).unwrap(), b"one two");
    }

    #[test]
    fn flush_points_come_out_at_once() {
        let mut coder = write::GzEncoder::new(Vec::new(), Compression::default());
        let mut decoder = decoder("gzip");
        for event in ["data: 1\n\n", "data: 2\n\n"] {
            coder.write_all(event.as_bytes()).unwrap();
            coder.flush().unwrap();
            let coded = std::mem::take(coder.get_mut());
            assert_eq!(decoder.decode(&coded).unwrap(), event.as_bytes());
        }
    }

    #[test]
    fn corrupt_bombs_and_unknown() {
        assert_eq!(undo("gzip", b"no gzip at all", 100), Err(CodingError::Corrupt));
        assert_eq!(undo("zstd", b"no zstd at all", 100), Err(CodingError::Corrupt));
        let zeros = vec![0; 8 << 20];
        assert_eq!(undo("br", &br(&zeros), 1 << 20), Err(CodingError::Bomb));
        assert_eq!(undo("zstd", &zstd::encode_all(&*zeros, 3).unwrap(), 1 << 20), Err(CodingError::Bomb));
        assert_eq!(undo("gzip, gzip", &gzip(&gzip(&zeros)), 1 << 20), Err(CodingError::Bomb));
        assert!(Decoder::new(["snappy"].into_iter()).is_err());
        assert!(Decoder::new(["identity"].into_iter()).unwrap().is_none());
    }
}
