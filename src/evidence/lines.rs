//! The cited lines of a log with their neighbours, in the format of the log.
//!
//! What is kept or left is a unit: a line with the lines that continue it, or an entry of a journal.
//! The first and last units are always kept, because they show which time the log covers.

use super::redact::{From, Redactor};
use crate::input::log::journal_file;
use crate::input::{OpenInput, Source};
use crate::model::limits::{FIELD_BYTES, JOURNAL_BYTES, LINE_BYTES};
use rustc_hash::FxHashSet;
use std::collections::VecDeque;
use std::io::{BufRead, Read};

/// Units kept on each side of a cited one.
const CONTEXT: usize = 2;
/// Units kept from the beginning: formats have a first line of their own.
const FIRST: u64 = 2;

/// Lines or entries that belong together.
#[derive(Clone, Debug, Default)]
struct Unit {
    first: u64,
    last: u64,
    bytes: Vec<u8>,
}

/// Which units are wanted.
#[derive(Clone, Copy, Debug)]
pub enum Wanted<'a> {
    /// Those that hold a cited line.
    Cited(&'a FxHashSet<u64>),
    /// Those, and all that name one of these.
    Naming(&'a FxHashSet<u64>, &'a [String]),
    /// All.
    All,
}

/// A part of a log.
#[derive(Clone, Debug, Default)]
pub struct Excerpt {
    units: Vec<Unit>,
    /// The format, which differs from the original's for binary journals.
    pub format: String,
    /// Last modification of the original, ns since the epoch.
    pub modified_ns: Option<i64>,
}

/// Reads the wanted part of a log of this format.
///
/// # Errors
/// Those of reading.
pub fn read(source: &Source, format: &'static str, wanted: Wanted<'_>) -> anyhow::Result<Excerpt> {
    let mut open = source.open()?;
    let mut choose = Choose { wanted, out: vec![], before: VecDeque::new(), after: 0, count: 0 };
    let mut name = format;
    match format {
        "journal-file" => {
            let mut bytes = vec![];
            open.by_ref().take(JOURNAL_BYTES as u64).read_to_end(&mut bytes)?;
            for (i, entry) in journal_file::export(&bytes).unwrap_or_default().into_iter().enumerate() {
                choose.unit(Unit { first: i as u64 + 1, last: i as u64 + 1, bytes: entry });
            }
            name = "journal-export";
        }
        "journal-export" => export(&mut open, &mut choose)?,
        _ => lines(&mut open, &mut choose)?,
    }
    Ok(Excerpt { units: choose.finish(), format: name.to_owned(), modified_ns: open.modified_ns })
}

struct Choose<'a> {
    wanted: Wanted<'a>,
    out: Vec<Unit>,
    before: VecDeque<Unit>,
    after: usize,
    count: u64,
}

impl Choose<'_> {
    fn unit(&mut self, unit: Unit) {
        self.count += 1;
        let is_cited = |lines: &FxHashSet<u64>| match lines.len() as u64 > unit.last - unit.first {
            true => (unit.first..=unit.last).any(|n| lines.contains(&n)),
            false => lines.iter().any(|n| (unit.first..=unit.last).contains(n)),
        };
        let is_wanted = match self.wanted {
            Wanted::Cited(lines) => is_cited(lines),
            Wanted::Naming(lines, names) => {
                is_cited(lines) || names.iter().any(|n| memchr::memmem::find(&unit.bytes, n.as_bytes()).is_some())
            }
            Wanted::All => true,
        };
        if is_wanted {
            self.out.extend(self.before.drain(..));
            self.after = CONTEXT;
            self.out.push(unit);
        } else if self.after > 0 || self.count <= FIRST {
            self.after = self.after.saturating_sub(1);
            self.out.push(unit);
        } else {
            self.before.push_back(unit);
            if self.before.len() > CONTEXT {
                self.before.pop_front();
            }
        }
    }

    fn finish(mut self) -> Vec<Unit> {
        self.out.extend(self.before.pop_back());
        self.out
    }
}

