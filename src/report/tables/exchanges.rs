//! HTTP exchanges, for `timeline --format csv`.

use crate::model::exchange::End;
use crate::model::report::ExchangeRow;
use crate::report::table::{Cell, Column, Table, column};
use crate::report::view::{View, label};

const COLUMNS: &[Column] = &[
    column("Time (UTC)", "at", 12, 23),
    column("Input", "input", 8, 30),
    column("Stream", "stream", 6, 8),
    column("Request frame", "request_frame", 7, 9),
    column("Response frame", "response_frame", 8, 9),
    column("Method", "method", 6, 8),
    column("Target", "target", 6, 30),
    column("Status", "status", 6, 6),
    column("Session", "session", 9, 12),
    column("Messages", "messages", 10, 40),
    column("Replies", "replies", 7, 30),
    column("End", "end", 8, 14),
];

/// `--table exchanges`, only filled by `timeline`.
pub static EXCHANGES: Table = Table {
    name: "exchanges",
    title: "HTTP exchanges",
    columns: COLUMNS,
    rows: |view, row| view.report.exchanges.iter().for_each(|e| row(cells(view, e))),
    empty: |_| "none".into(),
};

fn cells(view: &View<'_>, e: &ExchangeRow) -> Vec<Cell> {
    let text = |t: &Option<std::sync::Arc<str>>| Cell::optional(t.as_ref(), Cell::new);
    let messages: Vec<String> =
        e.rpc.iter().map(|r| label(r.tool.as_deref().or(r.method.as_deref()), r.id.as_ref())).collect();
    let replies: Vec<String> = e.replies.iter().map(|r| label(r.kind, r.id.as_ref())).collect();
    vec![
        super::time(e.at),
        Cell::short(view.input(e.input), view.input_full(e.input)),
        Cell::optional(e.stream, Cell::number),
        Cell::optional(e.request_frame, Cell::number),
        Cell::optional(e.response_frame, Cell::number),
        text(&e.method),
        text(&e.target),
        Cell::optional(e.status, Cell::number),
        super::session(view, e.session.as_deref()),
        Cell::new(messages.join(" ")),
        Cell::new(replies.join(" ")),
        Cell::optional(e.end, |end| Cell::new(end_name(end))),
    ]
}

/// `complete`, `client-closed`, …
pub(crate) fn end_name(e: End) -> &'static str {
    match e {
        End::Complete => "complete",
        End::ClientClosed => "client-closed",
        End::ServerClosed => "server-closed",
        End::Reset => "reset",
        End::InputEnded => "input-ended",
        End::Gap => "gap",
    }
}
