//! The static and the dynamic table.

use super::decoder::Field;
use super::statics::STATIC;
use crate::model::limits;
use std::collections::VecDeque;
use std::sync::{Arc, LazyLock};

static STATIC_FIELDS: LazyLock<Vec<Field>> = LazyLock::new(|| {
    STATIC.iter().map(|(name, value)| Field { name: Some(Arc::from(*name)), value: Some(Arc::from(*value)) }).collect()
});

/// The dynamic table before the first size update, bytes (RFC 9113 §6.5.2, SETTINGS_HEADER_TABLE_SIZE).
const INITIAL_BYTES: usize = 4096;

/// What an entry counts beyond its text, bytes (RFC 7541 §4.1).
const ENTRY_OVERHEAD: usize = 32;

/// A dynamic table as far as its entries were seen.
#[derive(Debug)]
pub(super) struct Table {
    /// Newest first.
    entries: VecDeque<Field>,
    bytes: usize,
    /// Where the encoder evicts, or the cap if that is less or the encoder's own is not known.
    max_bytes: usize,
    /// The encoder may use more than `max_bytes`.
    clamped: bool,
    /// The encoder's own maximum is not known.
    guessed: bool,
    /// The encoder may have entries behind those seen.
    unseen: bool,
}

impl Table {
    /// The table of a new connection: empty.
    pub(super) fn new() -> Table {
        Table {
            entries: VecDeque::new(),
            bytes: 0,
            max_bytes: INITIAL_BYTES,
            clamped: false,
            guessed: false,
            unseen: false,
        }
    }

    /// A table with entries that were not seen, and whose size is not known. Entries are evicted late
    /// then, which is safe: an encoder never refers to one that it evicted.
    pub(super) fn unknown() -> Table {
        Table {
            entries: VecDeque::new(),
            bytes: 0,
            max_bytes: limits::HPACK_TABLE_BYTES,
            clamped: false,
            guessed: true,
            unseen: true,
        }
    }

    /// The entry with `index`; none if there can be none.
    pub(super) fn get(&self, index: usize) -> Option<Field> {
        let index = index.checked_sub(1)?;
        match index.checked_sub(STATIC_FIELDS.len()) {
            None => STATIC_FIELDS.get(index).cloned(),
            Some(nth) => self.entries.get(nth).cloned().or_else(|| self.unseen.then(Field::default)),
        }
    }

    /// Adds an entry, evicting the oldest (RFC 7541 §4.4). An unknown text counts as empty.
    pub(super) fn insert(&mut self, field: Field) {
        let size = size(&field);
        if self.guessed && size > INITIAL_BYTES {
            // If it is larger than the encoder's table, that is empty now.
            *self = Table::unknown();
            return;
        }
        self.shrink(self.max_bytes.saturating_sub(size));
        if size <= self.max_bytes {
            self.bytes += size;
            self.entries.push_front(field);
        } else if self.clamped {
            // The encoder may have kept it: every index is off by one from here.
            *self = Table::unknown();
        }
    }

    /// Obeys a dynamic table size update (RFC 7541 §6.3).
    pub(super) fn resize(&mut self, bytes: usize) {
        self.clamped = bytes > limits::HPACK_TABLE_BYTES;
        self.guessed = false;
        self.max_bytes = bytes.min(limits::HPACK_TABLE_BYTES);
        self.shrink(self.max_bytes);
        if bytes == 0 {
            self.unseen = false;
        }
    }

    fn shrink(&mut self, bytes: usize) {
        while self.bytes > bytes {
            let Some(oldest) = self.entries.pop_back() else { break };
            self.bytes = self.bytes.saturating_sub(size(&oldest));
            self.unseen |= self.clamped;
        }
    }
}

fn size(field: &Field) -> usize {
    let text = |text: &Option<Arc<str>>| text.as_ref().map_or(0, |text| text.len());
    text(&field.name) + text(&field.value) + ENTRY_OVERHEAD
}
