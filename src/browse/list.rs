//! A list: the rows of a table of the report, one line each, filtered.

use super::filter::Filter;
use super::line::Line;
use crate::report::layout::one_line;
use crate::report::paper::Style;
use crate::report::table::{Cell, Column, Row, Table, column};
use crate::report::view::View;
use unicode_width::UnicodeWidthStr;

/// A column that the table itself does not have, worked out for the row of this number.
pub struct Extra {
    /// Its headings and widths.
    pub column: Column,
    /// Its cell.
    pub cell: fn(&Lookup<'_>, usize) -> Cell,
}

/// A kind of list: which columns of which table.
pub struct Kind {
    /// Where its rows come from.
    pub table: &'static Table,
    /// Columns that only the browser has.
    pub extras: &'static [Extra],
    /// Keys of the columns, those that matter most first: what does not fit is left away. With each
    /// the width that it needs to be of use.
    pub shown: &'static [(&'static str, usize)],
}

/// What extra columns look up.
pub struct Lookup<'a> {
    /// The report.
    pub view: &'a View<'a>,
    /// Numbers (from 1) of the findings that concern each row.
    pub findings: &'a dyn Fn(usize) -> Vec<usize>,
}

/// A list, filled.
pub struct List {
    columns: Vec<Column>,
    rows: Vec<Row>,
    /// Number of each row in its table, from 0.
    pub numbers: Vec<usize>,
    widths: Vec<(usize, usize)>,
    /// Rows before the filter.
    pub all: usize,
    /// What is said where there is no row.
    pub empty: String,
}

impl Kind {
    /// Every column that a filter can name.
    pub fn columns(&self) -> impl Iterator<Item = &Column> + Clone {
        self.table.columns.iter().chain(self.extras.iter().map(|e| &e.column))
    }

    /// The rows that `wants` wants and the filter lets through.
    pub fn fill(&self, lookup: &Lookup<'_>, wants: &dyn Fn(usize) -> bool, filter: &Filter) -> List {
        let pick = |(key, least): &(&str, usize)| {
            let (at, column) = self.columns().enumerate().find(|(_, c)| c.key == *key)?;
            Some((at, Column { min: *least, max: column.max.max(*least), ..*column }))
        };
        let (picks, columns): (Vec<usize>, Vec<Column>) = self.shown.iter().filter_map(pick).unzip();
        let mut list = List {
            columns,
            rows: vec![],
            numbers: vec![],
            widths: vec![],
            all: 0,
            empty: (self.table.empty)(lookup.view),
        };
        let mut number = 0;
        (self.table.rows)(lookup.view, &mut |mut row| {
            let mine = number;
            number += 1;
            if !wants(mine) {
                return;
            }
            list.all += 1;
            row.extend(self.extras.iter().map(|extra| (extra.cell)(lookup, mine)));
            if filter.is_empty() || filter.fits(self.columns().zip(&row)) {
                list.rows.push(picks.iter().filter_map(|at| row.get(*at)).cloned().collect());
                list.numbers.push(mine);
            }
        });
        list.without_day();
        list
    }
}

impl List {
    /// Where all moments of a column are of one day, the day says nothing.
    fn without_day(&mut self) {
        for at in 0..self.columns.len() {
            let cells = || self.rows.iter().filter_map(|row| row.get(at)).filter(|c| c.shown() != "–");
            let mut days = cells().map(|cell| moment(cell.shown()).map(|(day, _)| day));
            let first = days.next().flatten();
            if first.is_none() || days.any(|day| day != first) {
                continue;
            }
            for cell in self.rows.iter_mut().filter_map(|row| row.get_mut(at)) {
                if let Some((_, clock)) = moment(cell.shown()) {
                    *cell = Cell::short(clock, cell.full()).tone(cell.get_tone());
                }
            }
        }
    }

    /// Fits the columns to the width of the terminal; two columns are for marks.
    pub fn fit(&mut self, width: usize) {
        self.widths = one_line(&self.columns, &self.rows, width.saturating_sub(2));
    }

    /// The heading.
    pub fn heading(&self) -> Line {
        let name = |at: &usize| self.columns.get(*at).map_or("", |c| c.name);
        let cells = self.widths.iter().map(|(at, width)| (name(at), *width, false, Style::Bold));
        laid_out("  ", Style::Bold, cells)
    }

    /// The line of a row; `sign` stands before it.
    pub fn line(&self, at: usize, sign: &str) -> Line {
        let Some(row) = self.rows.get(at) else { return Line::default() };
        let cells = self.widths.iter().filter_map(|(at, width)| {
            let cell = row.get(*at)?;
            Some((fitted(cell, *width), *width, cell.is_number(), Style::Tone(cell.get_tone())))
        });
        laid_out(sign, Style::Bold, cells)
    }

    /// All text of a row.
    pub fn text(&self, at: usize) -> String {
        let cells = self.rows.get(at).into_iter().flatten();
        cells.map(|cell| format!("{} {}", cell.shown(), cell.full())).collect::<Vec<_>>().join(" ")
    }
}

fn laid_out<'t>(sign: &str, style: Style, cells: impl Iterator<Item = (&'t str, usize, bool, Style)>) -> Line {
    let mut line = Line::of(sign, style);
    for (n, (text, width, is_right, style)) in cells.enumerate() {
        let cut = Line::of(text, style).cut(width);
        let pad = " ".repeat(width.saturating_sub(cut.width()));
        line.push(if n > 0 { " " } else { "" }, Style::Plain);
        let (before, after) = if is_right { (pad.as_str(), "") } else { ("", pad.as_str()) };
        line.push(before, Style::Plain);
        line.runs.extend(cut.runs);
        line.push(after, Style::Plain);
    }
    line
}

/// What a cell says in this width: of a moment that does not fit, the time of day.
fn fitted(cell: &Cell, width: usize) -> &str {
    let text = cell.shown();
    match moment(text) {
        Some((_, clock)) if text.width() > width => clock,
        _ => text,
    }
}

/// Day and time of day of a moment as tables show it.
fn moment(text: &str) -> Option<(&str, &str)> {
    let is_day = |day: &str| day.len() == 10 && day.bytes().all(|b| b.is_ascii_digit() || b == b'-');
    text.split_once(' ').filter(|(day, _)| is_day(day))
}

/// A column of the browser's own.
pub const fn extra(
    name: &'static str,
    key: &'static str,
    least: usize,
    most: usize,
    cell: fn(&Lookup<'_>, usize) -> Cell,
) -> Extra {
    Extra { column: column(name, key, least, most), cell }
}
