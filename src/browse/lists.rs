//! The three lists: sessions, calls, findings.

use super::list::{Extra, Kind, extra};
use crate::report::table::{Cell, Tone};
use crate::report::tables::{CALLS, FINDINGS, SESSIONS};

/// Sessions.
pub static SESSIONS_LIST: Kind = Kind {
    table: &SESSIONS,
    extras: &[FINDINGS_OF],
    shown: &[
        ("session", 9),
        ("calls", 5),
        ("findings", 8),
        ("started", 12),
        ("client", 16),
        ("end", 7),
        ("server", 12),
        ("revision", 10),
        ("ended", 12),
        ("peers", 15),
    ],
};

/// Calls.
pub static CALLS_LIST: Kind = Kind {
    table: &CALLS,
    extras: &[
        FINDINGS_OF,
        extra("Call", "call", 8, 30, |lookup, row| {
            let call = lookup.view.report.calls.get(row);
            Cell::optional(call.and_then(|c| c.tool.as_ref().or(c.method.as_ref())), Cell::new)
        }),
        extra("Rule", "rule", 8, 30, |lookup, row| {
            let rule = |n: &usize| Some(lookup.view.report.findings.get(n.checked_sub(1)?)?.rule);
            let rules: Vec<_> = (lookup.findings)(row).iter().filter_map(rule).collect();
            Cell::new(rules.join(" "))
        }),
    ],
    shown: &[
        ("key", 4),
        ("id", 3),
        ("call", 16),
        ("sent", 12),
        ("outcome", 9),
        ("delivered", 7),
        ("findings", 8),
        ("latency_s", 7),
        ("status", 6),
        ("session", 9),
        ("seen_in", 20),
    ],
};

/// Findings.
pub static FINDINGS_LIST: Kind = Kind {
    table: &FINDINGS,
    extras: &[],
    shown: &[
        ("number", 1),
        ("rule", 24),
        ("confidence", 8),
        ("severity", 6),
        ("time", 12),
        ("victim", 16),
        ("fault", 12),
        ("owner", 16),
        ("session", 9),
        ("summary", 40),
    ],
};

/// The findings that concern a row.
const FINDINGS_OF: Extra = extra("Findings", "findings", 8, 12, |lookup, row| {
    let numbers = (lookup.findings)(row);
    if numbers.is_empty() {
        return Cell::unknown();
    }
    Cell::new(numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")).tone(Tone::Bad)
});

#[cfg(test)]
mod tests {
    use super::*;
    use crate::browse::list::Lookup;

    #[test]
    fn every_column_that_is_shown_is_there() {
        for kind in [&SESSIONS_LIST, &CALLS_LIST, &FINDINGS_LIST] {
            for (key, _) in kind.shown {
                assert!(kind.columns().any(|c| c.key == *key), "{}: {key}", kind.table.name);
            }
        }
        // Lookup is what extras get; a row that is not there gives a dash.
        let report = crate::model::report::Report::default();
        let view = crate::report::view::View::new(&report);
        let lookup = Lookup { view: &view, findings: &|_| vec![] };
        assert!(CALLS_LIST.extras.iter().all(|e| matches!((e.cell)(&lookup, 7).shown(), "–" | "")));
    }
}
