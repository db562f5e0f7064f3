//! Units of work, and groups that are too large for the memory cut into slices of time.
//!
//! A slice reads more than it answers for: what it says of its own time is judged with the overlap
//! before it (sessions and calls already open) and behind it (replies and recoveries still to
//! come), and what it finds in the overlap is left to the slice whose time that is. So nothing is
//! found twice, and nothing between two slices is lost.

use super::lot::is_one_writers;
use super::sets::Logical;
use super::survey::Kind;
use crate::model::limits::{SCAN_ALONE_FACTOR, SCAN_CAPTURE_FACTOR, SCAN_LOG_FACTOR};
use crate::model::options::GivenClock;

/// What of one source a slice reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Portion {
    /// Number of the source.
    pub logical: usize,
    /// From this plain byte.
    pub from: u64,
    /// Up to this one.
    pub to: u64,
    /// Lines before it.
    pub lines: u64,
    /// What is known of its clock before.
    pub clock: Option<GivenClock>,
}

impl Portion {
    fn whole(logical: usize, l: &Logical) -> Portion {
        Portion { logical, from: 0, to: l.joined.bytes(), lines: 0, clock: None }
    }
}

/// What is given to analysis at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Work {
    /// The sources.
    pub portions: Vec<Portion>,
    /// Number of the group that they are of.
    pub group: usize,
    /// The time that it answers for, ns, the end not included; none: all.
    pub core: Option<(i64, i64)>,
    /// Memory that it may take, bytes, as far as can be told.
    pub need: u64,
}

/// What is done, and remembered as done, at once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unit {
    /// In order of time.
    pub works: Vec<Work>,
    /// Plain bytes read.
    pub bytes: u64,
}

/// What pieces of work are cut by.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// What one piece of work may take, bytes.
    pub memory: u64,
    /// What slices share with their neighbours, ns.
    pub overlap_ns: i64,
    /// How much of small groups is one unit, bytes.
    pub unit_bytes: u64,
    /// All calls and exchanges are wanted, not only those that findings cite.
    pub lists_all: bool,
}

/// Memory that the analysis of sources may take.
#[derive(Clone, Copy)]
pub(super) struct Needs {
    log_factor: u64,
}

impl Needs {
    /// Of sources that are correlated with each other.
    pub fn of(sources: &[(usize, &Logical)], lists_all: bool) -> Needs {
        let is_alone = matches!(sources, [(_, one)] if is_one_writers(&one.format));
        Needs { log_factor: if is_alone && !lists_all { SCAN_ALONE_FACTOR } else { SCAN_LOG_FACTOR } }
    }

    /// For so much of one of them, bytes.
    fn bytes(self, kind: Kind, bytes: u64) -> u64 {
        bytes.saturating_mul(if kind == Kind::Capture { SCAN_CAPTURE_FACTOR } else { self.log_factor })
    }
}

/// Units for all groups, in order of time.
pub fn units(logicals: &[Logical], groups: &[Vec<usize>], room: Room) -> Vec<Unit> {
    let mut all: Vec<Unit> = vec![];
    let mut open = Unit::default();
    for (number, group) in groups.iter().enumerate() {
        let works = works(logicals, number, group, room);
        let bytes = |w: &Work| w.portions.iter().map(|p| p.to - p.from).sum::<u64>();
        for work in works {
            let more = bytes(&work);
            if !open.works.is_empty() && open.bytes + more > room.unit_bytes {
                all.push(std::mem::take(&mut open));
            }
            open.bytes += more;
            open.works.push(work);
        }
    }
    if !open.works.is_empty() {
        all.push(open);
    }
    all
}

fn works(logicals: &[Logical], number: usize, group: &[usize], room: Room) -> Vec<Work> {
    let sources: Vec<(usize, &Logical)> = group.iter().filter_map(|n| Some((*n, logicals.get(*n)?))).collect();
    let whole = |(n, l): &(usize, &Logical)| Portion::whole(*n, l);
    let needs = Needs::of(&sources, room.lists_all);
    let total: u64 = sources.iter().map(|(_, l)| needs.bytes(l.kind, l.joined.bytes())).sum();
    let all = Work { portions: sources.iter().map(whole).collect(), group: number, core: None, need: total };
    if total <= room.memory {
        return vec![all];
    }
    let cuts = cuts(&sources, needs, room.memory, total);
    if cuts.is_empty() {
        return vec![all];
    }
    let ends = cuts.iter().copied().chain([i64::MAX]);
    let begins = [i64::MIN].into_iter().chain(cuts.iter().copied());
    let slices = begins.zip(ends).map(|core| slice(&sources, needs, core, number, room.overlap_ns));
    slices.filter(|w| !w.portions.is_empty()).collect()
}

/// Times at which a group is cut so that about half of the memory is left for the overlap.
fn cuts(sources: &[(usize, &Logical)], needs: Needs, memory: u64, total: u64) -> Vec<i64> {
    let mut steps: Vec<(i64, u64)> = vec![];
    for (_, l) in sources.iter().filter(|(_, l)| l.kind == Kind::Lines) {
        let marks = &l.marks;
        for (n, mark) in marks.iter().enumerate() {
            let end = marks.get(n + 1).map_or(l.joined.bytes(), |m| m.at);
            steps.push((mark.ns, needs.bytes(l.kind, end - mark.at)));
        }
    }
    steps.sort_unstable();
    let lines: u64 = steps.iter().map(|s| s.1).sum();
    // Captures and binary journals are not cut, and are in memory as often as a slice meets them.
    let room = memory.saturating_sub(total - lines).max(memory / 4) / 2;
    let (mut out, mut full) = (vec![], 0);
    for (ns, bytes) in steps {
        if full > 0 && full + bytes > room && out.last().is_none_or(|last| *last < ns) {
            out.push(ns);
            full = 0;
        }
        full += bytes;
    }
    out
}

/// What is read of the sources of a group for a time.
pub(super) fn slice(
    sources: &[(usize, &Logical)],
    needs: Needs,
    core: (i64, i64),
    group: usize,
    overlap_ns: i64,
) -> Work {
    let (from, to) = (core.0.saturating_sub(overlap_ns), core.1.saturating_add(overlap_ns));
    let mut work = Work { portions: vec![], group, core: Some(core), need: 0 };
    for (n, l) in sources {
        let portion = match l.kind {
            Kind::Lines => portion(*n, l, (from, to)),
            _ => {
                let meets = l.span.is_none_or(|(first, last)| first < to && last >= from);
                meets.then(|| Portion::whole(*n, l))
            }
        };
        if let Some(p) = portion {
            work.need += needs.bytes(l.kind, p.to - p.from);
            work.portions.push(p);
        }
    }
    work
}

fn portion(logical: usize, l: &Logical, (from, to): (i64, i64)) -> Option<Portion> {
    let marks = &l.marks;
    // Marks stand every so many bytes: the last one before, and the first one behind.
    let begin = marks.iter().rev().find(|m| m.ns < from);
    let end = marks.iter().find(|m| m.ns > to).map_or(l.joined.bytes(), |m| m.at);
    let (at, lines) = begin.map_or((0, 0), |m| (m.at, m.lines));
    (at < end).then_some(Portion { logical, from: at, to: end, lines, clock: None })
}
