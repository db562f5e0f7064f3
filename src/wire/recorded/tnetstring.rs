//! Tagged netstrings (tnetstrings.info, as mitmproxy extends them): `LENGTH:PAYLOAD` and one byte
//! that is the type.

use crate::model::limits;
use std::io::{self, BufRead, Read};

/// One value; bytes are borrowed.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value<'a> {
    /// `,` bytes, or `;` (mitmproxy) text.
    Bytes(&'a [u8]),
    /// `#`
    Int(i64),
    /// `^`
    Float(f64),
    /// `!`
    Bool(bool),
    /// `~`
    Null,
    /// `]`
    List(Vec<Value<'a>>),
    /// `}`
    Dict(Vec<(&'a [u8], Value<'a>)>),
}

impl<'a> Value<'a> {
    /// A member of a dictionary.
    pub(super) fn get(&self, name: &str) -> Option<&Value<'a>> {
        match self {
            Value::Dict(members) => members.iter().find(|(n, _)| *n == name.as_bytes()).map(|(_, v)| v),
            _ => None,
        }
    }
    /// An element of a list.
    pub(super) fn at(&self, index: usize) -> Option<&Value<'a>> {
        match self {
            Value::List(elements) => elements.get(index),
            _ => None,
        }
    }
    /// Its bytes, if it is a string.
    pub(super) fn bytes(&self) -> Option<&'a [u8]> {
        match self {
            Value::Bytes(b) => Some(b),
            _ => None,
        }
    }
    /// Its text, if it is a string in UTF-8.
    pub(super) fn text(&self) -> Option<&'a str> {
        self.bytes().and_then(|b| std::str::from_utf8(b).ok())
    }
    /// Its number, if it is a whole one.
    pub(super) fn int(&self) -> Option<i64> {
        match self {
            Value::Int(n) => Some(*n),
            _ => None,
        }
    }
}

/// Why the next top-level value could not be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// The input ends inside it.
    #[error("the file ends inside an entry")]
    Cut,
    /// No netstring begins here.
    #[error("expected the length of an entry and a colon")]
    NoLength,
    /// It is longer than is kept.
    #[error("an entry of {0} bytes")]
    TooLong(u64),
    /// Reading failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Digits that a length may have.
const LENGTH_DIGITS: usize = 12;

/// Reads the bytes of the next top-level value with its type byte into `buffer`; false at the end
/// of the input.
pub(super) fn next(input: &mut dyn BufRead, buffer: &mut Vec<u8>) -> Result<bool, Error> {
    let mut length = 0_u64;
    let mut digits = 0;
    loop {
        let mut byte = [0];
        match input.read(&mut byte) {
            Ok(0) if digits == 0 => return Ok(false),
            Ok(0) => return Err(Error::Cut),
            Ok(_) => {}
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(e.into()),
        }
        match byte {
            [b @ b'0'..=b'9'] if digits < LENGTH_DIGITS => {
                length = length * 10 + u64::from(b - b'0');
                digits += 1;
            }
            [b':'] if digits > 0 => break,
            _ => return Err(Error::NoLength),
        }
    }
    if length > 4 * limits::MESSAGE_BYTES as u64 {
        return Err(Error::TooLong(length));
    }
    buffer.clear();
    let read = input.take(length + 1).read_to_end(buffer)?;
    if read as u64 == length + 1 { Ok(true) } else { Err(Error::Cut) }
}

/// The value whose payload and type byte are given; none if it is malformed anywhere.
pub(super) fn parse(payload_and_type: &[u8]) -> Option<Value<'_>> {
    let (kind, payload) = payload_and_type.split_last()?;
    value(*kind, payload, 0)
}

fn value(kind: u8, payload: &[u8], depth: usize) -> Option<Value<'_>> {
    if depth > limits::JSON_DEPTH {
        return None;
    }
    let text = || std::str::from_utf8(payload).ok();
    Some(match kind {
        b',' | b';' => Value::Bytes(payload),
        b'#' => Value::Int(text()?.parse().ok()?),
        b'^' => Value::Float(text()?.parse().ok()?),
        b'!' => Value::Bool(match payload {
            b"true" => true,
            b"false" => false,
            _ => return None,
        }),
        b'~' if payload.is_empty() => Value::Null,
        b']' => {
            let mut elements = Vec::new();
            let mut rest = payload;
            while !rest.is_empty() {
                let (element, after) = split(rest, depth)?;
                elements.push(element);
                rest = after;
            }
            Value::List(elements)
        }
        b'}' => {
            let mut members = Vec::new();
            let mut rest = payload;
            while !rest.is_empty() {
                let (name, after) = split(rest, depth)?;
                let (member, after) = split(after, depth)?;
                members.push((name.bytes()?, member));
                rest = after;
            }
            Value::Dict(members)
        }
        _ => return None,
    })
}

/// The first value of `bytes` and what follows it.
fn split(bytes: &[u8], depth: usize) -> Option<(Value<'_>, &[u8])> {
    let colon = memchr::memchr(b':', bytes.get(..bytes.len().min(LENGTH_DIGITS + 1))?)?;
    let length: usize = std::str::from_utf8(bytes.get(..colon)?).ok()?.parse().ok()?;
    let payload = bytes.get(colon + 1..)?.get(..length)?;
    let kind = *bytes.get(colon + 1 + length)?;
    Some((value(kind, payload, depth + 1)?, bytes.get(colon + 2 + length..)?))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn values() {
        let text = b"34:1:a;2:12#1:b,0:~1:c,0:]1:d,4:true!}";
        let mut buffer = Vec::new();
        let mut input: &[u8] = text;
        assert!(next(&mut input, &mut buffer).unwrap());
        let v = parse(&buffer).unwrap();
        assert_eq!(v.get("a").unwrap().int(), Some(12));
        assert_eq!(v.get("b"), Some(&Value::Null));
        assert_eq!(v.get("d"), Some(&Value::Bool(true)));
        assert!(!next(&mut input, &mut buffer).unwrap());
        assert!(matches!(next(&mut &b"5:ab"[..], &mut buffer), Err(Error::Cut)));
        assert!(matches!(next(&mut &b"GET / HTTP"[..], &mut buffer), Err(Error::NoLength)));
    }

    proptest! {
        #[test]
        fn anything_is_taken_without_a_panic(bytes in "[0-9]{0,2}:[0-9:,;\\]}#~]{0,30}") {
            let _ = parse(bytes.as_bytes());
            let mut buffer = Vec::new();
            let _ = next(&mut bytes.as_bytes(), &mut buffer);
        }
    }
}
