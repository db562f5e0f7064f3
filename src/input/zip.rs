//! ZIP archives (PKWARE APPNOTE 6.3), as far as evidence bundles need them: stored and deflated
//! members, no encryption, no ZIP64. Nothing is ever unpacked to disk, and archives that are made
//! to harm (paths that lead out, names that occur twice, members that swell) are refused.

use crate::model::limits::{BUNDLE_MEMBER_BYTES, BUNDLE_MEMBERS, BUNDLE_RATIO};
use std::collections::BTreeSet;
use std::io::Read;
use std::ops::Range;

/// What a ZIP archive that holds a member begins with.
pub const MAGIC: &[u8] = b"PK\x03\x04";
const LOCAL_BYTES: usize = 30;
const CENTRAL_BYTES: usize = 46;
const END_BYTES: usize = 22;
/// The longest comment that an archive may end with.
const COMMENT_BYTES: usize = 65_535;
/// 1980-01-01, the earliest date there is: times are not kept here.
const DATE: u16 = 0x21;

/// Why an archive is not read.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ArchiveError {
    /// It is none, or damaged.
    #[error("{0}")]
    Damaged(String),
    /// It is made to harm.
    #[error("refused: {0}")]
    Unsafe(String),
}

/// A member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its name, with `/` between folders.
    pub name: String,
    /// 0 stored, 8 deflated.
    pub method: u16,
    /// CRC-32 of its bytes.
    pub crc: u32,
    /// Its length in the archive, bytes.
    pub packed: u32,
    /// Its length, bytes.
    pub bytes: u32,
    /// Where its header begins.
    pub offset: u32,
}

impl Member {
    /// The header before its bytes, as a bundle has it.
    pub fn local_header(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        self.common(&mut out);
        out.extend([0, 0]);
        out.extend(self.name.as_bytes());
        out
    }

    fn central_header(&self) -> Vec<u8> {
        let mut out = b"PK\x01\x02".to_vec();
        out.extend(20u16.to_le_bytes());
        self.common(&mut out);
        out.extend([0; 12]);
        out.extend(self.offset.to_le_bytes());
        out.extend(self.name.as_bytes());
        out
    }

    fn common(&self, out: &mut Vec<u8>) {
        for field in [20, 0, self.method, 0, DATE] {
            out.extend(field.to_le_bytes());
        }
        for field in [self.crc, self.packed, self.bytes] {
            out.extend(field.to_le_bytes());
        }
        out.extend((self.name.len() as u16).to_le_bytes());
    }
}

/// The directory that follows the members, as a bundle has it; `at` is where it begins.
pub fn directory(members: &[Member], at: u32) -> Vec<u8> {
    let mut out = vec![];
    for member in members {
        out.extend(member.central_header());
    }
    let length = out.len() as u32;
    let count = (members.len() as u16).to_le_bytes();
    out.extend(b"PK\x05\x06\0\0\0\0");
    out.extend(count);
    out.extend(count);
    out.extend(length.to_le_bytes());
    out.extend(at.to_le_bytes());
    out.extend([0, 0]);
    out
}

/// An archive in memory.
#[derive(Debug)]
pub struct Zip {
    /// The file.
    pub file: Vec<u8>,
    /// Its members as its directory lists them.
    pub members: Vec<Member>,
}

impl Zip {
    /// Reads the directory and checks that nothing in it is made to harm.
    ///
    /// # Errors
    /// [`ArchiveError`].
    pub fn new(file: Vec<u8>) -> Result<Zip, ArchiveError> {
        let members = list(&file)?;
        check(&members)?;
        Ok(Zip { file, members })
    }

    /// The member of this name.
    pub fn find(&self, name: &str) -> Option<&Member> {
        self.members.iter().find(|m| m.name == name)
    }

    /// Where a member's packed bytes are.
    pub fn packed(&self, member: &Member) -> Option<Range<usize>> {
        let offset = member.offset as usize;
        let head = self.file.get(offset..offset + LOCAL_BYTES)?;
        if !head.starts_with(MAGIC) {
            return None;
        }
        let start = offset + LOCAL_BYTES + usize::from(u16_at(head, 26)?) + usize::from(u16_at(head, 28)?);
        let end = start.checked_add(member.packed as usize)?;
        (end <= self.file.len()).then_some(start..end)
    }

