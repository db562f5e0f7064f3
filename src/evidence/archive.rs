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

/// How a member of a `.tar.zst` is packed: what ZIP calls that.
const ZSTD: u16 = 93;

/// A member, packed.
pub struct Packed {
    /// Its header, but for where it stands.
    pub member: Member,
    /// Its bytes in the archive.
    pub bytes: Vec<u8>,
    /// SHA-256 of what it holds.
    pub sha256: String,
}

/// Packs a member; in a ZIP archive stored where that is asked for, or shorter.
///
/// # Errors
/// If its name is too long for the kind of archive, and those of compression.
pub fn pack(kind: Kind, name: &str, data: &[u8], is_stored: bool) -> anyhow::Result<Packed> {
    let (method, bytes) = match kind {
        Kind::Zip => deflate(data, is_stored),
        Kind::TarZst if name.len() > tar_zst::NAME_BYTES => {
            bail!("{name}: cannot be a member of a .tar.zst bundle; write a .zip")
        }
        Kind::TarZst => (ZSTD, tar_zst::pack(name, data)?),
    };
    let mut crc = flate2::Crc::new();
    crc.update(data);
    let (packed, length) = (bytes.len() as u32, data.len() as u32);
    let member = Member { name: name.to_owned(), method, crc: crc.sum(), packed, bytes: length, offset: 0 };
    Ok(Packed { member, bytes, sha256: super::sha256(data) })
}

fn deflate(data: &[u8], is_stored: bool) -> (u16, Vec<u8>) {
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
    if is_packed { (8, deflated) } else { (0, data.to_vec()) }
}

impl Archive {
    /// An empty one.
    pub fn new(kind: Kind) -> Archive {
        Archive { kind, ..Archive::default() }
    }

    /// Adds a member behind the others.
    ///
    /// # Errors
    /// If the archive grows beyond what ZIP can hold.
    pub fn add(&mut self, packed: Packed) -> anyhow::Result<()> {
        let Packed { mut member, bytes, .. } = packed;
        if self.file.len() + bytes.len() > 1 << 31 || self.members.len() >= crate::model::limits::BUNDLE_MEMBERS {
            bail!("the bundle grows beyond 2 GiB; cut the inputs to the time of the findings first");
        }
        member.offset = self.file.len() as u32;
        if self.kind == Kind::Zip {
            self.file.extend(member.local_header());
        }
        self.file.extend(bytes);
        self.members.push(member);
        Ok(())
    }

    /// The file.
    ///
    /// # Errors
    /// Those of compression.
    pub fn finish(mut self) -> std::io::Result<Vec<u8>> {
        if self.kind == Kind::TarZst {
            tar_zst::finish(&mut self.file)?;
            return Ok(self.file);
        }
        let at = self.file.len() as u32;
        self.file.extend(directory(&self.members, at));
        Ok(self.file)
    }
}
