//! A compiled format: literal texts and values in turn, and how a line is split by them.

use super::assemble::{Assembly, Field, Shared};
use super::layout::Parsed;
use super::strftime::{self, Item};
use super::time;
use crate::model::place::Place;

/// Attempts at splitting one line; beyond them it counts as not fitting.
const SPLIT_STEPS: u32 = 20_000;
/// Pieces of one format.
const PIECES: usize = 512;

/// A part of a format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// Text that stands in every line.
    Literal(Vec<u8>),
    /// A value.
    Value(Value),
}

/// A value of a format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Value {
    /// What may stand there.
    pub(super) shape: Shape,
    /// What it means.
    pub(super) meaning: Meaning,
}

/// What may stand in the place of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// Anything.
    Text,
    /// Anything without a space.
    Word,
    /// A number, `-` or nothing.
    Number,
    /// Numbers joined by `, ` and ` : `.
    Numbers,
    /// A time in a layout of its own, or an epoch.
    Time,
    /// A time by directives.
    Strftime(Vec<Item>),
    /// HAProxy's ` {a|b}` with the space before it, or nothing.
    Captures,
}

/// What a value means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// A field of the record.
    Field(Field),
    /// A piece of the start's (else the end's) time.
    Stamp {
        /// Of the start?
        start: bool,
        /// Which piece.
        part: StampPart,
    },
    /// HAProxy's captured headers.
    Captures {
        /// Of the response?
        response: bool,
    },
}

/// A piece of a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum StampPart {
    /// By directives.
    Strftime(Vec<Item>),
    /// Number with so many digits: the fraction of the second.
    Fraction(u8),
    /// Whole seconds since the epoch, whose fraction stands elsewhere.
    EpochSeconds,
    /// Since the epoch, in units of so many nanoseconds.
    Epoch(i64),
}

impl Piece {
    /// A value that is a field of the record.
    pub(super) fn field(shape: Shape, field: Field) -> Piece {
        Piece::Value(Value { shape, meaning: Meaning::Field(field) })
    }

    /// Appends literal text to the pieces.
    pub(super) fn push_literal(pieces: &mut Vec<Piece>, text: &[u8]) {
        match pieces.last_mut() {
            Some(Piece::Literal(last)) => last.extend_from_slice(text),
            _ if text.is_empty() => {}
            _ => pieces.push(Piece::Literal(text.to_vec())),
        }
    }
}

/// A compiled format.
pub(super) struct Template {
    pieces: Vec<Piece>,
    /// Where the value of each piece begins and ends, for the line at hand.
    ranges: Vec<(usize, usize)>,
}

impl Template {
    pub(super) fn new(mut pieces: Vec<Piece>) -> Template {
        pieces.truncate(PIECES);
        // HAProxy leaves out the captures with their space where there are none.
        for at in 1..pieces.len() {
            let (before, after) = pieces.split_at_mut(at);
            if let (Some(Piece::Literal(text)), Some(Piece::Value(Value { shape: Shape::Captures, .. }))) =
                (before.last_mut(), after.first())
                && text.last() == Some(&b' ')
            {
                text.pop();
            }
        }
        pieces.retain(|p| *p != Piece::Literal(Vec::new()));
        let ranges = vec![(0, 0); pieces.len()];
        Template { pieces, ranges }
    }

    /// Does any of its values tell a time, a status or a request?
    pub(super) fn says_something(&self) -> bool {
        self.pieces.iter().any(|piece| match piece {
            Piece::Value(Value { meaning: Meaning::Field(field), .. }) => {
                matches!(field, Field::Start | Field::End | Field::Status | Field::RequestLine | Field::Method)
            }
            Piece::Value(Value { meaning: Meaning::Stamp { .. }, .. }) => true,
            _ => false,
        })
    }

