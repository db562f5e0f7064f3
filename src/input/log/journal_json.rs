//! `journalctl -o json`, `json-pretty`, `json-seq` (RFC 7464) and `json-sse`.
//!
//! `MESSAGE` is a string, an array of bytes where it holds control characters, or null where it
//! was left out for its size; a field with several values is an array of them (systemd,
//! docs/JOURNAL_EXPORT_FORMATS.md, "Journal JSON Format").

use super::app::Interpreter;
use super::journal::{self, Entry};
use super::{Format, Grade, LineReader, LogContext, Reader, RecordSink};
use crate::model::limits;
use crate::model::place::{Place, Vantage};
use crate::model::problem::ProblemKind;
use serde::de::{self, DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;

/// The format.
pub static FORMAT: Format = Format {
    name: "journal-json",
    vantage: Vantage::Server,
    carries: true,
    doc: "`journalctl -o json`, `json-pretty`, `json-seq` and `json-sse`. Times are the journal's, UTC to the \
          microsecond. Messages that journalctl left out for their size (`null`; use `--all`) are counted.",
    samples: &[
        r#"{"__CURSOR":"s=0f;i=1;b=01;m=2;t=3;x=1","__REALTIME_TIMESTAMP":"1795981839604364","_HOSTNAME":"h","SYSLOG_IDENTIFIER":"uvicorn","_PID":"42","MESSAGE":"StreamableHTTP session manager started"}"#,
        "{\n\t\"__REALTIME_TIMESTAMP\" : \"1795981839604364\",\n\t\"MESSAGE\" : \"StreamableHTTP session manager started\",\n\t\"_PID\" : \"42\"\n}",
        "data: {\"__REALTIME_TIMESTAMP\":\"1795981839604364\",\"MESSAGE\":[83,116,114,101,97,109,97,98,108,101,72,84,84,80,32,115,101,115,115,105,111,110,32,109,97,110,97,103,101,114,32,115,116,97,114,116,101,100]}\n",
    ],
    grade,
    reader: Reader::Lines(new),
};

fn grade(bytes: &[u8]) -> Grade {
    let head = bytes.get(..bytes.len().min(16 << 10)).unwrap_or_default();
    let opens =
        journal::whole_lines(head).find(|l| !l.trim_ascii().is_empty()).is_some_and(|l| bare(l).starts_with(b"{"));
    let has = |needle: &[u8]| memchr::memmem::find(head, needle).is_some();
    match opens && has(b"\"__REALTIME_TIMESTAMP\"") {
        true => Grade::Certain,
        false if opens && has(b"\"__CURSOR\"") => Grade::Certain,
        false if opens && has(b"\"SYSLOG_IDENTIFIER\"") && has(b"\"MESSAGE\"") => Grade::Likely,
        false => Grade::No,
    }
}

/// A line without the record separator of json-seq or the `data:` of json-sse.
fn bare(line: &[u8]) -> &[u8] {
    let line = line.trim_ascii();
    let line = line.strip_prefix(b"\x1e").unwrap_or(line);
    line.strip_prefix(b"data:").map_or(line, <[u8]>::trim_ascii_start)
}

struct Json {
    interpreter: Interpreter,
    input: u32,
    entry: Entry,
    /// An object over several lines, and the line on which it began.
    open: Vec<u8>,
    number: u64,
}

/// A reader.
fn new(context: &LogContext<'_>) -> Box<dyn LineReader> {
    Box::new(Json {
        interpreter: Interpreter::new(context),
        input: context.input,
        entry: Entry::default(),
        open: Vec::new(),
        number: 0,
    })
}

impl LineReader for Json {
    fn line(&mut self, line: &[u8], number: u64, out: &mut dyn RecordSink) {
        let line = bare(line);
        if line.is_empty() {
            return;
        }
        if line == b"{" || line.starts_with(b"{\"") || line.starts_with(b"{ \"") || self.open.is_empty() {
            self.broken(out);
            self.number = number;
            if line.ends_with(b"}") {
                return self.object(line, out);
            }
            if !line.starts_with(b"{") {
                // `[` and `]` of an array of entries
                if line == b"[" || line == b"]" {
                    return;
                }
                out.entry(None);
                return out.problem(ProblemKind::UnknownLine, Place::line(self.input, number), "no journal entry");
            }
        }
        if self.open.len() + line.len() > limits::FIELD_BYTES {
            out.problem(
                ProblemKind::LimitHit,
                Place::line(self.input, self.number),
                "field-bytes: a journal entry is too long",
            );
            return self.broken(out);
        }
        self.open.extend_from_slice(line);
        self.open.push(b'\n');
        if line == b"}" || line == b"}," {
            let object = std::mem::take(&mut self.open);
            self.object(object.trim_ascii_end(), out);
            self.open = object;
            self.open.clear();
        }
    }

    fn finish(&mut self, out: &mut dyn RecordSink) {
        if !self.open.is_empty() {
            self.open.clear();
            out.entry(None);
            out.problem(
                ProblemKind::TruncatedRecord,
                Place::line(self.input, self.number),
                "the log ends inside a journal entry",
            );
        }
        self.interpreter.finish(out);
    }
}

impl Json {
    /// An object began before the last had ended.
    fn broken(&mut self, out: &mut dyn RecordSink) {
        if !self.open.is_empty() {
            self.open.clear();
            self.bad(out);
        }
    }

    fn bad(&mut self, out: &mut dyn RecordSink) {
        out.entry(None);
        out.problem(
            ProblemKind::BadJournal,
            Place::line(self.input, self.number),
            "a journal entry that is no JSON object",
        );
    }

    fn object(&mut self, json: &[u8], out: &mut dyn RecordSink) {
        let json = json.strip_suffix(b",").unwrap_or(json);
        self.entry.clear();
        let mut de = serde_json::Deserializer::from_slice(json);
        let read = Fields(&mut self.entry).deserialize(&mut de).and_then(|()| de.end());
        if read.is_err() || self.entry.is_empty() && !self.entry.elided {
            return self.bad(out);
        }
        self.entry.tell(Place::line(self.input, self.number), None, &mut self.interpreter, out);
    }
}

/// Puts an object's members into an entry.
struct Fields<'e>(&'e mut Entry);

