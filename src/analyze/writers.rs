//! Which logs are one log in turn: files of a rotated set that were given one by one.

use crate::input::rotation::rotated;
use crate::model::place::{InputId, Vantage};
use crate::model::report::InputInfo;
use crate::model::time::Time;
use rustc_hash::FxHashMap;

/// A log that goes on in another file has lines in it that were begun before the first one's last, at most this
/// long before, ns.
const OVERLAP_NS: i64 = 60_000_000_000;

/// First and last time of a log, and which it is.
type File = (Time, Time, InputId);

/// For each log that goes on from another, or is gone on from, the one that is counted as the writer. Names say it
/// may be so, and times have to confirm it: `app.log.1` may be a replica as well.
pub(super) fn writers(inputs: &[InputInfo]) -> FxHashMap<InputId, InputId> {
    let mut sets: FxHashMap<(String, &str, Vantage), Vec<File>> = FxHashMap::default();
    for (input, info) in (0..).zip(inputs) {
        let (Some(format), Some(vantage), Some(first), Some(last)) =
            (info.format.as_deref(), info.vantage, info.first, info.last)
        else {
            continue;
        };
        if vantage != Vantage::Wire {
            sets.entry((rotated(&info.name).stem, format, vantage)).or_default().push((first, last, input));
        }
    }
    let mut out = FxHashMap::default();
    for set in sets.values_mut().filter(|set| set.len() > 1) {
        set.sort_unstable();
        let follows = |(a, b): (&File, &File)| {
            let shorter = a.1.since(a.0).min(b.1.since(b.0));
            a.1.since(b.0) <= OVERLAP_NS.min(shorter / 2)
        };
        if set.iter().zip(set.iter().skip(1)).all(follows)
            && let Some(writer) = set.iter().map(|(_, _, input)| *input).min()
        {
            out.extend(set.iter().map(|(_, _, input)| (*input, writer)));
        }
    }
    out
}
