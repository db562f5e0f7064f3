//! Where all calls and exchanges of a scan go, one unit at a time.

use super::result::Places;
use crate::model::report::Report;

/// Receives calls and exchanges.
pub trait Rows {
    /// Are exchanges wanted too?
    fn wants_exchanges(&self) -> bool;

    /// Those of one piece of work.
    ///
    /// # Errors
    /// If they cannot be written.
    fn add(&mut self, report: &Report, places: &dyn Places, key: &str) -> anyhow::Result<()>;

    /// The unit is done: the files written, below the output folder.
    ///
    /// # Errors
    /// If they cannot be written.
    fn finish(&mut self) -> anyhow::Result<Vec<String>>;
}

/// They go nowhere.
pub struct Nowhere;

impl Rows for Nowhere {
    fn wants_exchanges(&self) -> bool {
        false
    }
    fn add(&mut self, _: &Report, _: &dyn Places, _: &str) -> anyhow::Result<()> {
        Ok(())
    }
    fn finish(&mut self) -> anyhow::Result<Vec<String>> {
        Ok(vec![])
    }
}