    /// What a line says.
    pub(super) fn parse(&mut self, line: &[u8], place: Place, shared: &mut Shared) -> Parsed {
        let mut steps = SPLIT_STEPS;
        if !split(&self.pieces, &mut self.ranges, line, 0, &mut steps) {
            // The beginning of a line of this format, or of another one?
            return match self.pieces.first() {
                Some(Piece::Literal(text)) if !line.starts_with(text) => Parsed::No,
                _ => Parsed::Bad("a line that does not fit the format given by --log-format"),
            };
        }
        let mut out = Assembly::default();
        for (piece, (from, to)) in self.pieces.iter().zip(&self.ranges) {
            let Piece::Value(value) = piece else { continue };
            let text = line.get(*from..*to).unwrap_or_default();
            let fits = match &value.meaning {
                Meaning::Field(field) => out.set(*field, text, shared),
                Meaning::Stamp { start, part } => set_part(&mut out, *start, part, text),
                Meaning::Captures { response } => {
                    set_captures(&mut out, text, *response, shared);
                    true
                }
            };
            if !fits {
                return Parsed::Bad("a value that cannot stand in its place in the format");
            }
        }
        let nothing = !out.has_time() && out.record.status.is_none() && out.record.method.is_none();
        if nothing { Parsed::Quiet(None) } else { Parsed::Access(out.finish(place, shared)) }
    }
}

/// Finds the values of `pieces` from `at` on, trying later ends where the rest does not fit.
fn split(pieces: &[Piece], ranges: &mut [(usize, usize)], line: &[u8], at: usize, steps: &mut u32) -> bool {
    let (Some((piece, pieces)), Some((range, ranges))) = (pieces.split_first(), ranges.split_first_mut()) else {
        return at == line.len();
    };
    let Some(text) = line.get(at..) else { return false };
    let value = match piece {
        Piece::Literal(literal) => {
            return text.starts_with(literal) && split(pieces, ranges, line, at + literal.len(), steps);
        }
        Piece::Value(value) => value,
    };
    let mut attempt = |len: usize, ranges: &mut [(usize, usize)], steps: &mut u32| {
        *steps = steps.saturating_sub(1);
        *range = (at, at + len);
        *steps > 0 && split(pieces, ranges, line, at + len, steps)
    };
    // Shapes that say themselves where they end.
    match &value.shape {
        Shape::Time => {
            return time_len(text).is_some_and(|len| attempt(len, ranges, steps))
                || text.starts_with(b"-") && attempt(1, ranges, steps);
        }
        Shape::Strftime(items) => {
            return strftime::parse(items, text, &mut time::Civil::default())
                .is_some_and(|len| attempt(len, ranges, steps));
        }
        Shape::Captures => {
            let captures = text.strip_prefix(b" ").unwrap_or(text);
            let skipped = text.len() - captures.len();
            let found = captures.starts_with(b"{")
                && memchr::memchr(b'}', captures).is_some_and(|end| attempt(skipped + end + 1, ranges, steps));
            return found || attempt(0, ranges, steps);
        }
        Shape::Text | Shape::Word | Shape::Number | Shape::Numbers => {}
    }
    match pieces.first() {
        None => fits(&value.shape, text) && attempt(text.len(), ranges, steps),
        Some(Piece::Literal(next)) => {
            // First where the literal is not escaped by the writer, then anywhere.
            let quote = next.first() == Some(&b'"');
            for accept_escaped in [false, true] {
                let mut from = 0;
                while let Some(found) = text.get(from..).and_then(|t| memchr::memmem::find(t, next)) {
                    let len = from + found;
                    let candidate = text.get(..len).unwrap_or_default();
                    if is_beyond(&value.shape, candidate) || *steps == 0 {
                        break;
                    }
                    let escaped = quote && candidate.iter().rev().take_while(|c| **c == b'\\').count() % 2 == 1;
                    if escaped == accept_escaped && fits(&value.shape, candidate) && attempt(len, ranges, steps) {
                        return true;
                    }
                    from = len + 1;
                }
                if !quote {
                    break;
                }
            }
            false
        }
        // Two values without anything between them.
        Some(Piece::Value(_)) => {
            let longest = longest(&value.shape, text);
            match value.shape {
                Shape::Text => (0..=longest).any(|len| *steps > 0 && attempt(len, ranges, steps)),
                _ => (0..=longest).rev().any(|len| {
                    *steps > 0 && text.get(..len).is_some_and(|t| fits(&value.shape, t)) && attempt(len, ranges, steps)
                }),
            }
        }
    }
}

