//! What one unit of work came to: findings and what they cite, ready to be written, and counts.

use crate::model::problem::Problems;
use crate::model::report::{Report, Severity};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// The result of a unit, as it is kept in the checkpoint.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct UnitResult {
    /// Findings as in the JSON report, with `service` and `day`; `input` is a number in `files`.
    pub findings: Vec<Value>,
    /// Stale windows.
    pub windows: Vec<Value>,
    /// The calls that these cite.
    pub calls: Vec<Value>,
    /// Names of the files that are cited.
    pub files: Vec<String>,
    /// What could not be read in which file.
    pub problems: Vec<FileProblem>,
    /// Inputs that could not be read at all.
    pub troubles: Vec<String>,
    /// Counts.
    pub counts: Counts,
    /// Parquet files that were written, below the output folder.
    pub parts: Vec<String>,
}

/// A problem with a file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FileProblem {
    /// The file; of a rotated set the newest.
    pub name: String,
    /// Its kind.
    pub kind: String,
    /// How often it was met.
    pub count: u64,
    /// Where first, and what it means.
    pub text: String,
}

/// Counts of a unit or of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// HTTP exchanges.
    pub exchanges: u64,
    /// Sessions.
    pub sessions: u64,
    /// Calls.
    pub calls: u64,
    /// Of these, `tools/call`.
    pub tool_calls: u64,
    /// Findings.
    pub findings: u64,
    /// Findings of more than low severity.
    pub serious: u64,
    /// Findings left out because the baseline lists them.
    pub known: u64,
}

impl Counts {
    /// Adds those of another unit.
    pub fn add(&mut self, other: &Counts) {
        let Counts { exchanges, sessions, calls, tool_calls, findings, serious, known } = other;
        self.exchanges += exchanges;
        self.sessions += sessions;
        self.calls += calls;
        self.tool_calls += tool_calls;
        self.findings += findings;
        self.serious += serious;
        self.known += known;
    }
}

/// Where lines of analysis' inputs stand in files.
pub trait Places {
    /// File and line in it of a line of an input.
    fn place(&self, input: u32, line: Option<u64>) -> (String, Option<u64>);
    /// The service that an input belongs to.
    fn service(&self, input: u32) -> String;
}

impl UnitResult {
    /// Takes over the report of one piece of work. `key` makes its calls' keys unique in the scan.
    pub fn take(&mut self, report: &Report, places: &dyn Places, key: &str) {
        let mut cited = BTreeSet::new();
        let mut files: BTreeMap<String, usize> =
            self.files.iter().enumerate().map(|(n, name)| (name.clone(), n)).collect();
        let mut row = |mut value: Value| {
            rewrite(&mut value, places, key, &mut files);
            value
        };
        for f in &report.findings {
            cited.extend(f.calls.iter().chain(&f.victim).chain(&f.owner).copied());
            let input = f.evidence.iter().find_map(|e| e.input);
            let Ok(Value::Object(fields)) = serde_json::to_value(f) else { continue };
            let mut first = Map::new();
            first.insert("day".into(), f.at.map(day).into());
            first.insert("service".into(), input.map(|i| places.service(i)).into());
            first.extend(fields);
            self.findings.push(row(Value::Object(first)));
            self.counts.serious += u64::from(f.severity > Severity::Low);
        }
        for w in &report.windows {
            cited.extend(w.lost.iter().chain(&w.trigger_call).copied());
            self.windows.extend(serde_json::to_value(w).ok().map(&mut row));
        }
        for c in report.calls.iter().filter(|c| cited.contains(&c.key)) {
            self.calls.extend(serde_json::to_value(c).ok().map(&mut row));
        }
        for (n, input) in (0u32..).zip(&report.inputs) {
            self.problems(&places.place(n, None).0, &input.problems);
        }
        let mut names: Vec<(usize, String)> = files.into_iter().map(|(name, n)| (n, name)).collect();
        names.sort_unstable();
        self.files = names.into_iter().map(|(_, name)| name).collect();
        self.troubles.extend(report.troubles.iter().cloned());
        self.counts.exchanges += report.summary.exchanges;
        self.counts.sessions += report.summary.sessions;
        self.counts.calls += report.summary.calls;
        self.counts.tool_calls += report.summary.tool_calls;
        self.counts.known += report.summary.known;
        self.counts.findings += report.findings.len() as u64;
    }

    fn problems(&mut self, name: &str, problems: &Problems) {
        for p in problems.iter() {
            let place = p.place.as_deref().map_or(String::new(), |place| format!("{place}: "));
            let text = format!("{place}{}", p.text.as_deref().unwrap_or_default());
            self.problems.push(FileProblem { name: name.to_owned(), kind: p.kind.name(), count: p.count, text });
        }
    }
}

/// `2026-10-05`, in UTC.
pub fn day(at: crate::model::time::Time) -> String {
    at.to_string().chars().take(10).collect()
}

/// Puts files for inputs, lines of files for lines of inputs, and unique keys for keys.
fn rewrite(value: &mut Value, places: &dyn Places, key: &str, files: &mut BTreeMap<String, usize>) {
    match value {
        Value::Array(all) => all.iter_mut().for_each(|v| rewrite(v, places, key, files)),
        Value::Object(fields) => {
            if let Some(input) = fields.get("input").and_then(Value::as_u64) {
                let line = fields.get("line").and_then(Value::as_u64);
                let (file, line) = places.place(u32::try_from(input).unwrap_or(u32::MAX), line);
                let next = files.len();
                let n = *files.entry(file).or_insert(next);
                fields.insert("input".into(), n.into());
                if fields.contains_key("line") {
                    fields.insert("line".into(), line.into());
                }
            }
            for (name, v) in fields.iter_mut() {
                match name.as_str() {
                    "key" | "victim" | "owner" | "trigger_call" => unique(v, key),
                    "calls" | "lost" => v.as_array_mut().into_iter().flatten().for_each(|v| unique(v, key)),
                    "evidence" | "sightings" => rewrite(v, places, key, files),
                    _ => {}
                }
            }
        }
        _ => {}
    }
}

fn unique(value: &mut Value, key: &str) {
    if let Value::String(text) = value {
        text.push('-');
        text.push_str(key);
    }
}
