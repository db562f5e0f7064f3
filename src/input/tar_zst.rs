//! Evidence bundles as `.tar.zst`: a POSIX.1-1988 (ustar) archive, each member in a zstd frame (RFC
//! 8878) of its own, so that damage to one leaves the others to be read, and behind them a skippable
//! frame with the SHA-256 of all, so that any byte that differs is told whatever version of zstd
//! packed it. Read in memory, never unpacked to disk; what is made to harm is refused as in
//! [`super::zip`].

use super::zip::{ArchiveError, leads_out};
use crate::model::limits::{BUNDLE_MEMBER_BYTES, BUNDLE_MEMBERS, BUNDLE_RATIO};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::io::Read;
use std::ops::Range;

/// What a zstd frame begins with.
pub const MAGIC: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
/// Magic number and length of the skippable frame behind it.
const SEAL: [u8; 8] = [0x5a, 0x2a, 0x4d, 0x18, 32, 0, 0, 0];
const SEAL_BYTES: usize = SEAL.len() + 32;
const BLOCK: usize = 512;
/// Level of compression; it and the version of zstd decide the bytes, and nothing else.
const LEVEL: i32 = 12;
/// The longest name, bytes.
pub const NAME_BYTES: usize = 100;
/// What may be unpacked whatever the ratio, bytes.
const SMALL: usize = 1 << 20;

/// The header of a member as a bundle has it: nothing of whoever wrote it, and no time.
pub fn header(name: &str, bytes: u64) -> [u8; BLOCK] {
    let mut out = [0; BLOCK];
    let mut put = |at: usize, text: &[u8]| {
        if let Some(place) = out.get_mut(at..at + text.len()) {
            place.copy_from_slice(text);
        }
    };
    put(0, name.as_bytes().get(..NAME_BYTES).unwrap_or(name.as_bytes()));
    put(100, b"0000644\0");
    put(108, b"0000000\0");
    put(116, b"0000000\0");
    put(124, format!("{bytes:011o}\0").as_bytes());
    put(136, b"00000000000\0");
    put(148, b"        ");
    put(156, b"0");
    put(257, b"ustar\x0000");
    let sum: u32 = out.iter().map(|b| u32::from(*b)).sum();
    if let Some(place) = out.get_mut(148..156) {
        place.copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    }
    out
}

/// Zeros from the end of a member to that of its last block.
pub fn padding(bytes: usize) -> usize {
    bytes.next_multiple_of(BLOCK) - bytes
}

/// Zeros behind the last member.
pub const END_BYTES: usize = 2 * BLOCK;

/// A member as it stands in a bundle.
///
/// # Errors
/// Those of zstd.
pub fn pack(name: &str, data: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut blocks = header(name, data.len() as u64).to_vec();
    blocks.extend(data);
    blocks.resize(blocks.len() + padding(data.len()), 0);
    frame(&blocks)
}

/// Ends a file of packed members.
///
/// # Errors
/// Those of zstd.
pub fn finish(file: &mut Vec<u8>) -> std::io::Result<()> {
    file.extend(frame(&[0; END_BYTES])?);
    let hash = Sha256::digest(&*file);
    file.extend(SEAL);
    file.extend(hash);
    Ok(())
}

fn frame(blocks: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = zstd::stream::write::Encoder::new(vec![], LEVEL)?;
    encoder.include_checksum(true)?;
    encoder.set_pledged_src_size(Some(blocks.len() as u64))?;
    std::io::Write::write_all(&mut encoder, blocks)?;
    encoder.finish()
}

/// What the frame behind the archive says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seal {
    /// The file is as it was written.
    Whole,
    /// It is not.
    Broken,
    /// There is none: another program packed it.
    None,
}

/// Looks at the frame behind the archive.
pub fn seal(file: &[u8]) -> Seal {
    let Some((before, seal)) = file.len().checked_sub(SEAL_BYTES).and_then(|at| file.split_at_checked(at)) else {
        return Seal::None;
    };
    match seal.split_at_checked(SEAL.len()) {
        Some((magic, hash)) if magic == SEAL && *hash == *Sha256::digest(before) => Seal::Whole,
        Some((magic, _)) if magic == SEAL => Seal::Broken,
        _ => Seal::None,
    }
}

