//! One finding on the page: claim, standing, evidence, ladder, bodies, what was not seen.

use super::super::clean::{clean, clean_short};
use super::super::headline::standing;
use super::super::ladder::Timeline;
use super::super::ladder::svg::{escape, inline};
use super::super::tables::severity_name;
use super::super::view::View;
use super::super::{CONTEXT, finding_calls};
use super::bodies;
use crate::model::report::{CallKey, Finding, Outcome};
use std::io::{self, Write};

/// Findings that get a drawing and all detail; with more the page would be slow.
const DRAWN: usize = 200;
/// Of a page with more findings than [`MANY`], which must still open in a second, so many.
const DRAWN_OF_MANY: usize = 50;
/// Findings from which on the page is made for their number.
const MANY: usize = 1000;
/// Findings up to which all are unfolded at first.
const UNFOLDED: usize = 5;

/// Findings that a browser lays out together, when they come into view. Each by itself, keeping track
/// of ten thousand takes longer than laying them out.
const PART: usize = 50;

/// The list of findings, or the one that is asked for (from 1).
pub(super) fn list(view: &View<'_>, only: Option<usize>, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "<h2 id=\"findings\">Findings</h2>")?;
    let findings = &view.report.findings;
    if findings.is_empty() {
        return writeln!(out, "<p>None.</p>");
    }
    writeln!(out, "<div id=\"filters\" class=\"filters\"></div>")?;
    let timeline = Timeline::new(view);
    let is_open = findings.len() <= UNFOLDED;
    let drawn = if findings.len() > MANY { DRAWN_OF_MANY } else { DRAWN };
    for (part, some) in findings.chunks(PART).enumerate() {
        let numbered = some.iter().enumerate().map(|(n, f)| (part * PART + n + 1, f));
        let wanted: Vec<_> = numbered.filter(|(n, _)| only.is_none_or(|only| only == *n)).collect();
        if wanted.is_empty() {
            continue;
        }
        writeln!(out, "<div class=\"part\">")?;
        for (n, f) in wanted {
            match only {
                None if n > drawn => brief(view, n, f, out)?,
                _ => finding(view, n, f, is_open, &timeline, out)?,
            }
        }
        writeln!(out, "</div>")?;
    }
    if only.is_none() && findings.len() > drawn {
        writeln!(
            out,
            "<p class=\"dim\">Drawings, bodies and what each place shows are given for the first {drawn} findings; <code>crosswire timeline --around NUMBER</code> draws any other.</p>"
        )?;
    }
    Ok(())
}

fn finding(
    view: &View<'_>,
    number: usize,
    f: &Finding,
    is_open: bool,
    timeline: &Timeline,
    out: &mut dyn Write,
) -> io::Result<()> {
    let open = if is_open { " open" } else { "" };
    writeln!(
        out,
        "<details class=\"finding {}\" id=\"f{number}\"{open}><summary><span class=\"rule\">{number}. {}</span> <span class=\"standing\">{}</span><br>{}</summary>",
        severity_name(f.severity),
        escape(f.rule),
        escape(&standing(f)),
        escape(&clean_short(&f.summary, 600))
    )?;
    if !f.shown.is_empty() {
        writeln!(out, "<p>Server side: {}</p>", escape(&clean_short(&f.shown, 600)))?;
    }
    evidence(view, f, out)?;
    for ladder in timeline.around(number, &finding_calls(f), CONTEXT) {
        writeln!(
            out,
            "<h3>Ladder of {}</h3>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Ladder\">{}</div>",
            escape(&ladder.title),
            inline(&ladder)
        )?;
    }
    bodies::side_by_side(view, f, out)?;
    unseen(view, f, out)?;
    writeln!(out, "</details>")
}

/// A finding in few elements and bytes: each `details` of a page costs as much as ten paragraphs.
fn brief(view: &View<'_>, number: usize, f: &Finding, out: &mut dyn Write) -> io::Result<()> {
    let places: Vec<String> = f.evidence.iter().map(|e| clean(&view.evidence(e)).into_owned()).collect();
    write!(
        out,
        "<p class=\"finding {}\" id=\"f{number}\"><b>{number}. {}</b> {}<br>{}",
        severity_name(f.severity),
        escape(f.rule),
        escape(&standing(f)),
        escape(&clean_short(&f.summary, 600))
    )?;
    if !f.shown.is_empty() {
        write!(out, " Server side: {}.", escape(&clean_short(&f.shown, 600)))?;
    }
    writeln!(out, "<br>{}</p>", escape(&places.join("; ")))
}

fn evidence(view: &View<'_>, f: &Finding, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "<ul>")?;
    for e in &f.evidence {
        write!(out, "<li><code>{}</code>", escape(&clean(&view.evidence(e))))?;
        if let Some(text) = &e.text {
            write!(out, " {}", escape(&clean_short(text, 300)))?;
        }
        if let Some(filter) = &e.filter {
            write!(out, " <span class=\"dim\">Wireshark: <code>{}</code></span>", escape(&clean_short(filter, 300)))?;
        }
        if let Some(cursor) = &e.cursor {
            write!(out, " <span class=\"dim\">cursor <code>{}</code></span>", escape(&clean_short(cursor, 300)))?;
        }
        writeln!(out, "</li>")?;
    }
    writeln!(out, "</ul>")
}

/// Names the calls of the finding whose end, and the inputs that no sighting of it, show.
fn unseen(view: &View<'_>, f: &Finding, out: &mut dyn Write) -> io::Result<()> {
    let calls: Vec<_> = finding_calls(f).into_iter().filter_map(|k| view.call(k)).collect();
    let open: Vec<CallKey> = calls.iter().filter(|c| c.outcome == Outcome::Unobserved).map(|c| c.key).collect();
    let mut lines = Vec::new();
    if !open.is_empty() {
        let names: Vec<String> = open.iter().map(|k| view.key_label(*k)).collect();
        lines.push(format!("the inputs do not show how these calls ended: {}", names.join(", ")));
    }
    let without: Vec<&str> = (0u32..)
        .zip(&view.report.inputs)
        .filter(|(n, _)| !calls.is_empty() && !calls.iter().any(|c| c.sightings.iter().any(|s| s.input == *n)))
        .map(|(n, _)| view.input(n))
        .collect();
    if !without.is_empty() {
        lines.push(format!("no record of these calls was found in {}", without.join(", ")));
    }
    if lines.is_empty() {
        return Ok(());
    }
    writeln!(out, "<p class=\"dim\">Not seen: {}.</p>", escape(&clean_short(&lines.join("; "), 800)))
}
