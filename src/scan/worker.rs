//! The map and fold of a scan: one unit of sources in, its findings, calls and windows out. All that
//! a scan knows of analysis is here.

use super::result::{Places, UnitResult};
use super::rows::Rows;
use super::sets::Logical;
use super::slices::{Portion, Unit, Work};
use super::source::Passed;
use crate::analyze;
use crate::input::Source;
use crate::input::packed::Packed;
use crate::model::options::{AnalyzeOptions, ReadOptions};
use crate::model::report::Report;
use crate::model::time::Time;
use crate::report::baseline::Baseline;
use crate::report::filter::Filter;
use rustc_hash::FxHashMap;

/// What every unit is done with.
pub struct Worker<'a> {
    /// All sources.
    pub logicals: &'a [Logical],
    /// How they are read.
    pub read: &'a ReadOptions,
    /// What is wanted.
    pub filter: &'a Filter,
    /// What is known already.
    pub baseline: Option<&'a Baseline>,
    /// Where the bytes read are counted.
    pub passed: Passed,
}

impl Worker<'_> {
    /// Does one unit; `key` is its own, and `rows` gets all calls and exchanges.
    ///
    /// # Errors
    /// Those of `rows`.
    pub fn run(&self, unit: &Unit, key: &str, rows: &mut dyn Rows) -> anyhow::Result<UnitResult> {
        let mut out = UnitResult::default();
        for (n, work) in unit.works.iter().enumerate() {
            let mut report = self.analyse(work, rows.wants_exchanges())?;
            if let Some(core) = work.core {
                keep_own(&mut report, core);
            }
            self.filter.apply(&mut report);
            if let Some(baseline) = self.baseline {
                baseline.apply(&mut report);
            }
            let mapped = Mapped::new(self.logicals, work, &report);
            let key = if unit.works.len() == 1 { key.to_owned() } else { format!("{key}-{n}") };
            rows.add(&report, &mapped, &key)?;
            out.take(&report, &mapped, &key);
        }
        out.parts = rows.finish()?;
        Ok(out)
    }

    fn analyse(&self, work: &Work, exchanges: bool) -> anyhow::Result<Report> {
        let source = |p: &Portion| {
            let l = self.logicals.get(p.logical)?;
            let opener = l.joined.range(p.from, p.to, &self.passed);
            let packed = Packed { member: l.name.clone(), modified_ns: l.joined.modified_ns(), opener };
            Some(Source { name: l.name.clone(), path: None, found: true, packed: Some(packed) })
        };
        let sources = work.portions.iter().filter_map(source).collect();
        let options = AnalyzeOptions { exchanges, memory_bytes: Some(work.need), ..AnalyzeOptions::default() };
        analyze::run_sources(sources, vec![], self.read, &options)
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
    let calls: Vec<_> = report.calls.iter().filter(|c| is_own(c)).collect();
    report.summary.calls = calls.len() as u64;
    report.summary.tool_calls = calls.iter().filter(|c| c.method.as_deref() == Some("tools/call")).count() as u64;
    report.sessions.retain(|s| own(s.started));
    report.summary.sessions = report.sessions.len() as u64;
    report.calls.retain(|c| is_own(c) || cited.contains(&c.key));
}

/// The inputs of a report as files.
struct Mapped<'a> {
    inputs: Vec<Option<(&'a Logical, Portion)>>,
}

impl<'a> Mapped<'a> {
    fn new(logicals: &'a [Logical], work: &Work, report: &Report) -> Mapped<'a> {
        let found = work.portions.iter().filter_map(|p| Some((logicals.get(p.logical)?, *p)));
        let by_name: FxHashMap<&str, (&Logical, Portion)> = found.map(|(l, p)| (l.name.as_str(), (l, p))).collect();
        Mapped { inputs: report.inputs.iter().map(|i| by_name.get(i.name.as_str()).copied()).collect() }
    }

    fn of(&self, input: u32) -> Option<(&'a Logical, Portion)> {
        self.inputs.get(input as usize).copied().flatten()
    }
}

impl Places for Mapped<'_> {
    fn place(&self, input: u32, line: Option<u64>) -> (String, Option<u64>) {
        let Some((l, portion)) = self.of(input) else { return ("?".into(), line) };
        match line {
            Some(line) => {
                let (part, line) = l.joined.line(portion.lines + line);
                (l.joined.parts.get(part).map_or_else(|| l.name.clone(), |p| p.name.clone()), Some(line))
            }
            None => (l.name.clone(), None),
        }
    }

    fn service(&self, input: u32) -> String {
        self.of(input).map_or(String::new(), |(l, _)| l.folder.clone())
    }
}
