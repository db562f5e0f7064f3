//! TLS connections read with the secrets of a key log: TLS 1.0 to 1.3, passively.
//!
//! `record` cuts each direction into records, `messages` puts handshake messages together, `hello`
//! reads those that matter, `session` derives keys from them, `side` knows which keys a direction is
//! at and opens its records with a `cipher`. What comes out goes to an inner parser chosen by ALPN.
//!
//! A record that is there whole is believed only if it authenticates; that also tells which of several
//! keys and sequence numbers is the right one after a hole. Of a record that is cut the captured bytes
//! are decrypted unauthenticated, and the rest is a gap.

mod cipher;
mod connection;
mod damaged;
mod early;
mod fuzz;
mod handshake;
mod hello;
mod inner;
mod keys;
mod messages;
mod prf;
mod record;
mod report;
mod session;
mod setup;
mod side;
mod suite;

pub use fuzz::{drive, fuzz};
pub use keys::{KeyLog, KeyStore, Random};
pub use setup::{TlsCount, TlsSetup};

use super::probe::Grade;
use super::{Close, Connection, Context, StreamParser};
use crate::model::exchange::{Mark, Peer};
use connection::{At, Core};
use record::{Framer, Header, Step};
use std::sync::Arc;

/// What a TLS connection carries, as ALPN says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Application {
    /// HTTP/1.x.
    Http1,
    /// HTTP/2.
    Http2,
    /// No protocol was negotiated, or that part of the handshake cannot be read.
    Unknown,
}

/// Makes the parser for what a TLS connection carries.
pub type Opener = std::rc::Rc<dyn Fn(Application) -> Box<dyn StreamParser>>;

/// How sure is it that these first bytes of an end are TLS? A hello belongs to one end only; any other
/// record may come from either, where the beginning is missing.
pub fn grade(from: Peer, bytes: &[u8]) -> Grade {
    let begins =
        bytes.first().is_none_or(|kind| (record::kind::CHANGE_CIPHER_SPEC..=record::kind::HEARTBEAT).contains(kind))
            && bytes.get(1).is_none_or(|major| *major == 3)
            && bytes.get(2).is_none_or(|minor| *minor <= 4);
    if !begins {
        return Grade::No;
    }
    let Some(header) = Header::parse(bytes) else {
        return if bytes.len() < record::HEADER_BYTES { Grade::Unsure } else { Grade::No };
    };
    if header.length == 0 {
        return Grade::No;
    }
    let Some(first) = bytes.get(record::HEADER_BYTES) else { return Grade::Unsure };
    let other_end = match from {
        Peer::Client => hello::kind::SERVER_HELLO,
        Peer::Server => hello::kind::CLIENT_HELLO,
    };
    if header.kind == record::kind::HANDSHAKE && *first == other_end { Grade::No } else { Grade::Certain }
}

/// Reads one TLS connection.
pub struct TlsParser {
    framers: [Framer; 2],
    core: Core,
    /// The end taken for the client is the server; none: not known yet.
    swapped: Option<bool>,
    closed: [bool; 2],
}

impl TlsParser {
    /// A parser that takes secrets from `setup` and hands what it decrypts to a parser made by `opener`.
    pub fn new(setup: Arc<TlsSetup>, opener: Opener) -> TlsParser {
        TlsParser {
            framers: [Framer::new(), Framer::new()],
            core: Core::new(setup, opener),
            swapped: None,
            closed: [false; 2],
        }
    }

    /// The connection and sender as they really are, should client and server have been confused.
    fn oriented(&self, connection: &Connection, from: Peer) -> (Connection, Peer) {
        if self.swapped != Some(true) {
            return (*connection, from);
        }
        let from = if from == Peer::Client { Peer::Server } else { Peer::Client };
        (Connection { client: connection.server, server: connection.client, ..*connection }, from)
    }

    /// Reads what the framer of one direction has, from `input` on.
    fn read(&mut self, at: &mut At<'_, '_>, mut input: &[u8]) {
        let end = at.connection.offset.saturating_add(input.len() as u64);
        let framer = framer_of(&mut self.framers, at.from);
        framer.pass_over = self.core.is_hopeless();
        let is_more = !input.is_empty();
        if framer.is_searching() && is_more {
            self.core.meet();
        }
        while let Some(step) = framer.next(&mut input) {
            at.end = end.saturating_sub(input.len() as u64);
            match step {
                Step::Record(record) => {
                    let found = record.found;
                    let accepted = self.core.record(at, &record);
                    if found {
                        framer.settle(accepted);
                    }
                }
                Step::NotTls => self.core.not_tls(at),
            }
            framer.pass_over = self.core.is_hopeless();
        }
        if framer.is_searching() && is_more {
            // Every request that is sent meanwhile may have its answer in this.
            self.core.inner_gap(at, None);
        }
    }

    /// No more comes in one direction: what is left of a record is read as far as it goes.
    fn finish(&mut self, at: &mut At<'_, '_>) {
        let Some(closed) = self.closed.get_mut(index(at.from)).filter(|closed| !**closed) else { return };
        *closed = true;
        let framer = framer_of(&mut self.framers, at.from);
        if framer.has_partial() {
            let _ = framer.gap(None);
            self.read(at, &[]);
        }
    }
}

impl StreamParser for TlsParser {
    fn data(&mut self, connection: &Connection, from: Peer, bytes: &[u8], mark: Mark, context: &mut Context<'_>) {
        self.swapped.get_or_insert_with(|| is_swapped_hello(bytes, from));
        let (connection, from) = self.oriented(connection, from);
        self.core.first.get_or_insert(mark);
        self.read(&mut At::new(&connection, from, mark, context), bytes);
    }

    fn gap(&mut self, connection: &Connection, from: Peer, bytes: Option<u64>, mark: Mark, context: &mut Context<'_>) {
        let (connection, from) = self.oriented(connection, from);
        let at = &mut At::new(&connection, from, mark, context);
        let lost = framer_of(&mut self.framers, from).gap(bytes);
        self.read(at, &[]);
        if let Some(lost) = lost {
            self.core.lost(at, lost);
        }
    }

    fn close(&mut self, connection: &Connection, from: Peer, close: Close, mark: Mark, context: &mut Context<'_>) {
        let (connection, from) = self.oriented(connection, from);
        let was_closed = self.closed == [true; 2];
        self.finish(&mut At::new(&connection, from, mark, context));
        if close != Close::Fin {
            self.finish(&mut At::new(&connection, other(from), mark, context));
        }
        let at = &mut At::new(&connection, from, mark, context);
        self.core.close(at, close);
        if self.closed == [true; 2] && !was_closed {
            self.core.report(at);
        }
    }
}

/// Is it a ClientHello from the server, or a ServerHello from the client?
fn is_swapped_hello(bytes: &[u8], from: Peer) -> bool {
    let first = Header::parse(bytes).filter(|header| header.kind == record::kind::HANDSHAKE);
    let message = bytes.get(record::HEADER_BYTES).copied();
    first.is_some()
        && match from {
            Peer::Server => message == Some(hello::kind::CLIENT_HELLO),
            Peer::Client => message == Some(hello::kind::SERVER_HELLO),
        }
}

fn framer_of(framers: &mut [Framer; 2], from: Peer) -> &mut Framer {
    let [client, server] = framers;
    if from == Peer::Client { client } else { server }
}

fn other(from: Peer) -> Peer {
    if from == Peer::Client { Peer::Server } else { Peer::Client }
}

/// 0 for the client, 1 for the server.
fn index(from: Peer) -> usize {
    usize::from(from == Peer::Server)
}
