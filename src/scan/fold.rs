//! The fold of a scan: what the sources of a lot showed in, its findings, calls and windows out.

use super::Options;
use super::lot::Lot;
use crate::analyze;
use crate::analyze::alone::Alone;
use crate::analyze::logs::Sighted;
use crate::model::options::{AnalyzeOptions, ReadOptions};
use crate::model::report::{InputInfo, Report};
use crate::model::time::Time;
use crate::report::baseline::Baseline;
use crate::report::filter::Filter;

/// What every lot is folded with.
pub struct Folding<'a> {
    /// How sources are read.
    pub read: &'a ReadOptions,
    /// What is wanted.
    pub filter: &'a Filter,
    /// What is known already.
    pub baseline: Option<&'a Baseline>,
}

impl<'a> Folding<'a> {
    /// As a scan is asked.
    pub fn of(options: &'a Options) -> Folding<'a> {
        Folding { read: &options.read, filter: &options.filter, baseline: options.baseline.as_ref() }
    }

    /// What folds a lot of one log line by line; none: all of the lot has to be there at once, since a line may be
    /// of any call that another source shows, or all calls and `exchanges` are wanted.
    pub fn alone(&self, lot: &Lot, row: InputInfo, exchanges: bool) -> Option<Alone<'a>> {
        (lot.is_alone() && !exchanges).then(|| Alone::new(row, self.read, Self::options(lot, exchanges)))
    }

    /// Folds what logs showed, in the order of the lot's inputs.
    pub fn logs(&self, lot: &Lot, sighted: Vec<Sighted>, exchanges: bool) -> Report {
        self.own(lot, analyze::fold_logs(sighted, self.read, &Self::options(lot, exchanges)))
    }

    /// What analysis of a lot is to keep.
    pub fn options(lot: &Lot, exchanges: bool) -> AnalyzeOptions {
        let clocks = lot.inputs.iter().map(|i| i.clock).collect();
        AnalyzeOptions { exchanges, core: lot.core, memory_bytes: Some(lot.need), clocks, ..AnalyzeOptions::default() }
    }

    /// Of a report of all that the lot reads, what is its own and wanted.
    pub fn own(&self, lot: &Lot, mut report: Report) -> Report {
        if let Some(core) = lot.core {
            keep_own(&mut report, core);
        }
        self.filter.apply(&mut report);
        if let Some(baseline) = self.baseline {
            baseline.apply(&mut report);
        }
        report
    }
}

/// Leaves what lies in the slice's own time; what has no time is the first slice's.
fn keep_own(report: &mut Report, (from, to): (i64, i64)) {
    let own = |t: Option<Time>| t.map_or(from == i64::MIN, |t| t.ns() >= from && t.ns() < to);
    report.findings.retain(|f| own(f.at));
    report.windows.retain(|w| own(w.opened));
    report.exchanges.retain(|e| own(e.at));
    let cited = crate::report::cited(report);
    let is_own = |c: &crate::model::report::Call| own(c.sent.or(c.issued));
    report.sessions.retain(|s| own(s.started));
    report.summary.sessions = report.sessions.len() as u64;
    report.calls.retain(|c| is_own(c) || cited.contains(&c.key));
}
