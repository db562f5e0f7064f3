//! What proxies write for bytes that would break their line, undone.

use std::borrow::Cow;

/// Undoes nginx's `\xHH` (`escape=default`), Apache's `\"`, `\\`, `\n`, `\xhh`, and JSON's
/// escapes (`escape=json`, HAProxy's `+E`). What is none of them stays as written.
pub(super) fn unescape(value: &[u8]) -> Cow<'_, [u8]> {
    let Some(first) = memchr::memchr(b'\\', value) else {
        return Cow::Borrowed(value);
    };
    let mut out = Vec::with_capacity(value.len());
    out.extend_from_slice(value.get(..first).unwrap_or_default());
    let mut rest = value.get(first..).unwrap_or_default();
    while let Some((&c, after)) = rest.split_first() {
        if c != b'\\' {
            let run = memchr::memchr(b'\\', rest).unwrap_or(rest.len());
            out.extend_from_slice(rest.get(..run).unwrap_or_default());
            rest = rest.get(run..).unwrap_or_default();
            continue;
        }
        let (decoded, used) = match after.first() {
            Some(b'x') => (after.get(1..3).and_then(hex).map(|v| v as u8), 3),
            Some(b'"' | b'\\' | b'/') => (after.first().copied(), 1),
            Some(b'n') => (Some(b'\n'), 1),
            Some(b'r') => (Some(b'\r'), 1),
            Some(b't') => (Some(b'\t'), 1),
            Some(b'b') => (Some(8), 1),
            Some(b'f') => (Some(12), 1),
            Some(b'v') => (Some(11), 1),
            Some(b'u') => {
                let (text, used) = unicode(after);
                if let Some(c) = text {
                    let mut buffer = [0; 4];
                    out.extend_from_slice(c.encode_utf8(&mut buffer).as_bytes());
                    rest = after.get(used..).unwrap_or_default();
                    continue;
                }
                (None, 1)
            }
            _ => (None, 1),
        };
        match decoded {
            Some(byte) => {
                out.push(byte);
                rest = after.get(used..).unwrap_or_default();
            }
            None => {
                out.push(b'\\');
                rest = after;
            }
        }
    }
    Cow::Owned(out)
}

/// As [`unescape`] for a logged body: JSON written as it is (`escape=none`) shows by its bare
/// quotes, and its backslashes are its own.
pub(super) fn unescape_body(value: &[u8]) -> Cow<'_, [u8]> {
    let bare_quote = memchr::memchr_iter(b'"', value).any(|at| at == 0 || value.get(at - 1) != Some(&b'\\'));
    if bare_quote { Cow::Borrowed(value) } else { unescape(value) }
}

fn hex(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |v, c| Some(v * 16 + (*c as char).to_digit(16)?))
}

/// `uXXXX` (and a low surrogate behind a high one): the character and the bytes it took.
fn unicode(after: &[u8]) -> (Option<char>, usize) {
    let Some(first) = after.get(1..5).and_then(hex) else {
        return (None, 1);
    };
    if (0xd800..0xdc00).contains(&first)
        && after.get(5..7) == Some(b"\\u")
        && let Some(second) = after.get(7..11).and_then(hex)
        && (0xdc00..0xe000).contains(&second)
    {
        return (char::from_u32(0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00)), 11);
    }
    (Some(char::from_u32(first).unwrap_or('\u{fffd}')), 5)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_proxy_escapes_in_its_own_way() {
        assert_eq!(&*unescape(br"a\x22b\x5Cc"), br#"a"b\c"#);
        assert_eq!(&*unescape(br#"a\"b\\c\td"#), b"a\"b\\c\td");
        assert_eq!(&*unescape(br"\u00e9\ud83d\ude00"), "é😀".as_bytes());
        assert_eq!(&*unescape(br"\q\x2"), br"\q\x2");
        assert_eq!(&*unescape_body(br#"{\x22a\x22:\x22x\x5C\x22y\x22}"#), br#"{"a":"x\"y"}"#);
        assert_eq!(&*unescape_body(br#"{"a":"x\"y"}"#), br#"{"a":"x\"y"}"#);
        assert_eq!(&*unescape_body(br#"{\"a\":\"x\\\"y\"}"#), br#"{"a":"x\"y"}"#);
    }

    proptest! {
        #[test]
        fn nothing_upsets_it(b in proptest::collection::vec(any::<u8>(), 0..60)) {
            prop_assert!(unescape(&b).len() <= b.len() + 4);
            let _ = unescape_body(&b);
        }

        #[test]
        fn json_strings_come_back(s in "\\PC{0,30}") {
            let written = serde_json::to_string(&s).unwrap_or_default();
            let inner = written.get(1..written.len() - 1).unwrap_or_default();
            prop_assert_eq!(unescape(inner.as_bytes()), s.as_bytes());
        }
    }
}
