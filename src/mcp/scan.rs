//! A cursor over JSON text that finds members and skips values without building or
//! validating them: the exact bytes of a message are what is hashed and quoted.
//!
//! Grammar: RFC 8259. A skipped value is checked for balanced brackets and closed strings only;
//! whoever needs its content parses it with `serde_json`.

use crate::input::quoted::quote_or_backslash;
use crate::model::limits::JSON_DEPTH;

/// A position in JSON text.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    /// A cursor at the first character that is not white space.
    pub fn new(text: &'a [u8]) -> Cursor<'a> {
        let mut c = Cursor { text, at: 0 };
        c.space();
        c
    }

    /// The next character, if any.
    pub fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// Has all of the text been read?
    pub fn at_end(&self) -> bool {
        self.at >= self.text.len()
    }

    fn space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    /// Passes `expected` and the white space behind it.
    pub fn eat(&mut self, expected: u8) -> bool {
        if self.peek() != Some(expected) {
            return false;
        }
        self.at += 1;
        self.space();
        true
    }

    /// Passes one value and the white space behind it; gives the value's exact bytes.
    pub fn value(&mut self) -> Option<&'a [u8]> {
        let start = self.at;
        match self.peek()? {
            b'"' => self.skip_string()?,
            b'{' | b'[' => self.skip_container()?,
            b'-' | b'0'..=b'9' | b't' | b'f' | b'n' => self.skip_word(),
            _ => return None,
        }
        let value = self.text.get(start..self.at)?;
        self.space();
        Some(value)
    }

    /// Passes a string and the white space behind it; gives what stands between the quotes.
    pub fn string(&mut self) -> Option<&'a [u8]> {
        let start = self.at;
        if self.peek()? != b'"' {
            return None;
        }
        self.skip_string()?;
        let inner = self.text.get(start + 1..self.at - 1)?;
        self.space();
        Some(inner)
    }

    /// The exact bytes that `pass` passes, without the white space behind them.
    pub fn passed(&mut self, pass: impl FnOnce(&mut Self) -> Option<()>) -> Option<&'a [u8]> {
        let start = self.at;
        pass(self)?;
        Some(self.text.get(start..self.at)?.trim_ascii_end())
    }

    fn skip_word(&mut self) {
        while let Some(b'+' | b'-' | b'.' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z') = self.peek() {
            self.at += 1;
        }
    }

    fn skip_string(&mut self) -> Option<()> {
        let mut i = self.at + 1;
        loop {
            i += quote_or_backslash(self.text.get(i..)?)?;
            if *self.text.get(i)? == b'"' {
                self.at = i + 1;
                return Some(());
            }
            i += 2;
        }
    }

    fn skip_container(&mut self) -> Option<()> {
        self.at += super::skip::container(self.text.get(self.at..)?)?;
        Some(())
    }
}

/// Calls `each` with the raw key (between its quotes) and the exact value bytes of every member
/// of the object that `text` holds. False if it is no (whole) object.
pub fn members<'a>(text: &'a [u8], mut each: impl FnMut(&'a [u8], &'a [u8])) -> bool {
    let mut c = Cursor::new(text);
    let walked = walk_object(&mut c, &mut |c, key| {
        each(key, c.value()?);
        Some(())
    });
    walked.is_some() && c.at_end()
}

/// Passes an object; `each` gets the raw key of every member and passes its value.
pub fn walk_object<'a>(
    c: &mut Cursor<'a>,
    each: &mut impl FnMut(&mut Cursor<'a>, &'a [u8]) -> Option<()>,
) -> Option<()> {
    c.eat(b'{').then_some(())?;
    if c.eat(b'}') {
        return Some(());
    }
    loop {
        let key = c.string()?;
        c.eat(b':').then_some(())?;
        each(c, key)?;
        if c.eat(b'}') {
            return Some(());
        }
        c.eat(b',').then_some(())?;
    }
}

