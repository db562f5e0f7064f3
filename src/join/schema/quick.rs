//! Says of most conforming results that they conform, without building them.
//!
//! It knows the keywords that tools' schemas are made of and looks at the exact JSON text. What it says
//! conforms does; of everything else the validator has the word, which also tells what is wrong. A schema with any
//! other keyword is left to the validator altogether.

use crate::mcp::scan::{self, Cursor};
use serde_json::{Map, Value};

/// Deeper schemas are left to the validator.
const DEPTH: usize = 32;

/// Keywords that say nothing of a value (JSON Schema 2020-12, validation §9; core §8.1, §8.3).
const NOTES: &[&str] = &["$schema", "$comment", "title", "description", "default", "examples", "deprecated"];

/// A schema of keywords that it knows.
pub(super) enum Quick {
    /// `true`, or nothing but notes.
    Anything,
    /// A value must satisfy one of these (`anyOf`).
    AnyOf(Vec<Quick>),
    /// A value of one of these types, with what is asked of it if it is an object or an array.
    Typed(Box<Typed>),
}

#[derive(Default)]
pub(super) struct Typed {
    types: u8,
    /// Strings, as written without escapes.
    one_of: Option<Vec<Box<[u8]>>>,
    members: Vec<(Box<[u8]>, Quick)>,
    /// Places in `members` of what must be there.
    required: Vec<usize>,
    /// Of members that are not named; none: there must not be any.
    others: Option<Quick>,
    elements: Option<Quick>,
}

const OBJECT: u8 = 1;
const ARRAY: u8 = 2;
const STRING: u8 = 4;
const NUMBER: u8 = 8;
const INTEGER: u8 = 16;
const BOOLEAN: u8 = 32;
const NULL: u8 = 64;

impl Quick {
    /// None: it has a keyword that is not known here.
    pub(super) fn new(schema: &Value) -> Option<Quick> {
        compile(schema, 0)
    }

    /// Does the JSON text certainly satisfy it?
    pub(super) fn surely_takes(&self, text: &[u8]) -> bool {
        let mut c = Cursor::new(text);
        self.value(&mut c).is_some() && c.at_end()
    }

    fn value(&self, c: &mut Cursor<'_>) -> Option<()> {
        match self {
            Quick::Anything => whole(c.value()?),
            Quick::AnyOf(all) => {
                let (start, mut after) = (*c, None);
                all.iter().find(|q| {
                    let mut here = start;
                    let takes = q.value(&mut here).is_some();
                    after = takes.then_some(here);
                    takes
                })?;
                *c = after?;
                Some(())
            }
            Quick::Typed(typed) => typed.value(c),
        }
    }
}

impl Typed {
    fn value(&self, c: &mut Cursor<'_>) -> Option<()> {
        let may_be = |types: u8| (self.types & types != 0).then_some(());
        match c.peek()? {
            b'{' => {
                may_be(OBJECT)?;
                self.object(c)
            }
            b'[' => {
                may_be(ARRAY)?;
                scan::walk_array(c, &mut |c| match &self.elements {
                    Some(each) => each.value(c),
                    None => whole(c.value()?),
                })
            }
            b'"' => {
                may_be(STRING)?;
                let text = c.string()?;
                match &self.one_of {
                    None => is_text(text).then_some(()),
                    Some(all) => all.iter().any(|one| **one == *text).then_some(()),
                }
            }
            b't' | b'f' => {
                may_be(BOOLEAN)?;
                matches!(c.value()?, b"true" | b"false").then_some(())
            }
            b'n' => {
                may_be(NULL)?;
                (c.value()? == b"null").then_some(())
            }
            _ => {
                let number = c.value()?;
                let types = if is_integer(number) { NUMBER | INTEGER } else { NUMBER };
                may_be(types)?;
                whole(number)
            }
        }
    }

    fn object(&self, c: &mut Cursor<'_>) -> Option<()> {
        let mut seen = 0u64;
        scan::walk_object(c, &mut |c, key| {
            let key = plain(key)?;
            match self.members.iter().position(|(name, _)| **name == *key) {
                Some(n) => {
                    seen |= 1 << n;
                    self.members.get(n)?.1.value(c)
                }
                None => self.others.as_ref()?.value(c),
            }
        })?;
        self.required.iter().all(|n| seen & 1 << n != 0).then_some(())
    }
}

/// Text without escapes is its own value.
fn plain(text: &[u8]) -> Option<&[u8]> {
    (!text.contains(&b'\\') && is_text(text)).then_some(text)
}

