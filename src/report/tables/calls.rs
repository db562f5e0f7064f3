//! Calls: all of them, or those that findings and windows cite.

use crate::model::report::{Call, Delivered, Outcome};
use crate::report::cited;
use crate::report::table::{Cell, Column, Table, Tone, column};
use crate::report::view::{View, span};

const COLUMNS: &[Column] = &[
    column("Key", "key", 4, 8),
    column("Session", "session", 9, 12),
    column("Id", "id", 3, 20),
    column("Method", "method", 8, 26),
    column("Tool", "tool", 8, 26),
    column("From", "from", 6, 6),
    column("Sent (UTC)", "sent", 12, 23),
    column("Replied (UTC)", "replied", 12, 23),
    column("Latency", "latency_s", 7, 12),
    column("Outcome", "outcome", 8, 11),
    column("Delivered", "delivered", 7, 9),
    column("Status", "status", 6, 10),
    column("Seen in", "seen_in", 10, 40),
];

/// `--table calls`.
pub static CALLS: Table = Table {
    name: "calls",
    title: "Calls",
    columns: COLUMNS,
    rows: |view, row| view.report.calls.iter().for_each(|c| row(cells(view, c))),
    empty: |_| "none".into(),
};

/// The calls that findings and windows cite, as a table.
pub static CITED: Table = Table {
    name: "calls",
    title: "Calls cited",
    columns: COLUMNS,
    rows: |view, row| {
        let cited = cited(view.report);
        view.report.calls.iter().filter(|c| cited.contains(&c.key)).for_each(|c| row(cells(view, c)));
    },
    empty: |_| "none".into(),
};

fn cells(view: &View<'_>, c: &Call) -> Vec<Cell> {
    let statuses: Vec<String> = c.sightings.iter().filter_map(|s| s.status).map(|s| s.to_string()).collect();
    let mut unique = statuses.clone();
    unique.dedup();
    let seen = |full: bool| {
        let one = |s: &crate::model::report::Sighting| {
            let name = if full { view.input_full(s.input) } else { view.input(s.input) };
            s.frame.or(s.line).map_or_else(|| name.to_string(), |n| format!("{name}:{n}"))
        };
        c.sightings.iter().map(one).collect::<Vec<_>>().join(" ")
    };
    vec![
        Cell::new(c.key.to_string()),
        super::session(view, c.session.as_deref()),
        Cell::optional(c.id.as_ref(), |id| Cell::new(id.to_string())),
        Cell::optional(c.method.as_ref(), Cell::new),
        Cell::optional(c.tool.as_ref(), Cell::new),
        Cell::new(c.from.unwrap_or("client")),
        super::time(c.sent.or(c.issued)),
        super::time(c.replied),
        Cell::optional(view.latency_ns(c), |ns| Cell::short(span(ns), format!("{:.6}", ns as f64 / 1e9))),
        outcome(c.outcome),
        delivered(c.delivered),
        if unique.is_empty() { Cell::unknown() } else { Cell::new(unique.join(" ")) },
        Cell::short(seen(false), seen(true)),
    ]
}

/// `result`, `no-reply`, …
pub fn outcome_name(o: Outcome) -> &'static str {
    match o {
        Outcome::Result => "result",
        Outcome::ToolError => "tool-error",
        Outcome::RpcError => "rpc-error",
        Outcome::HttpError => "http-error",
        Outcome::Cancelled => "cancelled",
        Outcome::NoReply => "no-reply",
        Outcome::NotSent => "not-sent",
        Outcome::Unobserved => "unobserved",
    }
}

fn outcome(o: Outcome) -> Cell {
    let tone = match o {
        Outcome::Result => Tone::Plain,
        Outcome::NoReply | Outcome::NotSent => Tone::Bad,
        Outcome::ToolError | Outcome::RpcError | Outcome::HttpError => Tone::Warn,
        Outcome::Cancelled | Outcome::Unobserved => Tone::Dim,
    };
    Cell::new(outcome_name(o)).tone(tone)
}

/// `own`, `foreign`, …
pub fn delivered_name(d: Delivered) -> &'static str {
    match d {
        Delivered::Own => "own",
        Delivered::Foreign => "foreign",
        Delivered::None => "none",
        Delivered::Unknown => "unknown",
    }
}

fn delivered(d: Delivered) -> Cell {
    let cell = Cell::new(delivered_name(d));
    if d == Delivered::Foreign { cell.tone(Tone::Bad) } else { cell }
}
