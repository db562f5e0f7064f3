//! Characters as texts write them: plain, percent-encoded (RFC 3986 §2.1), as JSON escapes (RFC
//! 8259 §7), as `\xHH` (nginx). A secret is found and replaced in any of these forms, and the form
//! stays.

/// How a character is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Its UTF-8 bytes.
    Plain,
    /// `%41` for each byte; the digits' letters in upper case or not.
    Percent(bool),
    /// `\x41` for each byte.
    Hex(bool),
    /// `\u0041`, with a surrogate pair beyond the BMP, behind this many backslashes (JSON in JSON
    /// has several).
    Unicode(usize, bool),
}

/// One character and the bytes it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The character; none: a byte that is no text.
    pub c: Option<char>,
    /// The character where words are made of it; none: it separates words and stays as it is.
    pub letter: Option<char>,
    /// How it is written.
    pub form: Form,
    /// Bytes taken, at least one.
    pub bytes: usize,
}

impl Cell {
    const fn separator(c: Option<char>, bytes: usize) -> Cell {
        Cell { c, letter: None, form: Form::Plain, bytes }
    }

    fn of(c: char, form: Form, bytes: usize) -> Cell {
        Cell { c: Some(c), letter: c.is_alphanumeric().then_some(c), form, bytes }
    }
}

/// The cell at the beginning of `text`, which is not empty.
pub fn first(text: &[u8]) -> Cell {
    match text {
        [b'%', ..] => bytes_form(text, b"%").unwrap_or(Cell::separator(Some('%'), 1)),
        [b'\\', ..] => backslash(text),
        [b, ..] if b.is_ascii() => Cell::of(char::from(*b), Form::Plain, 1),
        _ => unescaped(text),
    }
}

fn unescaped(text: &[u8]) -> Cell {
    for length in 2..=4 {
        if let Some(c) = text.get(..length).and_then(|b| std::str::from_utf8(b).ok()).and_then(|s| s.chars().next()) {
            return Cell::of(c, Form::Plain, length);
        }
    }
    Cell::separator(None, 1)
}

/// A character as `%HH` or `\xHH` for each of its bytes.
fn bytes_form(text: &[u8], mark: &[u8]) -> Option<Cell> {
    let unit = mark.len() + 2;
    let mut bytes = vec![];
    let mut is_upper = true;
    while bytes.len() < 4 {
        let part = text.get(bytes.len() * unit..(bytes.len() + 1) * unit)?.strip_prefix(mark)?;
        is_upper &= !part.iter().any(u8::is_ascii_lowercase);
        bytes.push(hex_value(part)? as u8);
        if let Some(c) = std::str::from_utf8(&bytes).ok().and_then(|s| s.chars().next()) {
            let form = if mark == b"%" { Form::Percent(is_upper) } else { Form::Hex(is_upper) };
            return Some(Cell::of(c, form, bytes.len() * unit));
        }
    }
    None
}

fn backslash(text: &[u8]) -> Cell {
    let slashes = text.iter().take_while(|b| **b == b'\\').count();
    let rest = text.get(slashes..).unwrap_or_default();
    match rest.first() {
        Some(b'u') => match unicode(rest, slashes) {
            Some((c, used, is_upper)) => Cell::of(c, Form::Unicode(slashes, is_upper), slashes + used),
            None => Cell::separator(Some('\\'), slashes),
        },
        Some(b'x') => match text.get(slashes - 1..).and_then(|t| bytes_form(t, b"\\x")) {
            // Behind more than one backslash it is still one unit each, which `bytes_form` does not see.
            Some(cell) if slashes == 1 => cell,
            _ => Cell::separator(Some('\\'), slashes),
        },
        Some(b'n' | b'r' | b't' | b'b' | b'f') => Cell::separator(Some('\n'), slashes + 1),
        Some(quote @ (b'"' | b'/')) => Cell::separator(Some(char::from(*quote)), slashes + 1),
        _ => Cell::separator(Some('\\'), slashes),
    }
}