    /// A member's bytes.
    ///
    /// # Errors
    /// If it is damaged, longer than it says, or packed in a way that is not read.
    pub fn read(&self, member: &Member) -> Result<Vec<u8>, ArchiveError> {
        let damaged = |what: &str| ArchiveError::Damaged(format!("{}: {what}", member.name));
        let packed =
            self.packed(member).and_then(|r| self.file.get(r)).ok_or_else(|| damaged("its bytes are not there"))?;
        let bytes = unpack(member, packed)?;
        let mut crc = flate2::Crc::new();
        crc.update(&bytes);
        if crc.sum() != member.crc {
            return Err(damaged("its checksum differs"));
        }
        Ok(bytes)
    }
}

/// The bytes of a member from its packed ones; never more than it says.
///
/// # Errors
/// If they cannot be unpacked to exactly its length.
pub fn unpack(member: &Member, packed: &[u8]) -> Result<Vec<u8>, ArchiveError> {
    let damaged = |what: &str| ArchiveError::Damaged(format!("{}: {what}", member.name));
    let mut bytes = vec![];
    match member.method {
        0 => bytes.extend_from_slice(packed),
        8 => {
            let limit = u64::from(member.bytes).min(BUNDLE_MEMBER_BYTES as u64) + 1;
            let mut inflate = flate2::read::DeflateDecoder::new(packed).take(limit);
            inflate.read_to_end(&mut bytes).map_err(|_| damaged("its compressed bytes are damaged"))?;
        }
        _ => return Err(damaged("packed in a way that is not read; expected stored or deflated")),
    }
    if bytes.len() != member.bytes as usize {
        return Err(damaged("its length differs"));
    }
    Ok(bytes)
}

fn check(members: &[Member]) -> Result<(), ArchiveError> {
    let refuse = |name: &str, why: &str| Err(ArchiveError::Unsafe(format!("{}: {why}", name.escape_debug())));
    let mut names = BTreeSet::new();
    let total: u64 = members.iter().map(|m| u64::from(m.bytes)).sum();
    if total > 2 * BUNDLE_MEMBER_BYTES as u64 {
        return refuse("the archive", "it would unpack to more than the limit");
    }
    if members.len() > BUNDLE_MEMBERS {
        return refuse("the archive", "more members than the limit");
    }
    for m in members {
        if leads_out(&m.name) {
            return refuse(&m.name, "the path leads out of the archive");
        }
        if !names.insert(m.name.to_lowercase()) {
            return refuse(&m.name, "the name occurs twice");
        }
        let ratio = u64::from(m.bytes) / u64::from(m.packed.max(1));
        if m.bytes as usize > BUNDLE_MEMBER_BYTES || (m.bytes > 1 << 16 && ratio > BUNDLE_RATIO as u64) {
            return refuse(&m.name, "it would unpack to far more than it is");
        }
    }
    let mut spans: Vec<(u64, u64)> = members
        .iter()
        .map(|m| (m.offset.into(), u64::from(m.offset) + u64::from(m.packed) + LOCAL_BYTES as u64))
        .collect();
    spans.sort_unstable();
    if spans.windows(2).any(|w| matches!(w, [a, b] if a.1 > b.0)) {
        return refuse("the archive", "members overlap");
    }
    Ok(())
}

/// Would this name be written outside of the folder that an archive is unpacked in?
pub fn leads_out(name: &str) -> bool {
    name.is_empty()
        || name.starts_with('/')
        || name.contains(['\\', ':', '\0'])
        || name.split('/').any(|part| part == ".." || part == "." || part.is_empty())
        || name.chars().any(char::is_control)
}

