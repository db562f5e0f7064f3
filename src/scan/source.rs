//! Where the bytes of a scan's files are, and how its items are opened.

use super::spool::Container;
use crate::input::archive::{Blob, FileBlob, MemberOpener, Range, Spot};
use crate::input::packed::Opener;
use serde::{Deserialize, Serialize};
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Where a file is stored.
#[derive(Clone, Debug)]
pub enum Place {
    /// On disk.
    Path(PathBuf),
}

impl Place {
    /// It, to be read at any place.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn blob(&self) -> io::Result<Arc<dyn Blob>> {
        Ok(match self {
            Place::Path(path) => Arc::new(FileBlob::open(path)?),
        })
    }
}

/// A file as it is stored.
#[derive(Clone, Debug)]
pub struct StoredFile {
    /// Its path or address, as it is shown.
    pub name: String,
    /// Where it is.
    pub place: Place,
    /// Its length there, bytes.
    pub bytes: u64,
    /// Last modification, ns since the epoch.
    pub modified_ns: Option<i64>,
    /// It was found in a folder, not named.
    pub found: bool,
}

/// How an item is reached in its file.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Way {
    /// It is the file.
    File,
    /// It is a member that can be read where it is.
    At(Spot),
    /// It is the member of this number of an archive that has to be unpacked from its beginning.
    Nth(usize),
}

impl Way {
    /// Is it the file itself?
    pub fn is_file(&self) -> bool {
        matches!(self, Way::File)
    }
}

/// Bytes that went through since the start, for the progress display.
#[derive(Clone, Debug, Default)]
pub struct Passed(Arc<AtomicU64>);

impl Passed {
    /// Counts some more.
    pub fn add(&self, bytes: usize) {
        self.0.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// How many so far.
    pub fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Reads a file from its beginning and counts.
#[derive(Debug)]
pub struct FileOpener {
    /// The file.
    pub place: Place,
    /// Where bytes are counted.
    pub passed: Passed,
}

impl Opener for FileOpener {
    fn open(&self) -> io::Result<Box<dyn Read + Send>> {
        let of: Box<dyn Read + Send> = match &self.place {
            Place::Path(path) => Box::new(std::fs::File::open(path)?),
        };
        Ok(Box::new(Counting { of, passed: self.passed.clone() }))
    }

    fn open_at(&self, at: u64) -> io::Result<Option<Box<dyn Read + Send>>> {
        let of = Box::new(Range::new(self.place.blob()?, at, u64::MAX));
        Ok(Some(Box::new(Counting { of, passed: self.passed.clone() })))
    }
}

/// Counts what goes through.
struct Counting {
    of: Box<dyn Read + Send>,
    passed: Passed,
}

impl Read for Counting {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let n = self.of.read(out)?;
        self.passed.add(n);
        Ok(n)
    }
}

/// A member that is read where it is; its archive is opened only then.
#[derive(Debug)]
struct LazyMember {
    place: Place,
    spot: Spot,
    passed: Passed,
}

impl Opener for LazyMember {
    fn open(&self) -> io::Result<Box<dyn Read + Send>> {
        let of = MemberOpener { blob: self.place.blob()?, spot: self.spot.clone() }.open()?;
        Ok(Box::new(Counting { of, passed: self.passed.clone() }))
    }
}

/// How an item is opened.
pub fn opener(file: &StoredFile, way: &Way, container: &Arc<Container>, passed: &Passed) -> Arc<dyn Opener> {
    match way {
        Way::File => Arc::new(FileOpener { place: file.place.clone(), passed: passed.clone() }),
        Way::At(spot) => Arc::new(LazyMember { place: file.place.clone(), spot: spot.clone(), passed: passed.clone() }),
        Way::Nth(index) => Arc::new(container.member(*index)),
    }
}
