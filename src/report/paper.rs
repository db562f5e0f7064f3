//! A text page: writes lines with or without colour, in Unicode or ASCII.

use super::RenderOptions;
use super::table::Tone;
use std::borrow::Cow;
use std::io::{self, Write};

/// Where text goes and how it looks.
pub struct Paper<'a> {
    out: &'a mut dyn Write,
    color: bool,
    ascii: bool,
    /// Terminal columns that a line should not exceed.
    pub width: usize,
}

/// Weight of a run of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// As it is.
    Plain,
    /// A heading.
    Bold,
    /// In a tone.
    Tone(Tone),
    /// In the colour of a lane.
    Lane(usize),
}

impl<'a> Paper<'a> {
    /// A page on `out`.
    pub fn new(out: &'a mut dyn Write, options: &RenderOptions) -> Paper<'a> {
        Paper { out, color: options.color, ascii: options.ascii, width: options.width.max(40) }
    }

    /// Writes a run of text without line end.
    pub fn put(&mut self, text: &str, style: Style) -> io::Result<()> {
        let text = if self.ascii { ascii(text) } else { Cow::Borrowed(text) };
        match code(style).filter(|_| self.color && !text.is_empty()) {
            Some(code) => write!(self.out, "\x1b[{code}m{text}\x1b[0m"),
            None => self.out.write_all(text.as_bytes()),
        }
    }

    /// Ends the line.
    pub fn end(&mut self) -> io::Result<()> {
        self.out.write_all(b"\n")
    }

    /// Writes a whole line.
    pub fn line(&mut self, text: &str, style: Style) -> io::Result<()> {
        self.put(text, style)?;
        self.end()
    }

    /// Writes text over as many lines as it needs. `indent` is the column at which the first
    /// line begins (the caller has written up to there) and to which later lines are indented.
    pub fn flow(&mut self, text: &str, indent: usize, style: Style) -> io::Result<()> {
        let room = self.width.saturating_sub(indent).max(20);
        for (i, line) in super::layout::wrap(text, room).into_iter().enumerate() {
            if i > 0 {
                self.put(&" ".repeat(indent), Style::Plain)?;
            }
            self.line(&line, style)?;
        }
        Ok(())
    }
}

fn code(style: Style) -> Option<&'static str> {
    match style {
        Style::Plain | Style::Tone(Tone::Plain) => None,
        Style::Bold => Some("1"),
        Style::Tone(Tone::Bad) => Some("31"),
        Style::Tone(Tone::Warn) => Some("33"),
        Style::Tone(Tone::Good) => Some("32"),
        Style::Tone(Tone::Dim) => Some("2"),
        Style::Lane(n) => ["36", "35", "34", "33", "32"].get(n % 5).copied(),
    }
}

/// The signs that crosswire itself draws with, in ASCII; any other character becomes `?`.
fn ascii(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if c.is_ascii() => out.push(c),
            '–' | '─' | '━' | '╌' | '┄' | '−' | '—' => out.push('-'),
            '│' | '┃' => out.push('|'),
            '┆' | '╎' | '┊' => out.push(':'),
            '…' | '⋯' => out.push_str(".."),
            '▶' => out.push('>'),
            '◀' => out.push('<'),
            '×' | '╳' | '✗' => out.push('x'),
            '┌' | '┐' | '└' | '┘' | '┬' | '┴' | '┼' | '├' | '┤' | '╭' | '╰' => out.push('+'),
            '±' => out.push_str("+/-"),
            '→' => out.push_str("->"),
            '←' => out.push_str("<-"),
            '●' => out.push('o'),
            _ => out.push('?'),
        }
    }
    Cow::Owned(out)
}