/// May `text` stand there?
fn fits(shape: &Shape, text: &[u8]) -> bool {
    match shape {
        Shape::Word => memchr::memchr(b' ', text).is_none(),
        Shape::Number => is_number(text),
        Shape::Numbers => {
            // An item of a list of upstreams never is empty.
            text.is_empty() || split_list(text).all(|item| !item.is_empty() && is_number(item))
        }
        _ => true,
    }
}

/// Can nothing longer than `text` stand there either?
fn is_beyond(shape: &Shape, text: &[u8]) -> bool {
    match shape {
        Shape::Word | Shape::Number => memchr::memchr(b' ', text).is_some(),
        Shape::Numbers => text.iter().any(|c| !(c.is_ascii_digit() || matches!(c, b' ' | b',' | b':' | b'.' | b'-'))),
        _ => false,
    }
}

fn longest(shape: &Shape, text: &[u8]) -> usize {
    match shape {
        Shape::Word => memchr::memchr(b' ', text).unwrap_or(text.len()),
        Shape::Number => text.iter().take_while(|c| c.is_ascii_digit() || matches!(c, b'-' | b'+' | b'.')).count(),
        _ => text.len(),
    }
}

fn is_number(text: &[u8]) -> bool {
    let digits = text.strip_prefix(b"-").or_else(|| text.strip_prefix(b"+")).unwrap_or(text);
    digits.iter().all(|c| c.is_ascii_digit() || *c == b'.')
}

fn split_list(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let comma = memchr::memmem::find(text, b", ").map(|at| (at, 2));
        let colon = memchr::memmem::find(text, b" : ").map(|at| (at, 3));
        let next = match (comma, colon) {
            (Some(a), Some(b)) => Some(if a.0 < b.0 { a } else { b }),
            (a, b) => a.or(b),
        };
        match next {
            Some((at, len)) => {
                rest = text.get(at + len..);
                text.get(..at)
            }
            None => rest.take(),
        }
    })
}

/// Length of a time at the beginning of `text`, brackets included.
fn time_len(text: &[u8]) -> Option<usize> {
    if let Some(inner) = text.strip_prefix(b"[") {
        let (_, len) = time::any_civil(inner)?;
        return (inner.get(len) == Some(&b']')).then_some(len + 2);
    }
    if let Some((_, len)) = time::any_civil(text) {
        return Some(len);
    }
    let len = text.iter().take_while(|c| c.is_ascii_digit() || **c == b'.').count();
    time::epoch(text.get(..len)?).map(|_| len)
}

fn set_part(out: &mut Assembly, start: bool, part: &StampPart, text: &[u8]) -> bool {
    if text.is_empty() || text == b"-" {
        return true;
    }
    let civil = if start { &mut out.start.civil } else { &mut out.end.civil };
    match part {
        StampPart::Strftime(items) => strftime::parse(items, text, civil.get_or_insert_default()).is_some(),
        StampPart::Fraction(digits) => {
            let Some((value, _)) = time::decimal(text, 1) else { return false };
            let civil = civil.get_or_insert_default();
            let Ok(nanos) = u32::try_from(value.saturating_mul(time::resolution_of(*digits))) else { return false };
            (civil.nanos, civil.digits) = (nanos, *digits);
            true
        }
        StampPart::EpochSeconds => match time::decimal(text, 1) {
            Some((seconds, _)) => strftime::set_epoch(seconds, civil.get_or_insert_default()).is_some(),
            None => false,
        },
        StampPart::Epoch(unit) => match time::decimal(text, *unit) {
            Some((ns, resolution)) => {
                out.set_instant(start, crate::model::time::Time::from_ns(ns, time::digits_of(resolution)));
                true
            }
            None => false,
        },
    }
}

/// `{a|b}`: captured headers whose names the log does not tell.
pub(super) fn set_captures(out: &mut Assembly, text: &[u8], response: bool, shared: &mut Shared) {
    let inner = text.trim_ascii().strip_prefix(b"{").and_then(|t| t.strip_suffix(b"}")).unwrap_or_default();
    for value in inner.split(|c| *c == b'|') {
        out.set(if response { Field::CapturedGiven } else { Field::Captured }, value, shared);
    }
}
