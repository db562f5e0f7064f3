//! tar archives (POSIX.1-2024 pax and ustar, GNU long names), read as a stream.
//!
//! Own reader because every length in a header is foreign: a long name may claim gigabytes, and is
//! read up to a cap here.

use super::shown_name;
use crate::model::limits::{MEMBER_HEADER_BYTES, MEMBERS};
use std::io::{self, Read};

/// Everything in a tar file is in blocks of this size.
const BLOCK: usize = 512;

/// Why a tar file could not be read on.
#[derive(Debug, thiserror::Error)]
pub enum TarError {
    /// It ends in the middle of something.
    #[error("the tar archive is cut off at its byte {0}")]
    Cut(u64),
    /// A header that is none.
    #[error("byte {0} of the tar archive is no header: damaged, or not tar from there on")]
    Damaged(u64),
    /// More members than are followed.
    #[error("the tar archive has more than {MEMBERS} members; the rest was passed over")]
    TooMany,
    /// What it is read from failed.
    #[error("the tar archive cannot be read on: {0}")]
    Read(#[from] io::Error),
}

/// A file in a tar archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name, to be shown.
    pub name: String,
    /// Its length, bytes.
    pub bytes: u64,
    /// Where its bytes begin in the archive.
    pub at: u64,
    /// Last modification, ns since the epoch.
    pub modified_ns: Option<i64>,
}

/// Do these first bytes (at least 512) begin a tar archive?
pub fn is_tar(head: &[u8]) -> bool {
    head.get(..BLOCK).is_some_and(|block| header(block).is_some())
}

/// Goes from file to file; the bytes of the current one are read from it with [`Read`].
pub struct TarReader<R> {
    source: R,
    /// Bytes taken from the source.
    at: u64,
    /// Bytes of the current file that were not read yet.
    left: u64,
    padding: u64,
    members: usize,
    ended: bool,
    pass: fn(&mut R, u64) -> io::Result<u64>,
}

/// What extended headers say of the next file.
#[derive(Default)]
struct Extended {
    name: Option<String>,
    bytes: Option<u64>,
    modified_ns: Option<i64>,
}

impl TarReader<super::Range> {
    /// A reader that does not read what is passed over.
    pub fn at_any_place(source: super::Range) -> TarReader<super::Range> {
        TarReader { pass: |source, bytes| Ok(source.pass(bytes)), ..TarReader::new(source) }
    }
}

impl<R: Read> TarReader<R> {
    /// A reader from the beginning of an archive.
    pub fn new(source: R) -> TarReader<R> {
        let pass = |source: &mut R, bytes| io::copy(&mut source.take(bytes), &mut io::sink());
        TarReader { source, at: 0, left: 0, padding: 0, members: 0, ended: false, pass }
    }

    /// What it is read from.
    pub fn source(&self) -> &R {
        &self.source
    }

    /// The next file; what was not read of the current one is passed over. None: the end.
    ///
    /// # Errors
    /// [`TarError`]; after one there is nothing more.
    pub fn next_entry(&mut self) -> Result<Option<Entry>, TarError> {
        if self.ended {
            return Ok(None);
        }
        let found = self.find();
        self.ended = !matches!(found, Ok(Some(_)));
        found
    }

    /// Bytes that the current file should still have; not 0 at the end of its bytes: it is cut off.
    pub fn missing(&self) -> u64 {
        self.left
    }

    fn find(&mut self) -> Result<Option<Entry>, TarError> {
        let mut extended = Extended::default();
        loop {
            let pass = self.left + self.padding;
            (self.left, self.padding) = (0, 0);
            self.skip(pass)?;
            let begin = self.at;
            let mut block = [0; BLOCK];
            match self.fill(&mut block)? {
                0 => return Ok(None),
                BLOCK => {}
                _ => return Err(TarError::Cut(self.at)),
            }
            if block.iter().all(|b| *b == 0) {
                return Ok(None);
            }
            let header = header(&block).ok_or(TarError::Damaged(begin))?;
            let bytes = if matches!(header.kind, b'x' | b'g' | b'L' | b'K') {
                header.bytes
            } else {
                extended.bytes.unwrap_or(header.bytes)
            };
            self.left = bytes;
            self.padding = bytes.next_multiple_of(BLOCK as u64).saturating_sub(bytes);
            match header.kind {
                b'x' => pax(&self.small()?, &mut extended),
                b'L' => {
                    let text = self.small()?;
                    let end = text.iter().position(|b| *b == 0).unwrap_or(text.len());
                    extended.name = Some(shown_name(text.get(..end).unwrap_or_default()));
                }
                // A file, contiguous or not; links and folders have no bytes, and sparse files not theirs.
                b'0' | 0 | b'7' if !header.is_folder => {
                    self.members += 1;
                    if self.members > MEMBERS {
                        return Err(TarError::TooMany);
                    }
                    let name = extended.name.take().unwrap_or(header.name);
                    let modified_ns = extended.modified_ns.or(header.modified_ns);
                    return Ok(Some(Entry { name, bytes, at: self.at, modified_ns }));
                }
                b'g' | b'K' => {}
                _ => extended = Extended::default(),
            }
        }
    }

