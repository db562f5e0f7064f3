//! `--format json`: `crosswire.report/1`, and `crosswire.timeline/1` for `timeline`.

use super::view::View;
use super::{Calls, RenderOptions, Renderer, cited, clean};
use crate::model::report::{Call, CallKey, ExchangeRow, Finding, InputInfo, Near, Report, Session, Summary, Window};
use rustc_hash::FxHashSet;
use serde::Serialize;
use serde::ser::{SerializeSeq, Serializer};
use std::io::{self, Write};

/// `--format json`
pub static RENDERER: Renderer = Renderer {
    name: "json",
    doc: "One object, schema crosswire.report/1 (timeline: crosswire.timeline/1); all calls unless --calls says otherwise.",
    calls: |_| Calls::All,
    report: Some(|view, options, out| document(view, "crosswire.report/1", None, options, out)),
    timeline: Some(|view, options, out| {
        document(view, "crosswire.timeline/1", Some(&view.report.exchanges), options, out)
    }),
};

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    crosswire: &'static str,
    inputs: &'a [InputInfo],
    summary: &'a Summary,
    sessions: &'a [Session],
    calls: Listed<'a>,
    windows: &'a [Window],
    findings: &'a [Finding],
    #[serde(skip_serializing_if = "Option::is_none")]
    near: Option<&'a [Near]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exchanges: Option<&'a [ExchangeRow]>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    troubles: &'a [String],
}

fn document(
    view: &View<'_>,
    schema: &'static str,
    exchanges: Option<&[ExchangeRow]>,
    options: &RenderOptions,
    out: &mut dyn Write,
) -> io::Result<()> {
    let r = view.report;
    let document = Document {
        schema,
        crosswire: env!("CARGO_PKG_VERSION"),
        inputs: &r.inputs,
        summary: &r.summary,
        sessions: &r.sessions,
        calls: Listed::new(r, options.calls.unwrap_or(Calls::All)),
        windows: &r.windows,
        findings: &r.findings,
        near: options.verbose.then_some(&r.near),
        exchanges,
        troubles: &r.troubles,
    };
    let mut out = io::BufWriter::with_capacity(1 << 16, out);
    write(&document, &mut out, Indented::default())?;
    out.write_all(b"\n")?;
    out.flush()
}

/// The calls that are to be listed.
pub(super) struct Listed<'a> {
    calls: &'a [Call],
    only: Option<FxHashSet<CallKey>>,
}

impl<'a> Listed<'a> {
    pub(super) fn new(report: &'a Report, which: Calls) -> Listed<'a> {
        let only = match which {
            Calls::All => None,
            Calls::Cited => Some(cited(report)),
            Calls::None => Some(FxHashSet::default()),
        };
        Listed { calls: &report.calls, only }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Call> {
        self.calls.iter().filter(|c| self.only.as_ref().is_none_or(|only| only.contains(&c.key)))
    }
}

impl Serialize for Listed<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut seq = s.serialize_seq(None)?;
        for call in self.iter() {
            seq.serialize_element(call)?;
        }
        seq.end()
    }
}

/// Writes `value` as JSON in which nothing can act on a terminal.
pub fn write<T: Serialize>(value: &T, out: &mut dyn Write, layout: Indented) -> io::Result<()> {
    let mut serializer = serde_json::Serializer::with_formatter(out, layout);
    value.serialize(&mut serializer).map_err(|e| match e.io_error_kind() {
        Some(kind) => io::Error::new(kind, e),
        None => io::Error::other(e),
    })
}

/// JSON with the first levels on their own lines and deeper ones on one, so that a report can be
/// read, searched by line, and compared with `diff`; and with unsafe characters escaped.
#[derive(Default)]
pub struct Indented {
    depth: usize,
    /// Put everything on one line.
    pub flat: bool,
    has_items: bool,
}

/// Levels that get lines of their own: the document, its lists, and each entry of a list.
const OPEN_LEVELS: usize = 2;

impl Indented {
    /// Everything on one line.
    pub fn flat() -> Indented {
        Indented { flat: true, ..Indented::default() }
    }

    fn is_open(&self) -> bool {
        !self.flat && self.depth <= OPEN_LEVELS
    }

    fn enter<W: ?Sized + Write>(&mut self, out: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.depth += 1;
        self.has_items = false;
        out.write_all(bracket)
    }

    fn leave<W: ?Sized + Write>(&mut self, out: &mut W, bracket: &[u8]) -> io::Result<()> {
        if self.is_open() && self.has_items {
            out.write_all(b"\n")?;
            (1..self.depth).try_for_each(|_| out.write_all(b" "))?;
        }
        self.depth = self.depth.saturating_sub(1);
        self.has_items = true;
        out.write_all(bracket)
    }

    fn item<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        if !first {
            out.write_all(b",")?;
        }
        if self.is_open() {
            out.write_all(b"\n")?;
            return (0..self.depth).try_for_each(|_| out.write_all(b" "));
        }
        if first { Ok(()) } else { out.write_all(b" ") }
    }
}

impl serde_json::ser::Formatter for Indented {
    fn begin_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.enter(out, b"[")
    }
    fn end_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.leave(out, b"]")
    }
    fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.item(out, first)
    }
    fn end_array_value<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.has_items = true;
        Ok(())
    }
    fn begin_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.enter(out, b"{")
    }
    fn end_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.leave(out, b"}")
    }
    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.item(out, first)
    }
    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }
    fn end_object_value<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.has_items = true;
        Ok(())
    }
    fn write_string_fragment<W: ?Sized + Write>(&mut self, out: &mut W, fragment: &str) -> io::Result<()> {
        let mut rest = fragment;
        while let Some((at, c)) = rest.char_indices().find(|(_, c)| clean::is_unsafe(*c)) {
            let (head, tail) = rest.split_at(at);
            out.write_all(head.as_bytes())?;
            let mut units = [0u16; 2];
            for unit in c.encode_utf16(&mut units) {
                write!(out, "\\u{unit:04x}")?;
            }
            rest = tail.get(c.len_utf8()..).unwrap_or("");
        }
        out.write_all(rest.as_bytes())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(value: &impl Serialize, layout: Indented) -> String {
        let mut out = Vec::new();
        write(value, &mut out, layout).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn lays_out_entries_on_lines() {
        let value = serde_json::json!({"a": [{"b": [1, 2]}, {"b": []}], "c": {}, "d": []});
        assert_eq!(
            text(&value, Indented::default()),
            "{\n \"a\": [\n  {\"b\": [1, 2]},\n  {\"b\": []}\n ],\n \"c\": {},\n \"d\": []\n}"
        );
        assert_eq!(text(&value, Indented::flat()), "{\"a\": [{\"b\": [1, 2]}, {\"b\": []}], \"c\": {}, \"d\": []}");
    }

    proptest! {
        #[test]
        fn strings_come_back_and_cannot_act(s in any::<String>()) {
            let json = text(&s, Indented::flat());
            prop_assert!(!json.chars().any(clean::is_unsafe));
            prop_assert_eq!(serde_json::from_str::<String>(&json).unwrap(), s);
        }
    }
}
