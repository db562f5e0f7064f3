//! Findings that are neither a crossed payload nor an orphaned call: stale sessions, session
//! handling, protocol.

use super::{cleared, confidence, evidence, fault, session, severity, time};
use crate::model::report::Finding;
use crate::report::table::{Audience, Cell, Column, Table, column, counted};
use crate::report::view::View;

const COLUMNS: &[Column] = &[
    column("#", "number", 1, 6).only(Audience::People),
    column("Time (UTC)", "time", 12, 23),
    column("Rule", "rule", 10, 26),
    column("Severity", "severity", 6, 8),
    column("Session", "session", 9, 12),
    column("Calls", "calls", 9, 40),
    column("Fault", "fault", 7, 16),
    column("Cleared", "cleared", 7, 16),
    column("Confidence", "confidence", 8, 10),
    column("Evidence", "evidence", 10, 30),
];

/// `--table others`.
pub static OTHERS: Table = Table {
    name: "others",
    title: "Sessions and protocol",
    columns: COLUMNS,
    rows: |view, row| others(view).for_each(|(n, f)| row(cells(view, n, f))),
    empty: |view| format!("nothing in {}", counted(view.report.summary.sessions, "session")),
};

fn others<'a>(view: &View<'a>) -> impl Iterator<Item = (usize, &'a Finding)> {
    super::numbered(view).filter(|(_, f)| !f.rule.starts_with("crossed/") && !f.rule.starts_with("orphaned/"))
}

fn cells(view: &View<'_>, number: usize, f: &Finding) -> Vec<Cell> {
    const SHOWN: usize = 3;
    let mut calls = f.calls.iter().take(SHOWN).map(|k| view.key_label(*k)).collect::<Vec<_>>().join(", ");
    if f.calls.len() > SHOWN {
        calls.push_str(&format!(" +{}", f.calls.len() - SHOWN));
    }
    let keys = f.calls.iter().map(|k| k.to_string()).collect::<Vec<_>>().join(" ");
    vec![
        Cell::number(number),
        time(f.at),
        Cell::new(f.rule),
        severity(f),
        session(view, f.session.as_deref()),
        if f.calls.is_empty() { Cell::unknown() } else { Cell::short(calls, keys) },
        fault(f),
        cleared(f),
        confidence(f),
        evidence(view, f),
    ]
}
