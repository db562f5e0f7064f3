//! A scan in steps, for cluster engines: each reads lines and writes lines, and can run anywhere, and twice.
//!
//! `list` says what is to be looked at, `look` what a file or a stretch of one is, `plan` makes tasks of all that
//! (where it cuts a group of logs into slices, first probes, of which `clocks` tells the sources' clocks),
//! `sight` (the map) turns a task into keyed sightings, `reduce` folds those of one key after the other, and `total`
//! adds up. `crosswire scan` does the same by the same functions in one process.

mod deal;
mod list;
mod looking;
mod planning;
mod reduce;
mod shares;
mod sight;
mod total;
mod whole;

pub use list::{given, list};
pub use looking::look;
pub use planning::{Pieces, plan};
pub use reduce::Reducer;
pub use shares::ShareReducer;
pub use sight::Sighting;
pub use total::{LotTotal, total};

use super::items::Looked;
use super::lot::Lot;
pub use super::plan::Told;
use super::source::{Place, StoredFile, Way};
use super::stretch::Part;
use crate::input::objects::{self, Facts};
use crate::model::options::GivenClock;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::path::PathBuf;

/// One line between two steps, a JSON object with one member.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Line {
    /// A sentence about something that cannot be read.
    Trouble(String),
    /// A file, or bytes of it, to be looked at.
    Look(Look),
    /// What a file is.
    Looked(FileLine, Looked),
    /// What a stretch of a file is.
    Part(FileLine, Part),
    /// What is read to tell clocks.
    Probe(Probe),
    /// The clocks that a probe showed: its key, and of each input.
    Clocks(String, Vec<Option<GivenClock>>),
    /// All that the plan says beside the tasks.
    Plan(Box<Told>),
    /// What is mapped at once.
    Tasks(TaskLine),
    /// What came of a lot.
    Lot(Box<LotTotal>),
}

/// A stored file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileLine {
    /// Its path or address, as it is shown.
    pub name: String,
    /// Its length there, bytes.
    pub bytes: u64,
    /// Last modification, ns since the epoch.
    #[serde(default)]
    pub modified_ns: Option<i64>,
    /// The entity tag of an object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// It was found in a folder, not named.
    #[serde(default)]
    pub found: bool,
    /// A copy on this machine that is read in its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<PathBuf>,
}

/// What to look at.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Look {
    /// The file.
    pub file: FileLine,
    /// From this byte to that; none: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<(u64, u64)>,
}

/// Tasks that one process does in turn.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct TaskLine {
    /// In order of the plan.
    pub tasks: Vec<Task>,
    /// Plain bytes that they read.
    pub bytes: u64,
    /// The files that they read.
    pub files: Vec<String>,
}

/// What is mapped.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Task {
    /// A stretch of a log: what it shows goes to every lot that it is part of.
    Log {
        /// The log.
        source: SourceLine,
        /// From this plain byte.
        from: u64,
        /// Up to this one.
        to: u64,
        /// Lines before it.
        lines: u64,
        /// Keys of the lots, and the number of the input in each.
        wanted: Vec<(String, u32)>,
        /// In these it is the only log: nothing is asked of it that only tells its lines and those of others together.
        #[serde(default)]
        alone: bool,
        /// Into how many shares the sessions of all these are dealt.
        #[serde(default)]
        shares: u32,
        /// Lots that this task tells the fold about.
        heads: Vec<(String, Lot)>,
    },
    /// A lot in which not all are logs: it is folded where it is read.
    Lot {
        /// Its key.
        key: String,
        /// The lot.
        lot: Lot,
        /// Its inputs.
        sources: Vec<SourceLine>,
    },
}

/// What is read of a group of logs that is cut into slices of time, to tell their clocks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Probe {
    /// The lot.
    pub lot: Lot,
    /// Its inputs.
    pub sources: Vec<SourceLine>,
    /// Plain bytes that are read.
    pub bytes: u64,
    /// The files that they are in.
    pub files: Vec<String>,
}

/// A source that analysis reads as one input.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SourceLine {
    /// Its name.
    pub name: String,
    /// Its format.
    pub format: String,
    /// Last modification, ns since the epoch.
    pub modified_ns: Option<i64>,
    /// The files of it that are read, oldest first.
    pub parts: Vec<PartLine>,
}

/// One file of a source, see `joined::Part`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct PartLine {
    pub name: String,
    pub file: FileLine,
    pub way: Way,
    pub modified_ns: Option<i64>,
    pub at: u64,
    pub bytes: u64,
    pub closed: bool,
    pub lines: u64,
    pub torn: bool,
    pub plain: bool,
}

impl FileLine {
    /// Of a file that was found.
    pub fn of(file: &StoredFile) -> FileLine {
        let StoredFile { name, place, bytes, modified_ns, found } = file.clone();
        FileLine { name, bytes, modified_ns, tag: place.tag().map(str::to_owned), found, at: None }
    }

    /// The file.
    pub fn stored(&self) -> StoredFile {
        let facts = Facts { bytes: self.bytes, modified_ns: self.modified_ns, tag: self.tag.clone() };
        let is_far = self.at.is_none() && objects::is_url(&self.name);
        let object = if is_far { objects::at(&self.name, facts) } else { None };
        let place = object.map(Place::Object);
        let place = place.unwrap_or_else(|| Place::Path(self.at.clone().unwrap_or_else(|| PathBuf::from(&self.name))));
        StoredFile {
            name: self.name.clone(),
            place,
            bytes: self.bytes,
            modified_ns: self.modified_ns,
            found: self.found,
        }
    }
}

/// Keys sort in the order of the plan.
fn record_key(number: usize, lot: &Lot) -> String {
    format!("{number:08}-{}", lot.key)
}

/// The key of a share of the sessions of a lot: it sorts before that of the lot, and behind the lot before it.
fn share_key(key: &str, share: u32) -> String {
    let (number, name) = key.split_once('-').unwrap_or((key, ""));
    format!("{number}+{share:02}-{name}")
}

/// The key of the lot that a key is of, and the number of the share.
fn lot_of(key: &str) -> (Cow<'_, str>, Option<u32>) {
    let parts = key.split_once('+').and_then(|(number, rest)| {
        let (share, name) = rest.split_once('-')?;
        Some((format!("{number}-{name}"), share.parse().ok()?))
    });
    parts.map_or((Cow::Borrowed(key), None), |(lot, share)| (Cow::Owned(lot), Some(share)))
}
