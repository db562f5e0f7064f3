//! What was read, and what could not be.

use crate::model::place::{Side, Vantage};
use crate::model::report::InputInfo;
use crate::report::table::{Cell, Column, Table, Tone, column, counted};
use crate::report::view::View;

const COLUMNS: &[Column] = &[
    column("Input", "input", 10, 40),
    column("Format", "format", 6, 20),
    column("Vantage", "vantage", 6, 14),
    column("Records", "records", 7, 12),
    column("First (UTC)", "first", 12, 23),
    column("Last (UTC)", "last", 12, 23),
    column("Clock", "clock_offset_ms", 7, 22),
    column("Joined", "joined", 6, 20),
    column("Problems", "problems", 8, 30),
    column("Shows", "shows", 12, 48),
];

/// `--table inputs`.
pub static INPUTS: Table = Table {
    name: "inputs",
    title: "Inputs",
    columns: COLUMNS,
    rows: |view, row| view.report.inputs.iter().enumerate().for_each(|(n, i)| row(cells(view, n, i))),
    empty: |_| "none could be read".into(),
};

fn cells(view: &View<'_>, number: usize, i: &InputInfo) -> Vec<Cell> {
    vec![
        Cell::short(view.input(number as u32), &i.name),
        Cell::optional(i.format.as_ref(), Cell::new),
        Cell::optional(i.vantage, |v| Cell::new(vantage_name(v, i.side))),
        Cell::number(i.records),
        super::time(i.first),
        super::time(i.last),
        Cell::optional(i.clock_offset_ms, |ms| Cell::short(clock_text(ms, i), ms.to_string())),
        if view.report.inputs.len() > 1 { joined(i) } else { Cell::short("–", i.joined.to_string()) },
        problems(i),
        Cell::new(&i.shows),
    ]
}

/// `wire, front`.
pub(crate) fn vantage_name(v: Vantage, side: Option<Side>) -> &'static str {
    match (v, side) {
        (Vantage::Client, _) => "client",
        (Vantage::Proxy, _) => "proxy",
        (Vantage::Server, _) => "server",
        (Vantage::Wire, None) => "wire",
        (Vantage::Wire, Some(Side::Front)) => "wire, front",
        (Vantage::Wire, Some(Side::Back)) => "wire, back",
    }
}

fn clock_text(offset_ms: f64, i: &InputInfo) -> String {
    let error = i.clock_error_ms.filter(|e| *e > 0.0).map_or(String::new(), |e| format!(" ± {e:.1} ms"));
    let drift = i.clock_drift_ppm.map_or(String::new(), |ppm| {
        format!(", drift {ppm:+.1} ± {:.1} ppm", i.clock_drift_error_ppm.unwrap_or_default())
    });
    if offset_ms == 0.0 && drift.is_empty() {
        format!("as is{error}")
    } else {
        format!("{offset_ms:+.1} ms{error}{drift}")
    }
}

fn joined(i: &InputInfo) -> Cell {
    match i.ambiguous {
        0 => Cell::number(i.joined),
        n => Cell::short(format!("{} ({n} ambiguous)", i.joined), i.joined.to_string()),
    }
}

fn problems(i: &InputInfo) -> Cell {
    let total: u64 = i.problems.iter().map(|p| p.count).sum();
    if total == 0 {
        return Cell::short("none", "0").tone(Tone::Good);
    }
    let kinds: Vec<String> = i.problems.iter().map(|p| format!("{} ×{}", p.kind.name(), p.count)).collect();
    Cell::short(counted(total, "problem"), kinds.join(" ")).tone(Tone::Warn)
}