fn list(file: &[u8]) -> Result<Vec<Member>, ArchiveError> {
    let damaged = |what: &str| ArchiveError::Damaged(format!("the archive's directory {what}"));
    let from = file.len().saturating_sub(END_BYTES + COMMENT_BYTES);
    let tail = file.get(from..).unwrap_or_default();
    let end = memchr::memmem::rfind(tail, b"PK\x05\x06").ok_or_else(|| damaged("is not there"))?;
    let end = tail.get(end..end + END_BYTES).ok_or_else(|| damaged("is cut"))?;
    let (count, at) = u16_at(end, 10).zip(u32_at(end, 16)).ok_or_else(|| damaged("is cut"))?;
    let mut at = at as usize;
    let mut members = vec![];
    for _ in 0..count {
        let head = file
            .get(at..at + CENTRAL_BYTES)
            .filter(|h| h.starts_with(b"PK\x01\x02"))
            .ok_or_else(|| damaged("is damaged"))?;
        let short = |i: usize| u16_at(head, i).map(usize::from).unwrap_or(0);
        let long = |i: usize| u32_at(head, i).unwrap_or(0);
        let name = file.get(at + CENTRAL_BYTES..at + CENTRAL_BYTES + short(28)).ok_or_else(|| damaged("is cut"))?;
        let name = std::str::from_utf8(name).map_err(|_| damaged("holds a name that is no text"))?;
        if short(8) & 1 != 0 {
            return Err(ArchiveError::Damaged(format!("{}: it is encrypted", name.escape_debug())));
        }
        // Unix file type in the upper half of the external attributes: a link leads anywhere.
        if long(38) >> 28 == 0xa {
            return Err(ArchiveError::Unsafe(format!("{}: it is a link", name.escape_debug())));
        }
        members.push(Member {
            name: name.to_owned(),
            method: short(10) as u16,
            crc: long(16),
            packed: long(20),
            bytes: long(24),
            offset: long(42),
        });
        at += CENTRAL_BYTES + short(28) + short(30) + short(32);
    }
    // A folder's own entry holds nothing.
    members.retain(|m| !(m.name.ends_with('/') && m.bytes == 0 && !leads_out(m.name.trim_end_matches('/'))));
    Ok(members)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn zip(members: &[(&str, &[u8], u32)]) -> Vec<u8> {
        let (mut file, mut list) = (vec![], vec![]);
        for (name, data, bytes) in members {
            let mut crc = flate2::Crc::new();
            crc.update(data);
            let (crc, packed, offset) = (crc.sum(), data.len() as u32, file.len() as u32);
            let member = Member { name: (*name).to_owned(), method: 0, crc, packed, bytes: *bytes, offset };
            file.extend(member.local_header());
            file.extend(*data);
            list.push(member);
        }
        let at = file.len() as u32;
        file.extend(directory(&list, at));
        file
    }

    #[test]
    fn members_are_found_and_read() {
        let zip = Zip::new(zip(&[("a.txt", b"one", 3), ("b/c.txt", b"", 0)])).unwrap();
        assert_eq!(zip.read(zip.find("a.txt").unwrap()).unwrap(), b"one");
        assert_eq!(zip.read(zip.find("b/c.txt").unwrap()).unwrap(), b"");
        assert!(zip.find("c.txt").is_none());
    }

    #[test]
    fn what_is_made_to_harm_is_refused() {
        let refused = |members: &[(&str, &[u8], u32)]| match Zip::new(zip(members)) {
            Err(ArchiveError::Unsafe(why)) => why,
            other => format!("{other:?}"),
        };
        for name in ["../x", "/etc/passwd", "a/../../x", "..\\x", "C:x", "a//b", "./a", "a\0b"] {
            assert!(refused(&[(name, b"", 0)]).contains("leads out"), "{name}");
        }
        assert!(refused(&[("a", b"", 0), ("A", b"", 0)]).contains("twice"));
        assert!(refused(&[("a", b"x", 1 << 31)]).contains("far more"));
        assert!(refused(&[("a", b"xyz", 1 << 20)]).contains("far more"));
    }

    #[test]
    fn damage_is_an_error() {
        let whole = zip(&[("a.txt", b"some text", 9), ("b", b"more", 4)]);
        for length in 0..whole.len() {
            assert!(matches!(Zip::new(whole[..length].to_vec()), Err(ArchiveError::Damaged(_))), "{length}");
        }
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 0xff;
            if let Ok(zip) = Zip::new(changed) {
                zip.members.iter().for_each(|m| drop(zip.read(m)));
            }
        }
    }
}
