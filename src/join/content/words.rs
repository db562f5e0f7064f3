//! In which of a few texts a value stands, without reading them again for every value.

use crate::mcp::content::Needle;
use rustc_hash::FxHasher;
use std::hash::Hasher;
use std::sync::Arc;

/// Texts that one index holds at most: one bit each.
pub(super) const TEXTS: usize = 128;

/// Most and fewest places of an index.
const PLACES: (usize, usize) = (1 << 6, 1 << 15);

/// The words of up to [`TEXTS`] texts. A word is a run of ASCII letters and digits, as
/// [`occurs`](crate::mcp::content::occurs) sees them: a value that stands in a text has each of its own
/// words there as a word. The index has one bit for each text in a place that several words may share, so
/// it rules texts out, and those that are left are read.
#[derive(Default)]
pub(super) struct Words {
    texts: Vec<Arc<[u8]>>,
    places: Vec<u128>,
    /// Texts that are in the index, and their bytes.
    indexed: usize,
    bytes: usize,
}

impl Words {
    /// Takes a text in, as long as there is room.
    pub fn add(&mut self, text: &Arc<[u8]>) {
        if self.texts.len() < TEXTS {
            self.texts.push(text.clone());
        }
    }

    /// How many texts there are.
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Is this very text among them?
    pub fn contains(&self, text: &Arc<[u8]>) -> bool {
        self.texts.contains(text)
    }

    /// Takes the texts into the index that have come since it was made; where it has become too small it is made anew.
    pub fn index(&mut self) {
        if self.indexed == self.texts.len() {
            return;
        }
        let new = self.texts.iter().skip(self.indexed);
        self.bytes += new.map(|t| t.len()).sum::<usize>();
        // It has room for twice its texts.
        if self.bytes / 32 > self.places.len() && self.places.len() < PLACES.1 || self.places.is_empty() {
            let places = (self.bytes / 16).next_power_of_two().clamp(PLACES.0, PLACES.1);
            (self.places, self.indexed) = (vec![0; places], 0);
        }
        for (n, text) in self.texts.iter().enumerate().skip(self.indexed) {
            mark_words(text, n, &mut self.places);
        }
        self.indexed = self.texts.len();
    }

    /// The numbers (in order of being added) of the texts in which `value` stands as a word of its own.
    pub fn having<'a>(&'a self, value: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
        let mut left = match self.texts.len() {
            0 => 0,
            n => u128::MAX >> (TEXTS - n),
        };
        if self.indexed == self.texts.len() && !self.places.is_empty() {
            words(value).for_each(|(_, w)| left &= self.places.get(place(w, self.places.len())).copied().unwrap_or(0));
        }
        let needle = (left != 0).then(|| Needle::new(value));
        std::iter::from_fn(move || {
            let needle = needle.as_ref()?;
            while left != 0 {
                let n = left.trailing_zeros() as usize;
                left &= left - 1;
                if self.texts.get(n).is_some_and(|t| needle.occurs(t)) {
                    return Some(n);
                }
            }
            None
        })
    }
}

/// Sets the `n`th bit at the place of each word of a text.
fn mark_words(text: &[u8], n: usize, places: &mut [u128]) {
    let mut mark = |word: &[u8]| {
        let place = place(word, places.len());
        if let Some(p) = places.get_mut(place) {
            *p |= 1 << n;
        }
    };
    for (at, word) in words(text) {
        mark(word);
        // The letter of an escape such as `\n` is no part of the word behind it.
        if at.checked_sub(1).and_then(|i| text.get(i)) == Some(&b'\\')
            && let Some(rest) = word.get(1..).filter(|r| !r.is_empty())
        {
            mark(rest);
        }
    }
}

/// Where a word's bits are in an index of `places` (a power of two) places.
fn place(word: &[u8], places: usize) -> usize {
    let mut h = FxHasher::default();
    h.write(word);
    (h.finish().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & (places - 1)
}

/// The words of a text with their places.
fn words(text: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = text.get(at..)?;
        let start = at + rest.iter().position(u8::is_ascii_alphanumeric)?;
        let tail = text.get(start..)?;
        let length = tail.iter().position(|b| !b.is_ascii_alphanumeric()).unwrap_or(tail.len());
        at = start + length;
        Some((start, text.get(start..at)?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::content::occurs;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn finds_what_reading_them_all_finds(
            texts in proptest::collection::vec(r#"[ab1\\n .-]{0,24}"#, 0..6),
            value in "[ab1n.-]{1,4}",
        ) {
            let mut index = Words::default();
            for t in &texts {
                index.add(&Arc::from(t.as_bytes()));
            }
            let want: Vec<usize> = (0..texts.len()).filter(|n| occurs(texts[*n].as_bytes(), value.as_bytes())).collect();
            prop_assert_eq!(index.having(value.as_bytes()).collect::<Vec<_>>(), want.clone());
            index.index();
            prop_assert_eq!(index.having(value.as_bytes()).collect::<Vec<_>>(), want.clone());
            // The index grows with its texts.
            let mut index = Words::default();
            for t in &texts {
                index.add(&Arc::from(t.as_bytes()));
                index.index();
            }
            prop_assert_eq!(index.having(value.as_bytes()).collect::<Vec<_>>(), want);
        }
    }
}
