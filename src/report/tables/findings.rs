//! Every finding, one row each.

use super::{call, cleared, confidence, evidence, fault, numbered, session, severity, time};
use crate::model::report::Finding;
use crate::report::table::{Audience, Cell, Column, Table, column, counted};
use crate::report::view::View;

const COLUMNS: &[Column] = &[
    column("#", "number", 1, 6).only(Audience::People),
    column("Rule", "rule", 10, 26),
    column("Severity", "severity", 6, 8),
    column("Confidence", "confidence", 8, 10),
    column("Fault", "fault", 7, 16),
    column("Cleared", "cleared", 7, 16),
    column("Session", "session", 9, 12),
    column("Time (UTC)", "time", 12, 23),
    column("Until", "until", 12, 23),
    column("Victim", "victim", 9, 26),
    column("Owner", "owner", 9, 26),
    column("Batch", "batch", 5, 5),
    column("Calls", "calls", 5, 20),
    column("Summary", "summary", 20, 60),
    column("Evidence", "evidence", 10, 30),
];

/// `--table findings`.
pub static FINDINGS: Table = Table {
    name: "findings",
    title: "Findings",
    columns: COLUMNS,
    rows: |view, row| numbered(view).for_each(|(n, f)| row(cells(view, n, f))),
    empty: |view| {
        let s = &view.report.summary;
        format!("none in {} over {}", counted(s.calls, "call"), counted(s.sessions, "session"))
    },
};

fn cells(view: &View<'_>, number: usize, f: &Finding) -> Vec<Cell> {
    vec![
        Cell::number(number),
        Cell::new(f.rule),
        severity(f),
        confidence(f),
        fault(f),
        cleared(f),
        session(view, f.session.as_deref()),
        time(f.at),
        time(f.until),
        call(view, f.victim),
        call(view, f.owner),
        Cell::optional(f.batch, Cell::number),
        Cell::new(f.calls.iter().map(|k| k.to_string()).collect::<Vec<_>>().join(" ")),
        Cell::new(&f.summary),
        evidence(view, f),
    ]
}
