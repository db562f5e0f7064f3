//! What a played server says and what it does wrong: one readable file (`crosswire.script/1`).

use crate::drive::tape::{Tape, TapeExchange};
use crate::model::exchange::End;
use memchr::memmem;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Name and version of the format.
pub const SCHEMA: &str = "crosswire.script/1";

/// The longest time in a script, ms: a day.
const LONGEST_MS: f64 = 86_400_000.0;

/// A whole script.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// [`SCHEMA`]
    pub schema: String,
    /// What it shows, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub about: String,
    /// Does the server give session ids?
    #[serde(default = "yes")]
    pub sessions: bool,
    /// Does it open the session's GET stream?
    #[serde(default)]
    pub get_stream: bool,
    /// What is said, in order.
    #[serde(default)]
    pub replies: Vec<Entry>,
    /// What is done wrong.
    #[serde(default)]
    pub faults: Vec<FaultRule>,
}

fn yes() -> bool {
    true
}

/// How a response ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// As it should.
    #[default]
    Complete,
    /// The server closes in the middle.
    Cut,
    /// The server resets the connection in the middle.
    Reset,
    /// It stays open until the client leaves.
    Hang,
}

/// One recorded answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// JSON-RPC method that it answers.
    pub method: String,
    /// Tool that it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Arguments that it answers (`params` of other methods).
    #[serde(default)]
    pub arguments: Value,
    /// HTTP status.
    #[serde(default = "ok")]
    pub status: u16,
    /// An event stream; otherwise JSON.
    #[serde(default)]
    pub stream: bool,
    /// From the request to the head, ms.
    #[serde(default)]
    pub head_ms: f64,
    /// What is sent; the id of results and errors becomes the request's.
    #[serde(default)]
    pub messages: Vec<Said>,
    /// How it ends.
    #[serde(default)]
    pub end: Ending,
    /// From the request to the end, ms.
    #[serde(default)]
    pub end_ms: f64,
}

fn ok() -> u16 {
    200
}

/// One message.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Said {
    /// From the request, ms.
    #[serde(default)]
    pub after_ms: f64,
    /// The message.
    pub message: Value,
}

/// Which call a fault hits, and what it is.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultRule {
    /// Only calls of this tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The call's number among the tool calls (of that tool), from 1; none: every one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<u64>,
    /// What is done.
    #[serde(rename = "do")]
    pub what: What,
    /// How long, ms, for `delay`, `late`, the wait of `swap`, and the call's own stream after `on-get`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ms: Option<u64>,
    /// The id to send, for `wrong-id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Value>,
}

/// What can be done wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum What {
    /// Head and reply come `ms` later.
    Delay,
    /// The head comes at once, the reply `ms` later.
    Late,
    /// The session is forgotten: this call and all others with its id get 404.
    ForgetSession,
    /// The stream ends without the reply.
    Drop,
    /// The connection is reset without the reply.
    Reset,
    /// The stream stays open without the reply.
    Hang,
    /// The reply has another id.
    WrongId,
    /// The reply comes twice.
    Duplicate,
    /// The bodies of this call and another one that is in flight with it are swapped.
    Swap,
    /// The reply comes on the session's GET stream, and the call's own stream ends after it.
    OnGet,
}

impl What {
    /// As the file spells it.
    pub fn name(self) -> String {
        serde_json::to_value(self).ok().and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default()
    }
}

impl Script {
    /// Reads a script.
    ///
    /// # Errors
    /// A sentence that says what is wrong.
    pub fn parse(text: &[u8]) -> Result<Script, String> {
        let script: Script = serde_json::from_slice(text).map_err(|e| format!("no script: {e}"))?;
        if script.schema != SCHEMA {
            return Err(format!("expected \"schema\": \"{SCHEMA}\", found {:?}", script.schema));
        }
        script.wrong().map_or(Ok(script), Err)
    }

    /// Does the file begin as a script does? The schema need not stand first.
    pub fn is_one(head: &[u8]) -> bool {
        let text: Vec<u8> = head.iter().copied().filter(|b| !b.is_ascii_whitespace()).collect();
        text.starts_with(b"{") && memmem::find(&text, b"\"schema\":\"crosswire.script/").is_some()
    }

