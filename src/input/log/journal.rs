//! What every rendering of a systemd journal has in common: the fields of an entry that matter
//! (systemd.journal-fields(7)) and how they become an [`Origin`].

use super::RecordSink;
use super::app::{Cursor, Interpreter, Origin};
use crate::model::place::Place;
use crate::model::problem::ProblemKind;
use crate::model::record::When;
use crate::model::time::Time;

/// How long after the fact a journal or container runtime stamps a line: it reads pipes when it
/// gets to it, and gives what it finds one time. Seen: up to some milliseconds.
pub(super) const TRANSPORT_ERROR_NS: i64 = 5_000_000;

/// The lines of a prefix of an input, without the last where it may be cut.
pub(super) fn whole_lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let whole = match memchr::memrchr(b'\n', bytes) {
        Some(end) if bytes.len() >= 4096 => bytes.get(..end).unwrap_or_default(),
        _ => bytes,
    };
    whole.split(|b| *b == b'\n')
}

/// Is this the service manager's identifier or unit?
pub(super) fn is_manager(ident: &str) -> bool {
    matches!(ident, "systemd" | "init.scope")
}

/// Does this program, unit or container name a proxy?
pub(super) fn is_proxy(name: &str) -> bool {
    const NAMES: &[&str] =
        &["nginx", "haproxy", "caddy", "traefik", "envoy", "apache", "httpd", "istio-proxy", "ingress"];
    NAMES.iter().any(|n| name.contains(n))
}

/// What journalctl prints in place of a message that is long or binary: `[4.1K blob data]`.
pub(super) fn is_elided(message: &[u8]) -> bool {
    message.starts_with(b"[") && message.ends_with(b" blob data]") && message.len() < 32
}

/// The fields of one entry that are used, reused from entry to entry.
#[derive(Debug, Default)]
pub(super) struct Entry {
    message: Vec<u8>,
    has_message: bool,
    /// MESSAGE was null: left out for its size.
    pub elided: bool,
    realtime_us: Option<i64>,
    cursor: String,
    texts: [String; TEXTS],
}

const TEXTS: usize = 9;
const HOST: usize = 0;
const UNIT: usize = 1;
const OBJECT_UNIT: usize = 2;
const CONTAINER: usize = 3;
const IDENT: usize = 4;
const PID: usize = 5;
const SYSLOG_PID: usize = 6;
const MESSAGE_ID: usize = 7;
const STREAM: usize = 8;

impl Entry {
    /// Forgets the entry before.
    pub fn clear(&mut self) {
        self.message.clear();
        (self.has_message, self.elided, self.realtime_us) = (false, false, None);
        self.cursor.clear();
        self.texts.iter_mut().for_each(String::clear);
    }

    /// Has any field been set?
    pub fn is_empty(&self) -> bool {
        !self.has_message && self.realtime_us.is_none() && self.texts.iter().all(String::is_empty)
    }

    /// Sets a field; the first of several values stays. Unused names are passed over.
    pub fn set(&mut self, name: &[u8], value: &[u8]) {
        let slot = match name {
            b"MESSAGE" => {
                if !self.has_message {
                    self.message.extend_from_slice(value);
                    self.has_message = true;
                }
                return;
            }
            b"__REALTIME_TIMESTAMP" => {
                self.realtime_us = std::str::from_utf8(value).ok().and_then(|v| v.parse().ok());
                return;
            }
            b"__CURSOR" => {
                self.cursor.clear();
                self.cursor.push_str(&String::from_utf8_lossy(value));
                return;
            }
            b"_HOSTNAME" => HOST,
            b"_SYSTEMD_UNIT" => UNIT,
            b"UNIT" | b"USER_UNIT" => OBJECT_UNIT,
            b"CONTAINER_NAME" => CONTAINER,
            b"SYSLOG_IDENTIFIER" => IDENT,
            b"_PID" => PID,
            b"SYSLOG_PID" => SYSLOG_PID,
            b"MESSAGE_ID" => MESSAGE_ID,
            b"_STREAM_ID" => STREAM,
            _ => return,
        };
        if let Some(text) = self.texts.get_mut(slot).filter(|t| t.is_empty()) {
            text.push_str(&String::from_utf8_lossy(value));
        }
    }

    /// Sets the wall clock, µs.
    pub fn set_realtime(&mut self, us: i64) {
        self.realtime_us = Some(us);
    }

    fn text(&self, slot: usize) -> Option<&str> {
        self.texts.get(slot).map(String::as_str).filter(|t| !t.is_empty())
    }

    /// Hands the entry on. `cursor` where it is not among the fields.
    pub fn tell(&self, place: Place, cursor: Option<Cursor<'_>>, to: &mut Interpreter, out: &mut dyn RecordSink) {
        if self.elided || is_elided(&self.message) {
            out.problem(
                ProblemKind::ElidedMessage,
                place,
                "the message was left out for its size or bytes; export with --all",
            );
        }
        // a negative or far-off time is a broken entry's
        let us = self.realtime_us.filter(|us| (0..4_102_444_800_000_000).contains(us));
        if us.is_none() && self.realtime_us.is_some() {
            out.problem(ProblemKind::BadJournal, place, "an entry with an impossible time");
        }
        let ident = self.text(IDENT);
        let manager = ident.is_some_and(is_manager) || self.text(UNIT).is_some_and(is_manager);
        let unit = match manager {
            true => self.text(OBJECT_UNIT),
            false => self.text(CONTAINER).or(self.text(UNIT)).or(ident),
        };
        let origin = Origin {
            when: us.map(|us| When { at: Time::from_us(us), error_ns: TRANSPORT_ERROR_NS + 1000 }),
            host: self.text(HOST),
            unit,
            pid: self.text(PID).or(self.text(SYSLOG_PID)).and_then(|p| p.parse().ok()),
            cursor: cursor.or(Some(Cursor::Text(&self.cursor)).filter(|_| !self.cursor.is_empty())),
            message_id: self.text(MESSAGE_ID).filter(|_| manager),
            is_manager: manager,
            stream: self.text(STREAM).map_or(0, |s| s.bytes().fold(0u8, |h, b| h.wrapping_mul(31).wrapping_add(b))),
            ..Origin::at(place)
        };
        to.entry(&self.message, &origin, out);
    }
}