/// Is what stands between the quotes the text of a string (RFC 8259 §7)? Escaped surrogates are left to the
/// validator.
fn is_text(text: &[u8]) -> bool {
    // Not one after the other, so that many are looked at together.
    let controls = text.iter().fold(false, |any, b| any | (*b < b' '));
    if controls || std::str::from_utf8(text).is_err() {
        return false;
    }
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        let used = match rest.get(at + 1..) {
            Some([b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', ..]) => 2,
            Some([b'u', a, b, c, d, ..])
                if [a, b, c, d].iter().all(|h| h.is_ascii_hexdigit())
                    && !matches!((a, b), (b'd' | b'D', b'8'..=b'9' | b'a'..=b'f' | b'A'..=b'F')) =>
            {
                6
            }
            _ => return false,
        };
        rest = rest.get(at + used..).unwrap_or_default();
    }
    true
}

/// Is it JSON to its end?
fn whole(text: &[u8]) -> Option<()> {
    serde_json::from_slice::<serde::de::IgnoredAny>(text).ok().map(drop)
}

/// `1.0` is an integer too (JSON Schema 2020-12, validation §6.1.1), which the validator may say.
fn is_integer(number: &[u8]) -> bool {
    let digits = number.strip_prefix(b"-").unwrap_or(number);
    !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
}

/// Does the keyword ask for nothing? Those that no vocabulary knows only tell (JSON Schema 2020-12, core §6.5), and by
/// their prefix these are such: FastMCP marks every wrapped result (`x-fastmcp-wrap-result`).
fn is_note(keyword: &str) -> bool {
    NOTES.contains(&keyword) || keyword.starts_with("x-")
}

fn compile(schema: &Value, depth: usize) -> Option<Quick> {
    let known = match schema {
        Value::Bool(true) => return Some(Quick::Anything),
        Value::Object(known) if depth < DEPTH => known,
        _ => return None,
    };
    let mut asks = known.iter().filter(|(k, _)| !is_note(k));
    let Some((key, value)) = asks.next() else { return Some(Quick::Anything) };
    if key == "anyOf" && asks.next().is_none() {
        let all: Option<Vec<Quick>> = value.as_array()?.iter().map(|s| compile(s, depth + 1)).collect();
        return all.filter(|all| !all.is_empty()).map(Quick::AnyOf);
    }
    typed(known, depth).map(Box::new).map(Quick::Typed)
}

fn typed(schema: &Map<String, Value>, depth: usize) -> Option<Typed> {
    let mut out = Typed { others: Some(Quick::Anything), ..Typed::default() };
    for (key, value) in schema {
        match key.as_str() {
            "type" => out.types = types(value)?,
            "enum" => out.one_of = Some(value.as_array()?.iter().map(written).collect::<Option<_>>()?),
            "properties" => {
                for (name, schema) in value.as_object()? {
                    plain(name.as_bytes())?;
                    out.members.push((name.as_bytes().into(), compile(schema, depth + 1)?));
                }
            }
            "additionalProperties" if value == &Value::Bool(false) => out.others = None,
            "additionalProperties" => out.others = Some(compile(value, depth + 1)?),
            "items" => out.elements = Some(compile(value, depth + 1)?),
            "required" => {}
            note if is_note(note) => {}
            _ => return None,
        }
    }
    for name in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
        let name = name.as_str()?.as_bytes();
        let place = out.members.iter().position(|(known, _)| **known == *name).or_else(|| {
            out.others.as_ref().filter(|others| matches!(others, Quick::Anything))?;
            plain(name)?;
            out.members.push((name.into(), Quick::Anything));
            Some(out.members.len() - 1)
        })?;
        out.required.push(place);
    }
    // Without a type everything is allowed that the other keywords do not speak of; the places are bits.
    let only_strings = out.one_of.is_none() || out.types == STRING;
    (out.types != 0 && only_strings && out.members.len() < 64).then_some(out)
}

fn types(value: &Value) -> Option<u8> {
    let one = |name: &Value| {
        Some(match name.as_str()? {
            "object" => OBJECT,
            "array" => ARRAY,
            "string" => STRING,
            "number" => NUMBER,
            "integer" => INTEGER,
            "boolean" => BOOLEAN,
            "null" => NULL,
            _ => return None,
        })
    };
    match value {
        Value::Array(names) => names.iter().try_fold(0, |all, name| Some(all | one(name)?)),
        name => one(name),
    }
}

