//! A page: something to look at, and where the cursor is in it.

use super::line::Line;
use super::list::List;
use crate::model::report::CallKey;

/// What a page shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The sessions.
    Sessions,
    /// The calls of the session of this number, else all.
    Calls(Option<usize>),
    /// The findings.
    Findings,
    /// The ladder of a call's session, around it.
    Ladder(CallKey),
    /// The ladder of the finding of this number, from 1.
    Finding(usize),
    /// Headers and bodies of a call.
    Bodies(CallKey),
    /// The keys.
    Help,
}

/// The lines of a page.
pub enum Body {
    /// Rows of a table.
    List(List),
    /// Lines in blocks, each of which belongs to a call or to none.
    Blocks {
        /// Lines above, which stay.
        heading: Vec<Line>,
        /// All lines.
        lines: Vec<Line>,
        /// Where each block begins.
        begins: Vec<usize>,
        /// The call of each block.
        calls: Vec<Option<CallKey>>,
    },
    /// Text to read: it scrolls and has no cursor.
    Text(Vec<Line>),
}

/// A page with its cursor.
pub struct Page {
    /// What it shows.
    pub subject: Subject,
    /// Its lines.
    pub body: Body,
    /// The row, block or line at which it is.
    pub cursor: usize,
    /// The first line that is shown.
    top: usize,
}

impl Body {
    /// How many rows, blocks or lines there are.
    pub fn count(&self) -> usize {
        match self {
            Body::List(list) => list.numbers.len(),
            Body::Blocks { begins, .. } => begins.len(),
            Body::Text(lines) => lines.len(),
        }
    }

    /// All text of one of them.
    pub fn text(&self, at: usize) -> String {
        match self {
            Body::List(list) => list.text(at),
            Body::Blocks { lines, .. } => {
                let (from, to) = self.span(at);
                lines.get(from..to).unwrap_or_default().iter().map(Line::text).collect::<Vec<_>>().join(" ")
            }
            Body::Text(lines) => lines.get(at).map(Line::text).unwrap_or_default(),
        }
    }

    /// The first line of one of them, and the first after it.
    fn span(&self, at: usize) -> (usize, usize) {
        match self {
            Body::Blocks { begins, lines, .. } => {
                let end = begins.get(at + 1).copied().unwrap_or(lines.len());
                (begins.get(at).copied().unwrap_or(end), end)
            }
            _ => (at, at + 1),
        }
    }

    fn lines(&self) -> usize {
        match self {
            Body::Blocks { lines, .. } => lines.len(),
            _ => self.count(),
        }
    }
}

impl Page {
    /// A page with the cursor at its beginning.
    pub fn new(subject: Subject, body: Body) -> Page {
        Page { subject, body, cursor: 0, top: 0 }
    }

    /// Moves the cursor by so many.
    pub fn go(&mut self, by: isize, height: usize) {
        let to = self.cursor.saturating_add_signed(by);
        self.to(to, height);
    }

    /// Moves the cursor to one of them, and shows it.
    pub fn to(&mut self, at: usize, height: usize) {
        let last = match &self.body {
            // Text ends with its last line at the bottom.
            Body::Text(lines) => lines.len().saturating_sub(height),
            body => body.count().saturating_sub(1),
        };
        self.cursor = at.min(last);
        if matches!(self.body, Body::Text(_)) {
            self.top = self.cursor;
            return;
        }
        let (from, to) = self.body.span(self.cursor);
        if to > self.top + height {
            self.top = to.saturating_sub(height);
        }
        self.top = self.top.min(from).min(self.body.lines().saturating_sub(1));
    }

    /// As [`Page::to`], with what comes before and after it in view.
    pub fn into_view(&mut self, at: usize, height: usize) {
        self.to(at, height);
        let (from, _) = self.body.span(self.cursor);
        self.top = from.saturating_sub(height / 3);
        self.top = self.top.min(self.body.lines().saturating_sub(height));
    }

    /// Lines that stay above the others.
    pub fn heading(&self) -> Vec<Line> {
        match &self.body {
            Body::List(list) => vec![list.heading()],
            Body::Blocks { heading, .. } => heading.clone(),
            Body::Text(_) => vec![],
        }
    }

    /// The lines that a window of this height shows; `sign` gives what stands before a row.
    pub fn window(&self, height: usize, sign: &dyn Fn(usize) -> String) -> Vec<Line> {
        let shown = self.top..self.top.saturating_add(height).min(self.body.lines());
        let (from, to) = self.body.span(self.cursor);
        let has_cursor = !matches!(self.body, Body::Text(_));
        let line = |at: usize| {
            let mut line = match &self.body {
                Body::List(list) => list.line(at, &sign(at)),
                Body::Blocks { lines, .. } | Body::Text(lines) => lines.get(at).cloned().unwrap_or_default(),
            };
            line.is_current = has_cursor && (from..to).contains(&at);
            line
        };
        shown.map(line).collect()
    }

    /// The next one, from the cursor on or back, that `holds`; goes round at the ends.
    pub fn find(&self, is_forward: bool, holds: impl Fn(usize) -> bool) -> Option<usize> {
        let count = self.body.count();
        let at = |step: usize| {
            if is_forward { (self.cursor + step) % count } else { (self.cursor + count - step) % count }
        };
        (1..=count).map(at).find(|n| holds(*n))
    }
}
