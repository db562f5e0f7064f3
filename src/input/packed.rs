//! Inputs that are no files of their own: members of archives and bundles, several files read as one.

use std::fmt::Debug;
use std::io::{Read, Result};
use std::sync::Arc;

/// How the bytes of an input are reached that has no file of its own.
pub trait Opener: Debug + Send + Sync {
    /// Its bytes from the beginning, still compressed where they are; each call begins anew.
    ///
    /// # Errors
    /// Where what holds it cannot be read.
    fn open(&self) -> Result<Box<dyn Read + Send>>;

    /// Its bytes from `at` on, if these can be had without those before them.
    ///
    /// # Errors
    /// As [`Opener::open`].
    fn open_at(&self, at: u64) -> Result<Option<Box<dyn Read + Send>>> {
        let _ = at;
        Ok(None)
    }
}

/// Bytes in memory, for tests.
#[cfg(test)]
#[derive(Debug)]
pub struct Memory(pub Vec<u8>);

#[cfg(test)]
impl Opener for Memory {
    fn open(&self) -> Result<Box<dyn Read + Send>> {
        Ok(Box::new(std::io::Cursor::new(self.0.clone())))
    }
}

/// An input inside something else.
#[derive(Clone, Debug)]
pub struct Packed {
    /// Its name there.
    pub member: String,
    /// Last modification, ns since the epoch, for years that are not in it.
    pub modified_ns: Option<i64>,
    /// How it is reached.
    pub opener: Arc<dyn Opener>,
}

impl PartialEq for Packed {
    fn eq(&self, other: &Packed) -> bool {
        self.member == other.member && Arc::ptr_eq(&self.opener, &other.opener)
    }
}
impl Eq for Packed {}