impl<'de> DeserializeSeed<'de> for Fields<'_> {
    type Value = ();
    fn deserialize<D: de::Deserializer<'de>>(self, d: D) -> Result<(), D::Error> {
        d.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Fields<'_> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a journal entry")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            map.next_value_seed(Field(self.0, &key))?;
        }
        Ok(())
    }
}

/// Sets one field from any of the forms of its value.
struct Field<'e, 'k>(&'e mut Entry, &'k str);

impl<'de> DeserializeSeed<'de> for Field<'_, '_> {
    type Value = ();
    fn deserialize<D: de::Deserializer<'de>>(self, d: D) -> Result<(), D::Error> {
        d.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Field<'_, '_> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a field")
    }
    fn visit_str<E: de::Error>(self, v: &str) -> Result<(), E> {
        self.0.set(self.1.as_bytes(), v.as_bytes());
        Ok(())
    }
    fn visit_u64<E: de::Error>(self, v: u64) -> Result<(), E> {
        self.0.set(self.1.as_bytes(), v.to_string().as_bytes());
        Ok(())
    }
    fn visit_i64<E: de::Error>(self, v: i64) -> Result<(), E> {
        self.0.set(self.1.as_bytes(), v.to_string().as_bytes());
        Ok(())
    }
    fn visit_f64<E: de::Error>(self, _: f64) -> Result<(), E> {
        Ok(())
    }
    fn visit_bool<E: de::Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }
    fn visit_unit<E: de::Error>(self) -> Result<(), E> {
        self.0.elided |= self.1 == "MESSAGE";
        Ok(())
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(())
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let mut bytes = Vec::new();
        while let Some(item) = seq.next_element::<Item<'de>>()? {
            match item {
                Item::Byte(b) => bytes.push(b),
                Item::Value(v) => self.0.set(self.1.as_bytes(), v.as_bytes()),
                Item::Bytes(b) => self.0.set(self.1.as_bytes(), &b),
                Item::Null(()) => self.0.elided |= self.1 == "MESSAGE",
                Item::Other(_) => {}
            }
        }
        if !bytes.is_empty() {
            self.0.set(self.1.as_bytes(), &bytes);
        }
        Ok(())
    }
}

/// One byte of a binary value, or one of several values.
#[derive(serde::Deserialize)]
#[serde(untagged)]
enum Item<'a> {
    Byte(u8),
    #[serde(borrow)]
    Value(Cow<'a, str>),
    Bytes(Vec<u8>),
    Null(()),
    Other(IgnoredAny),
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use crate::input::log::told::{events, read, whens};

    #[test]
    fn every_rendering_says_the_same() {
        for sample in FORMAT.samples {
            let got = read(&FORMAT, sample);
            assert_eq!(events(&got), ["ServerStarted - - - StreamableHTTP session manager started"], "{sample}");
            assert_eq!(whens(&got), ["2026-11-29T19:50:39.604364Z"]);
            assert!(got.problems.is_empty());
            assert_eq!(grade(sample.as_bytes()), Grade::Certain);
        }
    }

    #[test]
    fn null_arrays_and_broken_entries() {
        let got = read(
            &FORMAT,
            "{\"__REALTIME_TIMESTAMP\":\"1\",\"MESSAGE\":null}\n{\"__REALTIME_TIMESTAMP\":\"1\",\"MESSAGE\":[\"a\",\"b\"]}\n{\"x\nnope\n{\"__REALTIME_TIMESTAMP\":\"1795981839604364\",\"MESSAGE\":\"x\"",
        );
        assert_eq!((got.entries.len(), got.count(ProblemKind::ElidedMessage)), (4, 1));
        assert_eq!((got.count(ProblemKind::BadJournal), got.count(ProblemKind::TruncatedRecord)), (1, 1));
    }

    #[test]
    fn systemd_speaks_of_another_unit() {
        let got = read(
            &FORMAT,
            r#"{"__REALTIME_TIMESTAMP":"1795981839604364","_SYSTEMD_UNIT":"init.scope","UNIT":"x.service","SYSLOG_IDENTIFIER":"systemd","MESSAGE_ID":"98e322203f7a4ed290d09fe03c09fe15","MESSAGE":"x.service: Main process exited, code=killed, status=9/KILL"}"#,
        );
        let e = &got.events()[0];
        assert_eq!((e.kind, e.unit.as_deref()), (crate::model::record::LogEventKind::UnitFailed, Some("x.service")));
    }
}
