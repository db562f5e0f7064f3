//! Finds the end of a JSON string.

use memchr::memchr2;

/// Words of eight bytes that are looked at one by one.
const WORDS: usize = 5;
const ONES: u64 = u64::from_le_bytes([1; 8]);
const HIGHS: u64 = u64::from_le_bytes([0x80; 8]);
const QUOTES: u64 = u64::from_le_bytes([b'"'; 8]);
const BACKSLASHES: u64 = u64::from_le_bytes([b'\\'; 8]);

/// Where the first `"` or `\` of `text` stands. Most strings of messages and logs are so short that calling what
/// finds it in long ones takes longer than to look.
#[inline]
pub fn quote_or_backslash(text: &[u8]) -> Option<usize> {
    let (words, _) = text.as_chunks::<8>();
    for (n, word) in words.iter().take(WORDS).enumerate() {
        let word = u64::from_le_bytes(*word);
        let found = zeros(word ^ QUOTES) | zeros(word ^ BACKSLASHES);
        if found != 0 {
            return Some(n * 8 + (found.trailing_zeros() / 8) as usize);
        }
    }
    let from = words.len().min(WORDS) * 8;
    memchr2(b'"', b'\\', text.get(from..)?).map(|at| from + at)
}

/// The high bit of each byte that is zero, and perhaps of some behind the first such byte.
const fn zeros(word: u64) -> u64 {
    word.wrapping_sub(ONES) & !word & HIGHS
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_first_is_found(text in proptest::collection::vec(prop_oneof![Just(b'"'), Just(b'\\'), any::<u8>(), any::<u8>(), any::<u8>(), any::<u8>(), any::<u8>(), any::<u8>(), any::<u8>(), any::<u8>()], 0..100)) {
            let slow = text.iter().position(|b| matches!(b, b'"' | b'\\'));
            prop_assert_eq!(quote_or_backslash(&text), slow);
        }

        #[test]
        fn none_is_found_in_plain_text(text in "[!#-\\[\\]-~]{0,100}") {
            prop_assert_eq!(quote_or_backslash(text.as_bytes()), None);
        }
    }
}
