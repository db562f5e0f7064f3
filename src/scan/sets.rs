//! Sources: items, and items of a rotated set that follow each other as one.

use super::items::Item;
use super::joined::Joined;
use super::survey::{Kind, Mark};
use std::collections::{BTreeMap, BTreeSet};

/// Files of a set that overlap by more are two logs, not one that goes on, ns: lines are stamped at
/// their end and written a little out of order.
const SLACK_NS: i64 = 300_000_000_000;

/// What analysis reads as one input.
#[derive(Debug)]
pub struct Logical {
    /// The name of its newest file.
    pub name: String,
    /// Where it stands, see [`Item::folder`].
    pub folder: String,
    /// Numbers of its items, oldest first.
    pub items: Vec<usize>,
    /// Their bytes.
    pub joined: Joined,
    /// What it is.
    pub kind: Kind,
    /// Its format.
    pub format: String,
    /// Earliest and latest time.
    pub span: Option<(i64, i64)>,
    /// Places and times in all of it.
    pub marks: Vec<Mark>,
    /// Session ids, sorted.
    pub ids: Vec<u64>,
    /// Never put together with others: it is a copy of one of them, with differences.
    pub is_alone: bool,
}

/// Puts items together that are one log in turn; `out` are left out, `alone` are kept apart.
pub fn logicals(items: &[Item], out: &BTreeSet<usize>, alone: &[usize]) -> Vec<Logical> {
    let mut sets: BTreeMap<(&str, &str), Vec<usize>> = BTreeMap::new();
    let mut found: Vec<Vec<usize>> = vec![];
    for (n, item) in items.iter().enumerate().filter(|(n, _)| !out.contains(n)) {
        let s = &item.survey;
        match (s.kind, s.span, &s.format) {
            (Kind::Unknown | Kind::Empty, ..) => {}
            (Kind::Lines, Some(_), Some(format)) if !alone.contains(&n) => {
                sets.entry((&item.rotated.stem, format)).or_default().push(n);
            }
            _ => found.push(vec![n]),
        }
    }
    for mut set in sets.into_values() {
        let key =
            |n: &usize| items.get(*n).map(|i| (i.survey.span, std::cmp::Reverse(i.rotated.number), i.name.clone()));
        set.sort_by_cached_key(key);
        let span = |n: usize| items.get(n).and_then(|i| i.survey.span);
        let mut chains: Vec<(i64, Vec<usize>)> = vec![];
        for n in set {
            let Some((first, last)) = span(n) else { continue };
            match chains.iter_mut().find(|(end, _)| first >= end.saturating_sub(SLACK_NS)) {
                Some((end, chain)) => {
                    *end = last.max(*end);
                    chain.push(n);
                }
                None => chains.push((last, vec![n])),
            }
        }
        found.extend(chains.into_iter().map(|(_, chain)| chain));
    }
    let mut all: Vec<Logical> = found.into_iter().filter_map(|chain| logical(items, chain, alone)).collect();
    all.sort_by(|a, b| (a.span, &a.name).cmp(&(b.span, &b.name)));
    all
}

fn logical(items: &[Item], chain: Vec<usize>, alone: &[usize]) -> Option<Logical> {
    let parts: Vec<&Item> = chain.iter().filter_map(|n| items.get(*n)).collect();
    let last = parts.last()?;
    let spans = || parts.iter().filter_map(|p| p.survey.span);
    let ids: BTreeSet<u64> = parts.iter().flat_map(|p| p.survey.ids.iter().copied()).collect();
    let joined = Joined::new(&parts);
    let mut marks: Vec<Mark> = vec![];
    for (part, item) in joined.parts.iter().zip(&parts) {
        // Where a file goes on with the last line of the one before, no line begins.
        for m in item.survey.marks.iter().filter(|m| m.at > 0 || !part.is_torn) {
            let ns = marks.last().map_or(m.ns, |last| last.ns.max(m.ns));
            marks.push(Mark { at: part.at + m.at, lines: part.lines + m.lines, ns });
        }
    }
    Some(Logical {
        marks,
        name: last.name.clone(),
        folder: last.folder.clone(),
        joined,
        kind: last.survey.kind,
        format: last.survey.format.clone().unwrap_or_default(),
        span: spans().map(|s| s.0).min().zip(spans().map(|s| s.1).max()),
        ids: ids.into_iter().collect(),
        is_alone: chain.iter().any(|n| alone.contains(n)),
        items: chain,
    })
}
