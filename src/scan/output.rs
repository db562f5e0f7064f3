//! The folder of `--out`: findings as NDJSON and CSV, calls and exchanges as Parquet.
//!
//! Names in it come from the program alone. Files are written beside their place and moved there, so
//! that what is in the folder is whole.

use super::result::UnitResult;
use super::rows::{Nowhere, Rows};
use super::run::Outcome;
use super::summary;
use crate::report::csv::guarded_text;
use crate::report::json::{Indented, write as write_json};
use anyhow::Context;
use serde_json::{Map, Value, json};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Columns of `findings.csv`.
const COLUMNS: &[&str] = &[
    "day",
    "service",
    "rule",
    "severity",
    "confidence",
    "fault",
    "cleared",
    "session",
    "at",
    "until",
    "victim",
    "owner",
    "batch",
    "calls",
    "summary",
    "evidence",
];

/// Where the calls and exchanges of a unit go.
pub fn rows(out: Option<&Path>, unit: &str) -> Box<dyn Rows> {
    match out {
        #[cfg(feature = "parquet")]
        Some(out) => Box::new(super::parquet::Parquet::new(out, unit)),
        _ => {
            let _ = unit;
            Box::new(Nowhere)
        }
    }
}

/// Are the files still there that a known unit wrote?
pub fn has_parts(out: Option<&Path>, result: &UnitResult) -> bool {
    result.parts.iter().all(|p| out.is_some_and(|out| out.join(p).exists()))
}

/// Numbers files over a whole scan, in the order in which they are cited.
#[derive(Debug, Default)]
pub struct Numbers(rustc_hash::FxHashMap<String, u64>);

/// The lines of a unit as NDJSON: inputs cited for the first time, calls, windows, findings; with the key of the
/// lot, where that is given.
///
/// # Errors
/// Those of writing.
pub fn lines(result: &UnitResult, lot: Option<&str>, numbers: &mut Numbers, out: &mut dyn Write) -> io::Result<()> {
    let of = |row: Value| match (row, lot) {
        (Value::Object(mut fields), Some(lot)) => {
            fields.insert("lot".into(), lot.into());
            Value::Object(fields)
        }
        (row, _) => row,
    };
    let mut global = vec![];
    for name in &result.files {
        let next = numbers.0.len() as u64;
        let is_new = !numbers.0.contains_key(name);
        let n = *numbers.0.entry(name.clone()).or_insert(next);
        if is_new {
            line("input", of(json!({ "input": n, "name": name })), out)?;
        }
        global.push(n);
    }
    for (kind, rows) in [("call", &result.calls), ("window", &result.windows), ("finding", &result.findings)] {
        for row in rows {
            let mut row = row.clone();
            for list in ["evidence", "sightings"] {
                let entries = row.get_mut(list).and_then(Value::as_array_mut);
                for input in entries.into_iter().flatten().filter_map(|e| e.get_mut("input")) {
                    let n = input.as_u64().and_then(|n| global.get(usize::try_from(n).ok()?));
                    *input = n.copied().into();
                }
            }
            line(kind, of(row), out)?;
        }
    }
    Ok(())
}

/// One object with its type before it.
///
/// # Errors
/// Those of writing.
pub fn line(kind: &str, value: Value, out: &mut dyn Write) -> io::Result<()> {
    let mut fields = Map::new();
    fields.insert("type".into(), kind.into());
    if let Value::Object(rest) = value {
        fields.extend(rest);
    }
    write_json(&Value::Object(fields), out, Indented::flat())?;
    out.write_all(b"\n")
}

/// Writes the findings of all units, and takes away Parquet files that no unit names any more.
///
/// # Errors
/// If they cannot be written.
pub fn write(
    folder: &Path,
    outcome: &Outcome,
    units: &mut dyn Iterator<Item = Option<UnitResult>>,
) -> anyhow::Result<()> {
    let (lines_path, csv_path) = (folder.join("findings.ndjson"), folder.join("findings.csv"));
    let create = |path: &Path| -> anyhow::Result<BufWriter<File>> {
        let beside = beside(path);
        Ok(BufWriter::new(File::create(&beside).with_context(|| format!("{}: cannot be written", beside.display()))?))
    };
    let (mut ndjson, csv) = (create(&lines_path)?, create(&csv_path)?);
    let mut csv = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(csv);
    csv.write_record(COLUMNS)?;
    let (mut numbers, mut parts) = (Numbers::default(), std::collections::BTreeSet::new());
    for result in units.flatten() {
        lines(&result, None, &mut numbers, &mut ndjson)?;
        for f in &result.findings {
            csv.write_record(cells(f, &result))?;
        }
        parts.extend(result.parts);
    }
    line("summary", summary::json(outcome), &mut ndjson)?;
    ndjson.flush()?;
    csv.flush()?;
    for path in [lines_path, csv_path] {
        std::fs::rename(beside(&path), &path).with_context(|| format!("{}: cannot be written", path.display()))?;
    }
    for table in ["calls", "exchanges"] {
        prune(folder, table, &parts);
    }
    Ok(())
}

fn beside(path: &Path) -> std::path::PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    name.into()
}

/// Takes away what an earlier scan left that this one did not write.
fn prune(folder: &Path, table: &str, parts: &std::collections::BTreeSet<String>) {
    for day in std::fs::read_dir(folder.join(table)).into_iter().flatten().flatten() {
        let (Ok(files), Ok(name)) = (std::fs::read_dir(day.path()), day.file_name().into_string()) else { continue };
        for file in files.flatten() {
            let Ok(file_name) = file.file_name().into_string() else { continue };
            if file_name.ends_with(".parquet") && !parts.contains(&format!("{table}/{name}/{file_name}")) {
                let _ = std::fs::remove_file(file.path());
            }
        }
        // Only if nothing is left in it.
        let _ = std::fs::remove_dir(day.path());
    }
}

fn cells(f: &Value, result: &UnitResult) -> Vec<String> {
    let text = |v: Option<&Value>| match v {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(s)) => s.clone(),
        Some(Value::Array(all)) => all.iter().map(plain).collect::<Vec<_>>().join(" "),
        Some(other) => other.to_string(),
    };
    let evidence = f.get("evidence").and_then(Value::as_array).map_or(&[][..], |a| a);
    let places: Vec<String> = evidence.iter().map(|e| place(e, result)).filter(|p| !p.is_empty()).collect();
    let cell = |name: &&str| match *name {
        "evidence" => places.join(" "),
        name => text(f.get(name)),
    };
    COLUMNS.iter().map(cell).map(|t| guarded_text(&crate::report::clean::clean(&t)).into_owned()).collect()
}

/// `archive/access.log.2.gz:71`.
fn place(e: &Value, result: &UnitResult) -> String {
    let n = e.get("input").and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
    let file = n.and_then(|n| result.files.get(n)).map_or("", |f| f);
    let at = ["frame", "line"].iter().find_map(|k| e.get(*k).and_then(Value::as_u64));
    at.map_or_else(|| file.to_owned(), |n| format!("{file}:{n}"))
}

fn plain(v: &Value) -> String {
    v.as_str().map_or_else(|| v.to_string(), str::to_owned)
}
