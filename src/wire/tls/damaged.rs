//! Records of which bytes are missing: read as far as they go, unauthenticated.

use super::connection::{At, Core};
use super::hello::kind as message;
use super::record::{Record, kind};
use super::session::Stage;
use std::ops::Range;

impl Core {
    /// Reads what is left of a record with holes. `text` is room for its plaintext, and comes back.
    pub(super) fn damaged(
        &mut self,
        at: &mut At<'_, '_>,
        record: &Record<'_>,
        protected: bool,
        mut text: Vec<u8>,
    ) -> Vec<u8> {
        if !protected {
            if record.header.kind == kind::HANDSHAKE {
                self.damaged_handshake(at, record);
            }
            return text;
        }
        let side = self.side(at.from);
        let had_keys = side.active.is_some();
        let holes = match &side.active {
            Some(active) if side.doubt == 0 => {
                active.cipher.peek(active.sequence, record.body, record.holes, &mut text)
            }
            _ => None,
        };
        if let Some(holes) = holes {
            self.cut += 1;
            self.peeked(at, record, &holes, &text);
        } else {
            self.unread += u64::from(had_keys);
            self.side(at.from).messages.gap(None);
            self.inner_gap(at, None);
        }
        let lost_end = record.holes.last().is_some_and(|hole| hole.end == record.body.len());
        self.side(at.from).pass(record.body, lost_end);
        text
    }

    fn damaged_handshake(&mut self, at: &mut At<'_, '_>, record: &Record<'_>) {
        let mut start = 0;
        for hole in record.holes {
            self.handshake(at, record.body.get(start..hole.start).unwrap_or_default());
            self.side(at.from).messages.gap(Some(hole.len()));
            start = hole.end;
        }
        self.handshake(at, record.body.get(start..).unwrap_or_default());
    }

    /// Hands over the readable parts of a damaged record that carries application data.
    fn peeked(&mut self, at: &mut At<'_, '_>, record: &Record<'_>, holes: &[Range<usize>], text: &[u8]) {
        let end_seen = holes.last().is_none_or(|hole| hole.end < text.len());
        let estimate = self.content_length(at.from, record.body.len());
        // Content type and padding of TLS 1.3, MAC and padding of CBC stand at the end.
        let (kind, length) = match self.side_ref(at.from).stage {
            Some(Stage::Changed(_)) => (
                record.header.kind,
                estimate.map(|bytes| bytes as usize).unwrap_or_else(|| cbc_length(self, at, text, end_seen)),
            ),
            _ if end_seen => self.content(at.from, record.header.kind, text),
            Some(Stage::Application(_)) => guess_content(text, holes),
            _ => (kind::HANDSHAKE, 0),
        };
        if kind != kind::APPLICATION_DATA {
            self.side(at.from).messages.gap(None);
            return;
        }
        let mut start = 0;
        for hole in holes {
            let (hole_start, hole_end) = (hole.start.min(length), hole.end.min(length));
            self.deliver(at, text.get(start..hole_start).unwrap_or_default());
            let exact = hole.end < length || end_seen || estimate.is_some();
            self.inner_gap(at, exact.then_some(hole_end.saturating_sub(hole_start) as u64));
            start = hole_end;
        }
        self.deliver(at, text.get(start..length).unwrap_or_default());
    }
}

/// Content type and length of a record of TLS 1.3 whose end, where both stand, is missing: alerts, tickets and key
/// updates show by how they begin.
fn guess_content(text: &[u8], holes: &[Range<usize>]) -> (u8, usize) {
    let length = text.len().saturating_sub(1);
    let seen = text.get(..holes.first().map_or(0, |hole| hole.start)).unwrap_or_default();
    let kind = match seen {
        [1 | 2, ..] if length == 2 => kind::ALERT,
        [message::NEW_SESSION_TICKET, 0, 0 | 1, ..] => kind::HANDSHAKE,
        [message::KEY_UPDATE, 0, 0, ..] if length == 5 => kind::HANDSHAKE,
        _ => kind::APPLICATION_DATA,
    };
    (kind, length)
}

/// Length of the content of a CBC record, which is exact only where its end was seen.
fn cbc_length(core: &Core, at: &At<'_, '_>, text: &[u8], end_seen: bool) -> usize {
    let active = core.side_ref(at.from).active.as_ref();
    let mac = active.map_or(0, |active| active.cipher.inner_mac_bytes());
    let padding = text.last().filter(|_| end_seen).map_or(0, |byte| usize::from(*byte) + 1);
    text.len().saturating_sub(mac + padding)
}
