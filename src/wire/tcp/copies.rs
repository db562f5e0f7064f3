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

/// Four lanes of multiply and rotate: several bytes a cycle, no protection against an adversary.
fn hash(bytes: &[u8]) -> u64 {
    const K: u64 = 0x9E37_79B9_7F4A_7C15;
    let mut lanes = [K, K.rotate_left(16), K.rotate_left(32), bytes.len() as u64];
    let mut blocks = bytes.chunks_exact(32);
    for block in &mut blocks {
        for (lane, word) in lanes.iter_mut().zip(block.chunks_exact(8)) {
            *lane = (*lane ^ word_of(word)).wrapping_mul(K).rotate_left(29);
        }
    }
    for (n, word) in blocks.remainder().chunks(8).enumerate() {
        if let Some(lane) = lanes.get_mut(n & 3) {
            *lane = (*lane ^ word_of(word)).wrapping_mul(K).rotate_left(29);
        }
    }
    lanes.iter().fold(0, |all, lane| (all ^ lane).wrapping_mul(K).rotate_left(31))
}

fn word_of(bytes: &[u8]) -> u64 {
    match <[u8; 8]>::try_from(bytes) {
        Ok(eight) => u64::from_le_bytes(eight),
        Err(_) => bytes.iter().fold(1, |word, byte| (word << 8) | u64::from(*byte)),
    }
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
