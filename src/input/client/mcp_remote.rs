//! mcp-remote, the bridge from a local client to a remote server: its `<hash>_debug.log`, and what it
//! prints on standard error.

use super::json::{self, Fields};
use super::{frame, inspect, stamp};
use crate::input::log::{Format, Grade, LineReader, LogContext, Reader, RecordSink};
use crate::model::limits;
use crate::model::place::{InputId, Place, Vantage};
use crate::model::problem::ProblemKind;
use crate::model::record::{LogEvent, LogEventKind, LoggedMessage, Record, When};
use std::sync::Arc;

/// `mcp-remote`.
pub static FORMAT: Format = Format {
    name: "mcp-remote",
    vantage: Vantage::Client,
    carries: false,
    doc: "mcp-remote's debug log (`--debug`, `~/.mcp-auth/…_debug.log`) and its standard error with the same lines: \
JSON-RPC ids, methods and arguments of what it passes on, that a reply came (not its content), when the remote session \
was refused, and the id of the session that it opened then. Times are its clock in milliseconds, when a message was \
handed over, before it is sent. A refused call is sent again under the same id in the new session, which it does not \
say. Without --debug only method names are there, and no times.",
    samples: &[
        concat!(
            r#"[2026-11-29T19:44:17.714Z][10658] Local → Remote message {"method":"tools/call","id":2,"params":"{\"name\":\"ok\",\"arguments\":{\"q\":\"secret\"}}"}"#,
            "\n",
            r#"[2026-11-29T19:44:17.718Z][10658] Remote → Local message {"id":2,"result":"result-present"}"#,
            "\n",
            r#"[2026-11-29T19:44:18.226Z][10658] Remote session expired {"id":3,"method":"tools/call"}"#,
            "\n",
            "[2026-11-29T19:44:18.275Z][10658] Re-established session 82d65bac8e8b49c880606fd27550afa8 after server expiry "
        ),
        concat!(
            "[2026-11-29T19:44:17.714Z][10658] Local → Remote message {\n",
            "  method: 'tools/call',\n",
            "  id: 2,\n",
            "  params: '{\"name\":\"ok\",\"arguments\":{\"q\":\"secret\"}}'\n",
            "}"
        ),
    ],
    grade: |head| super::grade_lines(head, grade_line),
    reader: Reader::Lines(|context| Box::new(Log::new(context))),
};

/// Printed objects are given up after so many lines.
const OBJECT_LINES: usize = 64;

fn grade_line(line: &[u8]) -> Grade {
    let Ok(text) = std::str::from_utf8(line) else { return Grade::No };
    let Some(line) = parse(text) else { return Grade::No };
    let own =
        ["Local → Remote message", "Remote → Local message", "[Local→Remote]", "[Remote→Local]", "Starting mcp-remote"];
    if own.iter().any(|p| line.message.starts_with(p)) || session_of(line.message).is_some() {
        return Grade::Certain;
    }
    match line.when {
        Some(_) => Grade::Likely,
        None => Grade::Unsure,
    }
}

struct Line<'a> {
    when: Option<When>,
    pid: u32,
    message: &'a str,
}

/// `[TIME][pid] text` or `[pid] text`.
fn parse(line: &str) -> Option<Line<'_>> {
    let (first, rest) = line.strip_prefix('[')?.split_once(']')?;
    if let Ok(pid) = first.parse() {
        return Some(Line { when: None, pid, message: rest.strip_prefix(' ')?.trim_end() });
    }
    let when = stamp::rfc3339(first)?;
    let (pid, message) = rest.strip_prefix('[')?.split_once(']')?;
    Some(Line { when: Some(when), pid: pid.parse().ok()?, message: message.trim() })
}

/// The session that a line says was opened in place of an expired one.
fn session_of(message: &str) -> Option<&str> {
    let (session, _) = message.strip_prefix("Re-established session ")?.split_once(' ')?;
    Some(session)
}

/// The event in a line about the remote session, for logs that hold the bridge's output among their
/// own (`[pid] text`, without a time).
pub(super) fn session_event(line: &str, when: Option<When>, place: Place) -> Option<LogEvent> {
    let line = parse(line)?;
    let mut event = match session_of(line.message) {
        Some(session) => {
            let mut event = frame::event(LogEventKind::SessionCreated, line.when.or(when), place, line.message);
            event.session = Some(Arc::from(session));
            event
        }
        None if line.message.starts_with("Remote session expired, re-initializing") => {
            frame::event(LogEventKind::SessionRejected, line.when.or(when), place, line.message)
        }
        None => return None,
    };
    event.pid = Some(line.pid);
    Some(event)
}

/// What an object behind a message belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum About {
    FromClient,
    FromServer,
    Expired,
}

fn about(message: &str) -> Option<(About, &str)> {
    const WORDS: [(&str, About); 5] = [
        ("Local → Remote message", About::FromClient),
        ("Remote → Local message", About::FromServer),
        ("Local -> Remote message", About::FromClient),
        ("Remote -> Local message", About::FromServer),
        ("Remote session expired", About::Expired),
    ];
    let (of, rest) = WORDS.iter().find_map(|(words, of)| Some((*of, message.strip_prefix(words)?)))?;
    let rest = rest.trim();
    rest.starts_with('{').then_some((of, rest))
}

/// An object printed over several lines, so far.
struct Printed {
    of: About,
    when: Option<When>,
    pid: u32,
    place: Place,
    text: String,
    depth: i64,
    lines: usize,
}

struct Log {
    input: InputId,
    printed: Option<Printed>,
    /// Has any line had a time?
    timed: bool,
}

impl Log {
    fn new(context: &LogContext<'_>) -> Log {
        Log { input: context.input, printed: None, timed: false }
    }

