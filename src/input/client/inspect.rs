//! Objects as Node's `util.inspect` (and so `console.log`) prints them, turned into JSON.

/// Turns a printed object, array or value into JSON text. Members that are `undefined` are left
/// out, as `JSON.stringify` leaves them out; `[Object]`, functions and the like become null. None if
/// the text is no whole printed value.
pub(super) fn to_json(text: &str) -> Option<String> {
    let mut reader = Reader { bytes: text.as_bytes(), text, at: 0, out: String::with_capacity(text.len()) };
    reader.value(0)?;
    reader.skip_space();
    (reader.at == reader.bytes.len()).then_some(reader.out)
}

/// Brackets opened and not closed in one line of a printed object, strings left out.
pub(super) fn depth_change(line: &str) -> i64 {
    let mut depth = 0;
    let mut quote = None;
    let mut bytes = line.bytes();
    while let Some(b) = bytes.next() {
        match (quote, b) {
            (Some(_), b'\\') => {
                bytes.next();
            }
            (Some(q), b) if q == b => quote = None,
            (Some(_), _) => {}
            (None, b'\'' | b'"' | b'`') => quote = Some(b),
            (None, b'{' | b'[') => depth += 1,
            (None, b'}' | b']') => depth -= 1,
            (None, _) => {}
        }
    }
    depth
}

struct Reader<'a> {
    bytes: &'a [u8],
    text: &'a str,
    at: usize,
    out: String,
}

/// A member's value may be something that JSON has no word for.
#[derive(PartialEq)]
enum Said {
    Value,
    Undefined,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while self.peek().is_some_and(|b| b.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    fn value(&mut self, depth: usize) -> Option<Said> {
        if depth > crate::model::limits::JSON_DEPTH {
            return None;
        }
        self.skip_space();
        match self.peek()? {
            b'{' => self.members(depth, b'}', true),
            // `[Object]`, `[Function: x]`, `[Circular *1]` stand for what was not printed.
            b'[' if self.bytes.get(self.at + 1).is_some_and(u8::is_ascii_uppercase) => {
                let close = memchr::memchr(b']', self.bytes.get(self.at..)?)?;
                self.at += close + 1;
                self.out.push_str("null");
                Some(Said::Value)
            }
            b'[' => self.members(depth, b']', false),
            b'\'' | b'"' | b'`' => {
                let text = self.strings()?;
                self.out.push_str(&serde_json::Value::from(text).to_string());
                Some(Said::Value)
            }
            _ => self.word(),
        }
    }

    fn members(&mut self, depth: usize, close: u8, named: bool) -> Option<Said> {
        self.at += 1;
        self.out.push(if named { '{' } else { '[' });
        let mut first = true;
        loop {
            self.skip_space();
            match self.peek()? {
                b if b == close => {
                    self.at += 1;
                    self.out.push(char::from(close));
                    return Some(Said::Value);
                }
                b',' => {
                    self.at += 1;
                    continue;
                }
                _ => {}
            }
            let before = self.out.len();
            if !first {
                self.out.push(',');
            }
            if named {
                let name = self.name()?;
                self.out.push_str(&serde_json::Value::from(name).to_string());
                self.out.push(':');
            }
            if self.value(depth + 1)? == Said::Undefined {
                self.out.truncate(before);
                if !named {
                    self.out.push_str(if first { "null" } else { ",null" });
                    first = false;
                }
            } else {
                first = false;
            }
        }
    }

    fn name(&mut self) -> Option<String> {
        let name = match self.peek()? {
            b'\'' | b'"' => self.one_string()?,
            _ => {
                let start = self.at;
                while self.peek().is_some_and(|b| b != b':' && !b.is_ascii_whitespace()) {
                    self.at += 1;
                }
                self.text.get(start..self.at)?.to_owned()
            }
        };
        self.skip_space();
        (self.peek()? == b':').then(|| self.at += 1)?;
        Some(name)
    }

    /// A string, or several joined with `+` over lines as long ones are printed.
    fn strings(&mut self) -> Option<String> {
        let mut text = self.one_string()?;
        loop {
            let after = self.at;
            self.skip_space();
            if self.peek() != Some(b'+') {
                self.at = after;
                return Some(text);
            }
            self.at += 1;
            self.skip_space();
            text.push_str(&self.one_string()?);
        }
    }

    fn one_string(&mut self) -> Option<String> {
        let quote = self.peek()?;
        self.at += 1;
        let mut text = String::new();
        let mut chars = self.text.get(self.at..)?.char_indices();
        while let Some((i, c)) = chars.next() {
            match c {
                '\\' => text.push(match chars.next()?.1 {
                    'n' => '\n',
                    't' => '\t',
                    'r' => '\r',
                    'b' => '\u{8}',
                    'f' => '\u{c}',
                    'x' => hex(&mut chars, 2)?,
                    'u' => hex(&mut chars, 4)?,
                    other => other,
                }),
                c if c == char::from(quote) => {
                    self.at += i + 1;
                    return Some(text);
                }
                c => text.push(c),
            }
        }
        None
    }

    fn word(&mut self) -> Option<Said> {
        let start = self.at;
        while self.peek().is_some_and(|b| !b",]} \t\r\n".contains(&b)) {
            self.at += 1;
        }
        let word = self.text.get(start..self.at).filter(|w| !w.is_empty())?;
        match word {
            "undefined" => return Some(Said::Undefined),
            "true" | "false" | "null" => self.out.push_str(word),
            w if serde_json::from_str::<serde_json::Number>(w).is_ok() => self.out.push_str(w),
            _ => self.out.push_str("null"),
        }
        Some(Said::Value)
    }
}

fn hex(chars: &mut std::str::CharIndices<'_>, count: usize) -> Option<char> {
    let mut value = 0;
    for _ in 0..count {
        value = value * 16 + chars.next()?.1.to_digit(16)?;
    }
    Some(char::from_u32(value).unwrap_or(char::REPLACEMENT_CHARACTER))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn objects_become_json() {
        let printed = "{\n  method: undefined,\n  id: 2,\n  'a-b': [ 'x', [Object], undefined ],\n  s: 'it\\'s \"q\"\\n' +\n    'more',\n  error: undefined\n}";
        assert_eq!(to_json(printed).unwrap(), r#"{"id":2,"a-b":["x",null,null],"s":"it's \"q\"\nmore"}"#);
        assert_eq!(to_json("{}").unwrap(), "{}");
        assert_eq!(to_json("{ a: 1 } tail"), None);
        assert_eq!(to_json("{ a: "), None);
    }

    #[test]
    fn brackets_inside_strings_do_not_count() {
        assert_eq!(depth_change("Local → Remote message {"), 1);
        assert_eq!(depth_change("  params: '{\"name\":\"ok\"}'"), 0);
        assert_eq!(depth_change("}"), -1);
    }

    proptest! {
        #[test]
        fn whatever_is_turned_is_json(text in "[\\[\\]{},:'\"ab1 \\\\+]{0,40}") {
            if let Some(json) = to_json(&text) {
                prop_assert!(serde_json::from_str::<serde_json::Value>(&json).is_ok(), "{json}");
            }
        }
    }
}
