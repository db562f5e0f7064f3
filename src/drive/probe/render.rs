//! The report of a probe as text.

use super::plan::{Configuration, Kind, Slow};
use super::report::{Counts, Report, Row};
use crate::report::RenderOptions;
use crate::report::clean::clean;
use crate::report::layout::draw;
use crate::report::paper::{Paper, Style};
use crate::report::table::{Cell, Column, Row as Cells, Tone, column};
use std::io::{self, Write};

const COLUMNS: &[Column] = &[
    column("#", "number", 2, 3),
    column("Ids", "ids", 12, 34),
    column("Batch", "batch", 5, 5),
    column("Slow", "slow", 5, 6),
    column("Tools", "tools", 5, 5),
    column("Conns", "connections", 5, 6),
    column("GET", "get", 4, 8),
    column("Calls", "calls", 5, 6),
    column("Right", "right", 5, 6),
    column("Wrong id", "wrong_ids", 5, 8),
    column("Wrong body", "wrong_bodies", 5, 10),
    column("Wrong stream", "wrong_stream", 6, 12),
    column("Lost", "lost", 4, 5),
    column("Late", "late", 4, 5),
    column("Refused", "refused", 7, 7),
    column("Median ms", "median_ms", 6, 9),
    column("Max ms", "max_ms", 6, 8),
];

/// Findings that the text lists.
const SHOWN: usize = 12;

/// Writes the report.
///
/// # Errors
/// Those of writing.
pub fn text(report: &Report, options: &RenderOptions, out: &mut dyn Write) -> io::Result<()> {
    let mut p = Paper::new(out, options);
    p.flow(&headline(report), 0, Style::Bold)?;
    p.end()?;
    let server = report.server.as_deref().unwrap_or("unnamed server");
    let sessions = if report.sessions { "with session ids" } else { "without session ids" };
    let revision = report.revision.as_deref().unwrap_or("unknown revision");
    p.line(&clean(&format!("Server: {server} at {}, {revision}, {sessions}", report.target)), Style::Plain)?;
    let tools: Vec<String> = report.tools.iter().map(|t| format!("{} ({})", t.name, role(t))).collect();
    p.flow(&clean(&format!("Tools: {}", or_none(&tools))), 0, Style::Plain)?;
    if !report.left_alone.is_empty() {
        let text = format!("Left alone, as the server does not mark them read-only: {}", report.left_alone.join(", "));
        p.flow(&clean(&text), 0, Style::Tone(Tone::Dim))?;
    }
    self_check(report, &mut p)?;
    if !report.configurations.is_empty() {
        p.end()?;
        p.line("Configurations", Style::Bold)?;
        let mut rows: Vec<Cells> = report.configurations.iter().map(cells).collect();
        rows.push(total(&report.summary));
        draw(COLUMNS, &rows, &mut p)?;
    }
    findings(report, &mut p)?;
    for note in &report.notes {
        p.flow(&clean(&format!("Note: {note}.")), 0, Style::Plain)?;
    }
    for trouble in &report.troubles {
        p.flow(&clean(&format!("Trouble: {trouble}.")), 0, Style::Tone(Tone::Bad))?;
    }
    Ok(())
}

/// The first line: what came out.
pub fn headline(report: &Report) -> String {
    let s = &report.summary;
    let scope = format!(
        "{} calls in {} of {} configurations, {:.1} s",
        s.calls,
        report.configurations.len(),
        report.planned,
        report.took_s
    );
    if s.calls == 0 {
        return format!("Nothing could be probed; {scope}");
    }
    let crossed = s.wrong_ids + s.wrong_bodies + s.other_session + s.wrong_stream + s.duplicates;
    if s.wrong() == 0 {
        return format!(
            "No reply was crossed or lost: {} of {} replies verified; {scope}",
            s.verified,
            s.calls - s.abandoned
        );
    }
    format!("{crossed} replies crossed, {} calls lost; {scope}", s.lost)
}

