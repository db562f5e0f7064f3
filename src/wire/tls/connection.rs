//! One connection: its records one by one, and what becomes of each.

use super::early::Early;
use super::inner::Inner;
use super::record::{Lost, Record, SEALED_BYTES, kind};
use super::session::{Session, Stage};
use super::setup::TlsSetup;
use super::side::{Budget, Side};
use super::{Opener, index};
use crate::model::exchange::{Mark, Peer};
use crate::model::problem::ProblemKind;
use crate::wire::{Connection, Context};
use std::sync::Arc;

/// Where in which connection things are happening, and who is told.
pub(super) struct At<'a, 'c> {
    pub(super) connection: &'a Connection,
    pub(super) from: Peer,
    pub(super) mark: Mark,
    /// Bytes of TCP that this end has sent with the record at hand.
    pub(super) end: u64,
    pub(super) context: &'a mut Context<'c>,
}

impl<'a, 'c> At<'a, 'c> {
    pub(super) fn new(connection: &'a Connection, from: Peer, mark: Mark, context: &'a mut Context<'c>) -> At<'a, 'c> {
        At { connection, from, mark, end: connection.offset, context }
    }

    /// The same for the other end or another place.
    pub(super) fn elsewhere(&mut self, from: Peer, mark: Mark) -> At<'_, 'c> {
        At { connection: self.connection, from, mark, end: self.end, context: &mut *self.context }
    }

    /// Counts a problem here.
    pub(super) fn problem(&mut self, kind: ProblemKind, count: u64, text: impl FnOnce() -> String) {
        let mark = self.mark;
        self.context.problems.add_many(kind, count, || place(mark), text);
    }
}

/// A place as problems name it.
pub(super) fn place(mark: Mark) -> String {
    format!("{} {}", if mark.place.is_frame { "frame" } else { "line" }, mark.place.number)
}

/// State of a connection beside its framing.
pub(super) struct Core {
    pub(super) setup: Arc<TlsSetup>,
    pub(super) opener: Opener,
    pub(super) session: Session,
    sides: [Side; 2],
    pub(super) inner: Inner,
    pub(super) early: Early,
    /// Bytes that may still be decrypted on trial.
    pub(super) budget: Budget,
    /// Where the connection was first met.
    pub(super) first: Option<Mark>,
    /// It carried a protected record, and was counted.
    pub(super) counted: bool,
    /// Application data was read.
    pub(super) readable: bool,
    /// Records that holes took or that did not authenticate, though keys were at hand.
    pub(super) unread: u64,
    /// Records that were read in part.
    pub(super) cut: u64,
    scratch: Vec<u8>,
}

impl Core {
    pub(super) fn new(setup: Arc<TlsSetup>, opener: Opener) -> Core {
        Core {
            session: Session::new(Arc::clone(&setup.keys)),
            setup,
            opener,
            sides: [Side::new(0), Side::new(1)],
            inner: Inner::Unopened,
            early: Early::new(),
            budget: Budget::new(),
            first: None,
            counted: false,
            readable: false,
            unread: 0,
            cut: 0,
            scratch: Vec::new(),
        }
    }

    /// Nothing that is protected can be read, as things stand.
    pub(super) fn is_hopeless(&mut self) -> bool {
        !self.readable && !self.session.has_secrets()
    }

    /// Reads one record; false if it cannot be one (only where it was found by searching).
    pub(super) fn record(&mut self, at: &mut At<'_, '_>, record: &Record<'_>) -> bool {
        let protected = self.is_protected(at.from, record);
        if protected && !record.found {
            self.count_sealed(at.from);
        }
        if record.passed_over {
            self.side(at.from).pass(&[], true);
            self.side(at.from).unreadable = true;
        } else if !record.holes.is_empty() {
            let text = std::mem::take(&mut self.scratch);
            self.scratch = self.damaged(at, record, protected, text);
        } else if protected {
            return self.sealed(at, record);
        } else {
            return self.plain(at, record);
        }
        true
    }

    fn is_protected(&self, from: Peer, record: &Record<'_>) -> bool {
        let side = self.side_ref(from);
        match record.header.kind {
            kind::APPLICATION_DATA => true,
            _ if self.session.may_be_13() => matches!(side.stage, Some(Stage::Changed(_))),
            _ => side.changes > 0,
        }
    }

    fn count_sealed(&mut self, from: Peer) {
        self.side(from).sealed += 1;
        self.meet();
    }

    /// Counts the connection as one that carries more than a handshake in the clear.
    pub(super) fn meet(&mut self) {
        if !std::mem::replace(&mut self.counted, true) {
            self.setup.count_connection();
        }
    }

