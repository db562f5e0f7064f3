//! Cursor's `MCP.log` (`anysphere.cursor-mcp.MCP user-<server>.log`).

use super::{frame, stamp, verdict, vscode};
use crate::input::log::{Format, Grade, LineReader, LogContext, Reader, RecordSink};
use crate::model::limits;
use crate::model::place::{InputId, Place, Vantage};
use crate::model::problem::ProblemKind;
use crate::model::record::{ClientCall, ClientOutcome, LogEventKind, Record, When};
use std::sync::Arc;

/// `cursor-mcp`.
pub static FORMAT: Format = Format {
    name: "cursor-mcp",
    vantage: Vantage::Client,
    carries: false,
    doc: "Cursor's MCP log: the names of the tools it calls and whether that succeeded, without arguments, payloads, \
JSON-RPC ids or sessions. Times are local without a zone, in milliseconds: give --tz, else they are taken as UTC and \
the offset is found in joining. Calls of one tool in flight at once are ended in the order in which they began.",
    samples: &[
        concat!(
            "2025-02-25 01:21:18.277 [info] db10: Handling CallTool action for tool 'get_park'\n",
            "2025-02-25 01:21:18.278 [info] db10: Calling tool 'get_park'\n",
            "2025-02-25 01:21:18.354 [info] db10: Successfully called tool 'get_park'"
        ),
        "2025-11-05 09:59:50.755 [info] Handling ListOfferings action, server stored: true",
        "2025-04-11 11:52:26.461 [error] r-ai: Error in MCP: Client closed",
    ],
    grade: |head| super::grade_lines(head, grade_line),
    reader: Reader::Lines(|context| Box::new(Log::new(context))),
};

fn grade_line(line: &[u8]) -> Grade {
    let Some((_, _, message)) = std::str::from_utf8(line).ok().and_then(vscode::parts) else { return Grade::No };
    let (_, message) = server_and_text(message);
    let own = [
        "Handling CallTool",
        "Handling ListOfferings",
        "Handling CreateClient",
        "Successfully called tool '",
        "Error in MCP:",
    ];
    if own.iter().any(|p| message.starts_with(p)) {
        return Grade::Certain;
    }
    if message.contains(" action") && message.starts_with("Handling ") || message.starts_with("Calling tool '") {
        return Grade::Likely;
    }
    Grade::No
}

/// `db10: Calling tool …` is of the server that Cursor calls `db10` there.
fn server_and_text(message: &str) -> (Option<&str>, &str) {
    match message.split_once(": ") {
        Some((name, text)) if !name.is_empty() && !name.contains([' ', '\'', '"', '{']) => (Some(name), text),
        _ => (None, message),
    }
}

/// The name in the first pair of quotes after `before`.
fn tool<'a>(text: &'a str, before: &str) -> Option<&'a str> {
    let rest = text.split_once(before)?.1;
    let (name, _) = rest.strip_prefix('\'')?.split_once('\'')?;
    Some(name)
}

struct Log {
    input: InputId,
    times: stamp::LocalTimes,
    file_server: Option<Arc<str>>,
    open: Vec<ClientCall>,
}

impl Log {
    fn new(context: &LogContext<'_>) -> Log {
        Log {
            input: context.input,
            times: stamp::LocalTimes::new(context),
            file_server: frame::name_in_path(context, "MCP user-", ".log"),
            open: Vec::new(),
        }
    }

    /// Cursor says both "Handling CallTool action" and "Calling tool" for one call.
    fn begin(
        &mut self,
        tool: &str,
        server: Option<Arc<str>>,
        when: Option<When>,
        place: Place,
        out: &mut dyn RecordSink,
    ) {
        if self.open.len() >= limits::OPEN_CLIENT_CALLS {
            out.problem(ProblemKind::LimitHit, place, "open-client-calls: the oldest is told without its end");
            out.record(Record::Client(Box::new(self.open.remove(0))));
        }
        self.open.push(ClientCall {
            place,
            at: when,
            ended: None,
            conversation: None,
            server,
            method: Arc::from("tools/call"),
            tool: Some(Arc::from(tool)),
            arguments: None,
            id: None,
            session: None,
            local_port: None,
            tool_use_id: None,
            outcome: None,
            result: None,
            result_sha256: None,
            text: None,
        });
    }

    fn end(
        &mut self,
        tool: Option<&str>,
        server: &Option<Arc<str>>,
        outcome: ClientOutcome,
        when: Option<When>,
        text: Option<&str>,
        out: &mut dyn RecordSink,
    ) -> bool {
        let fits = |c: &ClientCall| c.server == *server && tool.is_none_or(|t| c.tool.as_deref() == Some(t));
        let Some(at) = self.open.iter().position(fits) else { return false };
        let mut call = self.open.remove(at);
        call.ended = when;
        call.outcome = Some(outcome);
        call.text = text.map(frame::quotable);
        out.record(Record::Client(Box::new(call)));
        true
    }
}

impl LineReader for Log {
    fn line(&mut self, line: &[u8], number: u64, out: &mut dyn RecordSink) {
        let place = Place::line(self.input, number);
        let text = String::from_utf8_lossy(line);
        let Some((time, level, message)) = vscode::parts(&text) else { return };
        let when = self.times.read(time, place, out);
        out.entry(when);
        let (server, message) = server_and_text(message);
        let server = server.map(Arc::from).or_else(|| self.file_server.clone());
        if let Some(tool) = tool(message, "Handling CallTool action for tool ") {
            self.begin(tool, server, when, place, out);
        } else if let Some(tool) = message.strip_prefix("Calling tool ").and_then(|m| tool(m, "")) {
            let waiting = |c: &ClientCall| c.tool.as_deref() == Some(tool) && c.server == server;
            if !self.open.iter().any(waiting) {
                self.begin(tool, server, when, place, out);
            }
        } else if let Some(tool) = tool(message, "Successfully called tool ") {
            self.end(Some(tool), &server, ClientOutcome::Ok, when, None, out);
        } else if level == "error" {
            let named = tool(message, "tool ");
            let why = message.split_once(": ").map_or(message, |(_, why)| why);
            let outcome = match verdict::of_error(why) {
                verdict::Verdict::Ended(outcome) => outcome,
                _ => ClientOutcome::Error,
            };
            if named.is_none() || !self.end(named, &server, outcome, when, Some(message), out) {
                out.record(Record::Event(Box::new(frame::event(LogEventKind::Error, when, place, message))));
            }
        }
    }

    fn finish(&mut self, out: &mut dyn RecordSink) {
        for call in self.open.drain(..) {
            out.record(Record::Client(Box::new(call)));
        }
    }
}
