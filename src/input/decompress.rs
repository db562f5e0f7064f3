//! Compressed inputs, as a stream: gzip, zstd, xz and bzip2, told by their magic numbers.
//!
//! Own loop over the codecs' step functions rather than their `Read` adapters, because those
//! throw away what they had decoded when an error comes in the same call; here every byte before
//! a cut or damaged place is handed out first.

use flate2::{Decompress, FlushDecompress, Status};
use std::io::Read;
use zstd::stream::raw::{InBuffer, Operation, OutBuffer};

/// Compressed bytes read at a time.
const INPUT_BYTES: usize = 256 << 10;
/// Memory that an xz stream may ask for, bytes; `xz -9` needs 65 MiB.
const XZ_MEMORY_BYTES: u64 = 1 << 30;
/// The longest magic number.
const MAGIC_BYTES: usize = 6;
/// What zstd needs to begin with a frame (ZSTD_FRAMEHEADERSIZE_MIN).
const ZSTD_FIRST_BYTES: usize = 5;

/// A way of compression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compression {
    Gzip,
    Zstd,
    Xz,
    Bzip2,
}

impl Compression {
    /// What an input that begins with `head` is compressed with.
    pub(super) fn of(head: &[u8]) -> Option<Compression> {
        match head {
            // RFC 1952 §2.3.1; 8 is deflate, the only method there is.
            [0x1f, 0x8b, 8, ..] => Some(Compression::Gzip),
            // RFC 8878 §3.1.1, and skippable frames (§3.1.2), which parallel writers put first.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(Compression::Zstd),
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some(Compression::Xz),
            [b'B', b'Z', b'h', b'1'..=b'9', 0x31 | 0x17, ..] => Some(Compression::Bzip2),
            _ => None,
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Compression::Gzip => "gzip",
            Compression::Zstd => "zstd",
            Compression::Xz => "xz",
            Compression::Bzip2 => "bzip2",
        }
    }

    fn codec(self) -> Result<Codec, String> {
        Ok(match self {
            Compression::Gzip => Codec::Gzip(Decompress::new_gzip(15)),
            Compression::Zstd => Codec::Zstd {
                decoder: zstd::stream::raw::Decoder::new().map_err(|e| e.to_string())?,
                wanted: ZSTD_FIRST_BYTES,
            },
            Compression::Xz => {
                Codec::Xz(liblzma::stream::Stream::new_stream_decoder(XZ_MEMORY_BYTES, 0).map_err(|e| e.to_string())?)
            }
            Compression::Bzip2 => Codec::Bzip2(bzip2::Decompress::new(false)),
        })
    }
}

