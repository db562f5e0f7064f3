//! Segments of one direction that wait for earlier bytes.

use crate::model::exchange::Mark;
use std::collections::BTreeMap;

/// How much a copy is worth where two differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Trust {
    /// Its checksum is bad although others of this direction are good: a receiver dropped it.
    Suspect,
    /// A single byte: it may be a keep-alive probe, whose byte is garbage (RFC 9293 §3.8.4).
    OneByte,
    /// Any other.
    Full,
}

/// The segment that brought a run of bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    /// Frame and time.
    pub mark: Mark,
    /// Its acknowledgment number, in the other direction's sequence.
    pub ack: Option<u64>,
    /// What it is worth.
    pub trust: Trust,
    /// Its number, over all connections.
    pub arrived: u64,
}

/// A run of bytes that waits.
#[derive(Debug)]
pub(crate) struct Held {
    /// The bytes.
    pub bytes: Box<[u8]>,
    /// The copy that is kept.
    pub origin: Origin,
}

/// The waiting runs of one direction by sequence number; they never overlap.
#[derive(Debug, Default)]
pub(crate) struct HeldRuns {
    runs: BTreeMap<u64, Held>,
    bytes: usize,
}

impl HeldRuns {
    /// No run waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }
    /// Number of runs.
    pub(crate) fn len(&self) -> usize {
        self.runs.len()
    }
    /// Bytes in all runs.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
    /// The first run and where it starts.
    pub(crate) fn first(&self) -> Option<(u64, &Held)> {
        self.runs.first_key_value().map(|(start, held)| (*start, held))
    }
    /// All runs in sequence.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &Held)> {
        self.runs.iter().map(|(start, held)| (*start, held))
    }
    /// Takes the first run out.
    pub(crate) fn pop(&mut self) -> Option<(u64, Held)> {
        let (start, held) = self.runs.pop_first()?;
        self.bytes -= held.bytes.len();
        Some((start, held))
    }
    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        self.runs.clear();
        self.bytes = 0;
    }

    /// Holds what of `bytes` at `start` is not held yet. The first copy wins, unless a later one
    /// is worth more. True if a copy differs.
    pub(crate) fn insert(&mut self, start: u64, bytes: &[u8], origin: Origin) -> bool {
        let end = start + bytes.len() as u64;
        let mut displaced = Vec::new();
        let worse: Vec<u64> = self
            .overlapping(start, end)
            .filter(|(_, held)| held.origin.trust < origin.trust)
            .map(|(key, _)| key)
            .collect();
        for key in worse {
            if let Some(old) = self.runs.remove(&key) {
                self.bytes -= old.bytes.len();
                displaced.push((key, old));
            }
        }
        let mut conflict = self.fill(start, bytes, origin);
        for (key, old) in displaced {
            conflict |= self.fill(key, &old.bytes, old.origin) && old.origin.trust != Trust::OneByte;
        }
        conflict
    }

    /// Holds the parts that nothing covers; true if a covered part differs.
    fn fill(&mut self, start: u64, bytes: &[u8], origin: Origin) -> bool {
        let end = start + bytes.len() as u64;
        let mut conflict = false;
        let mut missing = Vec::new();
        let mut at = start;
        for (key, held) in self.overlapping(start, end) {
            if key > at {
                missing.push((at, key));
            }
            let (from, to) = (key.max(start), (key + held.bytes.len() as u64).min(end));
            conflict |= part(bytes, start, from, to) != part(&held.bytes, key, from, to);
            at = to;
        }
        if at < end {
            missing.push((at, end));
        }
        for (from, to) in missing {
            if let Some(bytes) = part(bytes, start, from, to) {
                self.bytes += bytes.len();
                self.runs.insert(from, Held { bytes: bytes.into(), origin });
            }
        }
        conflict && origin.trust != Trust::OneByte
    }

    fn overlapping(&self, start: u64, end: u64) -> impl Iterator<Item = (u64, &Held)> {
        let first = self
            .runs
            .range(..=start)
            .next_back()
            .filter(|(key, held)| **key + held.bytes.len() as u64 > start)
            .map_or(start, |(key, _)| *key);
        self.runs.range(first..end.max(first)).map(|(key, held)| (*key, held))
    }
}

/// The bytes from sequence `from` to `to` of a run that begins at `start`.
fn part(bytes: &[u8], start: u64, from: u64, to: u64) -> Option<&[u8]> {
    bytes.get(usize::try_from(from.checked_sub(start)?).ok()?..usize::try_from(to.checked_sub(start)?).ok()?)
}

#[cfg(test)]
mod tests {
    use super::{HeldRuns, Origin, Trust};
    use crate::model::exchange::Mark;
    use crate::model::place::Place;
    use crate::model::time::Time;

    fn origin(frame: u64, trust: Trust) -> Origin {
        let mark = Mark { place: Place::frame(0, frame), at: Time::from_us(0) };
        Origin { mark, ack: None, trust, arrived: frame }
    }

    fn text(runs: &HeldRuns) -> Vec<(u64, String, u64)> {
        runs.iter()
            .map(|(at, held)| (at, String::from_utf8_lossy(&held.bytes).into_owned(), held.origin.mark.place.number))
            .collect()
    }

    #[test]
    fn the_first_copy_wins_and_a_differing_one_is_told() {
        let mut runs = HeldRuns::default();
        assert!(!runs.insert(10, b"cd", origin(1, Trust::Full)));
        assert!(!runs.insert(14, b"gh", origin(2, Trust::Full)));
        assert!(!runs.insert(8, b"abcdefghij", origin(3, Trust::Full)));
        let want = [(8, "ab", 3), (10, "cd", 1), (12, "ef", 3), (14, "gh", 2), (16, "ij", 3)];
        assert_eq!(text(&runs), want.map(|(at, s, n)| (at, s.to_owned(), n)));
        assert!(runs.insert(9, b"bX", origin(4, Trust::Full)));
        assert_eq!(runs.bytes(), 10);
    }

    #[test]
    fn a_good_copy_displaces_a_suspect_one() {
        let mut runs = HeldRuns::default();
        runs.insert(0, b"abXdef", origin(1, Trust::Suspect));
        assert!(runs.insert(2, b"cd", origin(2, Trust::Full)));
        let want = [(0, "ab", 1), (2, "cd", 2), (4, "ef", 1)];
        assert_eq!(text(&runs), want.map(|(at, s, n)| (at, s.to_owned(), n)));
        assert!(runs.insert(0, b"zz", origin(3, Trust::Suspect)));
        assert_eq!(runs.first().map(|(_, held)| held.origin.mark.place.number), Some(1));
    }

    #[test]
    fn the_byte_of_a_keep_alive_never_wins() {
        let mut runs = HeldRuns::default();
        runs.insert(5, b"\0", origin(1, Trust::OneByte));
        assert!(!runs.insert(2, b"abcd", origin(2, Trust::Full)));
        assert_eq!(text(&runs), [(2, "abcd".to_owned(), 2)]);
        assert!(!runs.insert(5, b"\0", origin(3, Trust::OneByte)));
    }
}
