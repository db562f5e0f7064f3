//! Finding the next record behind bytes that are none.

use super::tally::Tally;
use super::window::Window;
use std::io::Read;

/// What proves a record has to fit into this many bytes.
const PROOF_BYTES: usize = 1 << 20;

/// Does a record surely begin with some bytes?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Proof {
    /// It does.
    Given,
    /// It does not.
    Refuted,
    /// The bytes in memory do not tell.
    Open,
}

/// What the bytes that are no record looked like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bad {
    /// Nothing known.
    Garbage,
    /// A record of this many bytes, more than the input has left.
    Cut(u64),
}

/// Goes to the next place where `prove` (given the bytes from there on, and whether the input
/// ends with them) finds a record; false if there is none. Counts what was passed over.
#[cold]
pub(super) fn resynchronise<R: Read>(
    window: &mut Window<R>,
    tally: &mut Tally,
    bad: Bad,
    prove: impl Fn(&[u8], bool) -> Proof,
) -> bool {
    let begin = window.offset();
    let mut from = 1;
    loop {
        let (data, ended) = (window.data(), window.is_ended());
        // The first place that is proved, or that needs more bytes.
        let stop = (from..data.len()).find_map(|at| {
            let rest = data.get(at..).unwrap_or_default();
            match prove(rest, ended) {
                Proof::Given => Some((at, true)),
                Proof::Open if !ended && rest.len() < PROOF_BYTES => Some((at, false)),
                Proof::Open | Proof::Refuted => None,
            }
        });
        if let Some((at, true)) = stop {
            window.consume(at);
            tally.garbage(begin, window.offset() - begin);
            return true;
        }
        if ended {
            let left = window.offset() + data.len() as u64 - begin;
            match bad {
                Bad::Garbage => tally.garbage_to_end(begin, left),
                Bad::Cut(whole) => tally.truncated(left, whole, begin),
            }
            return false;
        }
        let passed = stop.map_or(data.len(), |(at, _)| at);
        from = from.saturating_sub(passed);
        window.consume(passed);
        window.fill(PROOF_BYTES);
    }
}
