//! The checkpoint: what was looked at and what was done, one JSON line each, appended as it happens.
//!
//! What is done is known by what it was done with (contents, options, version), so a scan that goes
//! on, a scan after files came and went, and a scan that was killed in the middle of a line all are
//! the same: what fits is taken, the rest is done.

use super::items::Looked;
use super::result::UnitResult;
use super::source::StoredFile;
use crate::model::options::GivenClock;
use anyhow::Context;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// What the first line must say for the rest to be understood.
const SCHEMA: &str = concat!("crosswire.scan-checkpoint/1 ", env!("CARGO_PKG_VERSION"), " ", env!("CROSSWIRE_COMMIT"));

#[derive(Default, Serialize, Deserialize)]
struct Line<'a> {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    schema: Option<String>,
    /// Key of a stored file, and of the options it was read with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    /// Fingerprint of a unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unit: Option<String>,
    /// Fingerprint of what was read to tell clocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    clocks: Option<String>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    of: Option<&'a RawValue>,
}

#[derive(Clone, Copy, Debug)]
struct Span {
    at: u64,
    bytes: usize,
}

/// A checkpoint, on disk or (where none is kept) nowhere.
#[derive(Debug, Default)]
pub struct Journal {
    path: Option<PathBuf>,
    file: Option<File>,
    end: u64,
    looked: FxHashMap<String, Span>,
    units: FxHashMap<String, Span>,
    clocks: FxHashMap<String, Span>,
}

/// What makes a stored file the same one: its name, its length, and its last change or, of an object, its entity tag.
pub fn file_key(file: &StoredFile, options: &str) -> String {
    let changed = file.place.tag().map_or_else(|| file.modified_ns.unwrap_or(-1).to_string(), |tag| format!("{tag:?}"));
    format!("{} {} {changed} {options}", file.name, file.bytes)
}

