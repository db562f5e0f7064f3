//! VS Code's MCP output channel.

use super::{frame, stamp};
use crate::input::log::{Format, Grade, LineReader, LogContext, Reader, RecordSink};
use crate::model::place::{Place, Vantage};
use crate::model::record::{LogEventKind, Record};
use std::sync::Arc;

/// `vscode-mcp`.
pub static FORMAT: Format = Format {
    name: "vscode-mcp",
    vantage: Vantage::Client,
    carries: false,
    doc: "VS Code's output channel of one MCP server. At the levels debug and trace it holds every JSON-RPC message, as \
`[editor -> server] {…}` and `[server -> editor] {…}`, before mid-2025 as `[Client Says]` and `[Server Says]`; at others \
only the state of the connection and refusals (`404 status sending message to …`). Times are local without a zone, in \
milliseconds: give --tz, else they are taken as UTC and the offset is found in joining. Sessions and headers are not \
shown.",
    samples: &[
        concat!(
            r#"2026-07-24 02:03:14.089 [debug] [editor -> server] {"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#,
            "\n",
            r#"2026-07-24 02:03:14.151 [debug] [server -> editor] {"jsonrpc":"2.0","id":1,"result":{}}"#
        ),
        r#"2025-03-23 16:38:00.970 [info] [Client Says] {"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"x","arguments":{}}}"#,
        "2025-05-02 11:13:10.940 [info] 404 status sending message to http://localhost:3000/, will attempt to fall back to legacy SSE",
    ],
    grade: |head| super::grade_lines(head, grade_line),
    reader: Reader::Lines(|context| Box::new(Log::new(context))),
};

const FROM_CLIENT: [&str; 2] = ["[editor -> server] ", "[Client Says] "];
const FROM_SERVER: [&str; 2] = ["[server -> editor] ", "[Server Says] "];
const LEVELS: [&str; 6] = ["trace", "debug", "info", "warning", "error", "off"];

/// `YYYY-MM-DD HH:MM:SS.mmm [level] text`, as Cursor writes them too: time, level, text.
pub(super) fn parts(line: &str) -> Option<(&str, &str, &str)> {
    let (time, rest) = line.split_at_checked(23)?;
    let (level, message) = rest.strip_prefix(" [")?.split_once("] ")?;
    let bytes = time.as_bytes();
    let shaped = bytes.iter().enumerate().all(|(i, b)| match i {
        4 | 7 => *b == b'-',
        10 => *b == b' ',
        13 | 16 => *b == b':',
        19 => *b == b'.',
        _ => b.is_ascii_digit(),
    });
    (shaped && LEVELS.contains(&level)).then_some((time, level, message))
}

fn grade_line(line: &[u8]) -> Grade {
    let Some((_, _, message)) = std::str::from_utf8(line).ok().and_then(parts) else { return Grade::No };
    if FROM_CLIENT.iter().chain(&FROM_SERVER).any(|p| message.starts_with(p)) {
        return Grade::Certain;
    }
    let own =
        ["Connection state: ", "Starting server ", "Stopping server ", "Discovered ", "Waiting for server to respond"];
    if own.iter().any(|p| message.starts_with(p)) || message.contains("status sending message to") {
        return Grade::Likely;
    }
    Grade::Unsure
}

struct Log {
    input: crate::model::place::InputId,
    times: stamp::LocalTimes,
}

impl Log {
    fn new(context: &LogContext<'_>) -> Log {
        Log { input: context.input, times: stamp::LocalTimes::new(context) }
    }
}

impl LineReader for Log {
    fn line(&mut self, line: &[u8], number: u64, out: &mut dyn RecordSink) {
        let place = Place::line(self.input, number);
        let text = String::from_utf8_lossy(line);
        // A line without a time goes on with the message before it (a refusal's HTML body).
        let Some((time, level, message)) = parts(&text) else { return };
        let when = self.times.read(time, place, out);
        out.entry(when);
        let server: Option<Arc<str>> = None;
        if let Some(json) = FROM_CLIENT.iter().find_map(|p| message.strip_prefix(p)) {
            frame::tell(json, true, when, server, place, out);
        } else if let Some(json) = FROM_SERVER.iter().find_map(|p| message.strip_prefix(p)) {
            frame::tell(json, false, when, server, place, out);
        } else if let Some(kind) = event_kind(level, message) {
            out.record(Record::Event(Box::new(frame::event(kind, when, place, message))));
        }
    }

    fn finish(&mut self, _: &mut dyn RecordSink) {}
}

/// What a line about the connection is; none if it says nothing of use.
fn event_kind(level: &str, message: &str) -> Option<LogEventKind> {
    if message.starts_with("404 status sending message to") {
        return Some(LogEventKind::SessionRejected);
    }
    if message.contains("status sending message to") || message.starts_with("Connection state: Error") {
        return Some(LogEventKind::Error);
    }
    (level == "error").then_some(LogEventKind::Error)
}
