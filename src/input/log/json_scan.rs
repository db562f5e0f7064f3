//! Walks over one JSON object without building it: paths of keys and raw values.

use crate::input::quoted::quote_or_backslash;
use crate::model::limits;

/// A value as it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value<'a> {
    /// What stands between the quotes, still escaped.
    Text(&'a [u8]),
    /// A number, `true`, `false` or `null`.
    Bare(&'a [u8]),
    /// A whole object or array.
    Nested(&'a [u8]),
}

/// Calls `each` with the dotted path and value of every member of the object in `line`, inner
/// before outer. An element of an array has the array's path. False: no complete JSON object, or
/// something behind it.
pub(super) fn walk<'a>(line: &'a [u8], each: &mut impl FnMut(&[u8], Value<'a>)) -> bool {
    let mut scan = Scan { line, at: 0, path: Vec::with_capacity(64), each };
    scan.space();
    if scan.peek() != Some(b'{') || scan.object(0).is_none() {
        return false;
    }
    scan.space();
    scan.at == line.len()
}

struct Scan<'a, 'f, F> {
    line: &'a [u8],
    at: usize,
    path: Vec<u8>,
    each: &'f mut F,
}

impl<'a, F: FnMut(&[u8], Value<'a>)> Scan<'a, '_, F> {
    fn peek(&self) -> Option<u8> {
        self.line.get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn byte(&mut self, byte: u8) -> Option<()> {
        self.space();
        (self.peek()? == byte).then(|| self.at += 1)
    }

    fn object(&mut self, depth: usize) -> Option<()> {
        if depth > limits::JSON_DEPTH {
            return None;
        }
        self.byte(b'{')?;
        self.space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Some(());
        }
        let outer = self.path.len();
        loop {
            self.space();
            let key = self.string()?;
            self.byte(b':')?;
            if outer > 0 {
                self.path.push(b'.');
            }
            self.path.extend_from_slice(key);
            self.value(depth)?;
            self.path.truncate(outer);
            self.space();
            match self.peek()? {
                b',' => self.at += 1,
                b'}' => {
                    self.at += 1;
                    return Some(());
                }
                _ => return None,
            }
        }
    }

    fn array(&mut self, depth: usize) -> Option<()> {
        if depth > limits::JSON_DEPTH {
            return None;
        }
        self.byte(b'[')?;
        self.space();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Some(());
        }
        loop {
            self.value(depth)?;
            self.space();
            match self.peek()? {
                b',' => self.at += 1,
                b']' => {
                    self.at += 1;
                    return Some(());
                }
                _ => return None,
            }
        }
    }

    fn value(&mut self, depth: usize) -> Option<()> {
        self.space();
        match self.peek()? {
            b'"' => {
                let text = self.string()?;
                (self.each)(&self.path, Value::Text(text));
            }
            b'{' | b'[' => {
                let begin = self.at;
                if self.peek() == Some(b'{') {
                    self.object(depth + 1)?
                } else {
                    self.array(depth + 1)?
                }
                (self.each)(&self.path, Value::Nested(self.line.get(begin..self.at)?));
            }
            _ => {
                let begin = self.at;
                while self.peek().is_some_and(|c| c.is_ascii_alphanumeric() || matches!(c, b'+' | b'-' | b'.')) {
                    self.at += 1;
                }
                let bare = self.line.get(begin..self.at).filter(|b| !b.is_empty())?;
                (self.each)(&self.path, Value::Bare(bare));
            }
        }
        Some(())
    }

    /// The text of a string at the current place, which is then behind it.
    fn string(&mut self) -> Option<&'a [u8]> {
        if self.peek()? != b'"' {
            return None;
        }
        let begin = self.at + 1;
        let mut at = begin;
        loop {
            at += quote_or_backslash(self.line.get(at..)?)?;
            if self.line.get(at) == Some(&b'"') {
                self.at = at + 1;
                return self.line.get(begin..at);
            }
            at += 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn flat(line: &str) -> Option<Vec<(String, String)>> {
        let mut all = Vec::new();
        let whole = walk(line.as_bytes(), &mut |path, value| {
            let text = match value {
                Value::Text(t) | Value::Bare(t) | Value::Nested(t) => t,
            };
            all.push((String::from_utf8_lossy(path).into_owned(), String::from_utf8_lossy(text).into_owned()));
        });
        whole.then_some(all)
    }

    #[test]
    fn paths_and_values_come_as_written() {
        let all = flat(r#"{"a":1.5e3, "b":{"c":["x\"y","z"],"d":null},"e":{}}"#).unwrap_or_default();
        let all: Vec<_> = all.iter().map(|(p, v)| (&**p, &**v)).collect();
        assert_eq!(
            all,
            [
                ("a", "1.5e3"),
                ("b.c", r#"x\"y"#),
                ("b.c", "z"),
                ("b.c", r#"["x\"y","z"]"#),
                ("b.d", "null"),
                ("b", r#"{"c":["x\"y","z"],"d":null}"#),
                ("e", "{}")
            ]
        );
        for broken in ["", "{", r#"{"a""#, r#"{"a":}"#, r#"{"a":1"#, r#"{"a":"x}"#, "[1]", r#"{"a":1} x"#, r#"{"a":"\"#]
        {
            assert_eq!(flat(broken), None, "{broken}");
        }
        assert_eq!(flat(&format!("{}1{}", r#"{"a":"#.repeat(5000), "}".repeat(5000))), None);
    }

    proptest! {
        #[test]
        fn what_is_json_is_walked(members in proptest::collection::btree_map("[a-z]{1,8}", "\\PC{0,20}", 0..6)) {
            let line = serde_json::to_string(&members).unwrap_or_default();
            prop_assert_eq!(flat(&line).map(|all| all.len()), Some(members.len()));
        }

        #[test]
        fn what_is_cut_is_not(at in 1usize..60) {
            let line = r#"{"status":200,"request":{"method":"POST","uri":"/mcp\""},"a":[]}"#;
            prop_assert_eq!(flat(line.get(..at.min(line.len() - 1)).unwrap_or_default()), None);
        }
    }
}