    /// Goes on with a printed object; false if the line is not part of one.
    fn goes_on(&mut self, line: &str, out: &mut dyn RecordSink) -> bool {
        let Some(printed) = &mut self.printed else { return false };
        printed.text.push('\n');
        printed.text.push_str(line);
        printed.depth += inspect::depth_change(line);
        printed.lines += 1;
        if printed.depth <= 0 {
            self.close(out);
        } else if printed.lines > OBJECT_LINES || printed.text.len() > limits::LINE_BYTES {
            self.give_up(out);
        }
        true
    }

    fn close(&mut self, out: &mut dyn RecordSink) {
        let Some(p) = self.printed.take() else { return };
        match inspect::to_json(&p.text) {
            Some(json) => tell(p.of, &json, p.when, p.pid, p.place, out),
            None => out.problem(ProblemKind::BadLine, p.place, "expected an object as Node prints it"),
        }
    }

    fn give_up(&mut self, out: &mut dyn RecordSink) {
        if let Some(p) = self.printed.take() {
            out.problem(ProblemKind::BadLine, p.place, "the printed object that begins here has no end");
        }
    }
}

impl LineReader for Log {
    fn line(&mut self, line: &[u8], number: u64, out: &mut dyn RecordSink) {
        let place = Place::line(self.input, number);
        let text = String::from_utf8_lossy(line);
        let Some(line) = parse(&text) else {
            self.goes_on(&text, out);
            return;
        };
        self.give_up(out);
        // With --debug standard error has each line twice: bare, and again with its time. Bare ones
        // count only where there are no others.
        self.timed |= line.when.is_some();
        out.entry(line.when);
        if let Some((of, object)) = about(line.message) {
            match Fields::parse(object) {
                Ok(_) => tell(of, object, line.when, line.pid, place, out),
                Err(_) => {
                    let depth = inspect::depth_change(object);
                    let (when, pid, text) = (line.when, line.pid, object.to_owned());
                    self.printed = Some(Printed { of, when, pid, place, text, depth, lines: 1 });
                    if depth <= 0 {
                        self.close(out);
                    }
                }
            }
        } else if line.when.is_some() || !self.timed {
            if let Some(event) = session_event(&text, line.when, place) {
                // The line with the refused call's id comes right behind this one, with --debug.
                let twin = event.kind == LogEventKind::SessionRejected && line.when.is_some();
                if !twin {
                    out.record(Record::Event(Box::new(event)));
                }
            } else if line.message.starts_with("Error from remote server:") {
                let mut event = frame::event(LogEventKind::Error, line.when, place, line.message);
                event.pid = Some(line.pid);
                out.record(Record::Event(Box::new(event)));
            }
        }
    }

    fn finish(&mut self, out: &mut dyn RecordSink) {
        self.give_up(out);
    }
}

/// Tells of one logged object, given as JSON.
fn tell(of: About, object: &str, when: Option<When>, pid: u32, place: Place, out: &mut dyn RecordSink) {
    let Ok(fields) = Fields::parse(object) else {
        out.problem(ProblemKind::BadLine, place, "expected a JSON object behind the message");
        return;
    };
    if of == About::Expired {
        let mut event = frame::event(LogEventKind::SessionRejected, when, place, "Remote session expired");
        event.rpc_id = fields.raw("id").map(json::rpc_id);
        event.method = fields.shared("method");
        event.pid = Some(pid);
        out.record(Record::Event(Box::new(event)));
        return;
    }
    let from_client = of == About::FromClient;
    let (json, elided) = message(&fields);
    let json = Arc::from(json);
    let message = LoggedMessage { place, when, from_client, json, exact: false, elided, server: None, session: None };
    out.record(Record::Message(Box::new(message)));
}

/// The JSON-RPC message that a logged object stands for, and whether anything of it is left out.
/// mcp-remote writes `params` as JSON text, cut at some length, and of `result` only that it is there.
fn message(fields: &Fields<'_>) -> (String, bool) {
    let mut text = String::from(r#"{"jsonrpc":"2.0""#);
    let mut elided = false;
    for (name, raw) in fields.iter().filter(|(_, raw)| *raw != "null") {
        let value = match name {
            "id" | "method" => raw.to_owned(),
            "params" | "error" => match json::string(raw) {
                Some(inner) => {
                    let whole = json::mend(&inner).unwrap_or_else(|| "{}".to_owned());
                    elided |= whole != inner;
                    whole
                }
                None => raw.to_owned(),
            },
            "result" if raw.starts_with('"') => {
                elided = true;
                "{}".to_owned()
            }
            "result" => raw.to_owned(),
            _ => continue,
        };
        text.push_str(&format!(",\"{name}\":{value}"));
    }
    text.push('}');
    (text, elided)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_put_together() {
        let of = |t: &str| message(&Fields::parse(t).unwrap());
        let whole = |t: &str| (t.to_owned(), false);
        let cut = |t: &str| (t.to_owned(), true);
        assert_eq!(
            of(r#"{"method":"tools/call","id":2,"params":"{\"name\":\"ok\",\"arguments\":{\"q\":\"se"}"#),
            cut(r#"{"jsonrpc":"2.0","method":"tools/call","id":2,"params":{"name":"ok","arguments":{}}}"#)
        );
        assert_eq!(of(r#"{"id":"a","result":"result-present"}"#), cut(r#"{"jsonrpc":"2.0","id":"a","result":{}}"#));
        let listing = r#"{"jsonrpc":"2.0","method":"tools/list","id":1}"#;
        assert_eq!(of(r#"{"method":"tools/list","id":1}"#), whole(listing));
    }
}
