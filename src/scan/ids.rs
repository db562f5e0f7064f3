//! Which sessions a source speaks of, as a small sample: sources that name the same ones saw the
//! same traffic, wherever their files stand.

use crate::model::limits::SCAN_IDS;
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The longest thing taken for a session id: a UUID with its dashes.
const LONGEST: usize = 36;
/// The shortest: 128 bits in hexadecimal.
const SHORTEST: usize = 32;
/// Enough of the end of a block to see what an id that began in it is.
const TAIL: usize = LONGEST + 2;

/// The ids of a source as it passes, block by block. Of more than [`SCAN_IDS`] those with the least
/// hashes are kept, so that two sources keep the same of what they share.
#[derive(Default)]
pub struct Ids {
    kept: BTreeSet<u64>,
    tail: Vec<u8>,
}

impl Ids {
    /// The next block.
    pub fn feed(&mut self, block: &[u8]) {
        let head = block.get(..block.len().min(TAIL)).unwrap_or_default();
        let mut seam = std::mem::take(&mut self.tail);
        // A full tail is the end of something longer, which an id may have begun in.
        let is_cut = seam.len() == TAIL;
        seam.extend_from_slice(head);
        find(&seam, is_cut, false, |id| self.found(id));
        find(block, true, false, |id| self.found(id));
        let from = if block.len() >= TAIL { block } else { &seam };
        self.tail = from.get(from.len().saturating_sub(TAIL)..).unwrap_or_default().to_vec();
    }

    /// Those that were kept of a source, or a stretch of it.
    pub fn of(kept: &[u64]) -> Ids {
        Ids { kept: kept.iter().copied().collect(), tail: vec![] }
    }

    /// The source has ended: the hashes kept, in order.
    pub fn finish(mut self) -> Vec<u64> {
        let tail = std::mem::take(&mut self.tail);
        find(&tail, tail.len() == TAIL, true, |id| self.found(id));
        self.kept.into_iter().collect()
    }

    fn found(&mut self, id: &[u8]) {
        let mut h = DefaultHasher::new();
        id.to_ascii_lowercase().hash(&mut h);
        self.keep(h.finish());
    }

    /// Keeps one by its hash.
    pub fn keep(&mut self, hash: u64) {
        if self.kept.len() >= SCAN_IDS && !self.kept.contains(&hash) {
            match self.kept.last() {
                Some(most) if *most > hash => drop(self.kept.pop_last()),
                _ => return,
            }
        }
        self.kept.insert(hash);
    }
}

fn is_part(b: u8) -> bool {
    b.is_ascii_hexdigit() || b == b'-'
}

/// Gives every id in `text`. May one at its beginning have begun before it (`is_cut`), and does one
/// at its end end there (`is_end`)?
fn find(text: &[u8], is_cut: bool, is_end: bool, mut each: impl FnMut(&[u8])) {
    let mut i = 0;
    // Nothing that long is here if its last byte is no part of it.
    while let Some(b) = text.get(i + SHORTEST - 1) {
        if !is_part(*b) {
            i += SHORTEST;
            continue;
        }
        let middle = i + SHORTEST - 1;
        let run = |b: &&u8| is_part(**b);
        let before = text.get(i..middle).map_or(0, |t| t.iter().rev().take_while(run).count());
        let after = text.get(middle..).map_or(0, |t| t.iter().take_while(run).count());
        let (from, to) = (middle - before, middle + after);
        let parts = |b: &u8| !b.is_ascii_alphanumeric() && *b != b'_';
        let begins = from.checked_sub(1).and_then(|p| text.get(p)).map_or(!is_cut, parts);
        let ends = text.get(to).map_or(is_end, parts);
        if begins
            && ends
            && let Some(id) = text.get(from..to).filter(|t| is_id(t))
        {
            each(id);
        }
        i = to + 1;
    }
}

/// 32 hexadecimal digits or a UUID (RFC 9562 §4), and not one digit over and over.
fn is_id(text: &[u8]) -> bool {
    let dashes = [8, 13, 18, 23];
    let fits = match text.len() {
        SHORTEST => text.iter().all(u8::is_ascii_hexdigit),
        LONGEST => text.iter().enumerate().all(|(i, b)| (*b == b'-') == dashes.contains(&i)),
        _ => false,
    };
    let first = text.first();
    fits && text.iter().filter(|b| **b != b'-').any(|b| Some(b) != first)
}

/// Do two sorted lists of ids have as many in common as makes it no accident: two, or all that one has?
pub fn share(a: &[u64], b: &[u64]) -> bool {
    let wanted = a.len().min(b.len()).min(2);
    let common = a.iter().filter(|x| b.binary_search(x).is_ok()).take(2).count();
    wanted > 0 && common >= wanted
}

#[cfg(test)]
mod tests {
    use super::{Ids, share};

    const TEXT: &str = "POST /mcp 200 \"880a0123456789abcdef0123456789ab\" x\n\
        session=fd8fefd9-5d3d-48b1-a9e8-473bc591259e; sha=880a0123456789abcdef0123456789ab880a0123456789abcdef0123456789ab \
        g880a0123456789abcdef0123456789ff 00000000000000000000000000000000 880a0123456789abcdef0123456789-- end \
        2b08c639-8d6e-48ca-a239-ed8f6335b161";

    #[test]
    fn the_same_ids_however_the_blocks_are_cut() {
        let ids = |size: usize| {
            let mut ids = Ids::default();
            TEXT.as_bytes().chunks(size).for_each(|c| ids.feed(c));
            ids.finish()
        };
        let whole = ids(TEXT.len());
        assert_eq!(whole.len(), 3);
        for size in 1..TEXT.len() {
            assert_eq!(ids(size), whole, "blocks of {size}");
        }
    }

    #[test]
    fn what_is_common() {
        assert!(share(&[1, 2, 3], &[2, 3]) && share(&[1], &[1, 9]));
        assert!(!share(&[1, 2], &[2, 3]) && !share(&[], &[]) && !share(&[1], &[]));
    }
}
