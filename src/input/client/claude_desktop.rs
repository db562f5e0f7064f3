//! Claude Desktop's `mcp-server-<name>.log` and `mcp.log`.

use super::{frame, mcp_remote, stamp};
use crate::input::log::{Format, Grade, LineReader, LogContext, Reader, RecordSink};
use crate::model::place::{InputId, Place, Vantage};
use crate::model::record::{LogEventKind, Record, When};
use std::sync::Arc;

/// `claude-desktop`.
pub static FORMAT: Format = Format {
    name: "claude-desktop",
    vantage: Vantage::Client,
    carries: false,
    doc: "Claude Desktop's log of one server, `mcp-server-NAME.log`: every JSON-RPC message with its id and content as \
`Message from client` or `Message from server`, in the layouts of before and after mid-2025 (server and level change \
places). Times are the client's clock in milliseconds. It shows what the desktop application sent and got; a remote \
server is reached through a bridge (mcp-remote) or the cloud, so a message here may have gone no further, and sessions \
and headers are not shown. Lines without a time are the bridge's own output; its words on sessions are read.",
    samples: &[
        concat!(
            r#"2026-03-10T15:18:27.783Z [parks] [info] Message from client: {"method":"tools/call","params":{"name":"get_park","arguments":{"code":"yell"}},"jsonrpc":"2.0","id":7} { metadata: undefined }"#,
            "\n",
            r#"2026-03-10T15:18:29.001Z [parks] [info] Message from server: {"jsonrpc":"2.0","id":7,"result":{"content":[]}} { metadata: undefined }"#
        ),
        r#"2025-06-05T18:45:41.233Z [info] [parks] Message from client: {"method":"initialize","params":{},"jsonrpc":"2.0","id":0}"#,
    ],
    grade: |head| super::grade_lines(head, grade_line),
    reader: Reader::Lines(|context| Box::new(Log::new(context))),
};

struct Line<'a> {
    when: When,
    server: Option<&'a str>,
    level: &'a str,
    message: &'a str,
}

const LEVELS: [&str; 6] = ["info", "error", "warn", "debug", "verbose", "silly"];

/// `TIME [server] [level] text`, `TIME [level] [server] text`, or `TIME [level] text`.
fn parse(line: &str) -> Option<Line<'_>> {
    let (time, rest) = line.split_once(' ')?;
    let when = stamp::rfc3339(time)?;
    let (first, rest) = bracketed(rest)?;
    match bracketed(rest) {
        Some((second, message)) if LEVELS.contains(&second) => {
            Some(Line { when, server: Some(first), level: second, message })
        }
        Some((second, message)) if LEVELS.contains(&first) => {
            Some(Line { when, server: Some(second), level: first, message })
        }
        _ if LEVELS.contains(&first) => Some(Line { when, server: None, level: first, message: rest }),
        _ => None,
    }
}

fn bracketed(text: &str) -> Option<(&str, &str)> {
    let (inside, rest) = text.strip_prefix('[')?.split_once(']')?;
    Some((inside, rest.trim_start()))
}

fn grade_line(line: &[u8]) -> Grade {
    match std::str::from_utf8(line).ok().and_then(parse) {
        Some(l) if l.message.starts_with("Message from ") => Grade::Certain,
        Some(l) if l.server.is_some() => Grade::Likely,
        Some(_) => Grade::Unsure,
        None => Grade::No,
    }
}

struct Log {
    input: InputId,
    server: Option<Arc<str>>,
}

impl Log {
    fn new(context: &LogContext<'_>) -> Log {
        Log { input: context.input, server: frame::name_in_path(context, "mcp-server-", ".log") }
    }
}

impl LineReader for Log {
    fn line(&mut self, line: &[u8], number: u64, out: &mut dyn RecordSink) {
        let place = Place::line(self.input, number);
        let text = String::from_utf8_lossy(line);
        let Some(line) = parse(&text) else {
            // The server's (or bridge's) standard error stands here as it came.
            if let Some(event) = mcp_remote::session_event(text.trim(), None, place) {
                out.entry(None);
                out.record(Record::Event(Box::new(event)));
            }
            return;
        };
        let when = Some(line.when);
        out.entry(when);
        let server = line.server.map(Arc::from).or_else(|| self.server.clone());
        if let Some(json) = line.message.strip_prefix("Message from client: ") {
            frame::tell(json, true, when, server, place, out);
        } else if let Some(json) = line.message.strip_prefix("Message from server: ") {
            frame::tell(json, false, when, server, place, out);
        } else if line.level == "error" {
            let text = line.message.trim_end_matches("{ metadata: undefined }").trim_end();
            out.record(Record::Event(Box::new(frame::event(LogEventKind::Error, when, place, text))));
        }
    }

    fn finish(&mut self, _: &mut dyn RecordSink) {}
}