/// The archive in a file.
///
/// # Errors
/// Where it is damaged, or would unpack to far more than it is.
pub fn unpack(file: &[u8]) -> Result<Vec<u8>, ArchiveError> {
    let damaged = |e: std::io::Error| ArchiveError::Damaged(format!("its compressed bytes are damaged: {e}"));
    let mut decoder = zstd::stream::read::Decoder::new(file).map_err(damaged)?;
    let limit = limit(file);
    let mut tar = vec![];
    decoder.by_ref().take(limit as u64 + 1).read_to_end(&mut tar).map_err(damaged)?;
    if tar.len() > limit {
        return Err(bomb());
    }
    Ok(tar)
}

/// To how much a file may unpack, bytes.
fn limit(file: &[u8]) -> usize {
    file.len().saturating_mul(BUNDLE_RATIO).clamp(SMALL, 2 * BUNDLE_MEMBER_BYTES)
}

fn bomb() -> ArchiveError {
    ArchiveError::Unsafe("the archive: it would unpack to far more than it is".to_owned())
}

/// A stretch of a damaged file.
#[derive(Debug, PartialEq, Eq)]
pub struct Piece {
    /// Where it stands in the file.
    pub place: Range<usize>,
    /// What it unpacks to; of a damaged one what comes before the damage.
    pub bytes: Vec<u8>,
    /// Is it a frame that can be read to its end?
    pub is_whole: bool,
}

impl Piece {
    /// The name of the member that begins here.
    pub fn name(&self) -> Option<&str> {
        let head = self.bytes.get(..BLOCK).filter(|head| is_header(head))?;
        std::str::from_utf8(text(head, 0..NAME_BYTES)).ok()
    }
}

/// All frames of a file, and the stretches between them that are none.
///
/// # Errors
/// [`ArchiveError::Unsafe`] if it would unpack to far more than it is.
pub fn pieces(file: &[u8]) -> Result<Vec<Piece>, ArchiveError> {
    let (mut out, mut at, mut left) = (vec![], 0, limit(file));
    while let Some(rest) = file.get(at..).filter(|rest| !rest.is_empty()) {
        if rest.starts_with(&SEAL) && rest.len() == SEAL_BYTES {
            break;
        }
        let (bytes, whole) = unpack_frame(rest, left);
        left = left.checked_sub(bytes.len()).ok_or_else(bomb)?;
        // Trying every place that looks like a beginning must not take forever in a file made for that.
        let is_last_try = out.len() > 2 * BUNDLE_MEMBERS;
        let next = || memchr::memmem::find(rest.get(1..)?, MAGIC).filter(|_| !is_last_try);
        let length = whole.unwrap_or_else(|| next().map_or(rest.len(), |n| n + 1));
        out.push(Piece { place: at..at + length, bytes, is_whole: whole.is_some() });
        at += length;
    }
    Ok(out)
}

/// What the frame at the beginning unpacks to, at most one byte more than `limit`, and its length if it
/// is whole.
fn unpack_frame(file: &[u8], limit: usize) -> (Vec<u8>, Option<usize>) {
    let mut bytes = vec![];
    let Ok(decoder) = zstd::stream::read::Decoder::with_buffer(file) else { return (bytes, None) };
    let mut decoder = decoder.single_frame();
    let read = decoder.by_ref().take(limit as u64 + 1).read_to_end(&mut bytes);
    let length = file.len() - decoder.finish().len();
    (bytes, read.is_ok().then_some(length).filter(|n| *n > 0))
}

/// Does this file begin as an archive whose first member has this name?
pub fn begins_with(file: impl Read, name: &str) -> bool {
    let mut head = [0; BLOCK];
    let read = zstd::stream::read::Decoder::new(file).and_then(|mut d| d.read_exact(&mut head));
    read.is_ok() && is_header(&head) && text(&head, 0..NAME_BYTES) == name.as_bytes()
}

/// An archive in memory.
#[derive(Debug)]
pub struct Tar {
    /// The archive, decompressed.
    pub bytes: Vec<u8>,
    members: Vec<(String, Range<usize>)>,
}

impl Tar {
    /// Reads all headers and checks that nothing is made to harm.
    ///
    /// # Errors
    /// [`ArchiveError`].
    pub fn new(bytes: Vec<u8>) -> Result<Tar, ArchiveError> {
        let mut found = Members::default();
        if !found.list(&bytes, 0)? {
            return Err(ArchiveError::Damaged("the archive: it is cut".to_owned()));
        }
        Ok(Tar { bytes, members: found.members })
    }