    /// The bytes of an extended header, up to the cap.
    fn small(&mut self) -> Result<Vec<u8>, TarError> {
        let mut text = vec![0; usize::try_from(self.left).unwrap_or(usize::MAX).min(MEMBER_HEADER_BYTES)];
        let n = self.fill(&mut text)?;
        if n < text.len() {
            return Err(TarError::Cut(self.at));
        }
        self.left -= n as u64;
        Ok(text)
    }

    fn fill(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let mut have = 0;
        while let Some(space) = out.get_mut(have..).filter(|s| !s.is_empty()) {
            match self.source.read(space) {
                Ok(0) => break,
                Ok(n) => have += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        self.at += have as u64;
        Ok(have)
    }

    fn skip(&mut self, bytes: u64) -> Result<(), TarError> {
        let passed = (self.pass)(&mut self.source, bytes)?;
        self.at += passed;
        if passed < bytes { Err(TarError::Cut(self.at)) } else { Ok(()) }
    }
}

impl<R: Read> Read for TarReader<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let room = usize::try_from(self.left).unwrap_or(usize::MAX).min(out.len());
        let Some(space) = out.get_mut(..room).filter(|s| !s.is_empty()) else { return Ok(0) };
        let n = self.source.read(space)?;
        self.at += n as u64;
        self.left -= n as u64;
        Ok(n)
    }
}

struct Header {
    name: String,
    bytes: u64,
    modified_ns: Option<i64>,
    kind: u8,
    is_folder: bool,
}

/// A header block whose checksum fits (POSIX.1-2024 pax, "ustar Interchange Format").
fn header(block: &[u8]) -> Option<Header> {
    let field = |from: usize, bytes: usize| block.get(from..from + bytes);
    let told = number(field(148, 8)?)?;
    let sum: u64 =
        block.iter().enumerate().map(|(i, b)| if (148..156).contains(&i) { 32 } else { u64::from(*b) }).sum();
    if told != sum {
        return None;
    }
    let text = |bytes: &'_ [u8]| -> Vec<u8> { bytes.iter().copied().take_while(|b| *b != 0).collect() };
    let mut name = text(field(0, 100)?);
    // GNU tar uses the place of the prefix otherwise.
    if field(257, 6)? == b"ustar\0" {
        let mut prefix = text(field(345, 155)?);
        if !prefix.is_empty() {
            prefix.push(b'/');
            prefix.append(&mut name);
            name = prefix;
        }
    }
    let seconds = number(field(136, 12)?).and_then(|s| i64::try_from(s).ok());
    Some(Header {
        is_folder: name.ends_with(b"/"),
        name: shown_name(&name),
        bytes: number(field(124, 12)?)?,
        modified_ns: seconds.and_then(|s| s.checked_mul(1_000_000_000)),
        kind: *block.get(156)?,
    })
}

/// Octal digits, or (GNU) a number to base 256 where the first bit is set.
fn number(field: &[u8]) -> Option<u64> {
    if let Some((first, rest)) = field.split_first()
        && first & 0x80 != 0
    {
        return rest.iter().try_fold(u64::from(first & 0x7f), |n, b| n.checked_mul(256)?.checked_add(u64::from(*b)));
    }
    let digits = field.iter().skip_while(|b| **b == b' ').take_while(|b| !matches!(b, 0 | b' '));
    digits.into_iter().try_fold(0u64, |n, b| match b {
        b'0'..=b'7' => n.checked_mul(8)?.checked_add(u64::from(b - b'0')),
        _ => None,
    })
}

