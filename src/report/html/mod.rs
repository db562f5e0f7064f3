//! `--format html`: one file that opens from disk without network and reads without scripts.

use super::clean::{clean, clean_short};
use super::headline::{coverage_line, problem_lines, verdict};
use super::ladder::svg::{STYLE as LADDER_STYLE, escape, inline};
use super::table::{Cell, Column, Row, Table, Tone, grouped};
use super::tables::{CALLS, CITED, CROSSED, INPUTS, ORPHANED, OTHERS, SESSIONS, WINDOWS};
use super::view::{View, moment};
use super::{Calls, RenderOptions, Renderer};
use crate::model::report::Severity;
use sha2::{Digest, Sha256};
use std::io::{self, Write};

mod bodies;
mod finding;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// Rows that a table shows; browsers get slow with more, and every finding is in the list below.
const ROWS: usize = 200;
/// Rows of a table that are laid out at once; one with more when it comes into view.
const SHORT: usize = 50;
/// Columns no wider than this (times, short ids, names of rules) are not broken.
const UNBROKEN: usize = 24;
/// Characters of a cell that is read as text.
const SENTENCE: usize = 40;
/// Messages of a timeline's ladder.
const MESSAGES: usize = 2000;

/// `--format html`
pub static RENDERER: Renderer = Renderer {
    name: "html",
    doc: "One self-contained page: no network, no scripts needed, light and dark, fit to print.",
    calls: |_| Calls::All,
    report: Some(report),
    timeline: Some(timeline),
};

fn report(view: &View<'_>, options: &RenderOptions, out: &mut dyn Write) -> io::Result<()> {
    head("crosswire report", &[&CROSSED, &ORPHANED, &WINDOWS, &OTHERS], view, out)?;
    table(&CROSSED, view, out)?;
    table(&ORPHANED, view, out)?;
    table(&WINDOWS, view, out)?;
    sequences(view, out)?;
    table(&OTHERS, view, out)?;
    finding::list(view, None, out)?;
    match options.calls {
        Some(Calls::All) => table(&CALLS, view, out)?,
        Some(Calls::Cited) => table(&CITED, view, out)?,
        Some(Calls::None) | None => {}
    }
    table(&SESSIONS, view, out)?;
    sources(view, out)?;
    tail(out)
}

fn timeline(view: &View<'_>, options: &RenderOptions, out: &mut dyn Write) -> io::Result<()> {
    head("crosswire timeline", &[], view, out)?;
    for ladder in super::ladders(view, options, MESSAGES) {
        writeln!(out, "<h2>{}</h2>", escape(&ladder.title))?;
        writeln!(
            out,
            "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Ladder\">{}</div>",
            inline(&ladder)
        )?;
    }
    finding::list(view, options.around, out)?;
    sources(view, out)?;
    tail(out)
}

fn head(title: &str, tables: &[&Table], view: &View<'_>, out: &mut dyn Write) -> io::Result<()> {
    let hash = base64(&Sha256::digest(SCRIPT.as_bytes()));
    let has_high = view.report.findings.iter().any(|f| f.severity > Severity::Low);
    writeln!(out, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">")?;
    writeln!(
        out,
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'\">"
    )?;
    writeln!(out, "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>")?;
    writeln!(out, "<style>\n{STYLE}{LADDER_STYLE}\n</style>\n</head>\n<body>")?;
    writeln!(out, "<a class=\"skip\" href=\"#main\">Skip to the findings</a>\n<header>\n<h1>{title}</h1>")?;
    let tone = if has_high { "bad" } else { "good" };
    writeln!(out, "<p class=\"verdict {tone}\">{}</p>", escape(&verdict(view.report)))?;
    writeln!(out, "<p>{}</p>", escape(&coverage_line(view.report)))?;
    for trouble in &view.report.troubles {
        writeln!(out, "<p class=\"bad\">Not read: {}</p>", escape(&clean_short(trouble, 400)))?;
    }
    writeln!(out, "<nav aria-label=\"Parts\"><ul>")?;
    for t in tables {
        writeln!(out, "<li><a href=\"#{}\">{}</a></li>", t.name, t.title)?;
    }
    writeln!(out, "<li><a href=\"#findings\">Findings</a></li><li><a href=\"#inputs\">Inputs</a></li></ul></nav>")?;
    writeln!(out, "</header>\n<main id=\"main\">")
}

fn tail(out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "</main>\n<footer>crosswire {}; times are UTC</footer>", env!("CARGO_PKG_VERSION"))?;
    writeln!(out, "<script>{SCRIPT}</script>\n</body>\n</html>")
}