    /// Reads what is left of a damaged file.
    ///
    /// # Errors
    /// [`ArchiveError::Unsafe`] if what is left is made to harm.
    pub fn salvaged(pieces: &[Piece]) -> Result<Tar, ArchiveError> {
        let mut found = Members::default();
        let mut bytes = vec![];
        for piece in pieces {
            bytes.extend(&piece.bytes);
            match found.list(&bytes, bytes.len() - piece.bytes.len()) {
                Err(refused @ ArchiveError::Unsafe(_)) => return Err(refused),
                Ok(_) | Err(ArchiveError::Damaged(_)) => {}
            }
        }
        Ok(Tar { bytes, members: found.members })
    }

    /// Names of the members.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.members.iter().map(|(name, _)| name.as_str())
    }

    /// A member's bytes.
    pub fn read(&self, name: &str) -> Option<&[u8]> {
        let (_, range) = self.members.iter().find(|(n, _)| n == name)?;
        self.bytes.get(range.clone())
    }
}

fn text(head: &[u8], field: Range<usize>) -> &[u8] {
    let field = head.get(field).unwrap_or_default();
    let end = field.iter().position(|b| *b == 0).unwrap_or(field.len());
    field.get(..end).unwrap_or_default()
}

fn octal(head: &[u8], field: Range<usize>) -> Option<u64> {
    let digits = text(head, field).trim_ascii();
    let digits = std::str::from_utf8(digits).ok()?;
    u64::from_str_radix(digits, 8).ok()
}

fn is_header(head: &[u8]) -> bool {
    let plain = |(at, b): (usize, &u8)| if (148..156).contains(&at) { u32::from(b' ') } else { u32::from(*b) };
    let sum: u32 = head.iter().enumerate().map(plain).sum();
    head.get(257..262) == Some(b"ustar") && octal(head, 148..156) == Some(u64::from(sum))
}

/// The members found so far.
#[derive(Default)]
struct Members {
    members: Vec<(String, Range<usize>)>,
    names: BTreeSet<String>,
}

impl Members {
    /// Takes the members from `at` on; says whether the mark of the archive's end follows the last.
    fn list(&mut self, tar: &[u8], mut at: usize) -> Result<bool, ArchiveError> {
        let damaged = |what: &str| ArchiveError::Damaged(format!("the archive: {what}"));
        let refuse = |name: &str, why: &str| Err(ArchiveError::Unsafe(format!("{}: {why}", name.escape_debug())));
        while at < tar.len() {
            let head = tar.get(at..at + BLOCK).ok_or_else(|| damaged("it is cut"))?;
            if head.iter().all(|b| *b == 0) {
                return Ok(true);
            }
            if !is_header(head) {
                return Err(damaged("a header is damaged"));
            }
            let bytes = octal(head, 124..136).and_then(|n| usize::try_from(n).ok());
            let bytes = bytes.filter(|n| *n <= BUNDLE_MEMBER_BYTES).ok_or_else(|| damaged("a member is too long"))?;
            let data = at + BLOCK..at + BLOCK + bytes;
            let held = tar.get(data.clone()).ok_or_else(|| damaged("it is cut"))?;
            at = data.end + padding(bytes);
            let parts = [text(head, 345..500), text(head, 0..NAME_BYTES)];
            let name = parts.into_iter().filter(|p| !p.is_empty()).collect::<Vec<_>>().join(&b'/');
            let name = String::from_utf8(name).map_err(|_| damaged("a name is no UTF-8"))?;
            match head.get(156) {
                Some(b'0' | 0) => {}
                Some(b'5') if bytes == 0 && !leads_out(name.trim_start_matches("./").trim_end_matches('/')) => continue,
                // Times and owners in extended headers say nothing here; names and lengths would.
                Some(b'x' | b'g') if !names_a_file(held) => continue,
                _ => return refuse(&name, "no plain file"),
            }
            let name = name.strip_prefix("./").unwrap_or(&name).to_owned();
            if leads_out(&name) {
                return refuse(&name, "the path leads out of the archive");
            }
            if !self.names.insert(name.to_lowercase()) {
                return refuse(&name, "the name occurs twice");
            }
            if self.names.len() > BUNDLE_MEMBERS {
                return refuse("the archive", "more members than the limit");
            }
            self.members.push((name, data));
        }
        Ok(false)
    }
}

