//! One JSON object a line: which key means what is all that differs between formats.

use super::assemble::{Assembly, Field, Shared};
use super::escape::unescape;
use super::json_scan::{Value, walk};
use super::layout::{Layout, Parsed};
use crate::model::place::Place;
use rustc_hash::FxHashMap;

/// Keys whose meaning is remembered; more are looked up anew each time.
const REMEMBERED_KEYS: usize = 4096;

/// Meaning of a key, by its dotted path.
type Names = Box<dyn Fn(&[u8]) -> Option<Field>>;

/// What a key means, and whether it is one of the marks.
type Meaning = (Field, bool);

/// A JSON layout.
pub(super) struct JsonLayout {
    names: Names,
    marks: &'static [&'static [u8]],
    is_own: fn(&mut Assembly, usize) -> bool,
    /// A text that every line of this layout holds: without it the line is not walked at all.
    sign: &'static [u8],
    /// A value that cannot stand under its key makes the line a bad one.
    strict: bool,
    known: FxHashMap<Box<[u8]>, Meaning>,
    /// The keys of the last line in their order, which the next line most likely has too.
    order: Vec<(Box<[u8]>, Meaning)>,
}

impl JsonLayout {
    /// A layout in which `names` gives a key's meaning; `is_own` tells from what was found, and
    /// from the number of `marks` among the keys, whether the line is of this layout at all.
    pub(super) fn new(
        names: impl Fn(&[u8]) -> Option<Field> + 'static,
        marks: &'static [&'static [u8]],
        is_own: fn(&mut Assembly, usize) -> bool,
    ) -> JsonLayout {
        JsonLayout {
            names: Box::new(names),
            marks,
            is_own,
            sign: b"",
            strict: true,
            known: FxHashMap::default(),
            order: vec![],
        }
    }

    /// Lines without this text are refused at once.
    pub(super) fn with_sign(mut self, sign: &'static [u8]) -> JsonLayout {
        self.sign = sign;
        self
    }

    /// Keys are guessed at: a value that does not fit is no fault of the line.
    pub(super) fn guessing(mut self) -> JsonLayout {
        self.strict = false;
        self
    }

    /// What the `n`th key of a line means.
    fn meaning(&mut self, n: usize, path: &[u8]) -> Meaning {
        if let Some((_, found)) = self.order.get(n).filter(|(key, _)| **key == *path) {
            return *found;
        }
        let found = self.looked_up(path);
        if let Some(slot) = self.order.get_mut(n) {
            *slot = (path.into(), found);
        } else if n == self.order.len() && n < REMEMBERED_KEYS {
            self.order.push((path.into(), found));
        }
        found
    }

    fn looked_up(&mut self, path: &[u8]) -> Meaning {
        if let Some(found) = self.known.get(path) {
            return *found;
        }
        let found = ((self.names)(path).unwrap_or(Field::Skip), self.marks.contains(&path));
        if self.known.len() < REMEMBERED_KEYS {
            self.known.insert(path.into(), found);
        }
        found
    }
}

impl Layout for JsonLayout {
    fn parse(&mut self, line: &[u8], place: Place, shared: &mut Shared) -> Parsed {
        if line.first() != Some(&b'{') || !self.sign.is_empty() && memchr::memmem::find(line, self.sign).is_none() {
            return Parsed::No;
        }
        let mut out = Assembly::default();
        let (mut n, mut marks, mut misfit) = (0, 0, false);
        let whole = walk(line, &mut |path, value| {
            let (field, is_mark) = self.meaning(n, path);
            n += 1;
            marks += usize::from(is_mark);
            let fits = match (field, value) {
                (Field::Skip, _) => true,
                (_, Value::Bare(b"null" | b"true" | b"false")) => true,
                (Field::RequestBody, Value::Text(text)) => {
                    out.record.request_body = (!matches!(text, b"" | b"-")).then(|| unescape(text).into());
                    true
                }
                (Field::ResponseBody, Value::Text(text)) => {
                    out.record.response_body = (!matches!(text, b"" | b"-")).then(|| unescape(text).into());
                    true
                }
                (Field::RequestBody | Field::ResponseBody, Value::Nested(text)) => out.set(field, text, shared),
                (_, Value::Nested(_)) => true,
                (_, Value::Text(text) | Value::Bare(text)) => out.set(field, text, shared),
            };
            misfit |= !fits;
        });
        if !(self.is_own)(&mut out, marks) {
            return Parsed::No;
        }
        match (whole, misfit && self.strict) {
            (false, _) => Parsed::Bad("a JSON line that breaks off or is no JSON"),
            (_, true) => Parsed::Bad("a value that cannot stand under its key"),
            _ => Parsed::Access(out.finish(place, shared)),
        }
    }
}
