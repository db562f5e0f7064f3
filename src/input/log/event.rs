//! Events of proxies' own logs.

use super::assemble::Shared;
use crate::model::place::Place;
use crate::model::record::{LogEvent, LogEventKind, When};
use std::sync::Arc;

/// Bytes of a message that a report may quote.
const QUOTED_BYTES: usize = 400;

/// An event of which only kind, time and text are known.
pub(super) fn new(kind: LogEventKind, when: Option<When>, text: &[u8], place: Place, shared: &Shared) -> Box<LogEvent> {
    Box::new(LogEvent::new(kind, when, place, shared.vantage, quote(text)))
}

/// The beginning of a text, as UTF-8.
pub(super) fn quote(text: &[u8]) -> Arc<str> {
    match text.get(..QUOTED_BYTES) {
        None => Arc::from(String::from_utf8_lossy(text)),
        Some(cut) => Arc::from(format!("{}…", String::from_utf8_lossy(cut))),
    }
}

/// What a proxy's complaint about its upstream means, in the words of nginx, Apache, HAProxy,
/// Caddy (Go) and Envoy.
pub(super) fn upstream_kind(text: &[u8]) -> Option<LogEventKind> {
    const WORDS: &[(&[u8], LogEventKind)] = &[
        (b"timed out", LogEventKind::UpstreamTimeout),
        (b"timeout", LogEventKind::UpstreamTimeout),
        (b"deadline exceeded", LogEventKind::UpstreamTimeout),
        (b"onnection refused", LogEventKind::UpstreamRefused),
        (b"no live upstreams", LogEventKind::UpstreamRefused),
        (b"no upstreams available", LogEventKind::UpstreamRefused),
        (b"onnect() failed", LogEventKind::UpstreamRefused),
        (b"failed to make connection", LogEventKind::UpstreamRefused),
        (b"onnection reset", LogEventKind::UpstreamReset),
        (b"prematurely closed", LogEventKind::UpstreamReset),
        (b"reset by peer", LogEventKind::UpstreamReset),
        (b"roken pipe", LogEventKind::UpstreamReset),
        (b"rror reading", LogEventKind::UpstreamReset),
        (b"unexpected EOF", LogEventKind::UpstreamReset),
        (b"incomplete response", LogEventKind::UpstreamReset),
        (b"processing is incomplete", LogEventKind::UpstreamReset),
    ];
    WORDS.iter().find(|(word, _)| memchr::memmem::find(text, word).is_some()).map(|(_, kind)| *kind)
}
