//! Tells whether a later copy of delivered bytes says the same as the first did.
//!
//! Delivered bytes are not kept. What is kept is a hash of each of the last segments, which
//! finds every copy that repeats whole segments (all retransmissions of hosts that were seen to
//! send the original, and every packet captured twice).

use std::collections::VecDeque;

/// Segments remembered of one direction.
const REMEMBERED: usize = 48;
/// Longer segments (offload) are remembered in pieces, so that a repeated part is found too.
const PIECE_BYTES: usize = 1448;

/// Hashes of the last delivered segments of one direction.
#[derive(Debug, Default)]
pub(crate) struct Copies {
    last: VecDeque<Copy>,
}

#[derive(Clone, Copy, Debug)]
struct Copy {
    start: u64,
    len: u32,
    hash: u64,
}

impl Copies {
    /// `bytes` were delivered at sequence `start`.
    pub(crate) fn delivered(&mut self, start: u64, bytes: &[u8]) {
        let mut at = start;
        for piece in bytes.chunks(PIECE_BYTES) {
            if self.last.len() >= REMEMBERED {
                self.last.pop_front();
            }
            self.last.push_back(Copy { start: at, len: piece.len() as u32, hash: hash(piece) });
            at += piece.len() as u64;
        }
    }

    /// Does a copy of bytes at `start` differ from what was delivered there?
    pub(crate) fn differ(&self, start: u64, bytes: &[u8]) -> bool {
        let end = start + bytes.len() as u64;
        self.last.iter().rev().any(|copy| {
            let copy_end = copy.start + u64::from(copy.len);
            if copy.start < start || copy_end > end {
                return false;
            }
            let from = (copy.start - start) as usize;
            bytes.get(from..from + copy.len as usize).is_some_and(|same| hash(same) != copy.hash)
        })
    }

    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        self.last = VecDeque::new();
    }
}

/// Eight lanes of multiply and rotate: several bytes a cycle, no protection against an adversary.
fn hash(bytes: &[u8]) -> u64 {
    let mut lanes: [u64; 8] = std::array::from_fn(|n| K.rotate_left(n as u32 * 8));
    let (blocks, rest) = bytes.as_chunks::<64>();
    for block in blocks {
        let (words, _) = block.as_chunks::<8>();
        for n in 0..lanes.len() {
            if let (Some(lane), Some(word)) = (lanes.get_mut(n), words.get(n)) {
                *lane = mix(*lane, u64::from_le_bytes(*word));
            }
        }
    }
    let (words, tail) = rest.as_chunks::<8>();
    let last = tail.iter().fold(1, |word, byte| (word << 8) | u64::from(*byte));
    let words = words.iter().map(|word| u64::from_le_bytes(*word)).chain([last]);
    for (lane, word) in lanes.iter_mut().zip(words) {
        *lane = mix(*lane, word);
    }
    lanes.iter().fold(bytes.len() as u64, |all, lane| mix(all, *lane))
}

const K: u64 = 0x9E37_79B9_7F4A_7C15;

#[inline]
fn mix(lane: u64, word: u64) -> u64 {
    (lane ^ word).wrapping_mul(K).rotate_left(29)
}

#[cfg(test)]
mod tests {
    use super::{Copies, hash};

    #[test]
    fn every_flipped_byte_changes_the_hash() {
        for len in [1, 7, 8, 31, 32, 33, 100, 1448] {
            let bytes: Vec<u8> = (0..len).map(|n| n as u8).collect();
            for n in 0..len {
                let mut other = bytes.clone();
                other[n] ^= 0x20;
                assert_ne!(hash(&bytes), hash(&other), "byte {n} of {len}");
            }
        }
    }

    #[test]
    fn a_copy_over_several_segments_is_compared() {
        let mut copies = Copies::default();
        copies.delivered(100, b"hello ");
        copies.delivered(106, b"world");
        assert!(!copies.differ(100, b"hello world"));
        assert!(copies.differ(100, b"hello wOrld"));
        assert!(copies.differ(106, b"World"));
        assert!(!copies.differ(103, b"lo "), "a part of a segment cannot be compared");
    }
}
