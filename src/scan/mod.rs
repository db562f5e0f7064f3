//! Archives in bulk: everything below some paths is looked at, put together to what belongs together,
//! and analysed piece by piece in bounded memory, so that an interruption costs little.
//!
//! `walk` lists files, `items` finds what is in them and `survey` what each is; `copies` and `sets` say
//! what is one source, `groups` which sources saw the same traffic, `slices` what is done at once, `clocks` how far their clocks are off;
//! `worker` does it, `journal` remembers it, `run` puts all together.

mod aside;
mod clocks;
mod copies;
mod fold;
mod groups;
mod ids;
mod items;
mod joined;
mod journal;
mod lot;
pub mod output;
#[cfg(feature = "parquet")]
pub mod parquet;
mod plan;
pub mod progress;
pub mod result;
mod rows;
mod run;
mod sets;
pub mod sightings;
mod skip;
mod slices;
mod source;
mod spool;
pub mod steps;
mod stretch;
pub mod summary;
mod survey;
mod walk;
mod worker;

pub use copies::Copy;
pub use groups::Together;
pub use run::{Outcome, run};
pub use skip::Wanted;

use crate::model::options::ReadOptions;
use crate::report::baseline::Baseline;
use crate::report::filter::Filter;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

/// What an interrupted scan says.
const STOPPED: &str = "stopped before the end; the same command goes on from the checkpoint";

/// What to scan, and how.
pub struct Options {
    /// Files, folders, patterns.
    pub paths: Vec<String>,
    /// How inputs are read.
    pub read: ReadOptions,
    /// What is wanted of the findings.
    pub filter: Filter,
    /// Findings that are known.
    pub baseline: Option<Baseline>,
    /// The time that is wanted.
    pub wanted: Wanted,
    /// What is taken together.
    pub together: Together,
    /// What slices of time share with their neighbours, ns.
    pub overlap_ns: i64,
    /// Memory for analysis, bytes.
    pub memory: u64,
    /// Small groups are done, and noted in the checkpoint, so many plain bytes at a time.
    pub unit_bytes: u64,
    /// Units at once, at least 1.
    pub jobs: usize,
    /// The folder to write to.
    pub out: Option<PathBuf>,
    /// The checkpoint, if one is kept.
    pub checkpoint: Option<PathBuf>,
    /// Keep the checkpoint for the next scan.
    pub is_incremental: bool,
    /// Everything else that results depend on, as text.
    pub asked: String,
}

impl Options {
    /// Where temporary files go.
    fn temporary(&self) -> PathBuf {
        self.out.clone().unwrap_or_else(std::env::temp_dir)
    }

    /// What decides how an input is read, as text.
    fn reading(&self) -> String {
        format!("{:?}", ReadOptions { jobs: 0, ..self.read.clone() })
    }
}

/// A file or member that cannot be read to its end.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Broken {
    /// Its name.
    pub name: String,
    /// What is wrong.
    pub why: String,
}

/// A wish to stop, from a signal or an error elsewhere.
#[derive(Clone, Copy, Debug)]
pub struct Stop<'a>(pub &'a AtomicBool);

impl Stop<'_> {
    /// Was it expressed?
    pub fn is_set(self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
