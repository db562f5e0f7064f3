//! Finds the end of a JSON object or array without looking at what is in it, 64 bytes at a time.
//!
//! Most of what is captured is the inside of results that no rule will ever ask for, so this is the loop in
//! which the bytes of a capture are spent. Each block becomes bit masks (one bit a byte) of quotes,
//! backslashes and brackets; brackets inside strings are masked out, and a block that cannot hold the end
//! is passed by counting alone. The way of telling strings by a running exclusive or is that of Langdale
//! and Lemire, "Parsing gigabytes of JSON per second" (2019), §3.1.1.

use crate::model::limits::JSON_DEPTH;

/// Bytes that are looked at together.
const BLOCK: usize = 64;

/// Which bytes of a block are what.
#[derive(Clone, Copy)]
struct Masks {
    quote: u64,
    backslash: u64,
    /// `{` and `[`.
    open: u64,
    /// `}` and `]`.
    close: u64,
    /// `[` and `]`.
    square: u64,
}

/// The length of the object or array that `text` begins with. None if it does not end in `text`, if its
/// brackets of one kind do not balance, or if it is nested deeper than [`JSON_DEPTH`].
pub fn container(text: &[u8]) -> Option<usize> {
    let mut state = State::default();
    let mut blocks = text.chunks_exact(BLOCK);
    let mut at = 0;
    for block in &mut blocks {
        let masks = masks(block.first_chunk::<BLOCK>()?);
        match state.block(masks) {
            Step::On => at += BLOCK,
            Step::End(i) => return state.balanced().then_some(at + i + 1),
            Step::Bad => return None,
        }
    }
    let mut last = [b' '; BLOCK];
    let rest = blocks.remainder();
    last.get_mut(..rest.len())?.copy_from_slice(rest);
    match state.block(masks(&last)) {
        Step::End(i) => state.balanced().then_some(at + i + 1),
        Step::On | Step::Bad => None,
    }
}

enum Step {
    On,
    End(usize),
    Bad,
}

#[derive(Default)]
struct State {
    /// All ones while a string goes on over the block's beginning.
    in_string: u64,
    /// 1 if the first byte of the block is escaped.
    escaped: u64,
    depth: usize,
    squares: isize,
}

impl State {
    fn block(&mut self, m: Masks) -> Step {
        let escaped = self.escapes(m.backslash);
        let inside = prefix_xor(m.quote & !escaped) ^ self.in_string;
        self.in_string = 0u64.wrapping_sub(inside >> 63);
        let (open, close) = (m.open & !inside, m.close & !inside);
        let (opens, closes) = (open.count_ones() as usize, close.count_ones() as usize);
        if closes < self.depth && self.depth + opens <= JSON_DEPTH {
            self.depth = self.depth + opens - closes;
            self.squares += (m.square & open).count_ones() as isize - (m.square & close).count_ones() as isize;
            return Step::On;
        }
        self.brackets(open, close, m.square)
    }

    /// One bracket after another, where the end may be among them.
    fn brackets(&mut self, open: u64, close: u64, square: u64) -> Step {
        let mut left = open | close;
        while left != 0 {
            let bit = left & left.wrapping_neg();
            left &= left - 1;
            let is_square = isize::from(square & bit != 0);
            if open & bit != 0 {
                self.depth += 1;
                self.squares += is_square;
                if self.depth > JSON_DEPTH {
                    return Step::Bad;
                }
            } else {
                // The first byte opens, so the depth is never zero here.
                self.depth = self.depth.saturating_sub(1);
                self.squares -= is_square;
                if self.depth == 0 {
                    return Step::End(bit.trailing_zeros() as usize);
                }
            }
        }
        Step::On
    }

    /// Which bytes stand behind an odd number of backslashes.
    fn escapes(&mut self, mut backslash: u64) -> u64 {
        if backslash == 0 {
            return std::mem::take(&mut self.escaped);
        }
        let mut escaped = std::mem::take(&mut self.escaped);
        backslash &= !escaped;
        while backslash != 0 {
            let bit = backslash & backslash.wrapping_neg();
            let next = bit << 1;
            if next == 0 {
                self.escaped = 1;
            }
            escaped |= next;
            // An escaped backslash escapes nothing.
            backslash &= !(bit | next);
        }
        escaped
    }

    fn balanced(&self) -> bool {
        self.squares == 0
    }
}

