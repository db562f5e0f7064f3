//! Every table of the report, one file a table.

use super::table::{Cell, Table, Tone};
use super::view::View;
use crate::model::place::Hop;
use crate::model::report::{Confidence, Finding, Severity};
use crate::model::time::Time;

mod calls;
mod crossed;
mod exchanges;
mod findings;
mod inputs;
mod orphaned;
mod others;
mod sessions;
mod windows;

pub use calls::{CALLS, CITED, delivered_name, outcome_name};
pub use crossed::CROSSED;
pub use exchanges::EXCHANGES;
pub(crate) use exchanges::end_name;
pub use findings::FINDINGS;
pub use inputs::INPUTS;
pub(crate) use inputs::vantage_name;
pub use orphaned::ORPHANED;
pub(crate) use orphaned::waited_ns;
pub use others::OTHERS;
pub use sessions::SESSIONS;
pub use windows::WINDOWS;
pub(crate) use windows::cause_name;

/// Every table that `--table` can name.
pub static TABLES: &[&Table] =
    &[&FINDINGS, &CROSSED, &ORPHANED, &WINDOWS, &CALLS, &INPUTS, &SESSIONS, &EXCHANGES, &OTHERS];

/// The table of this name.
pub fn find(name: &str) -> Option<&'static Table> {
    TABLES.iter().copied().find(|t| t.name == name)
}

/// Every finding with its number in the report, from 1.
fn numbered<'a>(view: &View<'a>) -> impl Iterator<Item = (usize, &'a Finding)> {
    view.report.findings.iter().enumerate().map(|(n, f)| (n + 1, f))
}

/// Findings whose rule is of this family (`crossed`, `orphaned`, …).
fn family<'a>(view: &View<'a>, family: &str) -> impl Iterator<Item = (usize, &'a Finding)> {
    numbered(view).filter(move |(_, f)| f.rule.split('/').next() == Some(family))
}

fn time(at: Option<Time>) -> Cell {
    Cell::optional(at, |t| Cell::short(super::view::moment(t), t.to_string()))
}

fn session(view: &View<'_>, id: Option<&str>) -> Cell {
    match id {
        Some(id) => Cell::short(view.session(id), id),
        None => Cell::short("none", ""),
    }
}

fn hops(hops: &[Hop], none: &'static str, tone: Tone) -> Cell {
    if hops.is_empty() {
        return Cell::short(none, "").tone(Tone::Dim);
    }
    Cell::new(hops.iter().map(|h| h.name()).collect::<Vec<_>>().join(", ")).tone(tone)
}

fn fault(f: &Finding) -> Cell {
    hops(&f.fault, "none proved", Tone::Bad)
}

fn cleared(f: &Finding) -> Cell {
    hops(&f.cleared, "–", Tone::Good)
}

fn confidence(f: &Finding) -> Cell {
    Cell::new(confidence_name(f.confidence))
}

fn severity(f: &Finding) -> Cell {
    let tone = match f.severity {
        Severity::High => Tone::Bad,
        Severity::Medium => Tone::Warn,
        Severity::Low => Tone::Dim,
    };
    Cell::new(severity_name(f.severity)).tone(tone)
}

/// `certain`, `probable`, `possible`.
pub fn confidence_name(c: Confidence) -> &'static str {
    match c {
        Confidence::Possible => "possible",
        Confidence::Probable => "probable",
        Confidence::Certain => "certain",
    }
}

/// `high`, `medium`, `low`.
pub fn severity_name(s: Severity) -> &'static str {
    match s {
        Severity::Low => "low",
        Severity::Medium => "medium",
        Severity::High => "high",
    }
}

/// The places a finding cites: all of them for programs, the first few for people.
fn evidence(view: &View<'_>, f: &Finding) -> Cell {
    const SHOWN: usize = 3;
    let places = view.places(f, false);
    let mut shown = places.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(" ");
    if places.len() > SHOWN {
        shown.push_str(&format!(" +{}", places.len() - SHOWN));
    }
    Cell::short(shown, view.places(f, true).join(" "))
}

fn call(view: &View<'_>, key: Option<crate::model::report::CallKey>) -> Cell {
    Cell::optional(key, |k| Cell::new(view.key_label(k)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_columns_are_unique() {
        let mut names: Vec<_> = TABLES.iter().map(|t| t.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), TABLES.len());
        for table in TABLES {
            let mut keys: Vec<_> = table.columns.iter().map(|c| c.key).collect();
            keys.sort_unstable();
            keys.dedup();
            assert_eq!(keys.len(), table.columns.len(), "{}", table.name);
            assert!(table.columns.iter().all(|c| c.min <= c.max), "{}", table.name);
            assert!(keys.iter().all(|k| k.chars().all(|c| c.is_ascii_lowercase() || c == '_' || c.is_ascii_digit())));
        }
    }
}
