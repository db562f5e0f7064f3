//! A text page: writes lines with or without colour, in Unicode or ASCII, or keeps them.

use super::RenderOptions;
use super::table::Tone;
use std::borrow::Cow;
use std::io::{self, Write};

/// A run of text in one style.
pub type Run = (String, Style);

/// Where text goes and how it looks.
pub struct Paper<'a> {
    out: Out<'a>,
    ascii: bool,
    ended: usize,
    /// Terminal columns that a line should not exceed.
    pub width: usize,
}

enum Out<'a> {
    Stream { to: &'a mut dyn Write, color: bool },
    Lines { done: Vec<Vec<Run>>, line: Vec<Run> },
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
        Paper {
            out: Out::Stream { to: out, color: options.color },
            ascii: options.ascii,
            ended: 0,
            width: options.width.max(40),
        }
    }

    /// A page that keeps its lines.
    pub fn kept(options: &RenderOptions) -> Paper<'static> {
        Paper {
            out: Out::Lines { done: vec![], line: vec![] },
            ascii: options.ascii,
            ended: 0,
            width: options.width.max(40),
        }
    }

    /// The lines that were kept.
    pub fn into_lines(self) -> Vec<Vec<Run>> {
        match self.out {
            Out::Lines { done, .. } => done,
            Out::Stream { .. } => vec![],
        }
    }

    /// How many lines were ended so far.
    pub fn lines(&self) -> usize {
        self.ended
    }

    /// The text as it will stand there: in ASCII some signs take two columns.
    pub fn spelled<'t>(&self, text: &'t str) -> Cow<'t, str> {
        if self.ascii { ascii(text) } else { Cow::Borrowed(text) }
    }

    /// Writes a run of text without line end.
    pub fn put(&mut self, text: &str, style: Style) -> io::Result<()> {
        let text = self.spelled(text);
        match &mut self.out {
            Out::Stream { to, color } => match code(style).filter(|_| *color && !text.is_empty()) {
                Some(code) => write!(to, "\x1b[{code}m{text}\x1b[0m"),
                None => to.write_all(text.as_bytes()),
            },
            Out::Lines { line, .. } => {
                line.push((text.into_owned(), style));
                Ok(())
            }
        }
    }

    /// Ends the line.
    pub fn end(&mut self) -> io::Result<()> {
        self.ended += 1;
        match &mut self.out {
            Out::Stream { to, .. } => to.write_all(b"\n"),
            Out::Lines { done, line } => {
                done.push(std::mem::take(line));
                Ok(())
            }
        }
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
        for (i, line) in super::layout::wrap(&self.spelled(text), room).into_iter().enumerate() {
            if i > 0 {
                self.put(&" ".repeat(indent), Style::Plain)?;
            }
            self.line(&line, style)?;
        }
        Ok(())
    }
}

/// What selects a style on a terminal (ECMA-48 §8.3.117, SGR).
pub fn code(style: Style) -> Option<&'static str> {
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
pub fn ascii(text: &str) -> Cow<'_, str> {
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