/// Bit i: the number of set bits up to and with i is odd.
fn prefix_xor(mut bits: u64) -> u64 {
    for shift in [1, 2, 4, 8, 16, 32] {
        bits ^= bits << shift;
    }
    bits
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
fn masks(block: &[u8; BLOCK]) -> Masks {
    // SAFETY: `masks_sse2` asks for SSE2 and nothing else of its caller, and SSE2 is part of x86_64.
    unsafe { masks_sse2(block) }
}

#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "sse2")]
fn masks_sse2(block: &[u8; BLOCK]) -> Masks {
    use std::arch::x86_64::{_mm_cmpeq_epi8, _mm_movemask_epi8, _mm_or_si128, _mm_set_epi64x, _mm_set1_epi8};
    let mut m = Masks { quote: 0, backslash: 0, open: 0, close: 0, square: 0 };
    for (i, part) in block.chunks_exact(16).enumerate() {
        let half = |at: usize| part.get(at..).and_then(|p| p.first_chunk::<8>()).map_or(0, |b| i64::from_le_bytes(*b));
        let bytes = _mm_set_epi64x(half(8), half(0));
        // `[` and `{`, `]` and `}` differ in one bit.
        let folded = _mm_or_si128(bytes, _mm_set1_epi8(0x20));
        let mask = |found| u64::from(_mm_movemask_epi8(found) as u32) << (16 * i);
        m.quote |= mask(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(b'"' as i8)));
        m.backslash |= mask(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(b'\\' as i8)));
        m.open |= mask(_mm_cmpeq_epi8(folded, _mm_set1_epi8(b'{' as i8)));
        m.close |= mask(_mm_cmpeq_epi8(folded, _mm_set1_epi8(b'}' as i8)));
        m.square |= mask(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(b'[' as i8)));
        m.square |= mask(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(b']' as i8)));
    }
    m
}

#[cfg(not(target_arch = "x86_64"))]
fn masks(block: &[u8; BLOCK]) -> Masks {
    let is = |f: fn(u8) -> bool| block.iter().rev().fold(0u64, |m, b| m << 1 | u64::from(f(*b)));
    Masks {
        quote: is(|b| b == b'"'),
        backslash: is(|b| b == b'\\'),
        open: is(|b| matches!(b, b'{' | b'[')),
        close: is(|b| matches!(b, b'}' | b']')),
        square: is(|b| matches!(b, b'[' | b']')),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The same, one byte at a time.
    fn slow(text: &[u8]) -> Option<usize> {
        let (mut depth, mut squares, mut in_string, mut escaped) = (0usize, 0i64, false, false);
        for (i, b) in text.iter().enumerate() {
            // Outside of strings a backslash is no JSON; what it does to a quote there must only be the same.
            let is_escaped = std::mem::take(&mut escaped);
            match b {
                b'\\' => escaped = !is_escaped,
                b'"' => in_string ^= !is_escaped,
                b'{' | b'[' if !in_string => {
                    depth += 1;
                    squares += i64::from(*b == b'[');
                    if depth > JSON_DEPTH {
                        return None;
                    }
                }
                b'}' | b']' if !in_string => {
                    depth = depth.saturating_sub(1);
                    squares -= i64::from(*b == b']');
                    if depth == 0 {
                        return (squares == 0).then_some(i + 1);
                    }
                }
                _ => {}
            }
        }
        None
    }

    #[test]
    fn the_cap_of_nesting_is_exact() {
        let deep = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        assert_eq!(container(deep(JSON_DEPTH).as_bytes()), Some(JSON_DEPTH * 2));
        assert_eq!(container(deep(JSON_DEPTH + 1).as_bytes()), None);
    }

    proptest! {
        #[test]
        fn ends_where_one_byte_at_a_time_ends(inner in r#"[\[\]{}"\\a ]{0,300}"#, pad in 0usize..130) {
            let text = format!("[{}{inner}", " ".repeat(pad));
            prop_assert_eq!(container(text.as_bytes()), slow(text.as_bytes()));
        }

        #[test]
        fn passes_over_whole_values(items in proptest::collection::vec("[a\"\\\\\\[{}é]{0,40}", 0..12), tail in "[ ,}\\]]{0,5}") {
            let value = serde_json::json!({ "items": items, "deep": [[{ "a": items }]] }).to_string();
            let text = format!("{value}{tail}");
            prop_assert_eq!(container(text.as_bytes()), Some(value.len()));
        }
    }
}
