//! What the JSON outputs hold, field by field: the one source of `crosswire-report.7` and of the
//! JSON Schemas in `docs/schema/`. A test holds every report that the tests know against it, so a
//! field that is not described here does not get out.

mod json_schema;
mod objects;
mod problems;

pub use json_schema::{json_schema, json_schema_id};
pub use objects::{DOCUMENTS, OBJECTS};
pub use problems::PROBLEMS;

/// What a field holds.
#[derive(Clone, Copy)]
pub enum Kind {
    /// Text.
    Text,
    /// A count, number or size: an integer from 0.
    Count,
    /// An integer that may be negative.
    Integer,
    /// A number.
    Number,
    /// RFC 3339 in UTC, as many digits as the input had.
    Time,
    /// 64 lower-case hexadecimal digits.
    Sha256,
    /// The key of a call: `c` and a number.
    CallKey,
    /// A JSON-RPC id: string or number.
    RpcId,
    /// True or false.
    Flag,
    /// This very text.
    Exactly(&'static str),
    /// One of these words, each with its meaning.
    OneOf(&'static [(&'static str, &'static str)]),
    /// An object of [`OBJECTS`], by its name.
    Object(&'static str),
    /// A list.
    List(&'static Kind),
    /// A name and a value.
    Pair,
    /// Any JSON value.
    Any,
}

/// Is a field always there?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// It is, and never null.
    Always,
    /// It is, and null where the inputs do not show it.
    Nullable,
    /// It may be left out.
    Optional,
}

/// One field.
pub struct Field {
    /// Its key.
    pub name: &'static str,
    /// What it holds.
    pub kind: Kind,
    /// Is it always there?
    pub presence: Presence,
    /// What it means, units included.
    pub doc: &'static str,
}

/// One kind of object.
pub struct Object {
    /// What it is called here and in the schemas' `$defs`.
    pub name: &'static str,
    /// What one stands for.
    pub doc: &'static str,
    /// Its fields, in the order in which they are written.
    pub fields: &'static [Field],
}

/// The object of this name, a document or a part of one.
pub fn object(name: &str) -> Option<&'static Object> {
    DOCUMENTS.iter().chain(OBJECTS).find(|o| o.name == name)
}

impl Kind {
    /// In words, for the manual.
    pub fn words(&self) -> String {
        match self {
            Kind::Text => "text".into(),
            Kind::Count => "integer".into(),
            Kind::Integer => "signed integer".into(),
            Kind::Number => "number".into(),
            Kind::Time => "time".into(),
            Kind::Sha256 => "SHA-256".into(),
            Kind::CallKey => "call key".into(),
            Kind::RpcId => "string or number".into(),
            Kind::Flag => "true or false".into(),
            Kind::Exactly(text) => format!("\"{text}\""),
            Kind::OneOf(_) => "one word".into(),
            Kind::Object(name) => format!("object: {name}"),
            Kind::List(Kind::Object(name)) => format!("list of {name}"),
            Kind::List(of) => format!("list of {}", of.words()),
            Kind::Pair => "[name, value]".into(),
            Kind::Any => "any value".into(),
        }
    }

    /// The object that it holds, itself or as the items of a list.
    pub fn object(&self) -> Option<&'static Object> {
        match self {
            Kind::Object(name) => object(name),
            Kind::List(of) => of.object(),
            _ => None,
        }
    }

    /// The words that it can be, itself or as the items of a list.
    pub fn words_of(&self) -> &'static [(&'static str, &'static str)] {
        match self {
            Kind::OneOf(words) => words,
            Kind::List(of) => of.words_of(),
            _ => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_object_named_is_there_and_names_are_unique() {
        let all = || DOCUMENTS.iter().chain(OBJECTS);
        for o in all() {
            assert_eq!(all().filter(|x| x.name == o.name).count(), 1, "{}", o.name);
            for f in o.fields {
                assert_eq!(o.fields.iter().filter(|x| x.name == f.name).count(), 1, "{}.{}", o.name, f.name);
                assert!(f.doc.ends_with('.'), "{}.{}: {:?}", o.name, f.name, f.doc);
                let mut kind = &f.kind;
                while let Kind::List(of) = kind {
                    kind = of;
                }
                assert!(!matches!(kind, Kind::Object(_)) || kind.object().is_some(), "{}.{}", o.name, f.name);
            }
        }
    }

    /// Kinds of problem are an open list; the table must follow it.
    #[test]
    fn every_kind_of_problem_is_described() {
        let source = include_str!("../../model/problem.rs");
        let (_, body) = source.split_once("pub enum ProblemKind {").unwrap_or_default();
        let (body, _) = body.split_once("\n}").unwrap_or_default();
        let names: Vec<String> = body
            .lines()
            .filter_map(|l| l.trim().strip_suffix(',').filter(|l| !l.starts_with('/')))
            .map(|variant| {
                let mut out = String::new();
                for (i, c) in variant.char_indices() {
                    if c.is_uppercase() && i > 0 {
                        out.push('-');
                    }
                    out.extend(c.to_lowercase());
                }
                out
            })
            .collect();
        let described: Vec<&str> = PROBLEMS.iter().map(|(n, _)| *n).collect();
        assert_eq!(names, described);
    }
}
