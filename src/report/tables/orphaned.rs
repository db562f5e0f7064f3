//! Orphaned calls: asked, and never (or not in time) answered.

use super::{cleared, confidence, evidence, family, fault, session, time};
use crate::model::place::{Side, Vantage};
use crate::model::report::{Call, Finding, Sighting};
use crate::report::table::{Audience, Cell, Column, Table, Tone, column, counted};
use crate::report::view::{View, size, span};

const COLUMNS: &[Column] = &[
    column("#", "number", 1, 6).only(Audience::People),
    column("Time (UTC)", "time", 12, 23),
    column("Session", "session", 9, 12),
    column("Tool and id", "call", 10, 30),
    column("Waited", "waited_s", 7, 14),
    column("Status and bytes", "status_and_bytes", 8, 22),
    column("Last seen", "last_seen", 10, 34),
    column("Fault", "fault", 7, 16),
    column("Cleared", "cleared", 7, 16),
    column("Confidence", "confidence", 8, 10),
    column("Evidence", "evidence", 10, 30),
    column("Rule", "rule", 10, 24).only(Audience::Wide),
];

/// `--table orphaned`.
pub static ORPHANED: Table = Table {
    name: "orphaned",
    title: "Orphaned calls",
    columns: COLUMNS,
    rows: |view, row| family(view, "orphaned").for_each(|(n, f)| row(cells(view, n, f))),
    empty: |view| {
        let s = &view.report.summary;
        format!("none in {} over {}", counted(s.calls, "call"), counted(s.sessions, "session"))
    },
};

fn cells(view: &View<'_>, number: usize, f: &Finding) -> Vec<Cell> {
    let key = f.victim.or(f.calls.first().copied());
    let call = key.and_then(|k| view.call(k));
    vec![
        Cell::number(number),
        time(f.at),
        session(view, f.session.as_deref()),
        Cell::optional(key, |k| Cell::new(view.key_label(k)).tone(Tone::Bad)),
        Cell::optional(waited_ns(f), |ns| Cell::short(span(ns), format!("{:.6}", ns as f64 / 1e9))),
        call.map_or_else(Cell::unknown, status_and_bytes),
        call.map_or_else(Cell::unknown, |c| last_seen(view, c)),
        fault(f),
        cleared(f),
        confidence(f),
        evidence(view, f),
        Cell::new(f.rule),
    ]
}

pub(crate) fn waited_ns(f: &Finding) -> Option<i64> {
    f.waited_ns.or_else(|| Some(f.until?.since(f.at?)))
}

fn status_and_bytes(call: &Call) -> Cell {
    let mut seen: Vec<String> = Vec::new();
    for s in &call.sightings {
        let text = match (s.status, s.bytes) {
            (Some(status), Some(bytes)) => format!("{status}, {}", size(bytes)),
            (Some(status), None) => status.to_string(),
            (None, Some(bytes)) => size(bytes),
            (None, None) => continue,
        };
        if !seen.contains(&text) {
            seen.push(text);
        }
    }
    if seen.is_empty() { Cell::short("no status", "") } else { Cell::new(seen.join(" / ")) }
}

/// How far along the path from client to server a vantage point stands.
pub(crate) fn depth(view: &View<'_>, s: &Sighting) -> u8 {
    let side = view.report.inputs.get(s.input as usize).and_then(|i| i.side);
    match (s.vantage, side) {
        (Some(Vantage::Client), _) => 0,
        (Some(Vantage::Wire), Some(Side::Front)) => 1,
        (Some(Vantage::Proxy), _) => 2,
        (Some(Vantage::Wire), _) => 3,
        (Some(Vantage::Server), _) => 4,
        (None, _) => 0,
    }
}

/// Where the request was seen last on its way, or the reply on its way back.
fn last_seen(view: &View<'_>, call: &Call) -> Cell {
    let place = |s: &Sighting, number: Option<u64>| match number {
        Some(n) => format!("{}:{n}", view.input(s.input)),
        None => view.input(s.input).to_string(),
    };
    let replied = call.sightings.iter().filter(|s| s.reply_frame.is_some()).min_by_key(|s| depth(view, s));
    if let Some(s) = replied {
        return Cell::new(format!("reply in {}", place(s, s.reply_frame)));
    }
    match call.sightings.iter().max_by_key(|s| depth(view, s)) {
        Some(s) => Cell::new(format!("request in {}", place(s, s.frame.or(s.line)))),
        None => Cell::unknown(),
    }
}
