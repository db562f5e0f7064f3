//! `--since` and `--until`: which files need not be read.
//!
//! A file is left out only where it cannot hold a record of that time. Its last change bounds it from
//! above. A date in its name does not by itself (some name the day a file began, some the day it
//! was put away, some a month); its neighbours' dates in the same set do, a day to either side.

use super::source::StoredFile;
use crate::input::rotation::rotated;
use std::collections::BTreeMap;

const DAY_NS: i64 = 86_400_000_000_000;

/// The time that is wanted, ns since the epoch, ends included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// From this time on.
    pub since: Option<i64>,
    /// Up to this time.
    pub until: Option<i64>,
}

impl Wanted {
    /// The same and some time around it, which findings at its ends are judged by.
    pub fn widened(self, by_ns: i64) -> Wanted {
        Wanted {
            since: self.since.map(|t| t.saturating_sub(by_ns)),
            until: self.until.map(|t| t.saturating_add(by_ns)),
        }
    }

    /// Can something between these times be wanted?
    pub fn meets(self, first: i64, last: i64) -> bool {
        self.since.is_none_or(|t| last >= t) && self.until.is_none_or(|t| first <= t)
    }

    /// Is everything wanted?
    pub fn is_all(self) -> bool {
        self.since.is_none() && self.until.is_none()
    }
}

/// Takes the files out that cannot hold anything wanted, and says why of each.
pub fn skip(files: &mut Vec<StoredFile>, wanted: Wanted) -> Vec<(String, String)> {
    if wanted.is_all() {
        return vec![];
    }
    let mut sets: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    for (stem, day) in files.iter().map(|f| rotated(&f.name)).filter_map(|r| Some((r.stem, r.day?))) {
        sets.entry(stem).or_default().push(day);
    }
    sets.values_mut().for_each(|days| days.sort_unstable());
    let mut out = vec![];
    files.retain(|f| {
        let why = reason(f, &sets, wanted);
        out.extend(why.clone().map(|why| (f.name.clone(), why)));
        why.is_none()
    });
    out
}

fn reason(file: &StoredFile, sets: &BTreeMap<String, Vec<i64>>, wanted: Wanted) -> Option<String> {
    if let (Some(modified), Some(since)) = (file.modified_ns, wanted.since)
        && modified.saturating_add(DAY_NS) < since
    {
        return Some("last changed more than a day before --since".into());
    }
    let r = rotated(&file.name);
    let (days, day) = (sets.get(&r.stem)?, r.day?);
    let ns = |day: i64| day.saturating_mul(DAY_NS);
    let after = days.get(days.partition_point(|d| *d <= day)).copied();
    let before = days.partition_point(|d| *d < day).checked_sub(1).and_then(|i| days.get(i)).copied();
    if let (Some(next), Some(since)) = (after, wanted.since)
        && ns(next + 1) <= since
    {
        return Some("the next file of its set has a date a day before --since".into());
    }
    if let (Some(previous), Some(until)) = (before, wanted.until)
        && ns(previous - 1) > until
    {
        return Some("the file before it in its set has a date more than a day after --until".into());
    }
    None
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::{DAY_NS, Wanted, skip};
    use crate::scan::source::{Place, StoredFile};

    fn file(name: &str, modified_day: Option<i64>) -> StoredFile {
        StoredFile {
            name: name.into(),
            place: Place::Path(name.into()),
            bytes: 1,
            modified_ns: modified_day.map(|d| d * DAY_NS),
            found: true,
        }
    }

    #[test]
    fn only_what_cannot_hold_it_is_skipped() {
        // 2026-10-01 is day 20727.
        let day = |d: i64| (20726 + d) * DAY_NS;
        let names = ["a-20261001", "a-20261008", "a-20261015", "a-20261022", "other-20261001"];
        let left = |since: Option<i64>, until: Option<i64>| -> Vec<String> {
            let mut files: Vec<StoredFile> = names.iter().map(|n| file(n, None)).collect();
            skip(&mut files, Wanted { since: since.map(day), until: until.map(day) });
            files.into_iter().map(|f| f.name).collect()
        };
        // Whether a date means the begin or the end of its week, the 10th may be in any of two files.
        assert_eq!(
            left(Some(10), Some(10)),
            ["a-20261008", "a-20261015", "a-20261022", "other-20261001"][..2]
                .iter()
                .chain(&["other-20261001"])
                .copied()
                .collect::<Vec<_>>()
        );
        assert_eq!(left(None, None).len(), 5);
        let mut files = vec![file("x.log", Some(20740)), file("y.log", Some(20700))];
        let said = skip(&mut files, Wanted { since: Some(20730 * DAY_NS), until: None });
        assert_eq!((files.len(), said.len()), (1, 1));
    }
}
