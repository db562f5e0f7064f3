//! A line of the screen: runs of text in styles, cut to the width of the terminal.

use crate::report::clean::{clean, is_unsafe};
use crate::report::paper::{Run, Style};
use unicode_width::UnicodeWidthChar;

/// Terminal columns of a tab in a message.
const TAB: &str = "    ";

/// One line of the screen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// Its runs of text. They hold no character that could act on the terminal.
    pub runs: Vec<Run>,
    /// It is marked as the one at which the cursor is.
    pub is_current: bool,
}

impl Line {
    /// A line of one run.
    pub fn of(text: &str, style: Style) -> Line {
        Line::from_runs(vec![(text.to_owned(), style)])
    }

    /// From what a page kept. Whatever it holds, nothing in the line can act on the terminal.
    pub fn from_runs(runs: Vec<Run>) -> Line {
        let safe = |(text, style): Run| {
            let text = if text.contains('\t') { text.replace('\t', TAB) } else { text };
            if text.chars().any(is_unsafe) { (clean(&text).into_owned(), style) } else { (text, style) }
        };
        Line { runs: runs.into_iter().map(safe).collect(), is_current: false }
    }

    /// Adds a run.
    pub fn push(&mut self, text: &str, style: Style) {
        self.runs.push((text.to_owned(), style));
    }

    /// The text alone.
    pub fn text(&self) -> String {
        self.runs.iter().map(|(text, _)| text.as_str()).collect()
    }

    /// Terminal columns that it takes.
    pub fn width(&self) -> usize {
        self.runs.iter().flat_map(|(text, _)| text.chars()).map(columns).sum()
    }

    /// The same line, cut to `width` columns; what is cut off is told by `…` at the end.
    pub fn cut(mut self, width: usize) -> Line {
        if self.width() <= width {
            return self;
        }
        let mut room = width.saturating_sub(1);
        for (text, _) in &mut self.runs {
            let mut kept = text.len();
            for (at, c) in text.char_indices() {
                match room.checked_sub(columns(c)) {
                    Some(left) => room = left,
                    None => {
                        kept = at;
                        room = 0;
                        break;
                    }
                }
            }
            text.truncate(kept);
        }
        self.runs.retain(|(text, _)| !text.is_empty());
        if width > 0 {
            self.runs.push(("…".to_owned(), Style::Plain));
        }
        self
    }

    /// The line as several of at most `width` columns (at least one, whatever it holds).
    pub fn broken(self, width: usize) -> Vec<Line> {
        if self.width() <= width {
            return vec![self];
        }
        self.pieces(width).into_iter().map(|runs| Line { runs, is_current: self.is_current }).collect()
    }

    /// Its runs cut into pieces of at most `width` columns each.
    fn pieces(&self, width: usize) -> Vec<Vec<Run>> {
        let mut pieces = vec![];
        let mut piece: Vec<Run> = vec![];
        let mut used = 0;
        for (text, style) in &self.runs {
            let mut run = String::new();
            for c in text.chars() {
                if used + columns(c) > width.max(2) {
                    piece.push((std::mem::take(&mut run), *style));
                    pieces.push(std::mem::take(&mut piece));
                    used = 0;
                }
                used += columns(c);
                run.push(c);
            }
            piece.push((run, *style));
        }
        pieces.push(piece);
        pieces
    }
}

fn columns(c: char) -> usize {
    c.width().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn line(parts: &[String]) -> Line {
        Line::from_runs(parts.iter().map(|p| (p.clone(), Style::Plain)).collect())
    }

    proptest! {
        #[test]
        fn no_line_is_wider_than_the_terminal_or_acts_on_it(
            parts in prop::collection::vec(any::<String>(), 0..5),
            width in 0usize..30,
        ) {
            let whole = line(&parts);
            prop_assert!(!whole.text().chars().any(is_unsafe));
            prop_assert!(whole.clone().cut(width).width() <= width);
            let broken = whole.clone().broken(width);
            // A wide character takes two columns, however narrow the terminal.
            prop_assert!(broken.iter().all(|l| l.width() <= width.max(2)));
            prop_assert_eq!(broken.iter().map(Line::text).collect::<String>(), whole.text());
        }
    }

    #[test]
    fn what_is_cut_off_is_told() {
        assert_eq!(Line::of("abcdef", Style::Plain).cut(4).text(), "abc…");
        assert_eq!(Line::of("日本語", Style::Plain).cut(4).text(), "日…");
        assert_eq!(Line::of("a\tb\x1b[2J", Style::Plain).text(), "a    b\\x1b[2J");
    }
}
