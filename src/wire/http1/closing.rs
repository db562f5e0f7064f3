//! The ends of connections, and what they are for the exchanges that are open.

use super::parser::{Http1, State};
use crate::model::exchange::{End, Mark, Peer};
use crate::wire::{Connection, Context};

impl Http1 {
    pub(super) fn close_client(&mut self, connection: &Connection, mark: Mark, context: &mut Context<'_>) {
        if self.client_closed {
            return;
        }
        self.client_closed = true;
        if !matches!(self.client.state, State::Done) {
            self.client.state = State::Done;
            if let Some(open) = self.pairing.back().filter(|open| !open.request_done) {
                open.request_gap();
                open.request_end(&[], mark, connection, context);
            }
        }
        for open in self.pairing.all() {
            open.client_closed(mark, connection, context);
        }
        self.finish_done(connection, context);
        if self.server_closed {
            self.end_all(connection, End::ServerClosed, Some(Peer::Server), mark, context);
        }
    }

    /// The server's side is closed, or both are.
    pub(super) fn end_all(
        &mut self,
        connection: &Connection,
        end: End,
        by: Option<Peer>,
        mark: Mark,
        context: &mut Context<'_>,
    ) {
        let lost = matches!(self.server.state, State::Lost | State::LostChunked);
        for open in self.pairing.take() {
            let (end, by) = match open.response_done {
                Some(_) => (End::Complete, None),
                // The end of its response, or all of it, was in bytes that are missing.
                None if open.doubtful || (lost && open.answered) => (End::Gap, by),
                None if open.exchange.client_closed.is_some() && end != End::InputEnded => {
                    (closed_by_client(end, by), Some(Peer::Client))
                }
                None => (end, by),
            };
            let mark = open.response_done.unwrap_or(mark);
            open.end(end, by, mark, connection, context);
        }
        if end != End::ServerClosed {
            (self.client.state, self.server.state) = (State::Done, State::Done);
        }
    }
}

/// A client that closed ends the exchange, whatever the server does then; its own reset stays one.
fn closed_by_client(end: End, by: Option<Peer>) -> End {
    match (end, by) {
        (End::Reset, Some(Peer::Client)) => End::Reset,
        _ => End::ClientClosed,
    }
}
