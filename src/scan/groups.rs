//! Which sources are looked at together: those that saw the same traffic.
//!
//! Sources of one folder (a host's service, dates and numbers of rotation left out) that overlap in
//! time belong together, and so do sources of any folders that overlap in time and name the same
//! sessions. What has neither in common is not compared: two services of one host, or one service
//! of two hosts, would be taken for two views of the same calls.

use super::ids::share;
use super::sets::Logical;
use std::collections::BTreeMap;

/// Clocks may differ by this where "the same time" is asked, ns.
const CLOCKS_NS: i64 = 300_000_000_000;

/// How much is taken together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Together {
    /// By folder and by sessions.
    #[default]
    Auto,
    /// Everything that overlaps in time, as one run of `analyze` over it.
    Time,
    /// Nothing: each source by itself.
    Single,
}

struct Union(Vec<usize>);

impl Union {
    fn root(&mut self, n: usize) -> usize {
        let mut at = n;
        while let Some(up) = self.0.get(at).copied().filter(|up| *up != at) {
            let over = self.0.get(up).copied().unwrap_or(up);
            if let Some(slot) = self.0.get_mut(at) {
                *slot = over;
            }
            at = over;
        }
        at
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        if let Some(slot) = self.0.get_mut(a.max(b)) {
            *slot = a.min(b);
        }
    }
}

/// Groups of sources by their numbers, each in order, by the first of each. `logicals` are in order of time.
pub fn groups(logicals: &[Logical], together: Together) -> Vec<Vec<usize>> {
    let mut union = Union((0..logicals.len()).collect());
    if together != Together::Single {
        by_folder(logicals, together, &mut union);
    }
    if together == Together::Auto {
        by_sessions(logicals, &mut union);
    }
    let mut out: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for n in 0..logicals.len() {
        let root = union.root(n);
        out.entry(root).or_default().push(n);
    }
    out.into_values().collect()
}

/// Sources of one key that overlap in time, transitively: an earlier one reaches as far as its latest end.
fn by_folder(logicals: &[Logical], together: Together, union: &mut Union) {
    let mut reach: BTreeMap<&str, (i64, usize)> = BTreeMap::new();
    for (n, l) in logicals.iter().enumerate().filter(|(_, l)| !l.is_alone) {
        let Some((first, last)) = l.span else { continue };
        let key = if together == Together::Time { "" } else { &l.folder };
        match reach.get_mut(key) {
            Some((end, of)) if first <= end.saturating_add(CLOCKS_NS) => {
                union.join(*of, n);
                *end = last.max(*end);
            }
            _ => drop(reach.insert(key, (last, n))),
        }
    }
}

fn by_sessions(logicals: &[Logical], union: &mut Union) {
    let mut who: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for (n, l) in logicals.iter().enumerate().filter(|(_, l)| !l.is_alone) {
        for id in &l.ids {
            who.entry(*id).or_default().push(n);
        }
    }
    for speakers in who.into_values() {
        for (i, a) in speakers.iter().enumerate() {
            // Each with its neighbours in time is enough: the rest follows.
            for b in speakers.iter().skip(i + 1).take(8) {
                if union.root(*a) != union.root(*b)
                    && let (Some(x), Some(y)) = (logicals.get(*a), logicals.get(*b))
                    && overlap(x, y)
                    && share(&x.ids, &y.ids)
                {
                    union.join(*a, *b);
                }
            }
        }
    }
}

fn overlap(a: &Logical, b: &Logical) -> bool {
    let (Some(a), Some(b)) = (a.span, b.span) else { return false };
    a.0 <= b.1.saturating_add(CLOCKS_NS) && b.0 <= a.1.saturating_add(CLOCKS_NS)
}

#[cfg(test)]
mod tests {
    use super::{Together, groups};
    use crate::scan::joined::Joined;
    use crate::scan::sets::Logical;
    use crate::scan::survey::Kind;

    fn at(folder: &str, minutes: (i64, i64), ids: &[u64]) -> Logical {
        let ns = |m: i64| m * 60_000_000_000;
        Logical {
            name: folder.into(),
            folder: folder.into(),
            items: vec![],
            joined: Joined::new(&[]),
            kind: Kind::Lines,
            format: String::new(),
            span: Some((ns(minutes.0), ns(minutes.1))),
            marks: vec![],
            ids: ids.to_vec(),
            is_alone: false,
        }
    }

    #[test]
    fn by_folder_and_by_sessions_where_times_overlap() {
        let all = [
            at("h1/nginx", (0, 100), &[1, 2, 3]),
            at("h1/server", (1, 90), &[2, 3, 9]),
            at("h2/nginx", (2, 100), &[50, 51]),
            at("laptop", (40, 50), &[3]),
            at("h1/nginx", (60, 70), &[]),
            at("h1/nginx", (500, 600), &[1, 2, 3]),
        ];
        assert_eq!(groups(&all, Together::Auto), [vec![0, 1, 3, 4], vec![2], vec![5]]);
        assert_eq!(groups(&all, Together::Time), [vec![0, 1, 2, 3, 4], vec![5]]);
        assert_eq!(groups(&all, Together::Single).len(), 6);
        let mut copy = all;
        if let Some(l) = copy.get_mut(4) {
            l.is_alone = true;
        }
        assert_eq!(groups(&copy, Together::Auto), [vec![0, 1, 3], vec![2], vec![4], vec![5]]);
    }
}
