//! JSON text with line breaks and indentation added and not a token changed: duplicate keys,
//! number spellings and escapes stay as they were sent.

use std::borrow::Cow;

/// Deepest indentation; what is nested deeper stays at it.
const DEEPEST: usize = 32;

/// `text` indented, if it looks like a JSON object or array; else as it is.
pub fn reindent(text: &str) -> Cow<'_, str> {
    let trimmed = text.trim();
    if !trimmed.starts_with(['{', '[']) || trimmed.contains('\n') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(trimmed.len() * 2);
    let mut depth = 0usize;
    let mut in_string = false;
    let mut escaped = false;
    let mut chars = trimmed.chars().peekable();
    let newline = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", depth.min(DEEPEST)));
    };
    while let Some(c) = chars.next() {
        if in_string {
            out.push(c);
            in_string = escaped || c != '"';
            escaped = !escaped && c == '\\';
            continue;
        }
        match c {
            '"' => {
                in_string = true;
                out.push(c);
            }
            '{' | '[' => {
                out.push(c);
                while chars.next_if(|c| c.is_ascii_whitespace()).is_some() {}
                match chars.peek() {
                    Some('}' | ']') => out.extend(chars.next()),
                    _ => {
                        depth += 1;
                        newline(&mut out, depth);
                    }
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                newline(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                newline(&mut out, depth);
            }
            ':' => out.push_str(": "),
            c if c.is_ascii_whitespace() => {}
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn keeps_every_token() {
        assert_eq!(
            reindent(r#"{"a":1.0,"a":"x,\"{","b":[],"c":[1,2]}"#),
            "{\n  \"a\": 1.0,\n  \"a\": \"x,\\\"{\",\n  \"b\": [],\n  \"c\": [\n    1,\n    2\n  ]\n}"
        );
        assert_eq!(reindent("not json"), "not json");
    }

    proptest! {
        #[test]
        fn means_the_same(s in any::<String>(), n in any::<i64>()) {
            let value = serde_json::json!({"s": s, "list": [n, {"x": s}, []], "o": {}});
            let again: serde_json::Value = serde_json::from_str(&reindent(&value.to_string())).unwrap();
            prop_assert_eq!(again, value);
        }

        #[test]
        fn never_fails(text in "[{}\\[\\]\",:\\\\a ]{0,60}") {
            let _ = reindent(&text);
        }
    }
}