fn table(table: &Table, view: &View<'_>, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "<h2 id=\"{}\">{}</h2>", table.name, table.title)?;
    let rows = table.collect(view);
    if rows.is_empty() {
        return writeln!(out, "<p>{}: {}.</p>", table.title, escape(&(table.empty)(view)));
    }
    let (shown, left_out) = rows.split_at(rows.len().min(ROWS));
    grid(table, &rows, shown, out)?;
    if !left_out.is_empty() {
        writeln!(
            out,
            "<p class=\"dim\">{} more rows are not shown here; <code>--format csv --table {}</code> has all of them.</p>",
            grouped(left_out.len() as u64),
            table.name
        )?;
    }
    Ok(())
}

fn grid(table: &Table, all: &[Row], rows: &[Row], out: &mut dyn Write) -> io::Result<()> {
    let is_number = |c: usize| all.iter().any(|r| r.get(c).is_some_and(Cell::is_number));
    let class = |(c, column): (usize, &Column)| match column.max {
        _ if is_number(c) => " class=\"n\"",
        0..=UNBROKEN => " class=\"k\"",
        // Text in a narrow column is a word a line.
        _ if all.iter().any(|r| r.get(c).is_some_and(|cell| cell.shown().chars().count() > SENTENCE)) => " class=\"t\"",
        _ => " class=\"c\"",
    };
    let classes: Vec<&str> = table.columns.iter().enumerate().map(class).collect();
    let long = if rows.len() > SHORT { " long" } else { "" };
    writeln!(
        out,
        "<div class=\"scroll{long}\" tabindex=\"0\" role=\"region\" aria-label=\"{}\"><table><thead><tr>",
        table.title
    )?;
    for (column, class) in table.columns.iter().zip(&classes) {
        write!(out, "<th scope=\"col\"{class}>{}</th>", column.name)?;
    }
    writeln!(out, "</tr></thead><tbody>")?;
    for row in rows {
        write!(out, "<tr>")?;
        for ((cell, class), column) in row.iter().zip(&classes).zip(table.columns) {
            write!(out, "<td{class}>")?;
            let text = escape(cell.shown());
            match cell.get_tone() {
                _ if column.key == "number" => write!(out, "<a href=\"#f{text}\">{text}</a>")?,
                Tone::Plain => out.write_all(text.as_bytes())?,
                tone => write!(out, "<span class=\"{}\">{text}</span>", tone_class(tone))?,
            }
            write!(out, "</td>")?;
        }
        writeln!(out, "</tr>")?;
    }
    writeln!(out, "</tbody></table></div>")
}

fn tone_class(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain => "",
        Tone::Bad => "bad",
        Tone::Warn => "warn",
        Tone::Good => "good",
        Tone::Dim => "dim",
    }
}

fn sequences(view: &View<'_>, out: &mut dyn Write) -> io::Result<()> {
    for (n, w) in view.report.windows.iter().enumerate().filter(|(_, w)| !w.sequence.is_empty()) {
        let session = w.stale_session.as_deref().map_or("unknown".into(), |id| view.session(id));
        let opened = w.opened.map_or(String::new(), |t| format!(", opened {} UTC", moment(t)));
        writeln!(out, "<h3>Window {} of session {}{opened}</h3>", n + 1, escape(&clean(&session)))?;
        writeln!(out, "<pre class=\"sequence\" tabindex=\"0\">")?;
        for line in &w.sequence {
            let text =
                format!("{}  {}  {}", super::text::clock(line), super::text::happened(line), super::text::remark(line));
            writeln!(out, "{}", escape(text.trim_end()))?;
        }
        writeln!(out, "</pre>")?;
    }
    Ok(())
}

fn sources(view: &View<'_>, out: &mut dyn Write) -> io::Result<()> {
    table(&INPUTS, view, out)?;
    let problems = problem_lines(view);
    if problems.is_empty() {
        return Ok(());
    }
    writeln!(out, "<h3>What could not be read</h3>\n<ul>")?;
    problems.iter().try_for_each(|line| writeln!(out, "<li>{}</li>", escape(line)))?;
    writeln!(out, "</ul>")
}

/// RFC 4648 §4, as a content security policy spells hashes.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0u32, |w, b| w << 8 | u32::from(*b)) << (8 * (3 - chunk.len()));
        for i in 0..4 {
            let digit = DIGITS.get((word >> (18 - 6 * i)) as usize & 63).copied().unwrap_or(b'=');
            out.push(if i <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::base64;

    #[test]
    fn base64_of_rfc_4648() {
        for (text, coded) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")] {
            assert_eq!(base64(text.as_bytes()), coded);
        }
    }
}
