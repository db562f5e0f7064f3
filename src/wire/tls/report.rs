//! What could not be read of a connection, told once when it ends.

use super::connection::{At, Core};
use super::suite;
use crate::model::exchange::Peer;
use crate::model::problem::ProblemKind;
use crate::wire::Connection;

/// What helps against missing keys.
const ADVICE: &str = "give the client's or server's key log with --keylog or SSLKEYLOGFILE, \
                      or put it into the capture (`editcap --inject-secrets tls,FILE`)";

impl Core {
    /// Names a connection: addresses, host, protocol and version, as far as the handshake shows them.
    pub(super) fn name(&self, connection: &Connection) -> String {
        let mut facts = Vec::new();
        if let Some(client) = &self.session.client {
            facts.extend(client.server_name.clone());
            facts.extend(
                self.session.alpn.clone().or_else(|| {
                    Some(format!("offers {}", client.alpn.join(" or "))).filter(|_| !client.alpn.is_empty())
                }),
            );
        }
        facts.extend(self.session.version().map(|version| match version {
            0x0300 => "SSL 3.0".to_owned(),
            _ => format!("TLS 1.{}", (version & 0xff).saturating_sub(1)),
        }));
        let facts = if facts.is_empty() { String::new() } else { format!(" ({})", facts.join(", ")) };
        format!("{} → {}{facts}", connection.client, connection.server)
    }

    /// Both directions have ended.
    pub(super) fn report(&mut self, at: &mut At<'_, '_>) {
        if !self.counted {
            return;
        }
        at.mark = self.first.unwrap_or(at.mark);
        let name = self.name(at.connection);
        let unreadable = [Peer::Client, Peer::Server].map(|from| self.side_ref(from).unreadable);
        let opened = self.side_ref(Peer::Client).opened + self.side_ref(Peer::Server).opened;
        let (unread, cut) = (self.unread, self.cut);
        if unread + cut > 0 {
            at.problem(ProblemKind::BadTls, unread + cut, || {
                format!(
                    "records of TLS connection {name}: {unread} could not be decrypted (holes in the capture, or not \
                     authentic), {cut} are not whole and were decrypted as far as captured, unauthenticated"
                )
            });
        }
        if self.budget.is_exhausted {
            at.problem(ProblemKind::LimitHit, 1, || {
                format!("tls-trial-bytes: TLS connection {name}: too much was tried to find records behind holes")
            });
        }
        if self.readable {
            if unreadable.contains(&true) {
                let whose = if unreadable == [true, false] { "client" } else { "server" };
                at.problem(ProblemKind::NoKeys, 1, || {
                    format!("TLS connection {name}: no secrets for what the {whose} sent; {ADVICE}")
                });
            }
            return;
        }
        if !unreadable.contains(&true) && opened > 0 {
            // It carried nothing but its handshake.
            self.setup.count_readable();
            return;
        }
        let suite = self.session.server.as_ref().map(|server| server.suite);
        if let Some(suite) = suite.filter(|suite| suite::find(*suite).is_none()) {
            at.problem(ProblemKind::UnreadProtocol, 1, || {
                format!("TLS connection {name} uses cipher suite 0x{suite:04x}, which is not read")
            });
        } else if self.session.client.is_none() && self.session.server.is_none() {
            self.setup.count_no_keys();
            at.problem(ProblemKind::NoKeys, 1, || {
                format!(
                    "TLS connection {name}: the capture does not hold its handshake, without which no secret can be \
                     told to be its own; start the capture before the connection"
                )
            });
        } else if self.session.has_secrets() && self.session.client.is_some() && !unreadable.contains(&true) {
            at.problem(ProblemKind::BadTls, 1, || {
                format!("TLS connection {name}: the secrets given for it do not open its records")
            });
        } else {
            self.setup.count_no_keys();
            at.problem(ProblemKind::NoKeys, 1, || format!("TLS connection {name}: no keys; {ADVICE}"));
        }
    }
}
