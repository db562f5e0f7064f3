//! JSON objects read leniently and without copying: each member keeps its exact text.

use crate::model::id::RpcId;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// The members of one JSON object in order, values as exact text.
pub(crate) struct Fields<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Fields<'a> {
    /// Reads one whole JSON object.
    pub(crate) fn parse(text: &'a str) -> serde_json::Result<Fields<'a>> {
        serde_json::from_str(text)
    }

    /// The exact text of a member; the last of equal names, as JSON.parse takes it. `null` counts
    /// as absent.
    pub(crate) fn raw(&self, name: &str) -> Option<&'a str> {
        self.0.iter().rev().find(|(n, _)| n == name).map(|(_, v)| v.get()).filter(|t| *t != "null")
    }

    /// A string member, unescaped; none if it is absent or of another type.
    pub(crate) fn string(&self, name: &str) -> Option<Cow<'a, str>> {
        self.raw(name).and_then(string)
    }

    /// A string member as shared text.
    pub(crate) fn shared(&self, name: &str) -> Option<Arc<str>> {
        self.string(name).map(|s| Arc::from(&*s))
    }

    /// An object member.
    pub(crate) fn object(&self, name: &str) -> Option<Fields<'a>> {
        self.raw(name).and_then(|t| Fields::parse(t).ok())
    }

    /// Is a member the literal `true`?
    pub(crate) fn is_true(&self, name: &str) -> bool {
        self.raw(name) == Some("true")
    }

    /// Every name with its value's text.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &'a str)> {
        self.0.iter().map(|(n, v)| (&**n, v.get()))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Vec<(Cow<'de, str>, &'de RawValue)>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }
            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
                let mut members = Vec::new();
                while let Some(Name(name)) = map.next_key()? {
                    members.push((name, map.next_value()?));
                }
                Ok(members)
            }
        }
        deserializer.deserialize_map(Members).map(Fields)
    }
}

/// A string that borrows where it has no escapes (`Cow` itself never does so by derive).
struct Name<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Name<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl<'de> Visitor<'de> for Text {
            type Value = Cow<'de, str>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_borrowed_str<E>(self, s: &'de str) -> Result<Self::Value, E> {
                Ok(Cow::Borrowed(s))
            }
            fn visit_str<E>(self, s: &str) -> Result<Self::Value, E> {
                Ok(Cow::Owned(s.to_owned()))
            }
        }
        deserializer.deserialize_str(Text).map(Name)
    }
}

/// The value of a JSON string's text; none if it is no string.
pub(crate) fn string(text: &str) -> Option<Cow<'_, str>> {
    serde_json::from_str::<Name<'_>>(text).ok().map(|n| n.0)
}

/// The elements of a JSON array's text; none if it is no array.
pub(crate) fn array(text: &str) -> Option<Vec<&RawValue>> {
    serde_json::from_str(text).ok()
}

/// An id from its JSON text, with its type.
pub(crate) fn rpc_id(text: &str) -> RpcId {
    if text == "null" {
        return RpcId::Null;
    }
    if let Some(s) = string(text) {
        return RpcId::Str(Arc::from(&*s));
    }
    // "-0" and "7.0" are no integers as written; they stay text.
    match text.parse::<i64>() {
        Ok(n) if n.to_string() == text => RpcId::Int(n),
        _ => RpcId::Other(Arc::from(text)),
    }
}

