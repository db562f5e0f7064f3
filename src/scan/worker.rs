//! What one thread of a scan does: a unit of sources in, its findings, calls and windows out. Logs are mapped
//! one by one (`analyze::logs`) and folded together (`fold`), as on a cluster; captures and recordings, whose
//! exchanges are one stream of events, are read and folded in one go.

use super::clocks;
use super::fold::Folding;
use super::lot::Lot;
use super::result::UnitResult;
use super::rows::Rows;
use super::sets::Logical;
use super::slices::{Portion, Unit, Work};
use super::source::Passed;
use crate::analyze;
use crate::analyze::logs::{self, Log, Sighted};
use crate::input::Source;
use crate::input::log::Format;
use crate::input::packed::Packed;
use crate::model::options::GivenClock;
use crate::model::report::Report;

/// What every unit is done with.
pub struct Worker<'a> {
    /// All sources.
    pub logicals: &'a [Logical],
    /// How they are folded.
    pub folding: Folding<'a>,
    /// Where the bytes read are counted.
    pub passed: Passed,
}

impl Worker<'_> {
    /// Does one unit; `rows` gets all calls and exchanges.
    ///
    /// # Errors
    /// Those of `rows`.
    pub fn run(&self, unit: &Unit, rows: &mut dyn Rows) -> anyhow::Result<UnitResult> {
        let mut out = UnitResult::default();
        for work in &unit.works {
            let lot = Lot::of(work, self.logicals);
            let report = self.analyse(&lot, work, rows.wants_exchanges())?;
            let places = lot.places(&report);
            rows.add(&report, &places, &lot.key)?;
            out.take(&report, &places, &lot.key);
        }
        out.parts = rows.finish()?;
        Ok(out)
    }

    /// The clocks of the sources of a piece of work, which are logs, in its order.
    ///
    /// # Errors
    /// If one cannot be opened.
    pub fn clocks(&self, work: &Work) -> anyhow::Result<Vec<Option<GivenClock>>> {
        let sources: Vec<Source> = work.portions.iter().filter_map(|p| self.source(p)).collect();
        clocks::told(&Lot::of(work, self.logicals), &sources, self.folding.read)
    }

    fn analyse(&self, lot: &Lot, work: &Work, exchanges: bool) -> anyhow::Result<Report> {
        let sources: Vec<Source> = work.portions.iter().filter_map(|p| self.source(p)).collect();
        match lot.log_formats() {
            Some(formats) => Ok(self.logs(lot, &sources, &formats, exchanges)),
            None => whole(&self.folding, lot, sources, exchanges),
        }
    }

    fn logs(&self, lot: &Lot, sources: &[Source], formats: &[&'static Format], exchanges: bool) -> Report {
        let (mut sighted, mut troubles) = (vec![], vec![]);
        let mut alone = None;
        for (input, ((source, of), format)) in (0u32..).zip(sources.iter().zip(&lot.inputs).zip(formats)) {
            let log = Log { input, name: &of.name, format, lines: of.lines, options: self.folding.read };
            let mut all = Sighted { info: logs::row(&log), records: vec![] };
            alone = self.folding.alone(lot, logs::row(&log), exchanges);
            match source.open() {
                Err(e) => troubles.push(e.to_string()),
                Ok(mut open) => match &mut alone {
                    Some(alone) => {
                        let problems = logs::sight(&log, &mut open, alone);
                        alone.info.problems.merge(&problems);
                    }
                    None => {
                        let problems = logs::sight(&log, &mut open, &mut all);
                        all.info.problems.merge(&problems);
                    }
                },
            }
            sighted.push(all);
        }
        let mut report = match alone {
            Some(alone) => self.folding.own(lot, alone.conclude()),
            None => self.folding.logs(lot, sighted, exchanges),
        };
        report.troubles.extend(troubles);
        report
    }

    fn source(&self, p: &Portion) -> Option<Source> {
        let l = self.logicals.get(p.logical)?;
        let opener = l.joined.range(p.from, p.to, &self.passed);
        let packed = Packed { member: l.name.clone(), modified_ns: l.joined.modified_ns(), opener };
        Some(Source { name: l.name.clone(), path: None, found: true, packed: Some(packed) })
    }
}

/// Reads and folds a lot in which not all are logs.
///
/// # Errors
/// Those of analysis.
pub fn whole(folding: &Folding<'_>, lot: &Lot, sources: Vec<Source>, exchanges: bool) -> anyhow::Result<Report> {
    let report = analyze::run_sources(sources, vec![], folding.read, &Folding::options(lot, exchanges))?;
    Ok(folding.own(lot, report))
}
