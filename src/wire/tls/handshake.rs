//! What handshake messages do to a connection.

use super::connection::{At, Core};
use super::hello::{self, kind as message};
use super::index;
use super::session::Stage;
use crate::model::exchange::Peer;
use crate::model::limits;
use crate::model::problem::ProblemKind;

impl Core {
    /// Takes the content of a handshake record.
    pub(super) fn handshake(&mut self, at: &mut At<'_, '_>, bytes: &[u8]) {
        let mut messages = std::mem::take(&mut self.side(at.from).messages);
        let too_long = messages.push(bytes, |kind, body, whole| {
            self.message(at, kind, body);
            self.log(at.from, kind, whole);
        });
        if too_long > 0 {
            at.problem(ProblemKind::LimitHit, too_long, || {
                format!("a TLS handshake message of more than {} bytes", limits::TLS_HANDSHAKE_BYTES)
            });
        }
        self.side(at.from).messages = messages;
    }

    fn message(&mut self, at: &mut At<'_, '_>, kind: u8, body: &[u8]) {
        let stage = self.side_ref(at.from).stage;
        match (at.from, kind) {
            (Peer::Client, message::CLIENT_HELLO) => {
                let Some(hello) = hello::client_hello(body) else { return };
                let resumed = self.setup.recall(&hello.ticket).or_else(|| self.setup.recall(&hello.session));
                if self.session.begin(hello) {
                    self.setup.count_renegotiation();
                }
                self.session.resumed = resumed;
            }
            (Peer::Server, message::SERVER_HELLO) => {
                let Some(hello) = hello::server_hello(body) else { return };
                if hello.retry {
                    self.settle_early(at, false);
                }
                let (retry, tls13) = (hello.retry, hello.version >= 0x0304);
                self.session.alpn = hello.alpn.clone().or(self.session.alpn.take());
                self.session.server = Some(hello);
                if tls13 && !retry {
                    self.advance(Peer::Server, Stage::Handshake);
                }
            }
            (Peer::Server, message::ENCRYPTED_EXTENSIONS) => {
                let extensions = hello::encrypted_extensions(body);
                self.session.alpn = extensions.alpn;
                self.settle_early(at, extensions.early_data);
            }
            (Peer::Server, message::NEW_SESSION_TICKET) if !self.session.may_be_13() => {
                if let (Some(ticket), Some(master)) = (hello::session_ticket(body), self.session.master()) {
                    self.setup.remember(ticket, &master);
                }
            }
            (Peer::Client, message::CLIENT_KEY_EXCHANGE) => {
                self.session.encrypted_premaster = hello::encrypted_premaster(body).map(<[u8]>::to_vec);
            }
            (Peer::Client, message::END_OF_EARLY_DATA) => {
                self.settle_early(at, true);
                self.advance(at.from, Stage::Handshake);
            }
            (_, message::FINISHED) if stage == Some(Stage::Handshake) => self.advance(at.from, Stage::Application(0)),
            (_, message::KEY_UPDATE) if matches!(stage, Some(Stage::Application(_))) => {
                let side = self.side(at.from);
                let next = side.active.as_ref().and_then(|active| active.updated());
                side.enter(next);
            }
            _ => {}
        }
    }

    /// The extended master secret covers everything up to ClientKeyExchange (RFC 7627 §3).
    fn log(&mut self, from: Peer, kind: u8, whole: &[u8]) {
        if self.session.key_exchange_seen || kind == message::HELLO_REQUEST {
            return;
        }
        self.session.key_exchange_seen = from == Peer::Client && kind == message::CLIENT_KEY_EXCHANGE;
        self.session.log(whole);
    }

    /// New keys from here on in TLS 1.2; TLS 1.3 sends it only to please middleboxes (RFC 8446 §D.4).
    pub(super) fn change_cipher_spec(&mut self, from: Peer) {
        if self.session.may_be_13() {
            return;
        }
        let changes = self.side_ref(from).changes.saturating_add(1);
        let next = self.session.changed(index(from), changes);
        let side = self.side(from);
        side.changes = changes;
        side.doubt = 0;
        side.enter_stage(Stage::Changed(changes), next);
        if let (Some(master), Some(server)) = (self.session.master(), &self.session.server) {
            self.setup.remember(&server.session, &master);
        }
    }

    /// One direction goes on under other keys.
    fn advance(&mut self, from: Peer, stage: Stage) {
        let next = self.session.at_stage(index(from), stage);
        self.side(from).enter_stage(stage, next);
    }
}
