//! The archive that an evidence bundle is, whichever of the two kinds.

use super::tar_zst::{self, Tar};
use super::zip::{self, ArchiveError, Zip};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// An archive in memory.
#[derive(Debug)]
pub enum Container {
    /// `.zip`
    Zip(Zip),
    /// `.tar.zst`
    Tar(Tar),
}

impl Container {
    /// Reads its directory and checks that nothing in it is made to harm.
    ///
    /// # Errors
    /// [`ArchiveError`].
    pub fn new(file: Vec<u8>) -> Result<Container, ArchiveError> {
        if file.starts_with(tar_zst::MAGIC) {
            return Ok(Container::Tar(Tar::new(tar_zst::unpack(&file)?)?));
        }
        Ok(Container::Zip(Zip::new(file)?))
    }

    /// Names of the members, in order.
    pub fn names(&self) -> Vec<&str> {
        match self {
            Container::Zip(zip) => zip.members.iter().map(|m| m.name.as_str()).collect(),
            Container::Tar(tar) => tar.names().collect(),
        }
    }

    /// A member's bytes; none where there is no such member.
    ///
    /// # Errors
    /// If it is damaged.
    pub fn read(&self, name: &str) -> Result<Option<Vec<u8>>, ArchiveError> {
        match self {
            Container::Zip(zip) => zip.find(name).map(|m| zip.read(m)).transpose(),
            Container::Tar(tar) => Ok(tar.read(name).map(<[u8]>::to_vec)),
        }
    }
}

/// Is this file a bundle? Any ZIP archive is taken for one; of zstd files, those of archives that
/// begin with `manifest`.
pub fn is_bundle(path: &Path, manifest: &str) -> bool {
    // A pipe must not be opened: that would wait for its writer, and take bytes away.
    let begins = || {
        let mut file = File::open(path).ok()?;
        let mut head = [0; 4];
        file.read_exact(&mut head).ok()?;
        Some(if head == *tar_zst::MAGIC {
            tar_zst::begins_with(head.as_slice().chain(file), manifest)
        } else {
            head == *zip::MAGIC
        })
    };
    path.is_file() && begins() == Some(true)
}
