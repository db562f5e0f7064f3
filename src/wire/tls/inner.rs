//! What a connection carries, and handing it over.

use super::connection::{At, Core};
use super::{Application, other};
use crate::model::exchange::Peer;
use crate::model::problem::ProblemKind;
use crate::wire::{Close, Connection, StreamParser};

/// The reader of what a connection carries.
pub(super) enum Inner {
    /// Nothing was carried yet.
    Unopened,
    /// A parser.
    Open(Box<dyn StreamParser>),
    /// A protocol that is not read.
    Unread,
}

impl Core {
    /// Hands over application data.
    pub(super) fn deliver(&mut self, at: &mut At<'_, '_>, text: &[u8]) {
        if text.is_empty() {
            return;
        }
        if !self.readable {
            self.readable = true;
            self.setup.count_readable();
        }
        self.open_inner(at);
        let side = self.side(at.from);
        let in_gap = std::mem::take(&mut side.pending_gap) | std::mem::take(&mut side.doubtful_gap);
        (side.delivered, side.unreadable) = (true, false);
        let connection = self.inside(at);
        if let Inner::Open(inner) = &mut self.inner {
            if in_gap {
                inner.gap(&connection, at.from, None, at.mark, at.context);
            }
            inner.data(&connection, at.from, text, at.mark, at.context);
        }
        self.side(at.from).progress.carry(text.len() as u64, at.end);
    }

    /// The connection in terms of what it carries.
    fn inside(&mut self, at: &At<'_, '_>) -> Connection {
        let offset = self.side_ref(at.from).progress.carried;
        let acked = self.side(other(at.from)).progress.carried_at(at.connection.acked);
        Connection { offset, acked, ..*at.connection }
    }

    fn open_inner(&mut self, at: &mut At<'_, '_>) {
        if !matches!(self.inner, Inner::Unopened) {
            return;
        }
        let application = match self.session.alpn.as_deref() {
            None => Application::Unknown,
            Some("h2" | "grpc-exp") => Application::Http2,
            Some(name) if name.starts_with("http/1") || name == "http/0.9" => Application::Http1,
            Some(name) => {
                let text =
                    format!("TLS connection {} carries `{name}` (ALPN), which is not read", self.name(at.connection));
                at.problem(ProblemKind::UnreadProtocol, 1, || text);
                self.inner = Inner::Unread;
                return;
            }
        };
        self.inner = Inner::Open((self.opener)(application));
        for from in [Peer::Client, Peer::Server] {
            if self.side_ref(from).unreadable && from != at.from {
                self.inner_unreadable(&mut at.elsewhere(from, at.mark));
            }
        }
    }

    /// A record is lost, or so many bytes of its application data; none: unknown how many, if any.
    pub(super) fn inner_gap(&mut self, at: &mut At<'_, '_>, bytes: Option<u64>) {
        if bytes == Some(0) {
            return;
        }
        let side = self.side(at.from);
        if !side.delivered {
            let certain = side.is_past_handshake();
            side.pending_gap |= certain;
            side.doubtful_gap |= !certain;
            return;
        }
        let connection = self.inside(at);
        if let Inner::Open(inner) = &mut self.inner {
            inner.gap(&connection, at.from, bytes, at.mark, at.context);
        }
        self.side(at.from).progress.carry(bytes.unwrap_or(0), at.end);
    }

    /// No record will tell any more whether application data was lost: it may have been.
    fn settle_gap(&mut self, at: &mut At<'_, '_>) {
        let side = self.side(at.from);
        if std::mem::take(&mut side.pending_gap) | std::mem::take(&mut side.doubtful_gap) {
            let connection = self.inside(at);
            if let Inner::Open(inner) = &mut self.inner {
                inner.gap(&connection, at.from, None, at.mark, at.context);
            }
        }
    }

    /// Nothing of one direction can be read for want of its keys.
    pub(super) fn inner_unreadable(&mut self, at: &mut At<'_, '_>) {
        let side = self.side(at.from);
        side.unreadable = true;
        side.pending_gap = true;
        let connection = self.inside(at);
        if let Inner::Open(inner) = &mut self.inner {
            inner.gap(&connection, at.from, None, at.mark, at.context);
        }
    }

    /// One end sends no more.
    pub(super) fn close(&mut self, at: &mut At<'_, '_>, close: Close) {
        if close != Close::Fin || at.from == Peer::Client {
            let stage = self.side_ref(Peer::Client).stage;
            // Nobody said whether it was accepted: more likely it was.
            self.settle_early(at, stage.is_none_or(|stage| stage <= super::session::Stage::Early));
        }
        for from in [Peer::Client, Peer::Server] {
            self.settle_gap(&mut at.elsewhere(from, at.mark));
        }
        let connection = self.inside(at);
        if let Inner::Open(inner) = &mut self.inner {
            inner.close(&connection, at.from, close, at.mark, at.context);
        }
    }
}
