//! Crossed payloads: whose reply reached whom.

use super::{call, cleared, confidence, evidence, family, fault, session, time};
use crate::model::report::{CallKey, Finding, Outcome};
use crate::report::table::{Audience, Cell, Column, Table, Tone, column, counted};
use crate::report::view::View;

const COLUMNS: &[Column] = &[
    column("#", "number", 1, 6).only(Audience::People),
    column("Time (UTC)", "time", 12, 23),
    column("Session", "session", 9, 12),
    column("Batch", "batch", 5, 5),
    column("Timed out or hanging", "hanging", 9, 26),
    column("Payload of", "payload_of", 9, 26),
    column("Landed in", "landed_in", 9, 26),
    column("Server side shows", "shown", 11, 44),
    column("Fault", "fault", 7, 16),
    column("Cleared", "cleared", 7, 16),
    column("Confidence", "confidence", 8, 10),
    column("Evidence", "evidence", 10, 30),
    column("Rule", "rule", 10, 22).only(Audience::Wide),
];

/// `--table crossed`.
pub static CROSSED: Table = Table {
    name: "crossed",
    title: "Crossed payloads",
    columns: COLUMNS,
    rows: |view, row| family(view, "crossed").for_each(|(n, f)| row(cells(view, n, f))),
    empty: |view| {
        let s = &view.report.summary;
        format!("none in {} over {}", counted(s.calls, "call"), counted(s.sessions, "session"))
    },
};

fn cells(view: &View<'_>, number: usize, f: &Finding) -> Vec<Cell> {
    vec![
        Cell::number(number),
        time(f.at),
        session(view, f.session.as_deref()),
        Cell::optional(f.batch, Cell::number),
        hanging(view, f),
        call(view, f.owner),
        call(view, f.victim).tone(Tone::Bad),
        shown(f),
        fault(f),
        cleared(f),
        confidence(f),
        evidence(view, f),
        Cell::new(f.rule),
    ]
}

pub(super) fn shown(f: &Finding) -> Cell {
    if f.shown.is_empty() { Cell::unknown() } else { Cell::new(&f.shown) }
}

/// The calls of the finding that never got a reply of any kind.
fn hanging(view: &View<'_>, f: &Finding) -> Cell {
    let open = |k: &CallKey| view.call(*k).is_some_and(|c| c.outcome == Outcome::NoReply);
    let keys: Vec<CallKey> = f.calls.iter().copied().filter(open).collect();
    if keys.is_empty() {
        return Cell::short("none", "");
    }
    Cell::new(keys.iter().map(|k| view.key_label(*k)).collect::<Vec<_>>().join(", ")).tone(Tone::Warn)
}
