//! `--format text`: what one reads in a terminal and pastes into an issue.

use super::clean::{clean, clean_short};
use super::headline::{coverage_line, problem_lines, standing, verdict};
use super::paper::{Paper, Style};
use super::table::{Table, Tone};
use super::tables::{CALLS, CITED, CROSSED, INPUTS, ORPHANED, OTHERS, SESSIONS, WINDOWS};
use super::view::View;
use super::{Calls, RenderOptions, Renderer, layout};
use crate::model::report::{Finding, SequenceLine, Window};
use std::io::{self, Write};

/// `--format text`
pub static RENDERER: Renderer = Renderer {
    name: "text",
    doc: "Tables for a terminal or an issue; the first line says how much could be read.",
    calls: |options| options.calls.unwrap_or(if options.verbose { Calls::All } else { Calls::None }),
    report: Some(report),
    timeline: Some(timeline),
};

fn timeline(view: &View<'_>, options: &RenderOptions, out: &mut dyn Write) -> io::Result<()> {
    let paper = &mut Paper::new(out, options);
    paper.line(&coverage_line(view.report), Style::Bold)?;
    for ladder in super::ladders(view, options, usize::MAX) {
        paper.end()?;
        paper.flow(&ladder.title, 0, Style::Bold)?;
        super::ladder::text::draw(&ladder, paper)?;
    }
    findings(view, options.around, paper)?;
    paper.end()?;
    paper.flow(&verdict(view.report), 0, Style::Bold)
}

fn report(view: &View<'_>, options: &RenderOptions, out: &mut dyn Write) -> io::Result<()> {
    let paper = &mut Paper::new(out, options);
    paper.line(&coverage_line(view.report), Style::Bold)?;
    for trouble in &view.report.troubles {
        paper.flow(&format!("not read: {}", clean_short(trouble, 400)), 0, Style::Tone(Tone::Bad))?;
    }
    table(&INPUTS, view, paper)?;
    problems(view, paper)?;
    if options.verbose {
        table(&SESSIONS, view, paper)?;
    }
    table(&CROSSED, view, paper)?;
    table(&ORPHANED, view, paper)?;
    table(&WINDOWS, view, paper)?;
    for (n, window) in view.report.windows.iter().enumerate() {
        sequence(view, n, window, paper)?;
    }
    table(&OTHERS, view, paper)?;
    match options.calls.or(options.verbose.then_some(Calls::All)) {
        Some(Calls::All) => table(&CALLS, view, paper)?,
        Some(Calls::Cited) => table(&CITED, view, paper)?,
        Some(Calls::None) | None => {}
    }
    findings(view, None, paper)?;
    if options.verbose {
        near(view, paper)?;
    }
    paper.end()?;
    paper.flow(&verdict(view.report), 0, Style::Bold)
}

/// Why what looked like a finding is none.
fn near(view: &View<'_>, paper: &mut Paper<'_>) -> io::Result<()> {
    if view.report.near.is_empty() {
        return Ok(());
    }
    paper.end()?;
    paper.line("Not findings, and why", Style::Bold)?;
    for near in &view.report.near {
        paper.flow(&format!("  {}", clean_short(&near.text, 400)), 4, Style::Plain)?;
    }
    Ok(())
}

fn table(table: &Table, view: &View<'_>, paper: &mut Paper<'_>) -> io::Result<()> {
    let rows = table.collect(view);
    paper.end()?;
    if rows.is_empty() {
        paper.put(&format!("{}: ", table.title), Style::Bold)?;
        return paper.flow(&(table.empty)(view), table.title.len() + 2, Style::Plain);
    }
    paper.line(table.title, Style::Bold)?;
    layout::draw(table.columns, &rows, paper)
}

fn problems(view: &View<'_>, paper: &mut Paper<'_>) -> io::Result<()> {
    let lines = problem_lines(view);
    if lines.is_empty() {
        return Ok(());
    }
    paper.end()?;
    paper.line("Problems with the inputs", Style::Bold)?;
    for line in lines {
        paper.put("  ", Style::Plain)?;
        paper.flow(&line, 2, Style::Tone(Tone::Warn))?;
    }
    Ok(())
}

