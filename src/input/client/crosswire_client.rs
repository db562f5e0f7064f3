//! The neutral `crosswire-client` format: JSON Lines, one object a call.

use super::{json, json::Fields, stamp};
use crate::input::log::{Format, Grade, LineReader, Reader, RecordSink};
use crate::model::place::{InputId, Place, Vantage};
use crate::model::problem::ProblemKind;
use crate::model::record::{ClientCall, ClientOutcome, Record, When};
use std::sync::Arc;

/// `crosswire-client`.
pub static FORMAT: Format = Format {
    name: "crosswire-client",
    vantage: Vantage::Client,
    carries: false,
    doc: "JSON Lines that any client can write, one object a call: `at` (RFC 3339) and `tool` or `method` are required; \
`ended`, `conversation`, `server`, `arguments`, `id`, `session`, `local_port`, `outcome` (ok, error, timeout, aborted, \
empty, lost), `result`, `result_sha256` and `text` are read where they stand. Times are the client's own clock, \
to the digits written. It shows what the client believes: when it issued each call, when it gave up, and which \
payload it took for whose. It cannot show whether a call was ever sent, nor when the reply reached the machine.",
    samples: &[
        r#"{"at":"2026-11-29T19:38:46.448836Z","ended":"2026-11-29T19:38:46.842506Z","conversation":"conv-B","server":"trailhead","method":"tools/call","tool":"entity_update","arguments":{"id":"trail-204"},"id":3,"session":"880af36cca1744e8b1b2a196bbdd815c","local_port":39171,"outcome":"ok","result":{"content":[]},"result_sha256":"e47c538cac37224afa001a84faf5037dd98fe85ae47c538cac37224afa001a84"}"#,
        r#"{"at":"2026-11-29T19:38:46Z","tool":"get_park"}"#,
    ],
    grade: |head| super::grade_lines(head, grade_line),
    reader: Reader::Lines(|context| Box::new(Lines { input: context.input })),
};

fn grade_line(line: &[u8]) -> Grade {
    let Ok(text) = std::str::from_utf8(line) else { return Grade::No };
    let Ok(fields) = Fields::parse(text) else { return Grade::No };
    let at = fields.string("at").is_some_and(|t| stamp::rfc3339(&t).is_some());
    if !at || (fields.raw("tool").is_none() && fields.raw("method").is_none()) {
        return Grade::No;
    }
    let own = ["conversation", "outcome", "local_port", "result_sha256", "arguments", "ended", "session"];
    match own.iter().filter(|name| fields.raw(name).is_some()).count() {
        0 => Grade::Likely,
        _ => Grade::Certain,
    }
}

struct Lines {
    input: InputId,
}

impl LineReader for Lines {
    fn line(&mut self, line: &[u8], number: u64, out: &mut dyn RecordSink) {
        if line.trim_ascii().is_empty() {
            return;
        }
        let place = Place::line(self.input, number);
        match read(line, place, out) {
            Ok(call) => {
                out.entry(call.at);
                out.record(Record::Client(Box::new(call)));
            }
            Err(text) => {
                out.entry(None);
                out.problem(ProblemKind::BadLine, place, &text);
            }
        }
    }

    fn finish(&mut self, _: &mut dyn RecordSink) {}
}

/// Reads one call. A required field that is missing or wrong is an error; an optional one that is
/// wrong is told to `out` and left out.
fn read(line: &[u8], place: Place, out: &mut dyn RecordSink) -> Result<ClientCall, String> {
    let text = std::str::from_utf8(line).map_err(|e| format!("expected a JSON object in UTF-8: {e}"))?;
    let fields = Fields::parse(text.trim()).map_err(|e| format!("expected a JSON object: {e}"))?;
    let at = match fields.string("at") {
        Some(t) => stamp::rfc3339(&t).ok_or_else(|| format!("expected an RFC 3339 time in \"at\", found {t:?}"))?,
        None => return Err("expected an RFC 3339 time in \"at\"".to_owned()),
    };
    let tool = fields.shared("tool");
    let method: Arc<str> = match (fields.shared("method"), &tool) {
        (Some(m), _) => m,
        (None, Some(_)) => Arc::from("tools/call"),
        (None, None) => return Err("expected a string in \"tool\" or \"method\"".to_owned()),
    };
    let mut optional = Optional { fields: &fields, place, out };
    Ok(ClientCall {
        place,
        at: Some(at),
        ended: optional.read("ended", "an RFC 3339 time", stamp_of),
        conversation: optional.text("conversation"),
        server: optional.text("server"),
        method,
        tool,
        arguments: fields.raw("arguments").map(Arc::from),
        id: fields.raw("id").map(json::rpc_id),
        session: optional.text("session"),
        local_port: optional.read("local_port", "a port number", |raw| raw.parse().ok()),
        tool_use_id: optional.text("tool_use_id"),
        outcome: optional.read("outcome", "ok, error, timeout, aborted, empty or lost", outcome),
        result: fields.raw("result").map(Arc::from),
        result_sha256: optional.read("result_sha256", "64 hex digits", sha256),
        text: optional.text("text"),
    })
}

struct Optional<'a, 'b> {
    fields: &'a Fields<'a>,
    place: Place,
    out: &'b mut dyn RecordSink,
}

impl Optional<'_, '_> {
    fn read<T>(&mut self, name: &str, expected: &str, read: impl FnOnce(&str) -> Option<T>) -> Option<T> {
        let raw = self.fields.raw(name)?;
        let value = read(raw);
        if value.is_none() {
            self.out.problem(ProblemKind::BadLine, self.place, &format!("expected {expected} in \"{name}\""));
        }
        value
    }

    fn text(&mut self, name: &str) -> Option<Arc<str>> {
        self.read(name, "a string", |raw| json::string(raw).map(|s| Arc::from(&*s)))
    }
}

fn stamp_of(raw: &str) -> Option<When> {
    stamp::rfc3339(&json::string(raw)?)
}

fn outcome(raw: &str) -> Option<ClientOutcome> {
    Some(match &*json::string(raw)? {
        "ok" => ClientOutcome::Ok,
        "error" => ClientOutcome::Error,
        "timeout" => ClientOutcome::Timeout,
        "aborted" => ClientOutcome::Aborted,
        "empty" => ClientOutcome::Empty,
        "lost" => ClientOutcome::Lost,
        _ => return None,
    })
}

fn sha256(raw: &str) -> Option<Arc<str>> {
    let hex = json::string(raw)?;
    let fits = hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_hexdigit());
    fits.then(|| Arc::from(hex.to_ascii_lowercase()))
}
