//! The ladder as text: time, path, lanes, and what was said.

use super::{Bar, Direction, Ladder, Message, Mood, Row, idle_text, left_out_text};
use crate::report::layout::wrap;
use crate::report::paper::{Paper, Style};
use crate::report::table::Tone;
use crate::report::view::clock;
use std::io;
use unicode_width::UnicodeWidthStr;

/// Terminal columns of a time of day with milliseconds, and a mark for stale windows.
const TIME: usize = 14;
/// Those of one without milliseconds, where columns are few.
const SHORT_TIME: usize = 10;
/// Terminal columns between two lifelines.
const PART: usize = 8;
/// And where columns are few.
const SHORT_PART: usize = 3;
/// Columns that what is said needs; with fewer, times and arrows are short.
const ROOM: usize = 24;
/// The fewest.
const LEAST_ROOM: usize = 12;
/// Lanes drawn; calls beyond have no line of their own.
const LANES: usize = 10;

/// Draws a ladder: a heading, and its rows. Gives the line of the page on which each
/// row begins.
///
/// # Errors
/// Those of writing.
pub fn draw(ladder: &Ladder, paper: &mut Paper<'_>) -> io::Result<Vec<usize>> {
    let lanes = ladder.lanes.min(LANES);
    let parts = ladder.columns.len().saturating_sub(1);
    let beside = ladder.columns.len() + 2 + lanes + 1;
    let is_narrow = paper.width < TIME + parts * PART + beside + ROOM;
    let (time, part) = if is_narrow { (SHORT_TIME, SHORT_PART) } else { (TIME, PART) };
    let room = paper.width.saturating_sub(time + parts * part + beside).max(LEAST_ROOM);
    let bars = ladder.bars.iter().peekable();
    let mut pen = Pen { ladder, lanes: vec![None; lanes], bars, is_narrow, time, part, room };
    pen.heading(paper)?;
    let mut begins = Vec::with_capacity(ladder.rows.len());
    for (n, row) in ladder.rows.iter().enumerate() {
        begins.push(paper.lines());
        pen.row(n, row, paper)?;
    }
    Ok(begins)
}

struct Pen<'a> {
    ladder: &'a Ladder,
    /// The bar that each lane holds at the present row.
    lanes: Vec<Option<&'a Bar>>,
    bars: std::iter::Peekable<std::slice::Iter<'a, Bar>>,
    is_narrow: bool,
    /// Terminal columns of the time.
    time: usize,
    /// Those between two lifelines.
    part: usize,
    /// Those of what is said.
    room: usize,
}

impl<'a> Pen<'a> {
    fn heading(&self, paper: &mut Paper<'_>) -> io::Result<()> {
        let at = self.part + 1;
        if self.is_narrow {
            // Side by side the names would not fit above their lines.
            for (n, name) in self.ladder.columns.iter().enumerate() {
                paper.put(&" ".repeat(self.time), Style::Plain)?;
                paper.put(&format!("│{}", " ".repeat(self.part)).repeat(n), Style::Tone(Tone::Dim))?;
                paper.line(name, Style::Bold)?;
            }
            return Ok(());
        }
        paper.put(&" ".repeat(self.time), Style::Plain)?;
        let mut line = String::new();
        for (n, name) in self.ladder.columns.iter().enumerate() {
            line.push_str(&" ".repeat((n * at).saturating_sub(line.width())));
            line.push_str(name);
        }
        paper.line(&line, Style::Bold)
    }

    fn row(&mut self, n: usize, row: &Row, paper: &mut Paper<'_>) -> io::Result<()> {
        while let Some(bar) = self.bars.next_if(|b| b.from <= n) {
            if let Some(lane) = self.lanes.get_mut(bar.lane) {
                *lane = Some(bar);
            }
        }
        match row {
            Row::Message(m, lane) => self.message(n, m, *lane, paper)?,
            Row::Idle(ns) => self.aside(n, &idle_text(*ns), paper)?,
            Row::LeftOut(count) => self.aside(n, &left_out_text(*count), paper)?,
        }
        for lane in &mut self.lanes {
            if lane.is_some_and(|b| b.to <= n) {
                *lane = None;
            }
        }
        Ok(())
    }

    fn aside(&self, n: usize, text: &str, paper: &mut Paper<'_>) -> io::Result<()> {
        for line in wrap(&paper.spelled(&format!("⋯ {text} ⋯")), self.room) {
            self.margin(n, "", paper)?;
            self.lifelines(None, paper)?;
            self.lanes(n, None, paper)?;
            paper.line(&line, Style::Tone(Tone::Dim))?;
        }
        Ok(())
    }

