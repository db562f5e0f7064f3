//! The directory of a zip archive of any size (PKWARE APPNOTE 6.3.10, ZIP64), read where it stands.
//!
//! Evidence bundles have a stricter reader of their own; this one takes what exists in the field,
//! one member at a time, and names what it cannot read.

use super::{Blob, Packing, Range, Spot, shown_name};
use crate::model::limits::{MEMBERS, ZIP_DIRECTORY_BYTES};
use std::io::Read;
use std::sync::Arc;

/// What the first member's header begins with.
const LOCAL: &[u8] = b"PK\x03\x04";
const CENTRAL: &[u8] = b"PK\x01\x02";
const END: &[u8] = b"PK\x05\x06";
const END_64: &[u8] = b"PK\x06\x06";
const END_64_LOCATOR: &[u8] = b"PK\x06\x07";
const END_BYTES: usize = 22;
const LOCATOR_BYTES: usize = 20;
/// The longest comment behind the end record.
const COMMENT_BYTES: usize = 65_535;

/// Why the members of a zip archive are not known.
#[derive(Debug, thiserror::Error)]
pub enum ZipError {
    /// The record at its end, which says where the directory is, is not there.
    #[error("the zip archive has no end record: it is cut off or damaged")]
    NoEnd,
    /// The directory is not what the end record says.
    #[error("the directory of the zip archive is damaged at its entry {0}")]
    Damaged(usize),
    /// Larger than is read.
    #[error(
        "the directory of the zip archive is larger than the limit of {ZIP_DIRECTORY_BYTES} bytes or {MEMBERS} members"
    )]
    TooLarge,
    /// What it is read from failed.
    #[error("the zip archive cannot be read: {0}")]
    Read(#[from] std::io::Error),
}

/// A member, or why it is none that can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its name, to be shown.
    pub name: String,
    /// Its length as the directory says, bytes.
    pub bytes: u64,
    /// Where it is, or what keeps it from being read.
    pub spot: Result<Spot, String>,
}

/// Do these first bytes begin a zip archive with members?
pub fn is_zip(head: &[u8]) -> bool {
    head.starts_with(LOCAL)
}

/// The files in an archive, in order of its directory.
///
/// # Errors
/// [`ZipError`].
pub fn members(blob: &Arc<dyn Blob>) -> Result<Vec<Member>, ZipError> {
    let (at, bytes) = directory(blob)?;
    let length = usize::try_from(bytes).ok().filter(|n| *n <= ZIP_DIRECTORY_BYTES).ok_or(ZipError::TooLarge)?;
    let mut directory = Vec::new();
    Range::new(blob.clone(), at, length as u64).read_to_end(&mut directory)?;
    let (mut out, mut rest) = (vec![], directory.as_slice());
    while rest.starts_with(CENTRAL) {
        let damaged = || ZipError::Damaged(out.len());
        let entry = Entry::read(rest).ok_or_else(damaged)?;
        rest = rest.get(entry.length..).ok_or_else(damaged)?;
        if out.len() >= MEMBERS {
            return Err(ZipError::TooLarge);
        }
        if !entry.name.ends_with(b"/") {
            let spot = entry.spot(blob);
            out.push(Member { name: shown_name(entry.name), bytes: entry.bytes, spot });
        }
    }
    if rest.is_empty() && directory.len() == length { Ok(out) } else { Err(ZipError::Damaged(out.len())) }
}

