//! Writes bundles: ZIP archives of which every byte follows from the members, so that `verify` can
//! tell any change.

use crate::input::zip::{Member, directory};
use anyhow::bail;
use std::io::Write;

/// Members that are smaller are stored as they are, bytes.
const WORTH_PACKING: usize = 512;

/// An archive being written.
#[derive(Default)]
pub struct Archive {
    file: Vec<u8>,
    members: Vec<Member>,
}

/// A member, packed.
pub struct Packed {
    /// Its header, but for where it stands.
    pub member: Member,
    /// Its bytes in the archive.
    pub bytes: Vec<u8>,
}

/// Packs a member; stored where that is asked for, or shorter.
pub fn pack(name: &str, data: &[u8], is_stored: bool) -> Packed {
    let mut deflated = vec![];
    if !is_stored && data.len() >= WORTH_PACKING {
        let mut encoder = flate2::write::DeflateEncoder::new(vec![], flate2::Compression::new(6));
        // Writing to memory does not fail; if it did, the member would be stored.
        if encoder.write_all(data).is_ok() {
            deflated = encoder.finish().unwrap_or_default();
        }
    }
    // What packs so well that it looks like a bomb is stored.
    let is_safe = data.len() / deflated.len().max(1) < crate::model::limits::BUNDLE_RATIO / 2;
    let is_packed = !deflated.is_empty() && deflated.len() < data.len() && is_safe;
    let bytes = if is_packed { deflated } else { data.to_vec() };
    let mut crc = flate2::Crc::new();
    crc.update(data);
    let member = Member {
        name: name.to_owned(),
        method: if is_packed { 8 } else { 0 },
        crc: crc.sum(),
        packed: bytes.len() as u32,
        bytes: data.len() as u32,
        offset: 0,
    };
    Packed { member, bytes }
}

impl Archive {
    /// Adds a member behind the others.
    ///
    /// # Errors
    /// If the archive grows beyond what ZIP can hold.
    pub fn add(&mut self, packed: Packed) -> anyhow::Result<()> {
        let Packed { mut member, bytes } = packed;
        if self.file.len() + bytes.len() > 1 << 31 || self.members.len() >= crate::model::limits::BUNDLE_MEMBERS {
            bail!("the bundle grows beyond 2 GiB; cut the inputs to the time of the findings first");
        }
        member.offset = self.file.len() as u32;
        self.file.extend(member.local_header());
        self.file.extend(bytes);
        self.members.push(member);
        Ok(())
    }

    /// The file.
    pub fn finish(mut self) -> Vec<u8> {
        let at = self.file.len() as u32;
        self.file.extend(directory(&self.members, at));
        self.file
    }
}