impl Journal {
    /// Opens or begins the checkpoint at `path`. Where it is of another version, or another file
    /// altogether, it is not taken.
    ///
    /// # Errors
    /// If it cannot be read or written, or is no checkpoint.
    pub fn open(path: &Path) -> anyhow::Result<Journal> {
        let context = || format!("{}: the checkpoint cannot be opened", path.display());
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).with_context(context)?;
        let mut journal = Journal { path: Some(path.to_owned()), file: Some(file), ..Journal::default() };
        journal.load().with_context(context)?;
        Ok(journal)
    }

    fn load(&mut self) -> anyhow::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let mut reader = BufReader::with_capacity(1 << 20, file);
        let (mut line, mut at, mut fits) = (vec![], 0u64, false);
        loop {
            line.clear();
            let n = reader.read_until(b'\n', &mut line)?;
            // A line that was being written when the program was killed is none.
            let Some(text) = line.strip_suffix(b"\n") else { break };
            let parsed: Option<Line<'_>> = serde_json::from_slice(text).ok();
            if at == 0 {
                let schema = parsed.as_ref().and_then(|l| l.schema.clone());
                anyhow::ensure!(
                    schema.as_deref().is_some_and(|s| s.starts_with("crosswire.scan-checkpoint/")),
                    "it is no checkpoint of a scan; give --checkpoint another name"
                );
                fits = schema.as_deref() == Some(SCHEMA);
            }
            let Some(parsed) = parsed.filter(|_| fits) else { break };
            let span = Span { at, bytes: text.len() };
            if let Some(key) = parsed.file {
                self.looked.insert(key, span);
            } else if let Some(key) = parsed.unit {
                self.units.insert(key, span);
            } else if let Some(key) = parsed.clocks {
                self.clocks.insert(key, span);
            }
            at += n as u64;
        }
        if at == 0 || !fits {
            self.begin()
        } else {
            file.set_len(at)?;
            self.end = at;
            Ok(())
        }
    }

    fn begin(&mut self) -> anyhow::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        file.set_len(0)?;
        self.end = 0;
        self.append(&Line { schema: Some(SCHEMA.to_owned()), ..Line::default() })?;
        Ok(())
    }

    fn append(&mut self, line: &Line<'_>) -> anyhow::Result<Option<Span>> {
        let Some(file) = &self.file else { return Ok(None) };
        let mut text = serde_json::to_vec(line)?;
        let span = Span { at: self.end, bytes: text.len() };
        text.push(b'\n');
        file.write_all_at(&text, self.end).context("the checkpoint cannot be written")?;
        self.end += text.len() as u64;
        Ok(Some(span))
    }

    fn read<T: serde::de::DeserializeOwned>(&self, span: Option<Span>) -> Option<T> {
        let (file, span) = self.file.as_ref().zip(span)?;
        let mut text = vec![0; span.bytes];
        file.read_exact_at(&mut text, span.at).ok()?;
        let line: Line<'_> = serde_json::from_slice(&text).ok()?;
        serde_json::from_str(line.of?.get()).ok()
    }

    /// What an earlier look at a file found.
    pub fn looked(&self, key: &str) -> Option<Looked> {
        self.read(self.looked.get(key).copied())
    }

    /// Remembers what a look found.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn note_looked(&mut self, key: &str, looked: &Looked) -> anyhow::Result<()> {
        let of = serde_json::value::to_raw_value(looked)?;
        let span = self.append(&Line { file: Some(key.to_owned()), of: Some(&of), ..Line::default() })?;
        self.looked.extend(span.map(|s| (key.to_owned(), s)));
        Ok(())
    }

    /// The result of a unit that was done.
    pub fn unit(&self, fingerprint: &str) -> Option<UnitResult> {
        self.read(self.units.get(fingerprint).copied())
    }

    /// Remembers that a unit is done.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn note_unit(&mut self, fingerprint: &str, result: &UnitResult) -> anyhow::Result<()> {
        let of = serde_json::value::to_raw_value(result)?;
        let span = self.append(&Line { unit: Some(fingerprint.to_owned()), of: Some(&of), ..Line::default() })?;
        self.units.extend(span.map(|s| (fingerprint.to_owned(), s)));
        if let Some(file) = &self.file {
            file.sync_data().context("the checkpoint cannot be written")?;
        }
        Ok(())
    }

    /// Clocks that were told from what has this fingerprint.
    pub fn clocks(&self, fingerprint: &str) -> Option<Vec<Option<GivenClock>>> {
        self.read(self.clocks.get(fingerprint).copied())
    }

    /// Remembers them.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn note_clocks(&mut self, fingerprint: &str, clocks: &[Option<GivenClock>]) -> anyhow::Result<()> {
        let of = serde_json::value::to_raw_value(clocks)?;
        let span = self.append(&Line { clocks: Some(fingerprint.to_owned()), of: Some(&of), ..Line::default() })?;
        self.clocks.extend(span.map(|s| (fingerprint.to_owned(), s)));
        Ok(())
    }

    /// Leaves what a finished scan used, so that the checkpoint does not grow from scan to scan.
    ///
    /// # Errors
    /// If it cannot be written anew.
    pub fn keep_only(&mut self, files: &[String], clocks: &[String], units: &[String]) -> anyhow::Result<()> {
        let (Some(path), Some(old)) = (self.path.clone(), self.file.take()) else { return Ok(()) };
        let beside = path.with_extension("new");
        let mut out = BufWriter::new(File::create(&beside).with_context(|| format!("{}", beside.display()))?);
        let first = Line { schema: Some(SCHEMA.to_owned()), ..Line::default() };
        serde_json::to_writer(&mut out, &first)?;
        out.write_all(b"\n")?;
        let (files, clocks) = (files.iter().map(|k| self.looked.get(k)), clocks.iter().map(|k| self.clocks.get(k)));
        let spans = files.chain(clocks).chain(units.iter().map(|k| self.units.get(k))).flatten();
        for span in spans {
            let mut text = vec![0; span.bytes];
            old.read_exact_at(&mut text, span.at)?;
            out.write_all(&text)?;
            out.write_all(b"\n")?;
        }
        out.into_inner().map_err(std::io::IntoInnerError::into_error)?.sync_all()?;
        std::fs::rename(&beside, &path)?;
        Ok(())
    }

    /// The scan is over and the checkpoint not wanted any more.
    ///
    /// # Errors
    /// If it cannot be removed.
    pub fn remove(self) -> std::io::Result<()> {
        self.path.map_or(Ok(()), std::fs::remove_file)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::Journal;
    use crate::scan::result::UnitResult;

    #[test]
    fn however_it_is_cut_what_is_whole_is_taken() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("c");
        let result = |name: &str| UnitResult { files: vec![name.to_owned()], ..UnitResult::default() };
        let mut journal = Journal::open(&path).unwrap();
        for name in ["a", "b", "c"] {
            journal.note_unit(name, &result(name)).unwrap();
        }
        let whole = std::fs::read(&path).unwrap();
        for n in 0..=whole.len() {
            std::fs::write(&path, &whole[..n]).unwrap();
            let mut journal = Journal::open(&path).unwrap();
            let known: Vec<_> = ["a", "b", "c"].iter().filter(|k| journal.unit(k).is_some()).collect();
            let lines = whole[..n].iter().filter(|b| **b == b'\n').count();
            assert_eq!(known.len(), lines.saturating_sub(1), "cut at {n}");
            journal.note_unit("z", &result("z")).unwrap();
            assert_eq!(Journal::open(&path).unwrap().unit("z").unwrap().files, ["z"]);
        }
        let mut journal = Journal::open(&path).unwrap();
        journal.keep_only(&[], &[], &["b".to_owned()]).unwrap();
        let journal = Journal::open(&path).unwrap();
        assert!(journal.unit("a").is_none() && journal.unit("b").is_some());
        std::fs::write(&path, "something else\n").unwrap();
        assert!(Journal::open(&path).is_err());
        assert_eq!(std::fs::read(&path).unwrap(), b"something else\n");
    }
}
