//! Claude Code's log of one MCP server: `mcp-logs-<server>/<time>.jsonl`.

use super::json::Fields;
use super::{frame, stamp, verdict};
use crate::input::log::{Format, Grade, LineReader, LogContext, Reader, RecordSink};
use crate::model::limits;
use crate::model::place::{InputId, Place, Vantage};
use crate::model::problem::ProblemKind;
use crate::model::record::{ClientCall, ClientOutcome, LogEventKind, Record, When};
use std::sync::Arc;

/// `claude-code-mcp`.
pub static FORMAT: Format = Format {
    name: "claude-code-mcp",
    vantage: Vantage::Client,
    carries: false,
    doc: "Claude Code's debug log of one MCP server, JSON Lines with `debug` or `error`, `timestamp`, `sessionId` and \
`cwd`. It names each tool when it is called and how that ended (completed, failed, aborted for silence), and says when \
a session had expired and a call was tried again; the refused and the repeated attempt are two calls. Times are the \
client's clock in milliseconds, written as things happen. It has no arguments, payloads, JSON-RPC ids or sessions: \
calls of one tool in flight at once are told apart by their durations alone.",
    samples: &[concat!(
        r#"{"debug":"Calling MCP tool: get_park","timestamp":"2026-09-04T00:38:01.131Z","sessionId":"s1","cwd":"/home/u/proj"}"#,
        "\n",
        r#"{"debug":"MCP session expired during tool call (stale session), clearing connection cache for re-initialization","timestamp":"2026-09-04T00:39:02.000Z","sessionId":"s1","cwd":"/home/u/proj"}"#,
        "\n",
        r#"{"debug":"Retrying tool 'get_park' after session recovery","timestamp":"2026-09-04T00:39:02.310Z","sessionId":"s1","cwd":"/home/u/proj"}"#,
        "\n",
        r#"{"debug":"Tool 'get_park' completed successfully in 812ms","timestamp":"2026-09-04T00:39:03.125Z","sessionId":"s1","cwd":"/home/u/proj"}"#
    )],
    grade: |head| super::grade_lines(head, grade_line),
    reader: Reader::Lines(|context| Box::new(Log::new(context))),
};

fn grade_line(line: &[u8]) -> Grade {
    let Ok(text) = std::str::from_utf8(line) else { return Grade::No };
    let Ok(fields) = Fields::parse(text) else { return Grade::No };
    let says = fields.raw("debug").is_some() || fields.raw("error").is_some();
    match (says && fields.raw("timestamp").is_some(), fields.raw("sessionId").is_some() && fields.raw("cwd").is_some())
    {
        (true, true) => Grade::Certain,
        (true, false) => Grade::Unsure,
        _ => Grade::No,
    }
}