    /// A record that nothing protects.
    fn plain(&mut self, at: &mut At<'_, '_>, record: &Record<'_>) -> bool {
        if record.found && self.side_ref(at.from).active.is_some() {
            return false;
        }
        match record.header.kind {
            kind::HANDSHAKE => self.handshake(at, record.body),
            kind::CHANGE_CIPHER_SPEC if record.body == [1] => self.change_cipher_spec(at.from),
            kind::CHANGE_CIPHER_SPEC => return !record.found,
            _ => {}
        }
        true
    }

    /// A whole protected record.
    fn sealed(&mut self, at: &mut At<'_, '_>, record: &Record<'_>) -> bool {
        let mut text = std::mem::take(&mut self.scratch);
        let (session, budget) = (&mut self.session, &mut self.budget);
        let side = side_of(&mut self.sides, at.from);
        let had_keys = side.active.is_some() && side.opened > 0;
        let opened = side.open(session, record, budget, &mut text);
        if opened {
            if record.found {
                self.count_sealed(at.from);
            }
            let (kind, length) = self.content(at.from, record.header.kind, &text);
            self.opened(at, kind, text.get(..length).unwrap_or_default());
        } else if record.found {
            // It may be no record at all.
        } else if had_keys {
            self.unread += 1;
            let lost = self.content_length(at.from, record.body.len());
            self.inner_gap(at, lost);
        } else if !self.session.may_open(index(at.from)) {
            self.inner_unreadable(at);
        }
        self.scratch = text;
        opened
    }

    /// Content type and length of an opened record (RFC 8446 §5.4 for TLS 1.3).
    pub(super) fn content(&mut self, from: Peer, kind: u8, text: &[u8]) -> (u8, usize) {
        if matches!(self.side_ref(from).stage, Some(Stage::Changed(_))) {
            return (kind, text.len());
        }
        let Some(end) = text.iter().rposition(|byte| *byte != 0) else { return (kind::ALERT, 0) };
        self.side(from).padded |= end + 1 < text.len();
        (text.get(end).copied().unwrap_or_default(), end)
    }

    /// How much content a record with a body of `bytes` has, if that is certain enough: a sender of
    /// TLS 1.3 that never padded is taken not to pad.
    pub(super) fn content_length(&self, from: Peer, bytes: usize) -> Option<u64> {
        let side = self.side_ref(from);
        let active = side.active.as_ref()?;
        let overhead = active.cipher.overhead()?;
        let length = match active.stage {
            Stage::Application(_) if !side.padded => bytes.checked_sub(overhead + 1)?,
            Stage::Changed(_) => bytes.checked_sub(overhead)?,
            _ => return None,
        };
        Some(length as u64)
    }

    /// The content of a record that was opened.
    fn opened(&mut self, at: &mut At<'_, '_>, kind: u8, text: &[u8]) {
        match kind {
            kind::HANDSHAKE => self.handshake(at, text),
            kind::CHANGE_CIPHER_SPEC => self.change_cipher_spec(at.from),
            kind::APPLICATION_DATA if self.side_ref(at.from).stage == Some(Stage::Early) => self.early_data(at, text),
            kind::APPLICATION_DATA => {
                if at.from == Peer::Client {
                    // Neither accepted nor followed by its end: it was rejected.
                    self.settle_early(at, false);
                }
                self.deliver(at, text);
            }
            _ => {}
        }
    }

    /// Records may have been lost between the last and the next.
    pub(super) fn lost(&mut self, at: &mut At<'_, '_>, lost: Lost) {
        if let Lost::AtMost(records) = lost {
            self.budget.earn(usize::try_from(records).unwrap_or(usize::MAX).saturating_mul(SEALED_BYTES));
        }
        let side = self.side(at.from);
        side.lost(lost);
        side.messages.gap(None);
        let had_keys = side.active.is_some();
        let delivered = side.delivered;
        side.doubtful_gap |= !delivered;
        self.unread += u64::from(had_keys);
        if delivered {
            self.inner_gap(at, None);
        }
    }

    /// Bytes that are no record, where one should be.
    pub(super) fn not_tls(&mut self, at: &mut At<'_, '_>) {
        let (client, server) = (at.connection.client, at.connection.server);
        at.problem(ProblemKind::BadTls, 1, || format!("bytes that are no TLS record on {client} → {server}"));
        self.lost(at, Lost::Unknown);
    }

    pub(super) fn side(&mut self, from: Peer) -> &mut Side {
        side_of(&mut self.sides, from)
    }

    pub(super) fn side_ref(&self, from: Peer) -> &Side {
        let [client, server] = &self.sides;
        if from == Peer::Client { client } else { server }
    }
}

fn side_of(sides: &mut [Side; 2], from: Peer) -> &mut Side {
    let [client, server] = sides;
    if from == Peer::Client { client } else { server }
}
