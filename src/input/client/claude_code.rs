//! Claude Code's transcripts: `projects/<cwd>/<session>.jsonl`, subagents below it.

use super::json::{self, Fields};
use super::{frame, stamp, verdict};
use crate::input::log::{Format, Grade, LineReader, LogContext, Reader, RecordSink};
use crate::model::limits;
use crate::model::place::{InputId, Place, Vantage};
use crate::model::problem::ProblemKind;
use crate::model::record::{ClientCall, ClientOutcome, Record, When};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// `claude-code`.
pub static FORMAT: Format = Format {
    name: "claude-code",
    vantage: Vantage::Client,
    carries: false,
    doc: "Claude Code transcripts, JSON Lines. Each `tool_use` named `mcp__server__tool` is a call and the `tool_result` \
with its id the end; on the wire the same id stands in `params._meta[\"claudecode/toolUseId\"]`, so calls are joined \
exactly. Times are the client's clock in milliseconds: the entry of a `tool_use` is written when the model has said \
it, before any permission dialog, so a call may start later than it says. Error texts tell timeouts, lost \
connections and interruptions apart; calls that the client refused to make (no such tool, no permission) are left \
out. It cannot show JSON-RPC ids, sessions or headers, nor whether a call was ever sent.",
    samples: &[concat!(
        r#"{"parentUuid":null,"isSidechain":false,"type":"assistant","message":{"role":"assistant","content":[{"type":"tool_use","id":"toolu_01A","name":"mcp__parks__get_park","input":{"code":"yell"}}]},"uuid":"u1","timestamp":"2026-09-04T00:38:01.120Z","sessionId":"s1","version":"2.1.332"}"#,
        "\n",
        r#"{"parentUuid":"u1","isSidechain":false,"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_01A","is_error":true,"content":"MCP server \"parks\" tool \"get_park\" sent no response or progress for 300s; aborting."}]},"uuid":"u2","timestamp":"2026-09-04T00:43:01.480Z","sessionId":"s1","version":"2.1.332"}"#
    )],
    grade: |head| super::grade_lines(head, grade_line),
    reader: Reader::Lines(|context| Box::new(Transcript::new(context))),
};

/// How much later than its entry a call may start without a permission dialog, ns.
const START_ERROR_NS: i64 = 1_000_000_000;
/// How much later than the reply its entry may be written, ns.
const END_ERROR_NS: i64 = 100_000_000;

fn grade_line(line: &[u8]) -> Grade {
    let Ok(text) = std::str::from_utf8(line) else { return Grade::No };
    let Ok(fields) = Fields::parse(text) else { return Grade::No };
    let Some(kind) = fields.string("type") else { return Grade::No };
    let conversation = fields.raw("sessionId").is_some();
    let of_a_tree = fields.iter().any(|(name, _)| name == "parentUuid");
    match &*kind {
        "assistant" | "user" if conversation && fields.raw("message").is_some() => Grade::Certain,
        // The session stands behind the message, which may be longer than what is looked at.
        "assistant" | "user" if of_a_tree => Grade::Likely,
        "summary" if fields.raw("leafUuid").is_some() => Grade::Likely,
        "system" | "progress" | "attachment" | "file-history-snapshot" | "queue-operation" if conversation => {
            Grade::Likely
        }
        _ => Grade::No,
    }
}

struct Transcript {
    input: InputId,
    /// Calls without their result so far, by tool_use id.
    open: FxHashMap<Arc<str>, ClientCall>,
    /// Every tool_use id met: a resumed conversation repeats its entries.
    seen: FxHashSet<Arc<str>>,
}

impl Transcript {
    fn new(context: &LogContext<'_>) -> Transcript {
        Transcript { input: context.input, open: FxHashMap::default(), seen: FxHashSet::default() }
    }

    fn entry(&mut self, fields: &Fields<'_>, when: Option<When>, place: Place, out: &mut dyn RecordSink) {
        let Some(content) = fields.object("message").and_then(|m| m.raw("content")).and_then(json::array) else {
            return;
        };
        for block in content {
            let Ok(block) = Fields::parse(block.get()) else { continue };
            match block.string("type").as_deref() {
                Some("tool_use") => self.tool_use(fields, &block, when, place, out),
                Some("tool_result") => self.tool_result(&block, when, out),
                _ => {}
            }
        }
    }

    fn tool_use(
        &mut self,
        fields: &Fields<'_>,
        block: &Fields<'_>,
        when: Option<When>,
        place: Place,
        out: &mut dyn RecordSink,
    ) {
        let Some(name) = block.string("name") else { return };
        let Some((server, tool)) = name.strip_prefix("mcp__").and_then(|rest| rest.split_once("__")) else { return };
        let Some(id) = block.shared("id") else {
            out.problem(ProblemKind::BadLine, place, "expected an id in a tool_use of an MCP tool");
            return;
        };
        if !self.seen.insert(id.clone()) {
            return;
        }
        let call = ClientCall {
            place,
            at: when.map(|w| stamp::moved(w, 0, START_ERROR_NS)),
            ended: None,
            conversation: conversation(fields),
            server: Some(Arc::from(server)),
            method: Arc::from("tools/call"),
            tool: Some(Arc::from(tool)),
            arguments: block.raw("input").map(Arc::from),
            id: None,
            session: None,
            local_port: None,
            tool_use_id: Some(id.clone()),
            outcome: None,
            result: None,
            result_sha256: None,
            text: None,
        };
        if self.open.len() >= limits::OPEN_CLIENT_CALLS {
            out.problem(ProblemKind::LimitHit, place, "open-client-calls: further calls are told without their end");
            out.record(Record::Client(Box::new(call)));
            return;
        }
        self.open.insert(id, call);
    }

