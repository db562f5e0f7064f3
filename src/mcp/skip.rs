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
    #[cfg(target_arch = "x86_64")]
    if wide::is_there() {
        return wide::container(text);
    }
    walk(text, masks, prefix_xor)
}

/// As [`container`], with what finds the bytes of a block and what tells strings.
#[inline(always)]
fn walk(text: &[u8], masks: impl Fn(&[u8; BLOCK]) -> Masks, prefix_xor: impl Fn(u64) -> u64) -> Option<usize> {
    let mut state = State::default();
    let (blocks, rest) = text.as_chunks::<BLOCK>();
    for (n, block) in blocks.iter().enumerate() {
        match state.block(masks(block), &prefix_xor) {
            Step::On => {}
            Step::End(i) => return state.balanced().then_some(n * BLOCK + i + 1),
            Step::Bad => return None,
        }
    }
    let mut last = [b' '; BLOCK];
    last.get_mut(..rest.len())?.copy_from_slice(rest);
    match state.block(masks(&last), &prefix_xor) {
        Step::End(i) => state.balanced().then_some(blocks.len() * BLOCK + i + 1),
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
    #[inline(always)]
    fn block(&mut self, m: Masks, prefix_xor: impl Fn(u64) -> u64) -> Step {
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
    #[inline(always)]
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

/// With AVX2, chosen at run time.
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod wide {
    use super::{BLOCK, Masks, walk};
    use std::arch::x86_64::{
        __m256i, _mm_clmulepi64_si128, _mm_cvtsi128_si64, _mm_set_epi64x, _mm_set1_epi8, _mm256_cmpeq_epi8,
        _mm256_loadu_si256, _mm256_movemask_epi8, _mm256_or_si256, _mm256_set1_epi8,
    };

    /// Has the processor what [`container`] is made of?
    #[inline]
    pub(super) fn is_there() -> bool {
        is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("popcnt")
            && is_x86_feature_detected!("pclmulqdq")
    }

    /// See [`super::container`]; to be asked only if [`is_there`].
    pub(super) fn container(text: &[u8]) -> Option<usize> {
        debug_assert!(is_there());
        // SAFETY: a processor with these features is all it asks for, and the only caller has asked `is_there`.
        unsafe { featured(text) }
    }

    #[target_feature(enable = "avx2,bmi1,popcnt,pclmulqdq")]
    fn featured(text: &[u8]) -> Option<usize> {
        walk(text, |block| masks(block), |bits| prefix_xor(bits))
    }

    /// A product without carries by all ones is the running exclusive or.
    #[inline]
    #[target_feature(enable = "pclmulqdq")]
    fn prefix_xor(bits: u64) -> u64 {
        let product = _mm_clmulepi64_si128::<0>(_mm_set_epi64x(0, bits as i64), _mm_set1_epi8(-1));
        _mm_cvtsi128_si64(product) as u64
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn masks(block: &[u8; BLOCK]) -> Masks {
        let (low, high) = halves(block);
        // `[` and `{`, `]` and `}` differ in one bit.
        let bit = _mm256_set1_epi8(0x20);
        let (low_folded, high_folded) = (_mm256_or_si256(low, bit), _mm256_or_si256(high, bit));
        let square = mask(low, high, b'[') | mask(low, high, b']');
        Masks {
            quote: mask(low, high, b'"'),
            backslash: mask(low, high, b'\\'),
            open: mask(low_folded, high_folded, b'{'),
            close: mask(low_folded, high_folded, b'}'),
            square,
        }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn halves(block: &[u8; BLOCK]) -> (__m256i, __m256i) {
        let at = block.as_ptr().cast::<__m256i>();
        // SAFETY: the block has 64 bytes, which are two loads of 32 that need no alignment.
        unsafe { (_mm256_loadu_si256(at), _mm256_loadu_si256(at.add(1))) }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn mask(low: __m256i, high: __m256i, byte: u8) -> u64 {
        let byte = _mm256_set1_epi8(byte as i8);
        let low = _mm256_movemask_epi8(_mm256_cmpeq_epi8(low, byte)) as u32;
        let high = _mm256_movemask_epi8(_mm256_cmpeq_epi8(high, byte)) as u32;
        u64::from(low) | u64::from(high) << 32
    }
}

/// Without special instructions, for every processor.
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
            prop_assert_eq!(walk(text.as_bytes(), masks, prefix_xor), slow(text.as_bytes()));
        }

        #[test]
        fn passes_over_whole_values(items in proptest::collection::vec("[a\"\\\\\\[{}é]{0,40}", 0..12), tail in "[ ,}\\]]{0,5}") {
            let value = serde_json::json!({ "items": items, "deep": [[{ "a": items }]] }).to_string();
            let text = format!("{value}{tail}");
            prop_assert_eq!(container(text.as_bytes()), Some(value.len()));
        }
    }
}
