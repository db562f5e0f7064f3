//! Writes bundles: archives of which every byte follows from the members, so that `verify` can tell
//! any change.

use crate::input::tar_zst;
use crate::input::zip::{Member, directory};
use anyhow::bail;
use std::io::Write;
use std::path::Path;

/// A kind of archive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// `.zip`
    #[default]
    Zip,
    /// `.tar.zst`
    TarZst,
}

impl Kind {
    /// What a file of this name is to be.
    ///
    /// # Errors
    /// If it has neither ending.
    pub fn of(path: &Path) -> anyhow::Result<Kind> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        match name {
            _ if name.ends_with(".zip") => Ok(Kind::Zip),
            _ if name.ends_with(".tar.zst") => Ok(Kind::TarZst),
            _ => bail!("{}: expected a name that ends in .zip or .tar.zst", path.display()),
        }
    }
}

/// Members that are smaller are stored as they are, bytes.
const WORTH_PACKING: usize = 512;

/// An archive being written.
#[derive(Default)]
pub struct Archive {
    kind: Kind,
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
    /// An empty one.
    pub fn new(kind: Kind) -> Archive {
        Archive { kind, ..Archive::default() }
    }

    /// Adds a member behind the others.
    ///
    /// # Errors
    /// If the archive grows beyond what ZIP can hold, or a member is packed already in one that is packed as a whole.
    pub fn add(&mut self, packed: Packed) -> anyhow::Result<()> {
        let Packed { mut member, bytes } = packed;
        if self.file.len() + bytes.len() > 1 << 31 || self.members.len() >= crate::model::limits::BUNDLE_MEMBERS {
            bail!("the bundle grows beyond 2 GiB; cut the inputs to the time of the findings first");
        }
        member.offset = self.file.len() as u32;
        match self.kind {
            Kind::Zip => self.file.extend(member.local_header()),
            Kind::TarZst if member.method != 0 || member.name.len() > tar_zst::NAME_BYTES => {
                bail!("{}: cannot be a member of a .tar.zst bundle; write a .zip", member.name)
            }
            Kind::TarZst => self.file.extend(tar_zst::header(&member.name, bytes.len() as u64)),
        }
        let padding = if self.kind == Kind::TarZst { tar_zst::padding(bytes.len()) } else { 0 };
        self.file.extend(bytes);
        self.file.resize(self.file.len() + padding, 0);
        self.members.push(member);
        Ok(())
    }

    /// The file.
    ///
    /// # Errors
    /// Those of compression.
    pub fn finish(mut self) -> std::io::Result<Vec<u8>> {
        if self.kind == Kind::TarZst {
            self.file.resize(self.file.len() + tar_zst::END_BYTES, 0);
            return tar_zst::pack(&self.file);
        }
        let at = self.file.len() as u32;
        self.file.extend(directory(&self.members, at));
        Ok(self.file)
    }
}