/// Where the directory is and how long.
fn directory(blob: &Arc<dyn Blob>) -> Result<(u64, u64), ZipError> {
    let window = (END_BYTES + COMMENT_BYTES + LOCATOR_BYTES) as u64;
    let from = blob.length().saturating_sub(window);
    let mut tail = Vec::new();
    Range::new(blob.clone(), from, window).read_to_end(&mut tail)?;
    let end = (0..tail.len().saturating_sub(END_BYTES - 1)).rev().find(|i| {
        let record = tail.get(*i..).unwrap_or_default();
        record.starts_with(END)
            && u16_at(record, 20).is_some_and(|comment| usize::from(comment) + END_BYTES <= record.len())
    });
    let end = end.ok_or(ZipError::NoEnd)?;
    let record = tail.get(end..).unwrap_or_default();
    let locator =
        end.checked_sub(LOCATOR_BYTES).and_then(|i| tail.get(i..end)).filter(|l| l.starts_with(END_64_LOCATOR));
    if let Some(at) = locator.and_then(|l| u64_at(l, 8)) {
        let mut large = Vec::new();
        Range::new(blob.clone(), at, 56).read_to_end(&mut large)?;
        let fields = u64_at(&large, 48).zip(u64_at(&large, 40)).filter(|_| large.starts_with(END_64));
        return fields.ok_or(ZipError::NoEnd);
    }
    let fields = u32_at(record, 16).zip(u32_at(record, 12));
    fields.map(|(at, bytes)| (at.into(), bytes.into())).ok_or(ZipError::NoEnd)
}

struct Entry<'a> {
    name: &'a [u8],
    flags: u16,
    method: u16,
    packed_bytes: u64,
    bytes: u64,
    header_at: u64,
    /// Of this entry.
    length: usize,
}

