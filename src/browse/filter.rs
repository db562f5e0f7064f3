//! What a list is to show: words that a row must hold, and `column=pattern` as CSV names columns.

use crate::model::glob::glob;
use crate::report::table::{Cell, Column};

/// A filter as typed; all of its words must fit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    words: Vec<Word>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Word {
    /// Some cell holds it.
    Anywhere(String),
    /// The cell of this column fits the pattern.
    Column(String, String),
}

impl Filter {
    /// From what the user typed.
    ///
    /// # Errors
    /// A sentence for the user, where it names a column that there is not.
    pub fn parse<'c>(text: &str, columns: impl Iterator<Item = &'c Column> + Clone) -> Result<Filter, String> {
        let mut words = vec![];
        for word in text.split_whitespace() {
            let word = word.to_lowercase();
            let Some((key, pattern)) = word.split_once('=').filter(|(key, _)| is_name(key)) else {
                words.push(Word::Anywhere(word));
                continue;
            };
            if !columns.clone().any(|c| c.key == key) {
                let keys: Vec<&str> = columns.map(|c| c.key).collect();
                return Err(format!("no column {key}; there are {}", keys.join(", ")));
            }
            words.push(Word::Column(key.to_owned(), pattern.to_owned()));
        }
        Ok(Filter { words })
    }

    /// Does it let everything through?
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Does a row fit?
    pub fn fits<'c>(&self, cells: impl Iterator<Item = (&'c Column, &'c Cell)> + Clone) -> bool {
        let holds = |cell: &Cell, word: &str| {
            cell.shown().to_lowercase().contains(word) || cell.full().to_lowercase().contains(word)
        };
        self.words.iter().all(|word| match word {
            Word::Anywhere(word) => cells.clone().any(|(_, cell)| holds(cell, word)),
            Word::Column(key, pattern) => {
                cells.clone().any(|(column, cell)| column.key == key && glob(pattern, &cell.full().to_lowercase()))
            }
        })
    }
}

fn is_name(key: &str) -> bool {
    !key.is_empty() && key.chars().all(|c| c.is_ascii_lowercase() || c == '_' || c.is_ascii_digit())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::report::table::column;

    #[test]
    fn words_and_columns() {
        let columns = [column("Tool", "tool", 1, 9), column("Outcome", "outcome", 1, 9)];
        let cells = [Cell::new("entity_Update"), Cell::new("no-reply")];
        let fits = |text: &str| Filter::parse(text, columns.iter()).unwrap().fits(columns.iter().zip(&cells));
        for text in ["", "update", "UPDATE reply", "tool=entity_* outcome=no-reply", "tool=*"] {
            assert!(fits(text), "{text}");
        }
        for text in ["update result", "tool=entity", "outcome=entity_*"] {
            assert!(!fits(text), "{text}");
        }
        assert!(Filter::parse("tol=x", columns.iter()).unwrap_err().contains("no column tol; there are tool, outcome"));
    }
}
