//! When a finding is told: once, and when nothing that may still come is likely to change it.
//!
//! The windows are analysed as if they were the whole inputs. A finding is told when the same claim (rule,
//! confidence, calls, hops at fault) has come out of every analysis for the settling time. What began near
//! the beginning of a window that was cut lacks its history, and is not told any more.

use super::window::Numbers;
use crate::model::limits::WATCH_TOLD;
use crate::model::report::{Call, CallKey, Evidence, Finding, Report};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// An input of one analysis: the number of its window, and of its records.
pub struct Read {
    /// Index of the window.
    pub window: usize,
    /// How its records are numbered.
    pub numbers: Numbers,
}

/// A finding with its evidence as the inputs number it.
#[derive(Clone, Debug)]
pub struct Told {
    /// The claim; numbers of frames and lines are those over all files of an input's name, and
    /// `input` is the number of the window.
    pub finding: Finding,
    /// The calls it is about, the victim first.
    pub calls: Vec<Call>,
}

/// What names a finding over all analyses: who is hurt by what, by the place of its first record.
type Key = (&'static str, Vec<(usize, u64)>, String);

struct Pending {
    claim: String,
    since: Instant,
    told: Told,
}

/// Remembers what was told.
pub struct Judge {
    settle: Duration,
    pending: FxHashMap<Key, Pending>,
    told: FxHashSet<Key>,
    order: VecDeque<Key>,
}

impl Judge {
    /// Findings are told after this time without a change.
    pub fn new(settle: Duration) -> Judge {
        Judge { settle, pending: FxHashMap::default(), told: FxHashSet::default(), order: VecDeque::new() }
    }

    /// Takes an analysis. `cut` says of each window where a cut one can be trusted from: the number of a
    /// record.
    pub fn take(&mut self, report: &Report, reads: &[Read], cut: &[Option<u64>], now: Instant) {
        let calls: FxHashMap<&CallKey, &Call> = report.calls.iter().map(|c| (&c.key, c)).collect();
        let mut pending = FxHashMap::default();
        for finding in &report.findings {
            let about: Vec<Call> =
                finding.calls.iter().filter_map(|key| calls.get(key).map(|c| (*c).clone())).collect();
            let victim = about.iter().take(1).filter_map(|c| place(c, reads)).collect::<Vec<_>>();
            let mut evidence: Vec<Evidence> = finding.evidence.clone();
            evidence.iter_mut().for_each(|e| renumber(e, reads));
            // A window of a stale session has no call, but its first evidence stays what it is.
            let first = evidence.iter().find_map(|e| Some((e.input? as usize, e.frame.or(e.line)?)));
            let places = if victim.is_empty() { first.into_iter().collect() } else { victim };
            let family = finding.rule.split('/').next().unwrap_or(finding.rule);
            let key: Key = (family, places, finding.session.as_deref().unwrap_or_default().to_owned());
            let began = about.iter().filter_map(|c| place(c, reads)).chain(first);
            let is_near_cut = began.clone().any(|(w, n)| cut.get(w).copied().flatten().is_some_and(|from| n < from));
            if self.told.contains(&key) || is_near_cut {
                continue;
            }
            let owner: Vec<_> = began.collect();
            let claim = format!("{} {:?} {:?} {owner:?}", finding.rule, finding.confidence, finding.fault);
            let since = self.pending.get(&key).filter(|p| p.claim == claim).map_or(now, |p| p.since);
            let told = Told { finding: Finding { evidence, ..finding.clone() }, calls: about };
            pending.entry(key).or_insert(Pending { claim, since, told });
        }
        self.pending = pending;
    }

    /// What is to be told now; with `all` also what has not settled, because nothing more will come.
    pub fn news(&mut self, now: Instant, all: bool) -> Vec<Told> {
        let ripe = |p: &Pending| all || now.duration_since(p.since) >= self.settle;
        let keys: Vec<Key> = self.pending.iter().filter(|(_, p)| ripe(p)).map(|(k, _)| k.clone()).collect();
        let mut news: Vec<Told> = vec![];
        for key in keys {
            news.extend(self.pending.remove(&key).map(|p| p.told));
            self.told.insert(key.clone());
            self.order.push_back(key);
            if self.order.len() > WATCH_TOLD
                && let Some(oldest) = self.order.pop_front()
            {
                self.told.remove(&oldest);
            }
        }
        news.sort_by_key(|t| t.finding.at.map(|at| at.ns()));
        news
    }

    /// Is anything waiting to be told?
    pub fn is_waiting(&self) -> bool {
        !self.pending.is_empty()
    }
}

/// Where a call was first seen.
fn place(call: &Call, reads: &[Read]) -> Option<(usize, u64)> {
    call.sightings.iter().find_map(|s| {
        let read = reads.get(s.input as usize)?;
        Some((read.window, read.numbers.of(s.frame.or(s.line)?)?))
    })
}

/// Makes evidence of a window's source evidence of the input.
fn renumber(e: &mut Evidence, reads: &[Read]) {
    let Some(read) = e.input.and_then(|i| reads.get(i as usize)) else { return };
    e.input = u32::try_from(read.window).ok();
    e.frame = e.frame.and_then(|n| read.numbers.of(n));
    e.line = e.line.and_then(|n| read.numbers.of(n));
    // Byte offsets and stream numbers are those of the window.
    e.offset = None;
    e.filter = e.frame.map(|n| format!("frame.number == {n}"));
}