/// Makes cut JSON whole: drops the token that the cut went through and closes what is open, so that
/// the members before it can still be read. None if nothing of an object or array is left.
pub(crate) fn mend(cut: &str) -> Option<String> {
    let bytes = cut.as_bytes();
    let mut open: Vec<u8> = Vec::new();
    // Where the text can be cut off, and the depth there: after a value, or after an opening bracket.
    let mut safe: Option<(usize, usize)> = None;
    let mut at = 0;
    let mut awaits_value = true;
    while let Some(&b) = bytes.get(at) {
        match b {
            b'{' | b'[' => {
                if open.len() >= crate::model::limits::JSON_DEPTH {
                    break;
                }
                open.push(b);
                at += 1;
                safe = Some((at, open.len()));
                awaits_value = b == b'[';
            }
            b'}' | b']' => {
                open.pop();
                at += 1;
                safe = Some((at, open.len()));
                if open.is_empty() {
                    break;
                }
            }
            b',' => {
                awaits_value = open.last() == Some(&b'[');
                at += 1;
            }
            b':' => {
                awaits_value = true;
                at += 1;
            }
            b'"' => {
                let Some(end) = string_end(bytes, at) else { break };
                at = end;
                if awaits_value {
                    safe = Some((at, open.len()));
                }
            }
            b' ' | b'\t' | b'\r' | b'\n' => at += 1,
            _ => {
                let start = at;
                while bytes.get(at).is_some_and(|b| !b",]}: \t\r\n".contains(b)) {
                    at += 1;
                }
                // A literal at the very end may itself be cut.
                if at == bytes.len() || at == start {
                    break;
                }
                if awaits_value {
                    safe = Some((at, open.len()));
                }
            }
        }
    }
    let (end, depth) = safe?;
    let mut whole = cut.get(..end)?.to_owned();
    // Brackets opened after the safe place are beyond it; those before it are still open.
    for b in open.iter().take(depth).rev() {
        whole.push(if *b == b'{' { '}' } else { ']' });
    }
    serde_json::from_str::<&RawValue>(&whole).is_ok().then_some(whole)
}

/// The index after the closing quote of the string that begins at `start`.
fn string_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        match bytes.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ids_keep_their_type() {
        assert_eq!(rpc_id("7"), RpcId::Int(7));
        assert_eq!(rpc_id("\"7\""), RpcId::Str(Arc::from("7")));
        assert_eq!(rpc_id("7.0"), RpcId::Other(Arc::from("7.0")));
        assert_eq!(rpc_id("123456789012345678901234567890"), RpcId::Other(Arc::from("123456789012345678901234567890")));
        assert_eq!(rpc_id("null"), RpcId::Null);
    }

    #[test]
    fn the_last_of_equal_members_counts_and_null_is_absent() {
        let f = Fields::parse(r#"{"a":1,"\u0061":2,"b":null}"#).unwrap();
        assert_eq!(f.raw("a"), Some("2"));
        assert_eq!(f.raw("b"), None);
    }

    #[test]
    fn cut_json_keeps_what_stands_before_the_cut() {
        assert_eq!(mend(r#"{"name":"ok","arguments":{"q":"sec"#).as_deref(), Some(r#"{"name":"ok","arguments":{}}"#));
        assert_eq!(mend(r#"{"a":[1,2,{"b":tr"#).as_deref(), Some(r#"{"a":[1,2,{}]}"#));
        assert_eq!(mend(r#"{"a":1,"b"#).as_deref(), Some(r#"{"a":1}"#));
        assert_eq!(mend(r#"{"a":1} rest"#).as_deref(), Some(r#"{"a":1}"#));
        assert_eq!(mend("\"only"), None);
        assert_eq!(mend(""), None);
    }

    proptest! {
        #[test]
        fn every_cut_of_an_object_can_be_mended(cut in 1usize..90) {
            let whole = r#"{"jsonrpc":"2.0","id":3,"params":{"name":"ä\"b","list":[1,true,{"x":null}],"n":-1.5e3}}"#;
            let mut cut = cut.min(whole.len());
            while !whole.is_char_boundary(cut) { cut -= 1; }
            prop_assert!(mend(&whole[..cut]).is_some());
        }
        #[test]
        fn anything_is_taken_without_a_panic(text in "[\\[\\]{},:\"a1 \\\\]{0,40}") {
            let _ = mend(&text);
        }
    }
}