/// What one message says, by Claude Code 2.1's texts.
#[derive(Debug, PartialEq)]
enum Says<'a> {
    Calling(&'a str),
    Completed(&'a str, &'a str),
    Failed(&'a str, &'a str, &'a str),
    Aborting(&'a str),
    NoAnswer(&'a str),
    Expired,
    Retrying(&'a str),
    Nothing,
}

fn says(message: &str) -> Says<'_> {
    if let Some(tool) = message.strip_prefix("Calling MCP tool: ") {
        return Says::Calling(tool.trim());
    }
    if let Some(rest) = message.strip_prefix("Retrying tool '") {
        return rest.split_once('\'').map_or(Says::Nothing, |(tool, _)| Says::Retrying(tool));
    }
    if message.starts_with("MCP session expired") {
        return Says::Expired;
    }
    let Some((tool, rest)) = message.strip_prefix("Tool '").and_then(|rest| rest.split_once('\'')) else {
        return Says::Nothing;
    };
    let rest = rest.trim_start();
    if let Some(duration) = rest.strip_prefix("completed successfully in ") {
        return Says::Completed(tool, duration);
    }
    if let Some(failed) = rest.strip_prefix("failed after ") {
        let (duration, why) = failed.split_once(':').unwrap_or((failed, ""));
        return Says::Failed(tool, duration, why.trim());
    }
    if rest.contains("ended with no answer") {
        return Says::NoAnswer(tool);
    }
    if rest.starts_with("aborting") {
        return Says::Aborting(tool);
    }
    Says::Nothing
}

struct Log {
    input: InputId,
    server: Option<Arc<str>>,
    /// Calls without their last line so far, in order of their start.
    open: Vec<ClientCall>,
    /// The last "session expired" line that no retry has followed: which conversation, when.
    expired: Option<(Option<Arc<str>>, Option<When>)>,
}

impl Log {
    fn new(context: &LogContext<'_>) -> Log {
        let server = frame::name_in_path(context, "mcp-logs-", "");
        Log { input: context.input, server, open: Vec::new(), expired: None }
    }

    fn message(
        &mut self,
        text: &str,
        conversation: Option<Arc<str>>,
        when: Option<When>,
        place: Place,
        out: &mut dyn RecordSink,
    ) {
        match says(text) {
            Says::Calling(tool) => self.begin(tool, conversation, when, place, out),
            Says::Completed(tool, lasted) => {
                let call = self.take(tool, conversation, when, stamp::duration(lasted), place);
                finish(call, ClientOutcome::Ok, when, None, out);
            }
            Says::Failed(tool, lasted, why) => {
                let call = self.take(tool, conversation, when, stamp::duration(lasted), place);
                let outcome = match verdict::of_error(why) {
                    verdict::Verdict::Ended(outcome) => outcome,
                    verdict::Verdict::NeverMade | verdict::Verdict::StillRunning => ClientOutcome::Error,
                };
                // The line before it may have said more exactly why.
                let outcome = call.outcome.unwrap_or(outcome);
                finish(call, outcome, when, Some(text), out);
            }
            Says::Aborting(tool) => self.mark(tool, &conversation, ClientOutcome::Timeout, when, text),
            Says::NoAnswer(tool) => self.mark(tool, &conversation, ClientOutcome::Lost, when, text),
            Says::Expired => {
                self.expired = Some((conversation, when));
                let event = frame::event(LogEventKind::SessionRejected, when, place, text);
                out.record(Record::Event(Box::new(event)));
            }
            Says::Retrying(tool) => self.retry(tool, conversation, when, place, out),
            Says::Nothing => {}
        }
    }

    fn begin(
        &mut self,
        tool: &str,
        conversation: Option<Arc<str>>,
        when: Option<When>,
        place: Place,
        out: &mut dyn RecordSink,
    ) {
        if self.open.len() >= limits::OPEN_CLIENT_CALLS {
            out.problem(ProblemKind::LimitHit, place, "open-client-calls: the oldest is told without its end");
            out.record(Record::Client(Box::new(self.open.remove(0))));
        }
        self.open.push(self.call(tool, conversation, when, place));
    }

    /// The attempt that met the expired session ended there with an error; another begins now.
    fn retry(
        &mut self,
        tool: &str,
        conversation: Option<Arc<str>>,
        when: Option<When>,
        place: Place,
        out: &mut dyn RecordSink,
    ) {
        let expired = self.expired.take().filter(|(of, _)| *of == conversation).and_then(|(_, when)| when);
        if let Some(at) = self.open.iter().position(|c| is_of(c, tool, &conversation) && c.outcome.is_none()) {
            let refused = self.open.remove(at);
            finish(refused, ClientOutcome::Error, expired.or(when), Some("the session had expired; tried again"), out);
        }
        self.begin(tool, conversation, when, place, out);
    }

    /// Notes how a call is ending; a line "failed after" usually follows.
    fn mark(
        &mut self,
        tool: &str,
        conversation: &Option<Arc<str>>,
        outcome: ClientOutcome,
        when: Option<When>,
        text: &str,
    ) {
        let mut of_tool = self.open.iter_mut().filter(|c| is_of(c, tool, conversation));
        if let Some(call) = of_tool.find(|c| c.outcome.is_none()) {
            call.outcome = Some(outcome);
            call.ended = when;
            call.text = Some(frame::quotable(text));
        }
    }

    /// The open call of that tool that began nearest to `lasted` before `when`; a call whose
    /// beginning the log does not hold begins by that reckoning.
    fn take(
        &mut self,
        tool: &str,
        conversation: Option<Arc<str>>,
        when: Option<When>,
        lasted: Option<(i64, i64)>,
        place: Place,
    ) -> ClientCall {
        let began = when.zip(lasted).map(|(w, (ns, unit))| stamp::moved(w, ns.saturating_neg(), unit));
        let distance = |call: &ClientCall| match (began, call.at) {
            (Some(b), Some(at)) => b.at.since(at.at).saturating_abs(),
            _ => 0,
        };
        let candidates = self.open.iter().enumerate().filter(|(_, c)| is_of(c, tool, &conversation));
        match candidates.min_by_key(|(_, c)| distance(c)).map(|(i, _)| i) {
            Some(i) => self.open.remove(i),
            None => self.call(tool, conversation, began, place),
        }
    }

    fn call(&self, tool: &str, conversation: Option<Arc<str>>, at: Option<When>, place: Place) -> ClientCall {
        ClientCall {
            place,
            at,
            ended: None,
            conversation,
            server: self.server.clone(),
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
        }
    }
}

fn is_of(call: &ClientCall, tool: &str, conversation: &Option<Arc<str>>) -> bool {
    call.tool.as_deref() == Some(tool) && call.conversation == *conversation
}

fn finish(
    mut call: ClientCall,
    outcome: ClientOutcome,
    when: Option<When>,
    text: Option<&str>,
    out: &mut dyn RecordSink,
) {
    call.outcome = Some(outcome);
    call.ended = call.ended.or(when);
    if call.text.is_none() {
        call.text = text.map(frame::quotable);
    }
    out.record(Record::Client(Box::new(call)));
}

impl LineReader for Log {
    fn line(&mut self, line: &[u8], number: u64, out: &mut dyn RecordSink) {
        if line.trim_ascii().is_empty() {
            return;
        }
        let place = Place::line(self.input, number);
        let parsed = std::str::from_utf8(line).ok().and_then(|text| Fields::parse(text.trim()).ok());
        let Some(fields) = parsed else {
            out.entry(None);
            out.problem(
                ProblemKind::BadLine,
                place,
                "expected a JSON object with \"debug\" or \"error\" and \"timestamp\"",
            );
            return;
        };
        let is_entry = fields.string("timestamp").is_some()
            && ["debug", "error", "sessionId"].iter().any(|name| fields.raw(name).is_some());
        if !is_entry {
            out.entry(None);
            out.problem(
                ProblemKind::BadLine,
                place,
                "expected an object with \"debug\" or \"error\" and \"timestamp\"",
            );
            return;
        }
        let when = fields.string("timestamp").and_then(|t| stamp::rfc3339(&t));
        out.entry(when);
        let conversation = fields.shared("sessionId");
        if let Some(error) = fields.raw("error") {
            let text = fields.string("error").map_or_else(|| error.to_owned(), |t| t.into_owned());
            if says(&text) == Says::Nothing {
                out.record(Record::Event(Box::new(frame::event(LogEventKind::Error, when, place, &text))));
            } else {
                self.message(&text, conversation, when, place, out);
            }
        } else if let Some(text) = fields.string("debug") {
            self.message(&text, conversation, when, place, out);
        }
    }

    fn finish(&mut self, out: &mut dyn RecordSink) {
        for call in self.open.drain(..) {
            out.record(Record::Client(Box::new(call)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages() {
        assert_eq!(says("Calling MCP tool: get_park"), Says::Calling("get_park"));
        assert_eq!(says("Tool 'x' completed successfully in 812ms"), Says::Completed("x", "812ms"));
        assert_eq!(
            says("Tool 'x' failed after 60s: MCP error -32001: timed out"),
            Says::Failed("x", "60s", "MCP error -32001: timed out")
        );
        assert_eq!(
            says("Tool 'x' aborting: no response or progress notification for 300s (idle timeout 300s)"),
            Says::Aborting("x")
        );
        assert_eq!(says("Tool 'x' aborting: its answer stream ended with no answer"), Says::NoAnswer("x"));
        assert_eq!(says("Tool 'x' still running (30s elapsed)"), Says::Nothing);
        assert_eq!(says("Retrying tool 'x' after session recovery"), Says::Retrying("x"));
    }
}
