//! The end of a scan: findings by day, service, rule and fault, and what was not read.

use super::result::UnitResult;
use super::run::Outcome;
use crate::report::RenderOptions;
use crate::report::clean::clean_short;
use crate::report::layout::draw;
use crate::report::paper::{Paper, Style};
use crate::report::table::{Cell, Column, Row, Tone, column, counted, grouped};
use crate::report::view::size;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Names of one kind that are listed in text; the rest is counted. NDJSON has all.
const LISTED: usize = 20;

const COLUMNS: &[Column] = &[
    column("Day", "day", 10, 10),
    column("Service", "service", 12, 48),
    column("Rule", "rule", 10, 28),
    column("Fault", "fault", 6, 16),
    column("High", "high", 4, 9),
    column("Medium", "medium", 4, 9),
    column("Low", "low", 3, 9),
];

/// Findings counted by day, service, rule and fault.
#[derive(Debug, Default)]
pub struct Table(BTreeMap<[String; 4], [u64; 3]>);

impl Table {
    /// Its rows: day, service, rule and fault, and findings of high, medium and low severity.
    pub fn counted(&self) -> Vec<([String; 4], [u64; 3])> {
        self.0.iter().map(|(what, counts)| (what.clone(), *counts)).collect()
    }

    /// Adds rows of another one.
    pub fn count(&mut self, rows: Vec<([String; 4], [u64; 3])>) {
        for (what, counts) in rows {
            let mine = self.0.entry(what).or_default();
            mine.iter_mut().zip(counts).for_each(|(n, more)| *n += more);
        }
    }

    /// Adds those of a unit.
    pub fn add(&mut self, result: &UnitResult) {
        for f in &result.findings {
            let text = |name: &str| f.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
            let hops = f.get("fault").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
            let fault = hops.collect::<Vec<_>>().join(" or ");
            let row = self.0.entry([text("day"), text("service"), text("rule"), fault]).or_default();
            let level = match text("severity").as_str() {
                "high" => 0,
                "medium" => 1,
                _ => 2,
            };
            if let Some(n) = row.get_mut(level) {
                *n += 1;
            }
        }
    }

    fn rows(&self) -> Vec<Row> {
        let number = |n: u64| if n == 0 { Cell::unknown() } else { Cell::number(grouped(n)) };
        let row = |([day, service, rule, fault], [high, medium, low]): (&[String; 4], &[u64; 3])| {
            let known = |text: &str| if text.is_empty() { Cell::unknown() } else { Cell::new(text) };
            let tone = if *high > 0 { Tone::Bad } else { Tone::Plain };
            let counts = [number(*high).tone(tone), number(*medium), number(*low)];
            [known(day), known(service), Cell::new(rule), known(fault)].into_iter().chain(counts).collect()
        };
        self.0.iter().map(row).collect()
    }

    fn json(&self) -> Vec<Value> {
        let row = |([day, service, rule, fault], [high, medium, low]): (&[String; 4], &[u64; 3])| {
            let fault: Vec<&str> = fault.split(" or ").filter(|f| !f.is_empty()).collect();
            json!({ "day": day, "service": service, "rule": rule, "fault": fault, "high": high, "medium": medium, "low": low })
        };
        self.0.iter().map(row).collect()
    }
}

/// The last line of NDJSON.
pub fn json(o: &Outcome) -> Value {
    let named = |pairs: Vec<(&str, &str)>| -> Vec<Value> {
        pairs.into_iter().map(|(name, why)| json!({ "name": name, "why": why })).collect()
    };
    let copies: Vec<Value> =
        o.copies.iter().map(|c| json!({ "name": c.name, "of": c.of, "part": c.is_part })).collect();
    json!({
        "schema": "crosswire.scan/1",
        "crosswire": env!("CARGO_PKG_VERSION"),
        "files": o.files,
        "bytes": o.stored_bytes,
        "plain_bytes": o.plain_bytes,
        "sources": o.sources,
        "exchanges": o.counts.exchanges,
        "sessions": o.counts.sessions,
        "calls": o.counts.calls,
        "tool_calls": o.counts.tool_calls,
        "findings": o.counts.findings,
        "known": o.counts.known,
        "table": o.table.json(),
        "broken": named(o.broken.iter().map(|b| (b.name.as_str(), b.why.as_str())).collect()),
        "copies": copies,
        "variants": o.variants,
        "skipped": named(o.skipped.iter().map(|(n, w)| (n.as_str(), w.as_str())).collect()),
        "unknown": o.unknown,
        "empty": o.empty,
        "troubles": o.troubles,
        "problems": o.problems,
    })
}