fn names_a_file(extended: &[u8]) -> bool {
    let has = |key: &[u8]| memchr::memmem::find(extended, key).is_some();
    has(b"path=") || has(b"size=") || has(b"sparse")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn tar(members: &[(&str, &[u8])]) -> Vec<u8> {
        let mut out = vec![];
        for (name, data) in members {
            out.extend(header(name, data.len() as u64));
            out.extend(*data);
            out.resize(out.len() + padding(data.len()), 0);
        }
        out.resize(out.len() + END_BYTES, 0);
        out
    }

    fn bundle(members: &[(&str, &[u8])]) -> Vec<u8> {
        let mut file: Vec<u8> = members.iter().flat_map(|(name, data)| pack(name, data).unwrap()).collect();
        finish(&mut file).unwrap();
        file
    }

    #[test]
    fn members_are_found_and_read() {
        let members: [(&str, &[u8]); 2] = [("a.txt", b"one"), ("b/c.txt", b"")];
        let file = bundle(&members);
        assert_eq!(bundle(&members), file);
        assert_eq!(unpack(&file).unwrap(), tar(&members));
        assert_eq!(seal(&file), Seal::Whole);
        assert!(begins_with(&file[..], "a.txt") && !begins_with(&file[..], "a.tx"));
        let read = Tar::new(unpack(&file).unwrap()).unwrap();
        assert_eq!(read.names().collect::<Vec<_>>(), ["a.txt", "b/c.txt"]);
        assert_eq!(
            (read.read("a.txt"), read.read("b/c.txt"), read.read("x")),
            (Some(&b"one"[..]), Some(&b""[..]), None)
        );
    }

    #[test]
    fn what_is_made_to_harm_is_refused() {
        let refused = |bytes: Vec<u8>| match Tar::new(bytes) {
            Err(ArchiveError::Unsafe(why)) => why,
            other => format!("{other:?}"),
        };
        for name in ["../x", "/etc/passwd", "a/../../x", "..\\x", "C:x", "a//b"] {
            assert!(refused(tar(&[(name, b"")])).contains("leads out"), "{name}");
        }
        assert!(refused(tar(&[("a", b""), ("A", b"")])).contains("twice"));
        // A symbolic link, with its checksum right.
        let mut link = tar(&[("a", b"")]);
        link[156] = b'2';
        link[148..156].copy_from_slice(b"        ");
        let sum: u32 = link[..BLOCK].iter().map(|b| u32::from(*b)).sum();
        link[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        assert!(refused(link).contains("no plain file"));
        let bomb = pack("a", &vec![0; 64 << 20]).unwrap();
        assert!(matches!(unpack(&bomb), Err(ArchiveError::Unsafe(_))), "{} bytes", bomb.len());
        assert!(matches!(pieces(&bomb), Err(ArchiveError::Unsafe(_))), "{} bytes", bomb.len());
    }

    #[test]
    fn damage_is_an_error_and_breaks_the_seal() {
        let bytes = tar(&[("a.txt", b"some text"), ("b", b"more")]);
        for length in 0..bytes.len() - END_BYTES {
            assert!(Tar::new(bytes[..length].to_vec()).is_err(), "{length}");
        }
        let file = bundle(&[("a.txt", b"some text"), ("b", b"more")]);
        for at in 0..file.len() {
            let mut changed = file.clone();
            changed[at] ^= 0x41;
            assert_ne!(seal(&changed), Seal::Whole, "{at}");
            let _ = unpack(&changed).and_then(Tar::new);
        }
    }

    #[test]
    fn damage_to_one_member_leaves_the_others() {
        let members: [(&str, &[u8]); 3] = [("a.txt", b"some text"), ("b", b"more of it"), ("c", b"the rest")];
        let first = pack(members[0].0, members[0].1).unwrap().len();
        let second = first + pack(members[1].0, members[1].1).unwrap().len();
        let file = bundle(&members);
        for at in first..second {
            let mut changed = file.clone();
            changed[at] ^= 0x41;
            let left = Tar::salvaged(&pieces(&changed).unwrap()).unwrap();
            assert_eq!((left.read("a.txt"), left.read("c")), (Some(members[0].1), Some(members[2].1)), "{at}");
        }
        // Packed as a whole, what stands before the damage.
        let (noise, mut state) = (&mut vec![], 1u32);
        for _ in 0..1 << 20 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            noise.push((state >> 24) as u8);
        }
        let mut file = frame(&tar(&[("a.txt", b"some text"), ("b", noise)])).unwrap();
        let middle = file.len() / 2;
        file.truncate(middle);
        let left = Tar::salvaged(&pieces(&file).unwrap()).unwrap();
        assert_eq!((left.read("a.txt"), left.read("b")), (Some(&b"some text"[..]), None));
    }
}
