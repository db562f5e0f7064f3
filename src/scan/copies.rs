//! Sources that hold the same records: whole copies, copies that end early, and copies that differ.
//!
//! A copy taken for another vantage point would be a false witness, and a damaged one a false
//! accusation; so each piece of evidence is read once.

use super::items::Item;
use super::survey::Kind;
use crate::input::OpenInput;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::Read;

/// A source that is left out because another holds all of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Copy {
    /// Its name.
    pub name: String,
    /// The source that holds it.
    pub of: String,
    /// It is the beginning of that one alone.
    pub is_part: bool,
}

/// What was found among the items.
#[derive(Debug, Default)]
pub struct Copies {
    /// Left out, by number of the item.
    pub out: BTreeMap<usize, Copy>,
    /// Copies that differ: to be read by themselves.
    pub variants: Vec<usize>,
}

/// Finds copies among the items.
pub fn copies(items: &[Item]) -> Copies {
    let mut found = Copies::default();
    let mut alike: BTreeMap<(&str, &str), Vec<usize>> = BTreeMap::new();
    for (n, item) in items.iter().enumerate() {
        let s = &item.survey;
        if let (Some(format), false) = (&s.format, matches!(s.kind, Kind::Unknown | Kind::Empty)) {
            // Too short to have a head: only a whole copy is known as one.
            alike.entry((format, s.head.as_deref().unwrap_or(&s.hash))).or_default().push(n);
        }
    }
    for mut group in alike.into_values().filter(|g| g.len() > 1) {
        // The longest that is whole is the one that is kept; names decide between equals.
        let rank = |n: &usize| {
            items.get(*n).map(|i| (i.survey.broken.is_some(), std::cmp::Reverse(i.survey.bytes), i.name.len(), *n))
        };
        group.sort_by_key(rank);
        let mut kept: Vec<usize> = vec![];
        for n in group {
            let Some(item) = items.get(n) else { continue };
            let original = kept.iter().filter_map(|k| items.get(*k)).find(|k| holds(k, item));
            match original {
                Some(of) => {
                    let is_part = of.survey.bytes > item.survey.bytes;
                    let copy = Copy { name: item.name.clone(), of: of.name.clone(), is_part };
                    found.out.insert(n, copy);
                }
                None => {
                    if !kept.is_empty() {
                        found.variants.push(n);
                    }
                    kept.push(n);
                }
            }
        }
    }
    found
}

/// Is all of `part` the beginning of `whole`?
fn holds(whole: &Item, part: &Item) -> bool {
    let (a, b) = (&whole.survey, &part.survey);
    // A large file that was looked at in stretches has no hash.
    if a.bytes == b.bytes && !a.hash.is_empty() && !b.hash.is_empty() {
        return a.hash == b.hash;
    }
    a.bytes >= b.bytes && begins_with(whole, part).unwrap_or(false)
}

fn begins_with(whole: &Item, part: &Item) -> std::io::Result<bool> {
    const BLOCK_BYTES: usize = 256 << 10;
    let open = |i: &Item| {
        Ok::<_, std::io::Error>(OpenInput::new(i.name.clone(), i.opener.open()?, None).take(part.survey.bytes))
    };
    let (mut a, mut b) = (open(whole)?, open(part)?);
    let (mut x, mut y) = (Vec::new(), Vec::new());
    loop {
        x.clear();
        y.clear();
        (&mut a).take(BLOCK_BYTES as u64).read_to_end(&mut x)?;
        (&mut b).take(BLOCK_BYTES as u64).read_to_end(&mut y)?;
        if x != y {
            return Ok(false);
        }
        if x.is_empty() {
            return Ok(true);
        }
    }
}