impl Entry<'_> {
    fn read(entry: &[u8]) -> Option<Entry<'_>> {
        let (name, extra, comment) =
            (u16_at(entry, 28)? as usize, u16_at(entry, 30)? as usize, u16_at(entry, 32)? as usize);
        let mut out = Entry {
            name: entry.get(46..46 + name)?,
            flags: u16_at(entry, 8)?,
            method: u16_at(entry, 10)?,
            packed_bytes: u32_at(entry, 20)?.into(),
            bytes: u32_at(entry, 24)?.into(),
            header_at: u32_at(entry, 42)?.into(),
            length: 46 + name + extra + comment,
        };
        out.large(entry.get(46 + name..46 + name + extra)?);
        Some(out)
    }

    /// The extra field of ZIP64 has those of three numbers that do not fit, in this order.
    fn large(&mut self, mut extra: &[u8]) {
        while let (Some(id), Some(bytes)) = (u16_at(extra, 0), u16_at(extra, 2)) {
            let Some(field) = extra.get(4..4 + usize::from(bytes)) else { return };
            if id == 1 {
                let mut at = 0;
                for number in [&mut self.bytes, &mut self.packed_bytes, &mut self.header_at] {
                    if *number == u64::from(u32::MAX) {
                        *number = u64_at(field, at).unwrap_or(*number);
                        at += 8;
                    }
                }
            }
            extra = extra.get(4 + usize::from(bytes)..).unwrap_or_default();
        }
    }

    fn spot(&self, blob: &Arc<dyn Blob>) -> Result<Spot, String> {
        if self.flags & 1 != 0 {
            return Err("it is encrypted".to_owned());
        }
        let packing = match self.method {
            // bzip2, zstd and xz begin with their own magic numbers, as a compressed file does.
            0 | 12 | 93 | 95 => Packing::Stored,
            8 => Packing::Deflated,
            other => return Err(format!("it is packed by method {other}; 0, 8, 12, 93 and 95 are read")),
        };
        let mut local = [0; 30];
        let mut range = Range::new(blob.clone(), self.header_at, 30);
        range.read_exact(&mut local).map_err(|e| format!("its header is not there: {e}"))?;
        let lengths = u16_at(&local, 26).zip(u16_at(&local, 28)).filter(|_| local.starts_with(LOCAL));
        let (name, extra) = lengths.ok_or("its header is damaged")?;
        let at = self.header_at.saturating_add(30 + u64::from(name) + u64::from(extra));
        if at.saturating_add(self.packed_bytes) > blob.length() {
            return Err("its bytes are not all there".to_owned());
        }
        Ok(Spot { at, packed_bytes: self.packed_bytes, packing })
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
pub(crate) mod tests {
    use super::{ZipError, members};
    use crate::input::archive::{Blob, MemberOpener, MemoryBlob};
    use crate::input::packed::Opener;
    use std::io::{Read, Write};
    use std::sync::Arc;

    /// A zip archive, its members deflated if that is asked, with ZIP64 fields throughout if `large`.
    pub(crate) fn archive(members: &[(&str, &[u8], bool)], large: bool) -> Vec<u8> {
        let (mut out, mut central) = (vec![], vec![]);
        for (name, bytes, deflated) in members {
            let mut packed = bytes.to_vec();
            if *deflated {
                let mut w = flate2::write::DeflateEncoder::new(vec![], flate2::Compression::default());
                w.write_all(bytes).unwrap();
                packed = w.finish().unwrap();
            }
            let at = out.len() as u64;
            let method: u16 = if *deflated { 8 } else { 0 };
            let mut common = vec![];
            common.extend([20, 0, 0, 0]);
            common.extend(method.to_le_bytes());
            common.extend([0; 8]);
            let (mut packed_bytes, mut plain_bytes, mut header_at) =
                (packed.len() as u32, bytes.len() as u32, at as u32);
            let mut extra = vec![];
            if large {
                extra.extend([1, 0, 24, 0]);
                for n in [u64::from(plain_bytes), u64::from(packed_bytes), at] {
                    extra.extend(n.to_le_bytes());
                }
                (packed_bytes, plain_bytes, header_at) = (u32::MAX, u32::MAX, u32::MAX);
            }
            common.extend(packed_bytes.to_le_bytes());
            common.extend(plain_bytes.to_le_bytes());
            common.extend((name.len() as u16).to_le_bytes());
            out.extend(b"PK\x03\x04");
            out.extend(&common);
            out.extend([0, 0]);
            out.extend(name.as_bytes());
            out.extend(packed);
            central.extend(b"PK\x01\x02\x14\0");
            central.extend(&common);
            central.extend((extra.len() as u16).to_le_bytes());
            central.extend([0; 10]);
            central.extend(header_at.to_le_bytes());
            central.extend(name.as_bytes());
            central.extend(extra);
        }
        let (at, bytes) = (out.len() as u64, central.len() as u64);
        out.extend(central);
        if large {
            let end = out.len() as u64;
            out.extend(b"PK\x06\x06");
            out.extend([0; 36]);
            out.extend(bytes.to_le_bytes());
            out.extend(at.to_le_bytes());
            out.extend(b"PK\x06\x07\0\0\0\0");
            out.extend(end.to_le_bytes());
            out.extend([1, 0, 0, 0]);
        }
        out.extend(b"PK\x05\x06");
        out.extend([0; 8]);
        out.extend(if large { u32::MAX } else { bytes as u32 }.to_le_bytes());
        out.extend(if large { u32::MAX } else { at as u32 }.to_le_bytes());
        out.extend([0, 0]);
        out
    }

    fn blob(bytes: Vec<u8>) -> Arc<dyn Blob> {
        Arc::new(MemoryBlob(bytes))
    }

    #[test]
    fn members_are_found_and_read() {
        for large in [false, true] {
            let text = b"some text ".repeat(100);
            let zip = blob(archive(&[("a/b.log", &text, true), ("c", b"stored", false)], large));
            let found = members(&zip).unwrap();
            let read: Vec<_> = found
                .iter()
                .map(|m| {
                    let opener = MemberOpener { blob: zip.clone(), spot: m.spot.clone().unwrap() };
                    let mut out = vec![];
                    opener.open().unwrap().read_to_end(&mut out).unwrap();
                    (m.name.as_str(), out)
                })
                .collect();
            assert_eq!(read, [("a/b.log", text), ("c", b"stored".to_vec())]);
        }
    }

    #[test]
    fn every_cut_and_every_changed_byte_is_an_error_or_a_member() {
        let whole = archive(&[("a", b"0123456789", true), ("b", b"x", false)], false);
        for n in 0..whole.len() {
            assert!(members(&blob(whole[..n].to_vec())).is_err(), "cut at {n}");
            let mut changed = whole.clone();
            changed[n] ^= 0xff;
            if let Ok(found) = members(&blob(changed)) {
                assert!(found.len() <= 2);
            }
        }
        assert!(matches!(members(&blob(vec![])), Err(ZipError::NoEnd)));
    }
}
