//! Stale-session windows: from the refusal of an old session to the first call in the new one.

use super::{session, time};
use crate::model::report::{Cause, Window};
use crate::report::table::{Cell, Column, Table, Tone, column, counted};
use crate::report::view::{View, clock, span};

const COLUMNS: &[Column] = &[
    column("Refused at (UTC)", "refused_at", 12, 23),
    column("Old session", "old_session", 9, 12),
    column("New session", "new_session", 9, 12),
    column("Cause", "cause", 7, 8),
    column("Re-initialised in", "reinitialised_in_s", 8, 14),
    column("First call after", "first_call_after", 9, 13),
    column("Silence", "silence_s", 7, 12),
    column("Calls lost", "calls_lost", 10, 60),
    column("Refused request", "trigger_call", 10, 30),
];

/// `--table windows`.
pub static WINDOWS: Table = Table {
    name: "windows",
    title: "Stale-session windows",
    columns: COLUMNS,
    rows: |view, row| view.report.windows.iter().for_each(|w| row(cells(view, w))),
    empty: |view| format!("none in {}", counted(view.report.summary.sessions, "session")),
};

fn cells(view: &View<'_>, w: &Window) -> Vec<Cell> {
    let seconds = |ns: i64| Cell::short(span(ns), format!("{:.6}", ns as f64 / 1e9));
    vec![
        time(w.opened),
        match &w.stale_session {
            Some(id) => session(view, Some(id)),
            None => Cell::short("not named", ""),
        },
        match (&w.new_session, w.initialize) {
            (Some(id), _) => session(view, Some(id)),
            (None, Some(_)) => Cell::short("not named", ""),
            (None, None) if w.opened.is_none() => Cell::short("not named", ""),
            (None, None) => Cell::short("never", "").tone(Tone::Bad),
        },
        Cell::optional(w.cause, |c| Cell::new(cause_name(c))),
        match w.initialize.zip(w.opened) {
            Some((initialize, opened)) => seconds(initialize.since(opened).max(0)),
            // Of a log that has no times only the order is known.
            None if w.opened.is_none() => Cell::short("afterwards", ""),
            None => Cell::short("never", "").tone(Tone::Bad),
        },
        Cell::optional(w.next_call, |t| Cell::short(clock(t), t.to_string())),
        Cell::optional(w.silence_s, |s| Cell::short(span((s * 1e9) as i64), s.to_string())),
        lost(view, w),
        super::call(view, w.trigger_call),
    ]
}

/// `restart`, `idle`, …
pub(crate) fn cause_name(c: Cause) -> &'static str {
    match c {
        Cause::Restart => "restart",
        Cause::Idle => "idle",
        Cause::Deleted => "deleted",
        Cause::Replica => "replica",
        Cause::Unknown => "unknown",
    }
}

fn lost(view: &View<'_>, w: &Window) -> Cell {
    if w.lost.is_empty() && !w.shows_lost {
        return Cell::short("not told", "");
    }
    if w.lost.is_empty() {
        return Cell::short("none", "").tone(Tone::Good);
    }
    let labels = w.lost.iter().map(|k| view.key_label(*k)).collect::<Vec<_>>().join(", ");
    let keys = w.lost.iter().map(|k| k.to_string()).collect::<Vec<_>>().join(" ");
    Cell::short(format!("{}: {labels}", w.lost.len()), keys).tone(Tone::Bad)
}
