//! Follows one exchange for the guard, by the parser that reads captures: which replies came, and
//! what the exchange's end says about its calls.

use super::guard::{Guard, Ticket};
use crate::drive::Ears;
use crate::drive::record::now_ns;
use crate::mcp::jsonrpc::{self, Kind, Payload};
use crate::model::exchange::Peer;
use std::net::SocketAddr;
use std::sync::Arc;

/// The follower of one exchange.
pub(super) struct Watcher {
    guard: Arc<Guard>,
    session: String,
    tickets: Vec<Ticket>,
    ears: Ears,
    is_delete: bool,
}

impl Watcher {
    pub(super) fn new(guard: Arc<Guard>, session: String, tickets: Vec<Ticket>, is_delete: bool) -> Watcher {
        let nobody = SocketAddr::from(([0, 0, 0, 0], 0));
        Watcher { guard, session, tickets, ears: Ears::new(nobody, nobody), is_delete }
    }

    pub(super) fn data(&mut self, from: Peer, bytes: &[u8]) {
        self.ears.data(from, bytes, now_ns());
        self.ears.told.asked.clear();
        for message in self.ears.told.heard.messages.drain(..) {
            let release = |m: &jsonrpc::Message<'_>| {
                if matches!(m.kind, Kind::Result | Kind::Error)
                    && let Some(id) = &m.id
                {
                    self.guard.answered(&self.session, id);
                }
            };
            match jsonrpc::parse(&message.data) {
                Payload::One(m) => release(&m),
                Payload::Batch(all, _) => all.iter().for_each(release),
                Payload::Other | Payload::Invalid => {}
            }
        }
    }

    /// The response came to its end. One that was refused, or that is no stream, will not be
    /// answered on another.
    pub(super) fn complete(&mut self) {
        let heard = &self.ears.told.heard;
        let status = heard.status.unwrap_or(0);
        let is_stream = heard.header("content-type").is_some_and(|t| t.starts_with("text/event-stream"));
        if (self.is_delete && (200..300).contains(&status)) || (status == 404 && !self.tickets.is_empty()) {
            self.guard.ended(&self.session);
        }
        if !(200..300).contains(&status) || (status != 202 && !is_stream) {
            self.tickets.drain(..).for_each(|ticket| self.guard.release(ticket));
        }
    }
}