    /// What in it cannot be played.
    fn wrong(&self) -> Option<String> {
        let is_time = |ms: f64| (0.0..=LONGEST_MS).contains(&ms);
        for (n, reply) in self.replies.iter().enumerate() {
            let at = format!("replies[{n}]");
            if !(200..=599).contains(&reply.status) {
                return Some(format!("{at}: status {}: expected 200 to 599", reply.status));
            }
            if ![reply.head_ms, reply.end_ms].into_iter().chain(reply.messages.iter().map(|m| m.after_ms)).all(is_time)
            {
                return Some(format!("{at}: expected times from 0 to {LONGEST_MS} ms"));
            }
            if reply.messages.iter().any(|m| !m.message.is_object()) {
                return Some(format!("{at}: expected each message to be a JSON-RPC object"));
            }
        }
        for (n, fault) in self.faults.iter().enumerate() {
            if fault.call == Some(0) {
                return Some(format!("faults[{n}]: calls are numbered from 1"));
            }
            if fault.ms.is_some_and(|ms| ms as f64 > LONGEST_MS) {
                return Some(format!("faults[{n}]: expected at most {LONGEST_MS} ms"));
            }
        }
        None
    }

    /// What a recorded server said, as far as it is known. Calls whose end the recording does not
    /// hold are left out and counted.
    pub fn from_tape(tape: &Tape, session: Option<&str>) -> (Script, usize) {
        let mut unknown = 0;
        let mut script = Script {
            schema: SCHEMA.into(),
            about: String::new(),
            sessions: tape.exchanges.iter().any(|e| e.session.is_some() || e.given.is_some()),
            get_stream: tape.exchanges.iter().any(|e| e.method == "GET" && e.status == Some(200) && e.is_stream),
            replies: vec![],
            faults: vec![],
        };
        let wanted = |s: &Option<String>| session.is_none_or(|w| s.as_deref().is_some_and(|s| s.starts_with(w)));
        for exchange in tape.exchanges.iter().filter(|e| wanted(&e.session) || wanted(&e.given)) {
            for call in &exchange.calls {
                match Entry::from_exchange(exchange, call) {
                    Some(entry) => script.replies.push(entry),
                    None => unknown += 1,
                }
            }
        }
        (script, unknown)
    }
}

impl Entry {
    fn from_exchange(e: &TapeExchange, call: &crate::drive::tape::TapeCall) -> Option<Entry> {
        let ms = |ns: i64| (ns.max(0) as f64 / 1e4).round() / 100.0;
        let is_answered = e.reply(call).is_some();
        let end = match (e.end, is_answered || e.status.is_some_and(|s| s >= 300)) {
            (_, true) | (Some(End::Complete), _) => Ending::Complete,
            (Some(End::ServerClosed), false) if e.left_ns.is_none() => Ending::Cut,
            (Some(End::Reset), false) if e.left_ns.is_none() => Ending::Reset,
            _ if e.left_ns.is_some() => Ending::Hang,
            _ => return None,
        };
        let (tool, arguments) = match call.tool() {
            Some(tool) => (Some(tool.to_owned()), call.params.get("arguments").cloned().unwrap_or(json!({}))),
            None => (None, call.params.clone()),
        };
        let said =
            |m: &crate::drive::tape::TapeMessage| Some(Said { after_ms: ms(m.after_ns), message: m.message.clone()? });
        // Of a batch, each call gets its own part.
        let messages = match e.calls.len() {
            1 => e.messages.iter().filter_map(said).collect(),
            _ => e.reply(call).and_then(said).into_iter().collect(),
        };
        Some(Entry {
            method: call.method.clone(),
            tool,
            arguments,
            status: e.status.unwrap_or(200),
            stream: e.is_stream,
            head_ms: ms(e.head_ns.unwrap_or(0)),
            messages,
            end,
            end_ms: ms(e.end_ns),
        })
    }
}
