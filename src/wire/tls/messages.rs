//! Handshake records to handshake messages (RFC 8446 §5.1).

use crate::model::limits;

/// Length of a message header, bytes.
const HEADER_BYTES: usize = 4;

/// Puts the handshake messages of one direction together.
#[derive(Default)]
pub(super) struct Messages {
    buffer: Vec<u8>,
    /// Bytes of a message passed over that are still to come.
    skip: usize,
}

impl Messages {
    /// Takes the content of a handshake record and hands over each message that it completes:
    /// type, body, and the whole with its header. Returns how many were too long to be read.
    pub(super) fn push(&mut self, mut bytes: &[u8], mut each: impl FnMut(u8, &[u8], &[u8])) -> u64 {
        let mut too_long = 0;
        while !bytes.is_empty() {
            let skipped = self.skip.min(bytes.len());
            self.skip -= skipped;
            bytes = bytes.get(skipped..).unwrap_or_default();
            self.fill(&mut bytes, HEADER_BYTES);
            let Some(&[kind, high, middle, low]) = self.buffer.first_chunk::<HEADER_BYTES>() else { break };
            let length = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
            if length > limits::TLS_HANDSHAKE_BYTES {
                too_long += 1;
                self.skip = length;
                self.buffer.clear();
                continue;
            }
            self.fill(&mut bytes, HEADER_BYTES + length);
            if let Some(body) = self.buffer.get(HEADER_BYTES..HEADER_BYTES + length) {
                each(kind, body, &self.buffer);
                self.buffer.clear();
            }
        }
        too_long
    }

    /// `bytes` bytes are missing (none: unknown how many). What follows a message that is touched is
    /// read again from where it must begin, else from the next record on.
    pub(super) fn gap(&mut self, bytes: Option<usize>) {
        let left = match self.buffer.first_chunk::<HEADER_BYTES>() {
            Some(&[_, high, middle, low]) => {
                let length = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
                (HEADER_BYTES + length).saturating_sub(self.buffer.len())
            }
            None => self.skip,
        };
        self.buffer.clear();
        self.skip = bytes.and_then(|bytes| left.checked_sub(bytes)).unwrap_or(0);
    }

    fn fill(&mut self, bytes: &mut &[u8], wanted: usize) {
        let wanted = wanted.saturating_sub(self.buffer.len()).min(bytes.len());
        let (taken, rest) = bytes.split_at_checked(wanted).unwrap_or((bytes, &[]));
        self.buffer.extend_from_slice(taken);
        *bytes = rest;
    }
}