/// `LENGTH KEY=VALUE\n` records.
fn pax(text: &[u8], out: &mut Extended) {
    let mut rest = text;
    while let Some(space) = rest.iter().position(|b| *b == b' ') {
        let length = rest.get(..space).and_then(|d| std::str::from_utf8(d).ok()).and_then(|d| d.parse::<usize>().ok());
        let Some(record) = length.filter(|n| *n > space + 1).and_then(|n| rest.get(space + 1..n)) else { return };
        let record = record.strip_suffix(b"\n").unwrap_or(record);
        if let Some(equals) = record.iter().position(|b| *b == b'=')
            && let (Some(key), Some(value)) = (record.get(..equals), record.get(equals + 1..))
        {
            let said = || std::str::from_utf8(value).ok();
            match key {
                b"path" => out.name = Some(shown_name(value)),
                b"size" => out.bytes = said().and_then(|s| s.parse().ok()),
                b"mtime" => {
                    let seconds = said().and_then(|s| s.parse::<f64>().ok());
                    out.modified_ns = seconds.map(|s| (s * 1e9) as i64);
                }
                _ => {}
            }
        }
        rest = length.and_then(|n| rest.get(n..)).unwrap_or_default();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
pub(crate) mod tests {
    use super::{BLOCK, Entry, TarError, TarReader, is_tar};
    use std::io::Read;

    /// A header block with a checksum that fits.
    pub(crate) fn block(name: &[u8], bytes: u64, kind: u8) -> Vec<u8> {
        let mut b = vec![0; BLOCK];
        b[..name.len()].copy_from_slice(name);
        b[124..135].copy_from_slice(format!("{bytes:011o}").as_bytes());
        b[136..147].copy_from_slice(format!("{:011o}", 1_790_000_000).as_bytes());
        b[148..156].fill(b' ');
        b[156] = kind;
        b[257..263].copy_from_slice(b"ustar\0");
        let sum: u32 = b.iter().map(|b| u32::from(*b)).sum();
        b[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        b
    }

    /// A whole archive.
    pub(crate) fn archive(members: &[(&str, &[u8])]) -> Vec<u8> {
        let mut out = vec![];
        for (name, bytes) in members {
            out.extend(block(name.as_bytes(), bytes.len() as u64, b'0'));
            out.extend(*bytes);
            out.resize(out.len().next_multiple_of(BLOCK), 0);
        }
        out.resize(out.len() + 2 * BLOCK, 0);
        out
    }

    fn all(bytes: &[u8]) -> (Vec<(Entry, Vec<u8>)>, Option<TarError>) {
        let (mut tar, mut out) = (TarReader::new(bytes), vec![]);
        loop {
            match tar.next_entry() {
                Ok(None) => return (out, None),
                Err(e) => return (out, Some(e)),
                Ok(Some(entry)) => {
                    let mut content = vec![];
                    tar.read_to_end(&mut content).unwrap();
                    out.push((entry, content));
                }
            }
        }
    }

    #[test]
    fn files_long_names_and_folders() {
        let mut bytes = block(b"folder/", 0, b'5');
        let long = "x".repeat(300);
        bytes.extend(block(b"././@LongLink", long.len() as u64 + 1, b'L'));
        bytes.extend(long.as_bytes());
        bytes.resize(bytes.len().next_multiple_of(BLOCK), 0);
        bytes.extend(archive(&[("short", b"one")]));
        bytes.truncate(bytes.len() - 2 * BLOCK);
        let pax = b"18 path=caf\xc3\xa9.log\n22 mtime=1790000001.5\n";
        bytes.extend(block(b"pax", pax.len() as u64, b'x'));
        bytes.extend(pax);
        bytes.resize(bytes.len().next_multiple_of(BLOCK), 0);
        bytes.extend(archive(&[("replaced", b"two"), ("dir/plain", b"")]));
        let (found, error) = all(&bytes);
        assert!(error.is_none(), "{error:?}");
        let names: Vec<_> = found.iter().map(|(e, c)| (e.name.as_str(), c.as_slice())).collect();
        assert_eq!(names, [(long.as_str(), &b"one"[..]), ("café.log", b"two"), ("dir/plain", b"")]);
        assert_eq!(found[1].0.modified_ns, Some(1_790_000_001_500_000_000));
        let at = found[0].0.at as usize;
        assert_eq!(&bytes[at..at + 3], b"one");
        assert!(is_tar(&bytes) && !is_tar(&[0; 512]) && !is_tar(b"x"));
    }

    #[test]
    fn what_is_cut_or_damaged_gives_what_came_before() {
        let bytes = archive(&[("a", &[b'a'; 700]), ("b", &[b'b'; 700])]);
        let (found, error) = all(&bytes[..BLOCK * 3 + BLOCK + 100]);
        assert_eq!(found.len(), 2);
        assert_eq!(found[1].1.len(), 100);
        assert!(matches!(error, Some(TarError::Cut(_))), "{error:?}");
        let mut damaged = bytes.clone();
        damaged[BLOCK * 3 + 3] ^= 1;
        let (found, error) = all(&damaged);
        assert_eq!(found.len(), 1);
        assert!(matches!(error, Some(TarError::Damaged(1536))), "{error:?}");
    }

    #[test]
    fn a_long_name_that_claims_gigabytes_takes_no_memory() {
        let mut bytes = block(b"././@LongLink", 1 << 32, b'L');
        bytes.extend([b'x'; 4096]);
        assert!(matches!(all(&bytes).1, Some(TarError::Cut(_))));
    }
}
