//! What all lots came to.

use super::Told;
use crate::scan::Outcome;
use crate::scan::result::{Counts, FileProblem, UnitResult};
use crate::scan::summary::Table;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a lot came to, beside its findings.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct LotTotal {
    /// Its key: lots sort in the order of the plan.
    pub lot: String,
    /// Counts.
    pub counts: Counts,
    /// Findings by day, service, rule and fault.
    pub table: Vec<([String; 4], [u64; 3])>,
    /// What could be read only in part.
    pub problems: Vec<FileProblem>,
    /// What could not be read.
    pub troubles: Vec<String>,
}

impl LotTotal {
    /// Of a result.
    pub fn of(lot: String, result: &UnitResult) -> LotTotal {
        let mut table = Table::default();
        table.add(result);
        LotTotal {
            lot,
            counts: result.counts,
            table: table.counted(),
            problems: result.problems.clone(),
            troubles: result.troubles.clone(),
        }
    }
}

/// Adds up; a lot that came twice counts once, and one that did not come is trouble.
pub fn total(told: Told, lots: Vec<LotTotal>) -> Outcome {
    let lots: BTreeMap<String, LotTotal> = lots.into_iter().map(|l| (l.lot.clone(), l)).collect();
    let expected = told.lots;
    let mut outcome = Outcome::of(told);
    let missing = expected.saturating_sub(lots.len() as u64);
    for lot in lots.into_values() {
        outcome.counts.add(&lot.counts);
        outcome.table.count(lot.table);
        outcome.problems.extend(lot.problems);
        outcome.troubles.extend(lot.troubles);
    }
    if missing > 0 {
        outcome.troubles.push(format!("{missing} of {expected} pieces of work did not come out of the fold"));
    }
    outcome
}