fn role(tool: &super::report::ToolInfo) -> String {
    let what = match (tool.echoes, tool.delays) {
        (true, true) => "gives back, takes its time",
        (true, false) => "gives back",
        _ => "id only",
    };
    format!("{what}, {:.0} ms alone", tool.lone_ms)
}

fn or_none(all: &[String]) -> String {
    if all.is_empty() { "none".into() } else { all.join("; ") }
}

fn self_check(report: &Report, p: &mut Paper<'_>) -> io::Result<()> {
    if report.self_check.is_empty() {
        return p.line("Self-check: not made", Style::Tone(Tone::Warn));
    }
    for check in &report.self_check {
        let (word, tone) = match (check.passed, check.seed) {
            (true, super::Seed::Nothing) => ("green, as it must be", Tone::Good),
            (true, _) => ("went red, as it must", Tone::Good),
            (false, _) => ("FAILED", Tone::Bad),
        };
        p.put(&format!("Self-check: {}: ", check.seed.text()), Style::Plain)?;
        p.put(word, Style::Tone(tone))?;
        p.line(&clean(&format!(" ({})", check.found)), Style::Plain)?;
    }
    Ok(())
}

fn cells(row: &Row) -> Cells {
    let c = &row.configuration;
    let mut cells = vec![
        Cell::number(row.number),
        Cell::new(c.kind.text()),
        Cell::number(c.calls()),
        Cell::new(slow(c)),
        Cell::new(if c.mixed { "mixed" } else { "one" }),
        Cell::new(if c.pooled { "pooled" } else { "own" }),
        match (c.get, row.get_stream) {
            (false, _) => Cell::unknown(),
            (true, Some(true)) => Cell::new("held"),
            (true, _) => Cell::new("refused").tone(Tone::Dim),
        },
    ];
    cells.extend(numbers(&row.counts));
    cells.push(ms(row.median_ms));
    cells.push(ms(row.max_ms));
    cells
}

fn total(counts: &Counts) -> Cells {
    let mut cells = vec![Cell::unknown(), Cell::new("all together")];
    cells.extend((0..5).map(|_| Cell::unknown()));
    cells.extend(numbers(counts));
    cells.extend([Cell::unknown(), Cell::unknown()]);
    cells
}

fn numbers(c: &Counts) -> Vec<Cell> {
    let bad = |n: u64| if n == 0 { Cell::number(0) } else { Cell::number(n).tone(Tone::Bad) };
    vec![
        Cell::number(c.calls),
        Cell::number(c.verified + c.id_only),
        bad(c.wrong_ids),
        bad(c.wrong_bodies + c.other_session),
        bad(c.wrong_stream + c.duplicates),
        bad(c.lost),
        Cell::number(c.late),
        Cell::number(c.refused),
    ]
}

fn ms(value: Option<f64>) -> Cell {
    Cell::optional(value, |v| Cell::number(format!("{v:.0}")))
}

fn slow(c: &Configuration) -> &'static str {
    match (c.slow, c.kind) {
        (Slow::Middle, _) => "middle",
        (Slow::Last, _) => "last",
        (Slow::First, _) | (Slow::Any, Kind::TwoSessions) => "first",
        (Slow::Any, _) => "all",
    }
}

fn findings(report: &Report, p: &mut Paper<'_>) -> io::Result<()> {
    if report.findings.is_empty() {
        return Ok(());
    }
    p.end()?;
    p.line("Findings", Style::Bold)?;
    for f in report.findings.iter().take(SHOWN) {
        let at = f.victim.as_ref().or(f.owner.as_ref()).map_or(String::new(), |c| c.sent.clock());
        let head = format!("  {at}  configuration {}, repetition {}: ", f.configuration, f.repetition);
        p.put(&head, Style::Tone(Tone::Dim))?;
        p.flow(&clean(&format!("{}: {}.", f.fault.text(), f.summary)), 4, Style::Plain)?;
    }
    let more = report.summary.wrong().saturating_sub(SHOWN.min(report.findings.len()) as u64);
    if more > 0 {
        p.line(&format!("  … and {more} more (--format json lists them)"), Style::Tone(Tone::Dim))?;
    }
    p.end()
}
