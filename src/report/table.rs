//! The row model: every table of the report as columns and cells, whatever renders it.

use super::clean::{SHOWN_CHARS, clean, clean_short};
use super::view::View;
use std::borrow::Cow;

/// How a column is laid out.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Heading for people.
    pub name: &'static str,
    /// Heading in CSV: snake_case, stable.
    pub key: &'static str,
    /// Narrowest width in which it can still be read, in terminal columns.
    pub min: usize,
    /// Width beyond which it gains nothing.
    pub max: usize,
    /// Who is shown it.
    pub audience: Audience,
}

/// Which renderers show a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// All of them.
    All,
    /// Those for people: text, Markdown, HTML.
    People,
    /// Those where width costs nothing: all but text.
    Wide,
}

impl Column {
    /// Is it shown in text?
    pub fn in_text(&self) -> bool {
        self.audience != Audience::Wide
    }
    /// Is it shown in CSV?
    pub fn in_csv(&self) -> bool {
        self.audience != Audience::People
    }
    /// The same column for some renderers only.
    pub const fn only(self, audience: Audience) -> Column {
        Column { audience, ..self }
    }
}

/// A column with its headings and its least and greatest useful width.
pub const fn column(name: &'static str, key: &'static str, min: usize, max: usize) -> Column {
    Column { name, key, min, max, audience: Audience::All }
}

/// What a cell is about, for renderers that can show it in colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// Nothing special.
    #[default]
    Plain,
    /// Harm.
    Bad,
    /// Take care.
    Warn,
    /// In order.
    Good,
    /// Of less weight.
    Dim,
}

/// One cell: what people read and what programs read. Both are free of control characters.
#[derive(Clone, Debug, Default)]
pub struct Cell {
    shown: String,
    full: Option<String>,
    is_number: bool,
    tone: Tone,
}

impl Cell {
    /// A cell that reads the same everywhere.
    pub fn new(text: impl AsRef<str>) -> Cell {
        let text = text.as_ref();
        let full = (text.chars().nth(SHOWN_CHARS).is_some()).then(|| clean(text).into_owned());
        Cell { shown: clean_short(text, SHOWN_CHARS).into_owned(), full, ..Cell::default() }
    }

    /// A cell that people read in a shorter form than programs.
    pub fn short(shown: impl AsRef<str>, full: impl AsRef<str>) -> Cell {
        Cell { full: Some(clean(full.as_ref()).into_owned()), ..Cell::new(shown) }
    }

    /// A number.
    pub fn number(n: impl std::fmt::Display) -> Cell {
        Cell { shown: n.to_string(), is_number: true, ..Cell::default() }
    }

    /// A cell for what may not be known: people read a dash, programs nothing.
    pub fn optional<T>(value: Option<T>, cell: impl FnOnce(T) -> Cell) -> Cell {
        value.map_or_else(Cell::unknown, cell)
    }

    /// Not known, or not applicable.
    pub fn unknown() -> Cell {
        Cell { shown: "–".into(), full: Some(String::new()), ..Cell::default() }
    }

    /// The same cell in another tone.
    pub fn tone(self, tone: Tone) -> Cell {
        Cell { tone, ..self }
    }

    /// What people read.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// What programs read: nothing shortened, empty where unknown.
    pub fn full(&self) -> &str {
        self.full.as_deref().unwrap_or(&self.shown)
    }

    /// Is it a number?
    pub fn is_number(&self) -> bool {
        self.is_number
    }

    /// Its tone.
    pub fn get_tone(&self) -> Tone {
        self.tone
    }
}

/// A row; as many cells as the table has columns.
pub type Row = Vec<Cell>;

/// One kind of table. Rows are made one at a time, so that a renderer may stream them.
pub struct Table {
    /// Name for `--table`.
    pub name: &'static str,
    /// Heading for people.
    pub title: &'static str,
    /// Its columns.
    pub columns: &'static [Column],
    /// Hands over every row in order.
    pub rows: fn(&View<'_>, &mut dyn FnMut(Row)),
    /// What to say instead where there are no rows: what was looked at.
    pub empty: fn(&View<'_>) -> String,
}

impl Table {
    /// All rows at once.
    pub fn collect(&self, view: &View<'_>) -> Vec<Row> {
        let mut rows = Vec::new();
        (self.rows)(view, &mut |row| rows.push(row));
        rows
    }
}

/// `1 call`, `3 calls`.
pub fn counted(n: u64, one: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{} {one}s", grouped(n)) }
}

/// A count with its digits in groups of three: `1,234,567`.
pub fn grouped(n: u64) -> Cow<'static, str> {
    let digits = n.to_string();
    if digits.len() < 4 {
        return Cow::Owned(digits);
    }
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, d) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(d);
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_read_well() {
        assert_eq!(counted(1, "call"), "1 call");
        assert_eq!(counted(0, "call"), "0 calls");
        assert_eq!(counted(1_234_567, "call"), "1,234,567 calls");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1000), "1,000");
    }

    #[test]
    fn unknown_is_a_dash_for_people_and_nothing_for_programs() {
        assert_eq!((Cell::unknown().shown(), Cell::unknown().full()), ("–", ""));
        assert_eq!(Cell::new("a\x1b").full(), "a\\x1b");
    }
}
