//! `--format markdown`: what a bug tracker renders.

use super::clean::{clean, clean_short};
use super::headline::{coverage_line, problem_lines, standing, verdict};
use super::ladder::{Ladder, Timeline};
use super::paper::Paper;
use super::table::Table;
use super::tables::{CALLS, CITED, CROSSED, INPUTS, ORPHANED, OTHERS, SESSIONS, WINDOWS};
use super::view::{View, moment};
use super::{Calls, RenderOptions, Renderer};
use crate::model::report::{Finding, Window};
use std::borrow::Cow;
use std::io::{self, Write};

/// `--format markdown`
pub static RENDERER: Renderer = Renderer {
    name: "markdown",
    doc: "GitHub-flavoured Markdown for a bug tracker: tables, and a collapsed part per finding.",
    calls: |_| Calls::All,
    report: Some(report),
    timeline: Some(timeline),
};

/// Findings with a timeline of their own; more would make the page too long for a tracker.
const LADDERS: usize = 50;

fn timeline(view: &View<'_>, options: &RenderOptions, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "# crosswire timeline\n\n{}", escape(&coverage_line(view.report)))?;
    for ladder in super::ladders(view, options, usize::MAX) {
        writeln!(out, "\n## {}\n", capital(&escape(&ladder.title)))?;
        drawing(&ladder, options, out)?;
    }
    findings(view, options, 0, out)?;
    writeln!(out, "\n**{}**", escape(&verdict(view.report)))
}

fn drawing(ladder: &Ladder, options: &RenderOptions, out: &mut dyn Write) -> io::Result<()> {
    if options.mermaid {
        let mut text = Vec::new();
        super::ladder::mermaid::draw(ladder, &mut text)?;
        return fenced(&String::from_utf8_lossy(&text), "mermaid", out);
    }
    let mut text = Vec::new();
    let plain = RenderOptions { color: false, ascii: false, ..options.clone() };
    super::ladder::text::draw(ladder, &mut Paper::new(&mut text, &plain))?;
    fenced(&String::from_utf8_lossy(&text), "text", out)
}

fn report(view: &View<'_>, options: &RenderOptions, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "# crosswire report\n")?;
    writeln!(out, "{}\n", escape(&coverage_line(view.report)))?;
    writeln!(out, "**{}**", escape(&verdict(view.report)))?;
    for trouble in &view.report.troubles {
        writeln!(out, "\n- not read: {}", escape(&clean_short(trouble, 400)))?;
    }
    table(&CROSSED, view, out)?;
    table(&ORPHANED, view, out)?;
    table(&WINDOWS, view, out)?;
    for (n, window) in view.report.windows.iter().enumerate() {
        sequence(view, n, window, out)?;
    }
    table(&OTHERS, view, out)?;
    findings(view, options, LADDERS, out)?;
    match options.calls.or(options.verbose.then_some(Calls::All)) {
        Some(Calls::All) => table(&CALLS, view, out)?,
        Some(Calls::Cited) => table(&CITED, view, out)?,
        Some(Calls::None) | None => {}
    }
    if options.verbose {
        table(&SESSIONS, view, out)?;
    }
    table(&INPUTS, view, out)?;
    let problems = problem_lines(view);
    if !problems.is_empty() {
        writeln!(out, "\nProblems with the inputs:\n")?;
        for line in problems {
            writeln!(out, "- {}", escape(&line))?;
        }
    }
    if options.verbose && !view.report.near.is_empty() {
        writeln!(out, "\nNot findings, and why:\n")?;
        for near in &view.report.near {
            writeln!(out, "- {}", escape(&clean_short(&near.text, 400)))?;
        }
    }
    writeln!(out, "\n<sub>crosswire {}</sub>", env!("CARGO_PKG_VERSION"))
}

fn table(table: &Table, view: &View<'_>, out: &mut dyn Write) -> io::Result<()> {
    let rows = table.collect(view);
    writeln!(out, "\n## {}\n", table.title)?;
    if rows.is_empty() {
        return writeln!(out, "{}", capitalised(&escape(&(table.empty)(view))));
    }
    let line = |cells: &mut dyn Iterator<Item = Cow<'_, str>>| {
        let mut line = String::from("|");
        for cell in cells {
            line.push(' ');
            line.push_str(&cell);
            line.push_str(" |");
        }
        line
    };
    writeln!(out, "{}", line(&mut table.columns.iter().map(|c| Cow::Borrowed(c.name))))?;
    let is_number = |c: usize| rows.iter().any(|r| r.get(c).is_some_and(|cell| cell.is_number()));
    let rule = (0..table.columns.len()).map(|c| Cow::Borrowed(if is_number(c) { "---:" } else { "---" }));
    writeln!(out, "{}", line(&mut rule.into_iter()))?;
    for row in &rows {
        writeln!(out, "{}", line(&mut row.iter().map(|cell| Cow::Owned(escape(cell.shown())))))?;
    }
    Ok(())
}

fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |c| c.to_uppercase().chain(chars).collect::<String>() + ".")
}

fn sequence(view: &View<'_>, number: usize, window: &Window, out: &mut dyn Write) -> io::Result<()> {
    if window.sequence.is_empty() {
        return Ok(());
    }
    let session = window.stale_session.as_deref().map_or("unknown".into(), |id| view.session(id));
    let opened = window.opened.map_or(String::new(), |t| format!(", opened {} UTC", moment(t)));
    writeln!(out, "\n### Window {} of session {}{opened}\n", number + 1, escape(&clean(&session)))?;
    let mut block = String::new();
    for line in &window.sequence {
        let text =
            format!("{}  {}  {}", super::text::clock(line), super::text::happened(line), super::text::remark(line));
        block.push_str(text.trim_end());
        block.push('\n');
    }
    fenced(&block, "text", out)
}

fn findings(view: &View<'_>, options: &RenderOptions, ladders: usize, out: &mut dyn Write) -> io::Result<()> {
    if view.report.findings.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n## Findings")?;
    let timeline = Timeline::new(view);
    for (n, f) in view.report.findings.iter().enumerate() {
        if options.around.is_some_and(|only| only != n + 1) {
            continue;
        }
        finding(view, n + 1, f, out)?;
        let drawn =
            if n < ladders { timeline.around(n + 1, &super::finding_calls(f), super::CONTEXT) } else { Vec::new() };
        for ladder in drawn {
            // Markdown inside the element needs the empty lines (CommonMark §4.6).
            writeln!(out, "\n<details><summary>Timeline, {}</summary>\n", escape(&ladder.title))?;
            drawing(&ladder, options, out)?;
            writeln!(out, "\n</details>")?;
        }
    }
    Ok(())
}

fn finding(view: &View<'_>, number: usize, f: &Finding, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "\n### {number}. {}\n", escape(f.rule))?;
    writeln!(out, "{}\n", escape(&clean_short(&f.summary, 800)))?;
    writeln!(out, "{}.\n", capital(&escape(&standing(f))))?;
    for e in &f.evidence {
        let text = e.text.as_deref().map_or(String::new(), |t| format!(": {}", escape(&clean_short(t, 400))));
        let filter = e.filter.as_deref().map_or(String::new(), |t| format!(" ({})", code(&clean_short(t, 200))));
        writeln!(out, "- {}{text}{filter}", code(&clean(&view.evidence(e))))?;
    }
    Ok(())
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |c| c.to_uppercase().chain(chars).collect())
}

/// A fenced block whose fence is longer than any run of backticks inside it (CommonMark §4.5).
pub(super) fn fenced(text: &str, language: &str, out: &mut dyn Write) -> io::Result<()> {
    let fence = "`".repeat(longest_run(text, '`').max(2) + 1);
    writeln!(out, "{fence}{language}\n{}\n{fence}", text.trim_end_matches('\n'))
}

/// A code span (CommonMark §6.1) where that needs no care, else escaped text: not every tracker
/// follows CommonMark in what ends a span.
fn code(text: &str) -> String {
    if text.is_empty() || text.contains(['`', '<', '\\']) { escape(text) } else { format!("`{text}`") }
}

fn longest_run(text: &str, of: char) -> usize {
    let mut longest = 0;
    let mut run = 0;
    for c in text.chars() {
        run = if c == of { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    longest
}

/// Text that Markdown shows as it is: no markup, no HTML, no mentions or references, no end of cell.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    let mut before = ' ';
    for c in text.chars() {
        match c {
            '\\' | '`' | '*' | '[' | ']' | '|' | '~' => {
                out.push('\\');
                out.push(c);
            }
            // Inside a word an underscore is no emphasis in CommonMark (§6.2).
            '_' if !before.is_alphanumeric() => out.push_str("\\_"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            // A tracker turns `@name` into a mention and `#3` into a reference to its own issue 3.
            '@' => out.push_str("&#64;"),
            '#' => out.push_str("&#35;"),
            '\n' | '\r' => out.push(' '),
            c => out.push(c),
        }
        before = c;
    }
    // Trackers make links of bare addresses; what a capture holds should not be one click away.
    out.replace("://", "&#58;//").replace("www.", "www&#46;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_ends_a_cell_or_becomes_markup() {
        assert_eq!(escape("a|b `c` <b>\n@me"), "a\\|b \\`c\\` &lt;b&gt; &#64;me");
        assert_eq!(escape("entity_update"), "entity_update");
        assert_eq!(escape("_x_"), "\\_x_");
        assert_eq!(escape("https://www.example"), "https&#58;//www&#46;example");
        assert_eq!(code("a`b"), "a\\`b");
    }

    #[test]
    #[allow(clippy::unwrap_used)]
    fn fences_are_longer_than_what_they_hold() {
        let mut out = Vec::new();
        fenced("x\n````\ny\n", "text", &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "`````text\nx\n````\ny\n`````\n");
    }
}
