//! Archives as bags of inputs: what is in a tar or zip file, and where. Nothing is ever unpacked to
//! a name that an archive gives.

pub mod tar;
pub mod zip;

use super::packed::Opener;
use std::fmt::Debug;
use std::io::{self, Read};
use std::sync::Arc;

/// Bytes of known length that can be read at any place: a file, an object in a store.
pub trait Blob: Debug + Send + Sync {
    /// How many there are.
    fn length(&self) -> u64;

    /// Reads into `out` from `at` on; 0 at the end.
    ///
    /// # Errors
    /// Those of what holds them.
    fn read_at(&self, at: u64, out: &mut [u8]) -> io::Result<usize>;
}

/// A file on disk as a [`Blob`].
#[derive(Debug)]
pub struct FileBlob {
    file: std::fs::File,
    length: u64,
}

impl FileBlob {
    /// Opens a file.
    ///
    /// # Errors
    /// If it is missing, no file or cannot be read.
    pub fn open(path: &std::path::Path) -> io::Result<FileBlob> {
        let file = std::fs::File::open(path)?;
        let length = file.metadata()?.len();
        Ok(FileBlob { file, length })
    }
}

impl Blob for FileBlob {
    fn length(&self) -> u64 {
        self.length
    }

    fn read_at(&self, at: u64, out: &mut [u8]) -> io::Result<usize> {
        std::os::unix::fs::FileExt::read_at(&self.file, out, at)
    }
}

/// Bytes in memory as a [`Blob`].
#[derive(Debug)]
pub struct MemoryBlob(pub Vec<u8>);

impl Blob for MemoryBlob {
    fn length(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_at(&self, at: u64, out: &mut [u8]) -> io::Result<usize> {
        let from = usize::try_from(at).ok().and_then(|at| self.0.get(at..)).unwrap_or_default();
        let n = from.len().min(out.len());
        if let (Some(to), Some(from)) = (out.get_mut(..n), from.get(..n)) {
            to.copy_from_slice(from);
        }
        Ok(n)
    }
}

/// Part of a [`Blob`], read from its beginning to its end.
#[derive(Debug)]
pub struct Range {
    blob: Arc<dyn Blob>,
    at: u64,
    end: u64,
}

impl Range {
    /// `bytes` bytes from `at` on, or as many as there are.
    pub fn new(blob: Arc<dyn Blob>, at: u64, bytes: u64) -> Range {
        let end = at.saturating_add(bytes).min(blob.length());
        Range { blob, at, end }
    }

    /// Goes forward without reading; how far, bytes.
    pub fn pass(&mut self, bytes: u64) -> u64 {
        let step = bytes.min(self.end.saturating_sub(self.at));
        self.at += step;
        step
    }
}

impl Read for Range {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let room = left.min(out.len());
        let Some(space) = out.get_mut(..room).filter(|s| !s.is_empty()) else { return Ok(0) };
        let n = self.blob.read_at(self.at, space)?;
        self.at += n as u64;
        Ok(n)
    }
}

/// How a member is packed into its archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Packing {
    /// As it is.
    Stored,
    /// By RFC 1951, as zip does.
    Deflated,
}

/// Where a member is in an archive that can be read at any place.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Spot {
    /// Where its bytes begin.
    pub at: u64,
    /// How many there are in the archive.
    pub packed_bytes: u64,
    /// How they are packed.
    pub packing: Packing,
}

/// A member that is read where it is.
#[derive(Debug)]
pub struct MemberOpener {
    /// The archive.
    pub blob: Arc<dyn Blob>,
    /// Where in it.
    pub spot: Spot,
}

impl Opener for MemberOpener {
    fn open(&self) -> io::Result<Box<dyn Read + Send>> {
        let range = Range::new(self.blob.clone(), self.spot.at, self.spot.packed_bytes);
        Ok(match self.spot.packing {
            Packing::Stored => Box::new(range),
            Packing::Deflated => {
                Box::new(flate2::read::DeflateDecoder::new(io::BufReader::with_capacity(64 << 10, range)))
            }
        })
    }
}

/// A member's name as it is shown and never used otherwise: folders that lead out and a leading `/`
/// are kept for the eye, bytes that are no UTF-8 are replaced, what is too long is cut.
pub fn shown_name(raw: &[u8]) -> String {
    use crate::model::limits::MEMBER_NAME_BYTES;
    let cut = raw.get(..MEMBER_NAME_BYTES).unwrap_or(raw);
    String::from_utf8_lossy(cut).into_owned()
}