/// The state of one member (gzip), frame (zstd) or stream (xz, bzip2).
enum Codec {
    Gzip(Decompress),
    Zstd { decoder: zstd::stream::raw::Decoder<'static>, wanted: usize },
    Xz(liblzma::stream::Stream),
    Bzip2(bzip2::Decompress),
}

/// What one step did.
struct Step {
    consumed: usize,
    produced: usize,
    /// The member is complete, or an error.
    end: Result<bool, String>,
}

impl Codec {
    fn step(&mut self, input: &[u8], out: &mut [u8]) -> Step {
        match self {
            Codec::Gzip(gzip) => {
                let before = (gzip.total_in(), gzip.total_out());
                let end = match gzip.decompress(input, out, FlushDecompress::None) {
                    Ok(status) => Ok(status == Status::StreamEnd),
                    Err(e) => Err(e.to_string()),
                };
                step(before, (gzip.total_in(), gzip.total_out()), end)
            }
            Codec::Zstd { decoder, wanted } => {
                // No more than it asks for, which ends with a block: so an error takes nothing
                // along that was decoded before it.
                let input = input.get(..(*wanted).max(1)).unwrap_or(input);
                let (mut source, mut sink) = (InBuffer::around(input), OutBuffer::around(out));
                let end = decoder.run(&mut source, &mut sink);
                let (consumed, produced) = (source.pos(), sink.pos());
                let end = end.map_err(|e| e.to_string()).map(|hint| {
                    *wanted = hint;
                    hint == 0
                });
                Step { consumed, produced, end }
            }
            Codec::Xz(xz) => {
                let before = (xz.total_in(), xz.total_out());
                let end = match xz.process(input, out, liblzma::stream::Action::Run) {
                    Ok(status) => Ok(status == liblzma::stream::Status::StreamEnd),
                    Err(e) => Err(e.to_string()),
                };
                step(before, (xz.total_in(), xz.total_out()), end)
            }
            Codec::Bzip2(bzip2) => {
                let before = (bzip2.total_in(), bzip2.total_out());
                let end = match bzip2.decompress(input, out) {
                    Ok(status) => Ok(status == bzip2::Status::StreamEnd),
                    Err(e) => Err(e.to_string()),
                };
                step(before, (bzip2.total_in(), bzip2.total_out()), end)
            }
        }
    }
}

fn step(before: (u64, u64), after: (u64, u64), end: Result<bool, String>) -> Step {
    Step { consumed: (after.0 - before.0) as usize, produced: (after.1 - before.1) as usize, end }
}

/// Reads the decompressed bytes of `source`, over any number of members. Never an error: what
/// stopped it is asked of [`fault`](Decompressor::fault).
pub(super) struct Decompressor<R> {
    source: R,
    kind: Compression,
    /// None between two members.
    codec: Option<Codec>,
    input: Box<[u8]>,
    start: usize,
    end: usize,
    source_ended: bool,
    ended: bool,
    consumed: u64,
    fault: Option<String>,
}

impl<R: Read> Decompressor<R> {
    /// `source` begins with the magic number of `kind`.
    pub(super) fn new(source: R, kind: Compression) -> Decompressor<R> {
        Decompressor {
            source,
            kind,
            codec: None,
            input: vec![0; INPUT_BYTES].into_boxed_slice(),
            start: 0,
            end: 0,
            source_ended: false,
            ended: false,
            consumed: 0,
            fault: None,
        }
    }

    /// Why the decompressed bytes ended before their time.
    pub(super) fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }

    /// The source, for what stopped it in turn.
    pub(super) fn source(&self) -> &R {
        &self.source
    }

    fn available(&self) -> &[u8] {
        self.input.get(self.start..self.end).unwrap_or_default()
    }

    fn fill(&mut self, want: usize) {
        self.input.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        while self.end < want && !self.source_ended {
            let Some(space) = self.input.get_mut(self.end..) else { return };
            match self.source.read(space) {
                Ok(0) => self.source_ended = true,
                Ok(n) => self.end += n.min(space.len()),
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => {
                    self.fail(&e.to_string());
                    self.source_ended = true;
                }
            }
        }
    }

    fn fail(&mut self, why: &str) {
        self.ended = true;
        if self.fault.is_none() {
            self.fault = Some(format!(
                "the {} data is cut or damaged near its byte {} ({why}); what came before was read",
                self.kind.name(),
                self.consumed
            ));
        }
    }

    /// Begins the next member; false where there is none.
    fn next_member(&mut self) -> bool {
        loop {
            if self.end - self.start < MAGIC_BYTES {
                self.fill(MAGIC_BYTES);
            }
            let rest = self.available();
            if Compression::of(rest) == Some(self.kind) {
                match self.kind.codec() {
                    Ok(codec) => self.codec = Some(codec),
                    Err(why) => self.fail(&why),
                }
                return self.codec.is_some();
            }
            // Members may be padded with zeros (xz file format §2.2; tapes).
            let zeros = rest.iter().take_while(|&&b| b == 0).count();
            if zeros == 0 {
                if !rest.is_empty() {
                    self.fail("bytes that do not begin another member follow a complete one");
                }
                self.ended = true;
                return false;
            }
            self.start += zeros;
            self.consumed += zeros as u64;
        }
    }
}