    fn tool_result(&mut self, block: &Fields<'_>, when: Option<When>, out: &mut dyn RecordSink) {
        let Some(id) = block.string("tool_use_id") else { return };
        let Some(mut call) = self.open.remove(&*id) else { return };
        let content = block.raw("content").unwrap_or("[]");
        let text = text_of(content);
        let ended = when.map(|w| stamp::moved(w, 0, END_ERROR_NS));
        let outcome = if block.is_true("is_error") {
            match verdict::of_error(&text) {
                verdict::Verdict::NeverMade => return,
                verdict::Verdict::StillRunning => None,
                verdict::Verdict::Ended(outcome) => Some(outcome),
            }
        } else if verdict::of_error(&text) == verdict::Verdict::StillRunning {
            None
        } else if is_empty(content, &text) {
            Some(ClientOutcome::Empty)
        } else {
            Some(ClientOutcome::Ok)
        };
        call.ended = ended.filter(|_| outcome.is_some());
        call.outcome = outcome;
        if matches!(outcome, Some(ClientOutcome::Ok | ClientOutcome::Error)) {
            call.result = Some(Arc::from(as_result(content, outcome == Some(ClientOutcome::Error))));
        }
        if outcome != Some(ClientOutcome::Ok) && !text.is_empty() {
            call.text = Some(frame::quotable(&text));
        }
        out.record(Record::Client(Box::new(call)));
    }
}

impl LineReader for Transcript {
    fn line(&mut self, line: &[u8], number: u64, out: &mut dyn RecordSink) {
        if line.trim_ascii().is_empty() {
            return;
        }
        let place = Place::line(self.input, number);
        let fields = match std::str::from_utf8(line)
            .map_err(|e| e.to_string())
            .and_then(|text| Fields::parse(text.trim()).map_err(|e| e.to_string()))
        {
            Ok(fields) => fields,
            Err(e) => {
                out.entry(None);
                out.problem(ProblemKind::BadLine, place, &format!("expected a transcript entry (a JSON object): {e}"));
                return;
            }
        };
        if !is_entry(&fields) {
            out.entry(None);
            out.problem(ProblemKind::BadLine, place, "expected a transcript entry (a \"type\" and what it is of)");
            return;
        }
        let when = fields.string("timestamp").and_then(|t| stamp::rfc3339(&t));
        out.entry(when);
        self.entry(&fields, when, place, out);
    }

    fn finish(&mut self, out: &mut dyn RecordSink) {
        let mut rest: Vec<ClientCall> = self.open.drain().map(|(_, call)| call).collect();
        rest.sort_by_key(|call| call.place);
        for call in rest {
            out.record(Record::Client(Box::new(call)));
        }
    }
}

/// Has an object what every entry of a transcript has, of whatever type?
fn is_entry(fields: &Fields<'_>) -> bool {
    const OF: [&str; 8] =
        ["sessionId", "uuid", "parentUuid", "leafUuid", "messageId", "message", "snapshot", "operation"];
    fields.string("type").is_some() && fields.iter().any(|(name, _)| OF.contains(&name))
}

/// The session, and the subagent within it.
fn conversation(fields: &Fields<'_>) -> Option<Arc<str>> {
    let session = fields.string("sessionId")?;
    match fields.string("agentId") {
        Some(agent) => Some(Arc::from(format!("{session}/{agent}"))),
        None => Some(Arc::from(&*session)),
    }
}

/// The text of a result's content: a string, or its text blocks joined.
fn text_of(content: &str) -> String {
    if let Some(text) = json::string(content) {
        return text.into_owned();
    }
    let blocks = json::array(content).unwrap_or_default();
    let texts = blocks.iter().filter_map(|b| Fields::parse(b.get()).ok()?.string("text").map(|t| t.into_owned()));
    texts.collect::<Vec<_>>().join("\n")
}

/// Did the client record a success without content? It writes a sentence of its own in its place.
fn is_empty(content: &str, text: &str) -> bool {
    let text = text.trim();
    let placeholder = text.starts_with('(') && text.ends_with("completed with no output)");
    let others = json::array(content).is_some_and(|blocks| {
        blocks.iter().any(|b| Fields::parse(b.get()).ok().and_then(|f| f.string("type")).is_some_and(|t| t != "text"))
    });
    placeholder || (text.is_empty() && !others)
}

/// A tool result as it would stand in the JSON-RPC reply.
fn as_result(content: &str, is_error: bool) -> String {
    let content = match json::string(content) {
        Some(_) => format!(r#"[{{"type":"text","text":{content}}}]"#),
        None => content.to_owned(),
    };
    let flag = if is_error { r#","isError":true"# } else { "" };
    format!(r#"{{"content":{content}{flag}}}"#)
}
