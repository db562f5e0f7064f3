//! What was read, and what could not be.

use crate::model::place::{Side, Vantage};
use crate::model::report::{Clock, InputInfo, Part};
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
    rows: |view, row| {
        for (n, i) in view.report.inputs.iter().enumerate() {
            row(cells(view, n, i));
            i.parts.iter().for_each(|p| row(part_cells(view, n, p)));
        }
    },
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
        clock(&i.clock),
        if view.report.inputs.len() > 1 || !i.parts.is_empty() {
            joined(i.joined, i.ambiguous)
        } else {
            Cell::short("–", i.joined.to_string())
        },
        problems(i),
        if i.parts.is_empty() { Cell::new(&i.shows) } else { Cell::short("the lines below", i.shows.clone()) },
    ]
}

/// The row of one of several who wrote in an input, below that of the input.
fn part_cells(view: &View<'_>, number: usize, p: &Part) -> Vec<Cell> {
    let name = p.vantage.map_or("", |v| vantage_name(v, None));
    let whose = format!("{}, {name}'s lines", view.input(number as u32));
    vec![
        Cell::new(whose),
        Cell::short("–", ""),
        Cell::new(name),
        Cell::number(p.records),
        super::time(p.first),
        super::time(p.last),
        clock(&p.clock),
        joined(p.joined, p.ambiguous),
        Cell::short("–", ""),
        Cell::new(&p.shows),
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

fn clock(c: &Clock) -> Cell {
    let error = c.error_ms.filter(|e| *e > 0.0).map_or(String::new(), |e| format!(" ± {e:.1} ms"));
    let drift = c.drift_ppm.zip(c.drift_error_ppm);
    let drift = drift.map_or(String::new(), |(ppm, error)| format!(", drift {ppm:+.1} ± {error:.1} ppm"));
    let Some(ms) = c.offset_ms else { return Cell::short("not aligned", "") };
    let off = if ms.abs() < 10_000.0 { format!("{ms:+.1} ms") } else { format!("{:+.3} s", ms / 1e3) };
    let is_right = ms == 0.0 && drift.is_empty();
    let text = if is_right { format!("as is{error}") } else { format!("{off}{error}{drift}") };
    Cell::short(text, ms.to_string())
}

fn joined(joined: u64, ambiguous: u64) -> Cell {
    match ambiguous {
        0 => Cell::number(joined),
        n => Cell::short(format!("{joined} ({n} ambiguous)"), joined.to_string()),
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