/// Lines; one that is indented or closes a bracket continues the one before.
fn lines(open: &mut OpenInput, choose: &mut Choose<'_>) -> std::io::Result<()> {
    let (mut unit, mut number) = (Unit::default(), 0);
    loop {
        let mut line = vec![];
        let read = open.take(LINE_BYTES as u64).read_until(b'\n', &mut line)?;
        let is_whole_unit = read == 0 || !matches!(line.first(), Some(b' ' | b'\t' | b'}' | b']' | b'\r' | b'\n'));
        if is_whole_unit && !unit.bytes.is_empty() {
            choose.unit(std::mem::take(&mut unit));
        }
        if read == 0 {
            return Ok(());
        }
        number += 1;
        if unit.bytes.is_empty() {
            unit.first = number;
        }
        unit.last = number;
        unit.bytes.append(&mut line);
    }
}

/// Entries of the export format, which may hold binary fields.
fn export(open: &mut OpenInput, choose: &mut Choose<'_>) -> std::io::Result<()> {
    let (mut unit, mut number) = (Unit::default(), 0);
    loop {
        let mut line = vec![];
        let read = open.take(FIELD_BYTES as u64).read_until(b'\n', &mut line)?;
        number += u64::from(read > 0);
        let is_end = read == 0 || line == b"\n";
        if !is_end {
            if unit.bytes.is_empty() {
                unit.first = number;
            }
            let is_binary = !line.contains(&b'=');
            unit.bytes.append(&mut line);
            if is_binary {
                number += binary(open, &mut unit.bytes)?;
            }
            unit.last = number;
        } else if !unit.bytes.is_empty() {
            unit.bytes.append(&mut line);
            choose.unit(std::mem::take(&mut unit));
        }
        if read == 0 {
            return Ok(());
        }
    }
}

/// Copies length, value and line feed of a binary field; gives the line feeds in it.
fn binary(open: &mut OpenInput, out: &mut Vec<u8>) -> std::io::Result<u64> {
    let mut length = vec![];
    open.take(8).read_to_end(&mut length)?;
    let count = <[u8; 8]>::try_from(&length[..]).map_or(0, u64::from_le_bytes);
    out.append(&mut length);
    let mut value = vec![];
    open.take(count.saturating_add(1).min(FIELD_BYTES as u64)).read_to_end(&mut value)?;
    let lines = memchr::memchr_iter(b'\n', &value).count() as u64;
    out.append(&mut value);
    Ok(lines)
}

impl Excerpt {
    /// Does it hold this line (or entry) of the original?
    pub fn holds(&self, line: u64) -> bool {
        let at = self.units.partition_point(|u| u.last < line);
        self.units.get(at).is_some_and(|u| u.first <= line)
    }

    /// Runs of lines (or entries) of the original, first and last.
    pub fn runs(&self) -> Vec<(u64, u64)> {
        let mut runs: Vec<(u64, u64)> = vec![];
        for unit in &self.units {
            match runs.last_mut() {
                Some(run) if run.1 + 1 >= unit.first => run.1 = unit.last,
                _ => runs.push((unit.first, unit.last)),
            }
        }
        runs
    }

    /// All of it, as it was.
    pub fn text(&self) -> Vec<u8> {
        self.units.iter().flat_map(|u| u.bytes.iter().copied()).collect()
    }

    /// The bytes as they go into a bundle.
    pub fn redacted(&self, redactor: &mut Redactor) -> Vec<u8> {
        if self.format != "journal-export" || redactor.known().is_off {
            return redactor.text(&self.text(), From::Log);
        }
        self.units.iter().flat_map(|unit| fields(&unit.bytes, redactor)).collect()
    }
}

/// An export entry field by field: the length of a binary one follows its value.
fn fields(entry: &[u8], redactor: &mut Redactor) -> Vec<u8> {
    let mut out = vec![];
    let mut rest = entry;
    while !rest.is_empty() {
        let end = memchr::memchr(b'\n', rest).map_or(rest.len(), |i| i + 1);
        let (line, after) = rest.split_at(end);
        rest = after;
        if line.contains(&b'=') || line == b"\n" {
            out.extend(redactor.text(line, From::Log));
            continue;
        }
        let Some((length, value)) = rest.split_first_chunk::<8>() else {
            out.extend(redactor.text(line, From::Log));
            continue;
        };
        let count = usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX).min(value.len());
        let (value, after) = value.split_at(count);
        let new = redactor.text(value, From::Log);
        out.extend_from_slice(line);
        out.extend((new.len() as u64).to_le_bytes());
        out.extend(new);
        rest = after;
        if let Some(after) = rest.strip_prefix(b"\n") {
            out.push(b'\n');
            rest = after;
        }
    }
    out
}
