//! Strings that repeat from line to line, kept once.

use std::borrow::Cow;
use std::hash::Hasher;
use std::sync::Arc;

/// Longer texts are not worth keeping.
const KEPT_BYTES: usize = 256;
/// A power of two: the slot is the low bits of the hash.
const SLOTS: usize = 4096;

/// The texts seen last, by hash: access logs repeat methods, targets, agents and sessions on
/// nearly every line.
pub(super) struct Interner {
    slots: Vec<Option<Arc<str>>>,
}

impl Interner {
    pub(super) fn new() -> Interner {
        Interner { slots: vec![None; SLOTS] }
    }

    /// The text of `bytes`, which no other line has: it is not kept.
    pub(super) fn once(&self, bytes: &[u8]) -> Arc<str> {
        lossy(bytes)
    }

    /// The text of `bytes`; what is no UTF-8 becomes U+FFFD.
    pub(super) fn text(&mut self, bytes: &[u8]) -> Arc<str> {
        if bytes.len() > KEPT_BYTES {
            return lossy(bytes);
        }
        let mut hasher = rustc_hash::FxHasher::default();
        hasher.write(bytes);
        let hash = hasher.finish();
        let Some(slot) = self.slots.get_mut((hash ^ (hash >> 32)) as usize % SLOTS) else {
            return lossy(bytes);
        };
        match slot {
            Some(kept) if kept.as_bytes() == bytes => kept.clone(),
            _ => {
                let text = lossy(bytes);
                *slot = Some(text.clone());
                text
            }
        }
    }
}

fn lossy(bytes: &[u8]) -> Arc<str> {
    match String::from_utf8_lossy(bytes) {
        Cow::Borrowed(text) => Arc::from(text),
        Cow::Owned(text) => Arc::from(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_bytes_give_one_string_and_different_ones_never_mix() {
        let mut strings = Interner::new();
        let first = strings.text(b"/mcp");
        assert!(Arc::ptr_eq(&first, &strings.text(b"/mcp")));
        for n in 0..5000 {
            assert_eq!(&*strings.text(format!("/{n}").as_bytes()), format!("/{n}"));
        }
        assert_eq!(&*strings.text(b"a\xffb"), "a\u{fffd}b");
        assert_eq!(&*strings.text(b"a\xffb"), "a\u{fffd}b");
    }
}