/// Calls `each` with the exact bytes of every element of the array that `text` holds. False if
/// it is no (whole) array.
pub fn elements<'a>(text: &'a [u8], mut each: impl FnMut(&'a [u8])) -> bool {
    let mut c = Cursor::new(text);
    let walked = walk_array(&mut c, &mut |c| {
        each(c.value()?);
        Some(())
    });
    walked.is_some() && c.at_end()
}

/// Passes an array; `each` passes every element.
pub fn walk_array<'a>(c: &mut Cursor<'a>, each: &mut impl FnMut(&mut Cursor<'a>) -> Option<()>) -> Option<()> {
    c.eat(b'[').then_some(())?;
    if c.eat(b']') {
        return Some(());
    }
    loop {
        each(c)?;
        if c.eat(b']') {
            return Some(());
        }
        c.eat(b',').then_some(())?;
    }
}

/// The exact bytes of member `key` (the last, where it repeats, as SDKs' parsers do).
pub fn member<'a>(text: &'a [u8], key: &str) -> Option<&'a [u8]> {
    let mut found = None;
    members(text, |k, v| {
        if k == key.as_bytes() {
            found = Some(v);
        }
    });
    found
}

/// A JSON string's text, unescaped; none if the value is no string.
pub fn text(value: &[u8]) -> Option<std::borrow::Cow<'_, str>> {
    let inner = value.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    if !inner.contains(&b'\\') {
        return Some(String::from_utf8_lossy(inner));
    }
    match serde_json::from_slice::<String>(value) {
        Ok(s) => Some(s.into()),
        Err(_) => Some(String::from_utf8_lossy(inner)),
    }
}

/// Is text that could not be read nested deeper than is followed?
pub fn is_too_deep(text: &[u8]) -> bool {
    let (mut depth, mut in_string, mut escaped) = (0usize, false, false);
    text.iter().any(|byte| {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => depth += 1,
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth > JSON_DEPTH
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn keys(text: &str) -> Option<Vec<(String, String)>> {
        let mut out = vec![];
        let s = |b: &[u8]| String::from_utf8(b.to_vec()).unwrap();
        members(text.as_bytes(), |k, v| out.push((s(k), s(v)))).then_some(out)
    }

    #[test]
    fn members_are_exact_bytes() {
        let got = keys(r#" { "a" : [1, {"x":"]}"}] , "b":"q\"\\" ,"c":-1.5e3,"d":null } "#).unwrap();
        let want = [("a", r#"[1, {"x":"]}"}]"#), ("b", r#""q\"\\""#), ("c", "-1.5e3"), ("d", "null")]
            .map(|(k, v)| (k.into(), v.into()));
        assert_eq!(got, want);
    }

    #[test]
    fn cut_or_crossed_text_is_no_object() {
        for bad in [
            "",
            "{",
            r#"{"a""#,
            r#"{"a":"#,
            r#"{"a":1"#,
            r#"{"a":[1}"#,
            r#"{"a":1}x"#,
            "[1]",
            r#"{"a":"x\"}"#,
            r#"{"a" 1}"#,
        ] {
            assert_eq!(keys(bad), None, "{bad}");
        }
    }

    #[test]
    fn nesting_beyond_the_cap_is_refused() {
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(JSON_DEPTH + 1), "]".repeat(JSON_DEPTH + 1));
        assert!(is_too_deep(deep.as_bytes()) && !is_too_deep(b"{\"a\":[\"[[[\\\"[[\"]"));
        assert_eq!(keys(&deep), None);
    }

    proptest! {
        #[test]
        fn agrees_with_serde_on_anything_valid(keyed in proptest::collection::vec(("[a-z]{1,3}", any::<Option<i64>>(), ".{0,8}"), 0..6)) {
            let mut map = serde_json::Map::new();
            for (k, n, s) in keyed { map.insert(k, serde_json::json!([n, s, {"t": s}])); }
            let text = serde_json::Value::Object(map.clone()).to_string();
            let got = keys(&text).unwrap();
            prop_assert_eq!(got.len(), map.len());
            for (k, v) in got { prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&v).unwrap(), map[&k].clone()); }
        }

        #[test]
        fn never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            members(&bytes, |_, _| {});
            elements(&bytes, |_| {});
        }
    }
}