fn sequence(view: &View<'_>, number: usize, window: &Window, paper: &mut Paper<'_>) -> io::Result<()> {
    if window.sequence.is_empty() {
        return Ok(());
    }
    let session = window.stale_session.as_deref().map_or("unknown".into(), |id| view.session(id));
    let date = window.opened.map_or(String::new(), |t| format!(", {} UTC", t.to_string().get(..10).unwrap_or("")));
    paper.end()?;
    paper.line(&format!("  Window {} of session {}{date}", number + 1, clean(&session)), Style::Bold)?;
    let widest = window.sequence.iter().map(|l| happened(l).chars().count()).max().unwrap_or(0).min(44);
    for line in &window.sequence {
        let what = happened(line);
        let style = match line.status {
            Some(400..) => Style::Tone(Tone::Bad),
            None => Style::Tone(Tone::Warn),
            _ => Style::Plain,
        };
        paper.put(&format!("    {}  ", clock(line)), Style::Plain)?;
        paper.put(&what, style)?;
        let pad = widest.saturating_sub(what.chars().count());
        let rest = remark(line);
        if rest.is_empty() {
            paper.end()?;
        } else {
            paper.put(&" ".repeat(pad + 2), Style::Plain)?;
            paper.flow(&rest, 16 + widest, Style::Tone(Tone::Dim))?;
        }
    }
    Ok(())
}

/// The time of day of a line of a sequence.
pub(super) fn clock(line: &SequenceLine) -> String {
    line.at.map_or_else(|| "--:--:--".to_owned(), |at| at.clock())
}

/// `POST /mcp -> 404`.
pub(super) fn happened(line: &SequenceLine) -> String {
    let what = clean_short(&line.what, 80);
    line.status.map_or_else(|| what.to_string(), |status| format!("{what} -> {status}"))
}

/// `stale session id (front.pcap:31)`.
pub(super) fn remark(line: &SequenceLine) -> String {
    let note = clean_short(&line.note, 200);
    match line.evidence.as_str() {
        "" => note.into_owned(),
        place => format!("{note} ({})", clean(place)).trim_start().to_string(),
    }
}

fn findings(view: &View<'_>, only: Option<usize>, paper: &mut Paper<'_>) -> io::Result<()> {
    if view.report.findings.is_empty() {
        return Ok(());
    }
    paper.end()?;
    paper.line("Findings", Style::Bold)?;
    for (n, f) in view.report.findings.iter().enumerate().filter(|(n, _)| only.is_none_or(|only| only == n + 1)) {
        finding(view, n + 1, f, paper)?;
    }
    Ok(())
}

fn finding(view: &View<'_>, number: usize, f: &Finding, paper: &mut Paper<'_>) -> io::Result<()> {
    let head = format!("{number}.");
    paper.put(&format!("  {head:<4}"), Style::Bold)?;
    paper.put(f.rule, Style::Bold)?;
    let standing = standing(f);
    if 6 + f.rule.len() + 2 + standing.len() <= paper.width {
        paper.line(&format!("  {standing}"), Style::Tone(Tone::Dim))?;
    } else {
        paper.end()?;
        paper.put("      ", Style::Plain)?;
        paper.flow(&standing, 6, Style::Tone(Tone::Dim))?;
    }
    paper.put("      ", Style::Plain)?;
    paper.flow(&clean_short(&f.summary, 800), 6, Style::Plain)?;
    const SHOWN: usize = 8;
    for e in f.evidence.iter().take(SHOWN) {
        let text = e.text.as_deref().map_or(String::new(), |t| format!("  {}", clean_short(t, 400)));
        paper.put("      ", Style::Plain)?;
        paper.flow(&format!("{}{text}", clean(&view.evidence(e))), 6, Style::Tone(Tone::Dim))?;
    }
    if f.evidence.len() > SHOWN {
        paper.line(&format!("      and {} more", f.evidence.len() - SHOWN), Style::Tone(Tone::Dim))?;
    }
    Ok(())
}