fn written(value: &Value) -> Option<Box<[u8]>> {
    Some(plain(value.as_str()?.as_bytes())?.into())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn schema() -> Value {
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Trail", "type": "object",
            "properties": {
                "id": {"type": "string", "description": "which"},
                "n": {"type": "integer"},
                "km": {"anyOf": [{"type": "number"}, {"type": "null"}], "default": null},
                "kind": {"type": "string", "enum": ["loop", "way"]},
                "stops": {"type": "array", "items": {"type": "object", "properties": {"at": {"type": "number"}}, "required": ["at"]}},
            },
            "required": ["id", "kind"], "additionalProperties": false
        })
    }

    #[test]
    fn what_conforms_is_known_without_the_validator() {
        let quick = Quick::new(&schema()).unwrap();
        let yes = |text: &str| quick.surely_takes(text.as_bytes());
        assert!(yes(r#"{"id":"a","kind":"way"}"#));
        assert!(yes(r#" {"id":"a","n":-3,"km":1.5e3,"kind":"loop","stops":[{"at":1,"more":[{}]}]} "#));
        assert!(yes(r#"{"id":"a","km":null,"kind":"way","stops":[]}"#));
        assert!(yes(r#"{"id":"\n\"\u00e9\\\uFFFD","kind":"way"}"#));
        for no in [
            r#"{"id":"a"}"#,
            r#"{"id":1,"kind":"way"}"#,
            r#"{"id":"a","kind":"road"}"#,
            r#"{"id":"a","kind":"way","x":1}"#,
            r#"{"id":"a","kind":"way","stops":[{}]}"#,
            r#"{"id":"a","kind":"way","km":"1"}"#,
            r#"{"id":"a","kind":"way","n":1.5}"#,
            r#"{"id":"a","kind":"way"} x"#,
            r#"{"id":"a","kind":"way","stops":[{"at":01}]}"#,
            r#"{"id":"\x","kind":"way"}"#,
            r#"{"id":"\ud800","kind":"way"}"#,
            r#"{"id":"\uDFff","kind":"way"}"#,
            r#"{"id":"\u00","kind":"way"}"#,
            "{\"id\":\"a\tb\",\"kind\":\"way\"}",
        ] {
            assert!(!yes(no), "{no}");
        }
    }

    #[test]
    fn what_a_framework_notes_asks_for_nothing() {
        let wrapped = json!({
            "type": "object", "properties": {"result": {"type": "string"}}, "required": ["result"],
            "description": "Generic wrapper for non-object return types.", "x-fastmcp-wrap-result": true
        });
        let quick = Quick::new(&wrapped).unwrap();
        assert!(quick.surely_takes(br#"{"result":"a"}"#));
        assert!(!quick.surely_takes(br#"{"result":1}"#));
        assert!(matches!(Quick::new(&json!({"x-any": 1})), Some(Quick::Anything)));
    }

    #[test]
    fn other_keywords_are_left_to_the_validator() {
        for other in [
            json!({"type": "string", "format": "date"}),
            json!({"type": "number", "minimum": 1}),
            json!({"$ref": "#/$defs/x"}),
            json!({"properties": {"a": {"type": "string"}}}),
            json!({"type": "object", "patternProperties": {}}),
            json!({"anyOf": [{"type": "string"}], "type": "string"}),
            json!(false),
        ] {
            assert!(Quick::new(&other).is_none(), "{other}");
        }
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(json!(null)),
            any::<bool>().prop_map(|b| json!(b)),
            any::<i32>().prop_map(|n| json!(n)),
            any::<f32>().prop_filter("a number", |n| n.is_finite()).prop_map(|n| json!(n)),
            prop::sample::select(vec!["loop", "way", "a\"b", "é"]).prop_map(|s| json!(s)),
        ];
        leaf.prop_recursive(3, 24, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::hash_map(
                    prop::sample::select(vec!["id", "n", "km", "kind", "stops", "at", "x"]),
                    inner,
                    0..6
                )
                .prop_map(|m| m
                    .into_iter()
                    .map(|(k, v)| (k.to_owned(), v))
                    .collect::<Map<_, _>>()
                    .into()),
            ]
        })
    }

    proptest! {
        /// Whatever it takes, the validator takes.
        #[test]
        fn it_never_takes_what_does_not_conform(id in value(), kind in value(), more in value()) {
            let mut object = more.as_object().cloned().unwrap_or_default();
            object.entry("id").or_insert(id);
            object.entry("kind").or_insert(kind);
            let mut lax = schema();
            lax["additionalProperties"] = json!({"type": ["string", "integer", "null"]});
            for schema in [schema(), lax] {
                let (quick, slow) = (Quick::new(&schema).unwrap(), jsonschema::validator_for(&schema).unwrap());
                for value in [Value::from(object.clone()), more.clone()] {
                    if quick.surely_takes(value.to_string().as_bytes()) {
                        prop_assert!(slow.is_valid(&value), "{} {}", schema, value);
                    }
                }
            }
        }
    }
}