/// `u0041`, or a surrogate pair `uD83D\uDE00` behind as many backslashes again.
fn unicode(text: &[u8], slashes: usize) -> Option<(char, usize, bool)> {
    let digits = text.get(1..5)?;
    let upper = |d: &[u8]| !d.iter().any(u8::is_ascii_lowercase);
    let high = hex_value(digits)?;
    if let Some(c) = char::from_u32(high) {
        return Some((c, 5, upper(digits)));
    }
    let second = text.get(5 + slashes..)?;
    let between = text.get(5..5 + slashes)?;
    let low_digits = second.get(1..5)?;
    let low = hex_value(low_digits)?;
    let is_pair =
        between.iter().all(|b| *b == b'\\') && second.first() == Some(&b'u') && (0xdc00..0xe000).contains(&low);
    let c = is_pair.then(|| char::from_u32(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00)))??;
    Some((c, 10 + slashes, upper(digits) && upper(low_digits)))
}

fn hex_value(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0u32, |n, b| Some(n << 4 | char::from(*b).to_digit(16)?))
}

/// A text with all forms undone, and where each of its bytes (and its end) begins in the original.
pub fn plain_text(text: &[u8]) -> (Vec<u8>, Vec<usize>) {
    let (mut out, mut from, mut at) = (Vec::with_capacity(text.len()), Vec::with_capacity(text.len() + 1), 0);
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let cell = first(rest);
        match (cell.c, rest.first()) {
            (Some(c), _) => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            (None, Some(b)) => out.push(*b),
            (None, None) => {}
        }
        from.resize(out.len(), at);
        at += cell.bytes.max(1);
    }
    from.push(text.len());
    (out, from)
}

/// Writes a character in a form.
pub fn write(c: char, form: Form, out: &mut Vec<u8>) {
    let mut buffer = [0; 4];
    let utf8 = c.encode_utf8(&mut buffer).as_bytes();
    let hex = |is_upper: bool, value: u32, width: usize| match is_upper {
        true => format!("{value:0width$X}"),
        false => format!("{value:0width$x}"),
    };
    match form {
        Form::Plain => out.extend_from_slice(utf8),
        Form::Percent(is_upper) | Form::Hex(is_upper) => {
            for b in utf8 {
                out.extend_from_slice(if matches!(form, Form::Percent(_)) { b"%" } else { b"\\x" });
                out.extend_from_slice(hex(is_upper, u32::from(*b), 2).as_bytes());
            }
        }
        Form::Unicode(slashes, is_upper) => {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                out.extend(std::iter::repeat_n(b'\\', slashes));
                out.push(b'u');
                out.extend_from_slice(hex(is_upper, u32::from(*unit), 4).as_bytes());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cells(text: &str) -> Vec<Cell> {
        let (mut at, mut all) = (0, vec![]);
        while at < text.len() {
            let cell = first(&text.as_bytes()[at..]);
            at += cell.bytes;
            all.push(cell);
        }
        all
    }

    #[test]
    fn a_letter_is_known_in_every_form() {
        for (text, letters) in [
            ("aé漢", "aé漢"),
            ("%61%C3%A9%e6%bc%a2", "aé漢"),
            (r"\u0061\u00e9\\u6F22", "aé漢"),
            (r"\x61\xC3\xA9", "aé"),
            (r"\ud835\udc00", "\u{1d400}"),
            ("100%", "100"),
            (r"a\nb\\\\nc\", "abc"),
            (r"%zz\u12\xq", "zzu12xq"),
            ("%20%2F", ""),
        ] {
            let found: String = cells(text).iter().filter_map(|c| c.letter).collect();
            assert_eq!(found, letters, "{text}");
        }
    }

    proptest! {
        #[test]
        fn written_again_it_is_the_same(text in r"([a-c%\\un0-9é]|%4[0-9A-F]|\\u00[0-9a-f]{2}|\\x6[1-9]){0,30}") {
            let (mut at, mut again) = (0, vec![]);
            for cell in cells(&text) {
                match cell.letter {
                    Some(c) => write(c, cell.form, &mut again),
                    None => again.extend_from_slice(&text.as_bytes()[at..at + cell.bytes]),
                }
                at += cell.bytes;
            }
            let again = String::from_utf8_lossy(&again).into_owned();
            prop_assert_eq!(again.to_lowercase(), text.to_lowercase());
        }
    }
}
