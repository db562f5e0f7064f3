//! Messages that were folded over several lines: Rich's columns and .NET's two-line console.
//!
//! Rich writes `[time] LEVEL    message … file.py:NNN`, wraps the message in its column (80
//! columns where there is no terminal), blanks a time that has not changed, and breaks a word that
//! is longer than the column, session ids among them. .NET writes `info: Category[0]` and the
//! message below, indented by six.

use super::head;
use crate::input::log::reading::{self, Reading};

/// Bytes of a folded message that are kept.
const MAX_TEXT: usize = 8 << 10;

/// A message of which more lines may come.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Fold {
    /// Column (bytes) where the message begins.
    column: usize,
    /// Width of the message's column, characters; none: unknown.
    width: Option<usize>,
    /// The last piece filled its column without a space: a broken word, perhaps.
    broken: bool,
    /// So far.
    pub text: String,
}

/// Begins a folded message, if this line is the first of one; with its time, where it has one.
pub(super) fn open(line: &str) -> Option<(Fold, Option<Reading>)> {
    match line.as_bytes().first()? {
        b'[' | b' ' => rich(line),
        b'a'..=b'z' => dotnet(line),
        _ => None,
    }
}

fn rich(line: &str) -> Option<(Fold, Option<Reading>)> {
    let (reading, rest_at) = match line.strip_prefix('[') {
        Some(inner) => {
            let close = inner.get(..40.min(inner.len())).unwrap_or(inner).find(']')?;
            let time = inner.get(..close)?.as_bytes();
            let (r, n) = reading::us_date(time).or_else(|| reading::iso(time)).or_else(|| {
                let (day_ns, digits, n) = reading::time_of_day(time)?;
                Some((Reading { date: reading::Date::None, day_ns, digits, offset_s: None }, n))
            })?;
            (Some(r).filter(|_| n == time.len())?.into(), close + 2)
        }
        None => (None, 0),
    };
    let spaces = line.get(rest_at..)?.bytes().take_while(|b| *b == b' ').count();
    if spaces == 0 || (reading.is_none() && spaces < 10) {
        return None;
    }
    let level_at = rest_at + spaces;
    let word = line.get(level_at..)?.split(' ').next()?;
    let column = level_at + 9;
    // upper case and padded to eight: the column of levels
    if word.bytes().any(|b| !b.is_ascii_uppercase()) || head::level(word.as_bytes()).is_none() {
        return None;
    }
    let gap = line.get(level_at + word.len()..column.min(line.len()))?;
    if gap.bytes().any(|b| b != b' ') {
        return None;
    }
    let message = line.get(column..).unwrap_or_default();
    let (message, path) = split_path(message);
    let width = path.map(|p| line.chars().count().saturating_sub(column + p.chars().count() + 1));
    let mut fold = Fold { column, width, broken: false, text: String::new() };
    fold.push(message.trim_end());
    Some((fold, reading))
}

/// `message      file.py:116`: the path at the right edge.
fn split_path(message: &str) -> (&str, Option<&str>) {
    let trimmed = message.trim_end();
    let Some((left, last)) = trimmed.rsplit_once(' ') else { return (trimmed, None) };
    let numbered =
        last.rsplit_once(':').is_some_and(|(file, n)| file.ends_with(".py") && n.bytes().all(|b| b.is_ascii_digit()));
    if numbered { (left, Some(last)) } else { (trimmed, None) }
}

fn dotnet(line: &str) -> Option<(Fold, Option<Reading>)> {
    let (level, category) = line.split_once(": ")?;
    let known = matches!(level, "trce" | "dbug" | "info" | "warn" | "fail" | "crit");
    // `info: Category[0]`, and nothing else
    let (name, id) = category.trim_end().strip_suffix(']')?.rsplit_once('[')?;
    let plain = !name.contains(char::is_whitespace) && id.bytes().all(|b| b.is_ascii_digit() || b == b'-');
    (known && plain).then(|| (Fold { column: 6, width: None, broken: false, text: line.trim_end().to_owned() }, None))
}

impl Fold {
    /// Takes a line that continues the message; `false` if it does not.
    pub fn add(&mut self, line: &str) -> bool {
        let indent = line.bytes().take_while(|b| *b == b' ').count();
        let Some(piece) = line.get(self.column..) else { return false };
        if indent < self.column || piece.trim().is_empty() {
            return indent >= self.column;
        }
        self.push(piece.trim_end());
        true
    }

