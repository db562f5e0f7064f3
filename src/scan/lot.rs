//! A piece of work told by itself: what is folded at once, and where its inputs' lines stand in files. A fold on
//! another machine knows no more of the plan than this.

use super::result::{Places, UnitResult};
use super::sets::Logical;
use super::slices::Work;
use crate::input::log::{Format, described};
use crate::input::{Detected, formats, named};
use crate::model::options::GivenClock;
use crate::model::report::Report;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Sources, or stretches of them, that are correlated with each other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lot {
    /// Its own name: the same for the same sources, however they are read.
    pub key: String,
    /// The time that it answers for, ns, the end not included; none: all.
    pub core: Option<(i64, i64)>,
    /// Memory that it may take, bytes, as far as can be told.
    pub need: u64,
    /// Into how many shares its sessions are dealt that are folded first; 0: all lines are folded at once.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub shares: u32,
    /// Its inputs, in the order of their numbers.
    pub inputs: Vec<LotInput>,
}

/// One source of a lot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LotInput {
    /// Name of its newest file.
    pub name: String,
    /// Where it stands, dates and numbers of rotation left out.
    pub folder: String,
    /// Its format.
    pub format: String,
    /// From this plain byte of all its files.
    pub from: u64,
    /// Up to this one.
    pub to: u64,
    /// Lines before it.
    pub lines: u64,
    /// Its files, oldest first.
    pub files: Vec<FileLines>,
    /// What is known of its clock before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<GivenClock>,
}

/// Which lines of a source are in one of its files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileLines {
    /// Its name.
    pub name: String,
    /// Lines of the source before its first.
    pub lines: u64,
    /// Its first line goes on from the file before it.
    pub is_torn: bool,
}

impl Lot {
    /// The work as a lot.
    pub fn of(work: &Work, logicals: &[Logical]) -> Lot {
        let input = |p: &super::slices::Portion| {
            let l = logicals.get(p.logical)?;
            Some(LotInput {
                name: l.name.clone(),
                folder: l.folder.clone(),
                format: l.format.clone(),
                from: p.from,
                to: p.to,
                lines: p.lines,
                files: l.joined.files(),
                clock: p.clock,
            })
        };
        let inputs: Vec<LotInput> = work.portions.iter().filter_map(input).collect();
        Lot { key: key(&inputs, work.core), core: work.core, need: work.need, shares: 0, inputs }
    }

    /// The formats of its inputs, if all are logs: what each shows can then be found by itself.
    pub fn log_formats(&self) -> Option<Vec<&'static Format>> {
        self.inputs.iter().map(|i| log_format(&i.format)).collect()
    }

    /// Is it one log, with the lines of one who wrote it, and its own clock?
    pub fn is_alone(&self) -> bool {
        matches!(self.inputs.as_slice(), [one] if one.clock.is_none() && is_one_writers(&one.format))
    }

    /// What came of it, where it is all that there is.
    pub fn result(&self, report: &Report) -> UnitResult {
        let mut result = UnitResult::default();
        result.take(report, &self.places(report), &self.key);
        result
    }

    /// Whose inputs are those of the report.
    pub fn places<'a>(&'a self, report: &Report) -> LotPlaces<'a> {
        let by_name: FxHashMap<&str, &LotInput> = self.inputs.iter().map(|i| (i.name.as_str(), i)).collect();
        LotPlaces { inputs: report.inputs.iter().map(|i| by_name.get(i.name.as_str()).copied()).collect() }
    }
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// Is this the format of a log that has the lines of one who wrote it, and carries no others?
pub fn is_one_writers(format: &str) -> bool {
    log_format(format).is_some_and(|f| !f.carries)
}

/// The format of this name, if it is a log's.
pub fn log_format(name: &str) -> Option<&'static Format> {
    match named(name) {
        Some(Detected::Log(format, _)) => Some(format),
        Some(_) => None,
        // It is described by the user, and in no table.
        None => std::iter::once(&described::FORMAT).chain(formats()).find(|f| f.name == name),
    }
}

/// Names and portions make a lot what it is: of two scans that read the same, it has the same key.
fn key(inputs: &[LotInput], core: Option<(i64, i64)>) -> String {
    let mut digest = Sha256::new();
    for i in inputs {
        digest.update(format!("{:?} {} {}\n", i.name, i.from, i.to));
    }
    digest.update(format!("{core:?}"));
    digest.finalize().iter().take(6).map(|b| format!("{b:02x}")).collect()
}

/// The inputs of a report as files.
pub struct LotPlaces<'a> {
    inputs: Vec<Option<&'a LotInput>>,
}

impl LotPlaces<'_> {
    fn of(&self, input: u32) -> Option<&LotInput> {
        self.inputs.get(input as usize).copied().flatten()
    }
}

impl Places for LotPlaces<'_> {
    fn place(&self, input: u32, line: Option<u64>) -> (String, Option<u64>) {
        let Some(of) = self.of(input) else { return ("?".into(), line) };
        let Some(line) = line else { return (of.name.clone(), None) };
        let (file, line) = line_of(&of.files, line);
        (file.map_or_else(|| of.name.clone(), |f| f.name.clone()), Some(line))
    }

    fn service(&self, input: u32) -> String {
        self.of(input).map_or(String::new(), |i| i.folder.clone())
    }
}

/// The file, and the line in it, of a line of a source (both from 1).
pub fn line_of(files: &[FileLines], line: u64) -> (Option<&FileLines>, u64) {
    // A line that two files share stands where it begins.
    let file = files.iter().rfind(|f| line > f.lines + u64::from(f.is_torn)).or(files.first());
    (file, line - file.map_or(0, |f| f.lines).min(line))
}