/// The summary for people.
///
/// # Errors
/// Those of writing.
pub fn text(o: &Outcome, options: &RenderOptions, out: &mut dyn Write) -> io::Result<()> {
    let paper = &mut Paper::new(out, options);
    let c = &o.counts;
    let mut first = format!(
        "{} in {} over {}: {} ({} unpacked)",
        counted(c.calls, "call"),
        counted(c.sessions, "session"),
        counted(o.sources, "source"),
        counted(o.files, "file"),
        size(o.plain_bytes)
    );
    for (n, what) in [
        (o.broken.len(), "broken"),
        (o.skipped.len(), "outside of the time asked for"),
        (o.copies.len(), "copies left out"),
    ] {
        if n > 0 {
            first.push_str(&format!("; {} {what}", grouped(n as u64)));
        }
    }
    paper.flow(&first, 0, Style::Plain)?;
    if o.unchanged > 0 || o.reused > 0 {
        let text = format!(
            "From the checkpoint: {} unchanged, {} of {} of work done before",
            counted(o.unchanged, "file"),
            grouped(o.reused),
            counted(o.units, "piece")
        );
        paper.flow(&text, 0, Style::Plain)?;
    }
    paper.end()?;
    let found = format!("Findings: {}", if c.findings == 0 { "none".into() } else { grouped(c.findings) });
    paper.line(&found, Style::Bold)?;
    if c.known > 0 {
        paper.flow(&format!("{} left out, which the baseline lists", counted(c.known, "finding")), 2, Style::Plain)?;
    }
    let rows = o.table.rows();
    if !rows.is_empty() {
        draw(COLUMNS, &rows, paper)?;
    }
    let list = |paper: &mut Paper<'_>, title: &str, lines: Vec<String>| -> io::Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        paper.end()?;
        paper.line(&format!("{title}: {}", grouped(lines.len() as u64)), Style::Bold)?;
        let most = if options.verbose { usize::MAX } else { LISTED };
        for line in lines.iter().take(most) {
            paper.flow(&clean_short(line, 600), 2, Style::Plain)?;
        }
        if lines.len() > most {
            paper.flow(&format!("… and {} more; -v lists them", lines.len() - most), 2, Style::Plain)?;
        }
        Ok(())
    };
    list(paper, "Not read", o.troubles.clone())?;
    list(paper, "Broken", o.broken.iter().map(|b| format!("{}: {}", b.name, b.why)).collect())?;
    list(paper, "Copies, read once", o.copies.iter().map(copy).collect())?;
    let variants = o.variants.iter().map(|v| format!("{v}: begins as another source and differs then; read by itself"));
    list(paper, "Copies that differ", variants.collect())?;
    let partly = o.problems.iter().map(|p| format!("{}: {} ×{}, {}", p.name, p.kind, grouped(p.count), p.text));
    list(paper, "Read in part", partly.collect())?;
    if options.verbose {
        list(paper, "Outside of the time asked for", o.skipped.iter().map(|(n, w)| format!("{n}: {w}")).collect())?;
        list(paper, "Of no known format", o.unknown.clone())?;
    }
    let unread = [(o.unknown.len() as u64, "of no known format"), (o.empty, "empty")];
    for (n, what) in unread.into_iter().filter(|(n, _)| *n > 0) {
        paper.flow(&format!("{} {what}", counted(n, "file")), 0, Style::Plain)?;
    }
    if o.over_memory > 0 {
        let text = format!(
            "{} could not be cut small enough for --memory and may have taken more",
            counted(o.over_memory, "piece")
        );
        paper.flow(&text, 0, Style::Plain)?;
    }
    Ok(())
}

fn copy(c: &super::Copy) -> String {
    let how = if c.is_part { "the beginning of" } else { "the same as" };
    format!("{}: {how} {}", c.name, c.of)
}
