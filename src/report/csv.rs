//! `--format csv`: one table, RFC 4180, safe to open in a spreadsheet.

use super::table::{Cell, Table};
use super::tables::{CALLS, CITED, EXCHANGES, FINDINGS};
use super::view::View;
use super::{Calls, RenderOptions, Renderer};
use std::borrow::Cow;
use std::io::{self, Write};

/// `--format csv`
pub static RENDERER: Renderer = Renderer {
    name: "csv",
    doc: "One table (--table) with a header line, RFC 4180; text that a spreadsheet would run as a formula is prefixed with '.",
    calls: |options| match options.calls {
        // The table of exchanges lists what the calls were made of.
        None if options.table.is_none_or(|t| t.name != EXCHANGES.name) => Calls::Cited,
        None => Calls::All,
        Some(calls) => calls,
    },
    report: Some(|view, options, out| table(options.table.unwrap_or(&FINDINGS), view, options, out)),
    timeline: Some(|view, options, out| table(options.table.unwrap_or(&EXCHANGES), view, options, out)),
};

fn table(table: &Table, view: &View<'_>, options: &RenderOptions, out: &mut dyn Write) -> io::Result<()> {
    let table = match options.calls {
        _ if table.name != CALLS.name => table,
        Some(Calls::All) => &CALLS,
        _ => &CITED,
    };
    let mut writer = csv::WriterBuilder::new()
        .terminator(csv::Terminator::CRLF)
        .from_writer(io::BufWriter::with_capacity(1 << 16, out));
    writer.write_record(table.columns.iter().filter(|c| c.in_csv()).map(|c| c.key))?;
    if table.name == CALLS.name && options.calls == Some(Calls::None) {
        return writer.flush();
    }
    let mut result = Ok(());
    (table.rows)(view, &mut |row| {
        if result.is_ok() {
            let cells = row.iter().zip(table.columns).filter(|(_, c)| c.in_csv());
            result = writer.write_record(cells.map(|(cell, _)| guarded(cell).into_owned()));
        }
    });
    result?;
    writer.flush()
}

/// The cell's text, with `'` before what a spreadsheet would take for a formula (OWASP, "CSV
/// Injection": `=`, `+`, `-`, `@`, tab, carriage return; the full-width forms act alike).
fn guarded(cell: &Cell) -> Cow<'_, str> {
    guarded_text(cell.full())
}

/// As a cell: `'` before what a spreadsheet would take for a formula.
pub fn guarded_text(text: &str) -> Cow<'_, str> {
    let is_number = text.parse::<f64>().is_ok_and(f64::is_finite);
    match text.chars().next() {
        Some('=' | '+' | '-' | '@' | '\t' | '\r' | '＝' | '＋' | '－' | '＠') if !is_number => {
            Cow::Owned(format!("'{text}"))
        }
        _ => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_are_text() {
        for (text, safe) in [
            ("=HYPERLINK(1)", "'=HYPERLINK(1)"),
            ("@x", "'@x"),
            ("+1-1|cmd", "'+1-1|cmd"),
            ("-1.5", "-1.5"),
            ("a=b", "a=b"),
            ("", ""),
        ] {
            assert_eq!(guarded(&Cell::new(text)), safe);
        }
    }
}