    fn push(&mut self, piece: &str) {
        if self.text.len() + piece.len() > MAX_TEXT {
            return;
        }
        let first = piece.split(' ').next().unwrap_or_default();
        let glue = self.broken && (self.width.is_some() || is_id_part(first));
        if !self.text.is_empty() && !glue {
            self.text.push(' ');
        }
        self.text.push_str(piece);
        let word = self.text.rsplit(' ').next().unwrap_or_default();
        let fills = match self.width {
            Some(w) => !piece.contains(' ') && piece.chars().count() == w,
            None => word.len() >= 8 && is_id_part(word),
        };
        // a session id that is whole goes on in no further line, even where it fills the column
        self.broken = fills && !is_whole_id(word);
    }
}

fn is_id_part(s: &str) -> bool {
    !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b) || b == b'-')
}

fn is_whole_id(s: &str) -> bool {
    matches!(s.len(), 32 | 36) && is_id_part(s)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    fn joined(lines: &[&str]) -> String {
        let (mut fold, _) = open(lines[0]).unwrap();
        for l in &lines[1..] {
            assert!(fold.add(l), "{l}");
        }
        fold.text
    }

    #[test]
    fn ids_are_put_together_again() {
        let id = joined(&[
            "                    INFO     Created new          streamable_http_manager.py:240",
            "                             transport with                                     ",
            "                             session ID:                                        ",
            "                             a239b748aa674a05904f                               ",
            "                             99928763bc6b                                       ",
        ]);
        assert_eq!(id, "Created new transport with session ID: a239b748aa674a05904f99928763bc6b");
        let id = joined(&[
            "[11/29/26 19:39:04] INFO     Terminating session:         streamable_http.py:855",
            "                             0073ab4574624e4299c1aece8001                       ",
            "                             da96                                               ",
        ]);
        assert_eq!(id, "Terminating session: 0073ab4574624e4299c1aece8001da96");
        // trailing spaces lost on the way
        let id = joined(&[
            "[11/29/26 19:39:04] INFO     Created new transport with session ID:",
            "                             0073ab4574624e4299c1aece8001",
            "                             da96",
        ]);
        assert_eq!(id, "Created new transport with session ID: 0073ab4574624e4299c1aece8001da96");
    }

    #[test]
    fn any_width_gives_the_same_message() {
        let id = "0073ab4574624e4299c1aece8001da96";
        let words = format!("Created new transport with session ID: {id} and more words after it");
        let path = "streamable_http_manager.py:240";
        for width in 12..90usize {
            let mut lines: Vec<String> = vec![];
            let mut now = String::new();
            for word in words.split(' ') {
                let mut word = word;
                if !now.is_empty() && now.len() + 1 + word.len() > width {
                    lines.push(std::mem::take(&mut now));
                }
                while word.len() > width {
                    lines.push(word[..width].to_owned());
                    word = &word[width..];
                }
                if !now.is_empty() {
                    now.push(' ');
                }
                now.push_str(word);
            }
            lines.push(now);
            let rows: Vec<String> = lines
                .iter()
                .enumerate()
                .map(|(i, l)| match i {
                    0 => format!("[11/29/26 19:39:04] INFO     {l:width$} {path}"),
                    _ => format!("{:29}{l:width$} {:30}", "", ""),
                })
                .collect();
            let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
            assert_eq!(joined(&rows), words, "width {width}");
        }
    }

    #[test]
    fn what_is_no_fold() {
        assert!(open("INFO:     Started server process [1]").is_none());
        assert!(open("    at JSON.parse (<anonymous>)").is_none());
        assert!(open("[tools] echo").is_none());
        assert!(open("info: something else").is_none());
        assert_eq!(
            joined(&["info: A.B[0]", "      Server (x) method 'tools/call' request handler called."]),
            "info: A.B[0] Server (x) method 'tools/call' request handler called."
        );
        let (mut f, _) = open("[11/29/26 19:39:04] INFO     x").unwrap();
        assert!(!f.add("                    INFO     y"));
        assert!(!f.add("INFO:     z"));
    }
}
