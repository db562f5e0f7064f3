//! The clocks of sources whose group is cut into slices of time. They are told once, from what all showed at one time,
//! and given to every slice: so neighbours do not differ in what they take a clock for, and a slice in which two
//! sources have nothing in common has them on one clock all the same.

use super::lot::{Lot, log_format};
use super::sets::Logical;
use super::slices::{Needs, Room, Unit, Work, slice};
use crate::analyze;
use crate::analyze::logs::{Log, Sighted, row, sight};
use crate::input::Source;
use crate::model::options::{GivenClock, ReadOptions};
use anyhow::Context;

/// What is read of a group to tell its clocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Number of the group.
    pub group: usize,
    /// No more of each source than what slices share with a neighbour.
    pub work: Work,
}

/// One probe for each group that is cut and of which all sources are logs: where captures are, theirs is the clock.
/// It lies at the cut at which most sources have something to say, the middle one of these.
pub fn probes(logicals: &[Logical], groups: &[Vec<usize>], units: &[Unit], room: Room) -> Vec<Probe> {
    let mut cuts: Vec<Vec<i64>> = vec![vec![]; groups.len()];
    for work in units.iter().flat_map(|u| &u.works) {
        if let (Some(cuts), Some((from, _))) = (cuts.get_mut(work.group), work.core)
            && from != i64::MIN
        {
            cuts.push(from);
        }
    }
    let of = |(group, (sources, cuts)): (usize, (&Vec<usize>, Vec<i64>))| {
        let sources: Vec<(usize, &Logical)> = sources.iter().filter_map(|n| Some((*n, logicals.get(*n)?))).collect();
        let are_logs = sources.len() > 1 && sources.iter().all(|(_, l)| log_format(&l.format).is_some());
        if !are_logs {
            return None;
        }
        let needs = Needs::of(&sources, room.lists_all);
        let mut all: Vec<Work> =
            cuts.iter().map(|at| slice(&sources, needs, (*at, *at), group, room.overlap_ns)).collect();
        let most = all.iter().map(|w| w.portions.len()).max().filter(|most| *most > 1)?;
        all.retain(|w| w.portions.len() == most);
        let middle = all.len() / 2;
        Some(Probe { group, work: all.into_iter().nth(middle)? })
    };
    (0..).zip(groups.iter().zip(cuts)).filter_map(of).collect()
}

/// Gives the clocks that a probe showed, in the order of its portions, to all work of its group.
pub fn give(probe: &Probe, clocks: &[Option<GivenClock>], units: &mut [Unit]) {
    let own = units.iter_mut().flat_map(|u| &mut u.works).filter(|w| w.group == probe.group);
    for work in own {
        for portion in &mut work.portions {
            let found = probe.work.portions.iter().position(|p| p.logical == portion.logical);
            portion.clock = found.and_then(|n| clocks.get(n).copied().flatten());
        }
    }
}

/// Reads what a probe reads, a lot of logs, and tells the clocks of its inputs.
///
/// # Errors
/// If one cannot be opened.
pub fn told(lot: &Lot, sources: &[Source], read: &ReadOptions) -> anyhow::Result<Vec<Option<GivenClock>>> {
    let formats = lot.log_formats().with_context(|| format!("{}: expected logs alone", lot.key))?;
    let mut sighted = vec![];
    for (input, ((source, of), format)) in (0u32..).zip(sources.iter().zip(&lot.inputs).zip(formats)) {
        let log = Log { input, name: &of.name, format, lines: of.lines, options: read };
        let mut all = Sighted { info: row(&log), records: vec![] };
        // What could not be read is told by the work that reads it for its findings.
        sight(&log, &mut source.open()?, &mut all);
        sighted.push(all);
    }
    Ok(analyze::clocks::clocks(sighted, read))
}