impl<R: Read> Read for Decompressor<R> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        while !out.is_empty() && !self.ended {
            if self.codec.is_none() && !self.next_member() {
                break;
            }
            if self.start == self.end {
                self.fill(1);
            }
            let Some(codec) = &mut self.codec else { break };
            let input = self.input.get(self.start..self.end).unwrap_or_default();
            let step = codec.step(input, out);
            self.start += step.consumed;
            self.consumed += step.consumed as u64;
            match step.end {
                Ok(true) => self.codec = None,
                Ok(false) if step.consumed == 0 && step.produced == 0 => {
                    let why = if self.start == self.end { "it ends too early" } else { "it does not go on" };
                    self.fail(why);
                }
                Ok(false) => {}
                Err(why) => self.fail(&why),
            }
            if step.produced > 0 {
                return Ok(step.produced);
            }
        }
        Ok(0)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::{Compression, Decompressor};
    use std::io::{Read, Write};

    fn compress(kind: Compression, plain: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        match kind {
            Compression::Gzip => {
                let mut w = flate2::write::GzEncoder::new(&mut out, flate2::Compression::default());
                w.write_all(plain).unwrap();
                w.finish().unwrap();
            }
            Compression::Zstd => zstd::stream::copy_encode(plain, &mut out, 3).unwrap(),
            Compression::Xz => {
                let mut w = liblzma::write::XzEncoder::new(&mut out, 1);
                w.write_all(plain).unwrap();
                w.finish().unwrap();
            }
            Compression::Bzip2 => {
                let mut w = bzip2::write::BzEncoder::new(&mut out, bzip2::Compression::fast());
                w.write_all(plain).unwrap();
                w.finish().unwrap();
            }
        }
        out
    }

    fn decompress(kind: Compression, coded: &[u8]) -> (Vec<u8>, Option<String>) {
        assert_eq!(Compression::of(coded), Some(kind));
        let mut reader = Decompressor::new(coded, kind);
        let mut out = Vec::new();
        reader.read_to_end(&mut out).unwrap();
        (out, reader.fault().map(str::to_owned))
    }

    const ALL: [Compression; 4] = [Compression::Gzip, Compression::Zstd, Compression::Xz, Compression::Bzip2];

    /// Text that compresses to about a third.
    fn plain() -> Vec<u8> {
        let mut out = Vec::new();
        let mut x = 1_u32;
        while out.len() < 400_000 {
            x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            writeln!(out, "line {} of the plain text", x >> 12).unwrap();
        }
        out
    }

    #[test]
    fn several_members_and_padding() {
        for kind in ALL {
            let coded = [compress(kind, b"one "), compress(kind, b""), compress(kind, b"two")].concat();
            assert_eq!(decompress(kind, &coded), (b"one two".to_vec(), None), "{kind:?}");
            let padded = [&coded[..], &[0; 16]].concat();
            assert_eq!(decompress(kind, &padded), (b"one two".to_vec(), None), "{kind:?}");
            let (out, fault) = decompress(kind, &[&coded[..], b"tail"].concat());
            assert_eq!(out, b"one two");
            assert!(fault.is_some(), "{kind:?}");
        }
    }

    #[test]
    fn a_cut_or_damaged_stream_gives_what_came_before() {
        let plain = plain();
        for kind in ALL {
            let coded = compress(kind, &plain);
            for cut in [1, 5, coded.len() / 2, coded.len() - 6] {
                let head = &coded[..coded.len() - cut];
                let (out, fault) = decompress(kind, head);
                assert!(plain.starts_with(&out) && fault.is_some(), "{kind:?} without its last {cut} bytes");
            }
            let mut damaged = coded.clone();
            let middle = damaged.len() / 2;
            damaged[middle..middle + 8].fill(0xff);
            let (out, fault) = decompress(kind, &damaged);
            assert!(fault.is_some(), "{kind:?}");
            if kind == Compression::Gzip {
                let right = out.iter().zip(&plain).take_while(|(a, b)| a == b).count();
                assert!(right > plain.len() / 3, "{right} bytes before the damage");
            }
        }
    }

    #[test]
    fn every_cut_of_a_small_stream() {
        for kind in ALL {
            let coded = compress(kind, b"some words, some words, some other words");
            for length in MAGIC..coded.len() {
                let (out, fault) = decompress(kind, &coded[..length]);
                assert!(b"some words, some words, some other words".starts_with(&out[..]));
                assert!(fault.is_some(), "{kind:?} cut to {length} of {}", coded.len());
            }
        }
    }
    const MAGIC: usize = super::MAGIC_BYTES;
}