    fn message(&self, n: usize, m: &Message, lane: Option<usize>, paper: &mut Paper<'_>) -> io::Result<()> {
        let room = self.room;
        let lines = wrap(&paper.spelled(&said(m)), room);
        let places = m.places.join(" ");
        let fits = |last: &str| !places.is_empty() && last.width() + 2 + places.width() <= room;
        for (i, line) in lines.iter().enumerate() {
            let at = m.at.filter(|_| i == 0).map_or(String::new(), clock);
            self.margin(n, &at, paper)?;
            self.lifelines((i == 0).then_some(m), paper)?;
            self.lanes(n, lane.filter(|_| i == 0).map(|l| (l, m)), paper)?;
            paper.put(line, style(m.mood))?;
            if i + 1 == lines.len() && fits(line) {
                paper.put(&format!("  {places}"), Style::Tone(Tone::Dim))?;
            }
            paper.end()?;
        }
        if !places.is_empty() && !lines.last().is_some_and(|l| fits(l)) {
            for line in wrap(&places, room) {
                self.margin(n, "", paper)?;
                self.lifelines(None, paper)?;
                self.lanes(n, None, paper)?;
                paper.line(&line, Style::Tone(Tone::Dim))?;
            }
        }
        Ok(())
    }

    fn margin(&self, n: usize, time: &str, paper: &mut Paper<'_>) -> io::Result<()> {
        let in_window = self.ladder.bands.iter().any(|(from, to)| (*from..=*to).contains(&n));
        let width = self.time - 2;
        paper.put(&format!("{time:<width$.width$}"), Style::Tone(Tone::Dim))?;
        paper.put(if in_window { "!" } else { " " }, Style::Tone(Tone::Warn))?;
        paper.put(" ", Style::Plain)
    }

    fn lifelines(&self, m: Option<&Message>, paper: &mut Paper<'_>) -> io::Result<()> {
        let parts = self.ladder.columns.len() - 1;
        let mut line = String::new();
        for column in 0..=parts {
            line.push_str(match m.map(|m| m.direction) {
                Some(Direction::At(at)) if at == column => "●",
                _ => "│",
            });
            if column < parts {
                line.push_str(&m.map_or_else(|| " ".repeat(self.part), |m| part(m, column, self.part)));
            }
        }
        paper.put(&line, m.map_or(Style::Tone(Tone::Dim), |m| style(m.mood)))?;
        paper.put("  ", Style::Plain)
    }

    fn lanes(&self, n: usize, own: Option<(usize, &Message)>, paper: &mut Paper<'_>) -> io::Result<()> {
        for (i, bar) in self.lanes.iter().enumerate() {
            let sign = match (bar, own) {
                (None, _) => " ",
                (Some(_), Some((lane, m))) if lane == i => match (m.opens, m.closes) {
                    (true, true) => "×",
                    (true, false) => "┌",
                    (false, true) if m.mood == Mood::Hanging => "×",
                    (false, true) => "└",
                    (false, false) => "├",
                },
                (Some(bar), _) if bar.hangs => "┆",
                (Some(bar), _) if bar.to == n && own.is_none() => " ",
                _ => "│",
            };
            let tone = if bar.is_some_and(|b| b.hangs) { Style::Tone(Tone::Bad) } else { Style::Lane(i) };
            paper.put(sign, tone)?;
        }
        paper.put(" ", Style::Plain)
    }
}

/// One part of the path: an arrow where an input saw the message, dots where it must have gone
/// but no input shows it, nothing beyond.
fn part(m: &Message, at: usize, width: usize) -> String {
    let is_seen = m.seen & (1 << at) != 0;
    let dashes = |sign: &str| sign.repeat(width - 1);
    let line = if is_seen { "─" } else { "╌" };
    // The message comes from its sender, so it passed every part before one on which it was seen.
    let dark = m.dark & (1 << at) != 0;
    let after = dark || m.seen >> (at + 1) != 0;
    let before = dark || m.seen & ((1 << at) - 1) != 0;
    match m.direction {
        Direction::ToServer if is_seen || after => format!("{}▶", dashes(line)),
        Direction::ToClient if is_seen || before => format!("◀{}", dashes(line)),
        Direction::ToServer if m.seen == 0 && at == 0 => format!("╌╌×{}", " ".repeat(width - 3)),
        _ => " ".repeat(width),
    }
}

/// What is written beside the lines.
pub(super) fn said(m: &Message) -> String {
    let mut out = m.text.clone();
    if !m.note.is_empty() {
        out.push_str(": ");
        out.push_str(&m.note);
    }
    let title = match m.mood {
        Mood::Crossed => "CROSSED ",
        Mood::Hanging if m.closes && !m.opens => "HANGS ",
        _ => "",
    };
    const NUMBERS: usize = 4;
    let mut numbers: String = m.findings.iter().take(NUMBERS).map(|n| format!("[{n}]")).collect();
    if m.findings.len() > NUMBERS {
        numbers.push_str(&format!("[+{}]", m.findings.len() - NUMBERS));
    }
    let numbers = if numbers.is_empty() { numbers } else { format!(" {numbers}") };
    format!("{title}{out}{numbers}")
}

fn style(mood: Mood) -> Style {
    match mood {
        Mood::Plain => Style::Plain,
        Mood::Crossed | Mood::Hanging => Style::Tone(Tone::Bad),
        Mood::Refused | Mood::Note => Style::Tone(Tone::Warn),
    }
}
