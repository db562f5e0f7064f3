//! Where the bytes of a scan's files are, and how its items are opened.

use super::spool::Container;
use crate::input::archive::{Blob, FileBlob, MemberOpener, Range, Spot};
use crate::input::objects::{Facts, Object};
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
    /// In an object store, or on a web server.
    Object(Arc<Object>),
}

impl Place {
    /// The object, if it is one.
    fn object(&self) -> Option<&Arc<Object>> {
        match self {
            Place::Path(_) => None,
            Place::Object(object) => Some(object),
        }
    }

    /// The object's own name.
    pub fn name(&self) -> Option<&str> {
        self.object().map(|o| o.name.as_str())
    }

    /// The object's entity tag: as long as it is the same, so are the contents.
    pub fn tag(&self) -> Option<&str> {
        self.object()?.facts.tag.as_deref()
    }

    /// Is more than its name needed to read it?
    pub fn has_secret(&self) -> bool {
        self.object().is_some_and(|o| o.has_secret)
    }

    /// Why it could not be read to its end, where that may be otherwise next time.
    pub fn failure(&self) -> Option<&str> {
        self.object()?.failure()
    }

    /// Its bytes from the beginning.
    fn read(&self) -> io::Result<Box<dyn Read + Send>> {
        Ok(match self {
            Place::Path(path) => Box::new(std::fs::File::open(path)?),
            Place::Object(object) => object.read(0)?,
        })
    }

    /// Its bytes from there on.
    fn read_from(&self, at: u64) -> io::Result<Box<dyn Read + Send>> {
        Ok(match self {
            Place::Path(_) => Box::new(Range::new(self.blob()?, at, u64::MAX)),
            Place::Object(object) => object.read(at)?,
        })
    }

    /// It, to be read at any place.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn blob(&self) -> io::Result<Arc<dyn Blob>> {
        Ok(match self {
            Place::Path(path) => Arc::new(FileBlob::open(path)?),
            Place::Object(object) => object.blob(),
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

impl StoredFile {
    /// An object.
    pub fn of(object: Arc<Object>, found: bool) -> StoredFile {
        let Facts { bytes, modified_ns, .. } = object.facts;
        StoredFile { name: object.name.clone(), place: Place::Object(object), bytes, modified_ns, found }
    }
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
        let of = self.place.read()?;
        Ok(Box::new(Counting { of, passed: self.passed.clone() }))
    }

    fn open_at(&self, at: u64) -> io::Result<Option<Box<dyn Read + Send>>> {
        let of = self.place.read_from(at)?;
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
