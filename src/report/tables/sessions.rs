//! Every session, and groups of calls without one.

use crate::model::report::{Session, SessionEnd};
use crate::report::table::{Cell, Column, Table, Tone, column};
use crate::report::view::View;

const COLUMNS: &[Column] = &[
    column("Session", "session", 9, 12),
    column("Revision", "revision", 10, 10),
    column("Client", "client", 8, 24),
    column("Server", "server", 8, 24),
    column("Started (UTC)", "started", 12, 23),
    column("Ended (UTC)", "ended", 12, 23),
    column("End", "end", 7, 14),
    column("Calls", "calls", 5, 10),
    column("Conversations", "conversations", 5, 13),
    column("Peers", "peers", 9, 30),
    column("Endpoint", "endpoint", 9, 30),
];

/// `--table sessions`.
pub static SESSIONS: Table = Table {
    name: "sessions",
    title: "Sessions",
    columns: COLUMNS,
    rows: |view, row| view.report.sessions.iter().for_each(|s| row(cells(view, s))),
    empty: |_| "none".into(),
};

fn cells(view: &View<'_>, s: &Session) -> Vec<Cell> {
    let text = |t: &Option<std::sync::Arc<str>>| Cell::optional(t.as_ref(), Cell::new);
    vec![
        super::session(view, s.session.as_deref()),
        text(&s.revision),
        text(&s.client),
        text(&s.server),
        super::time(s.started),
        super::time(s.ended),
        Cell::optional(s.end, |e| match e {
            SessionEnd::Deleted => Cell::new("deleted"),
            SessionEnd::Stale => Cell::new("stale").tone(Tone::Warn),
            SessionEnd::ServerStopped => Cell::new("server-stopped").tone(Tone::Warn),
            SessionEnd::Open => Cell::new("open"),
        }),
        Cell::number(s.calls),
        Cell::optional(s.conversations, Cell::number),
        Cell::new(s.peers.join(" ")),
        text(&s.endpoint),
    ]
}
