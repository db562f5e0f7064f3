//! What is sent when: the recorded calls with their order and concurrency.

use crate::drive::session::LOOKUP;
use crate::drive::tape::{Tape, TapeCall};
use crate::drive::wire::Headers;
use crate::model::glob::glob;
use rustc_hash::FxHashMap;
use serde::Serialize;
use serde_json::Value;

/// Which calls to take.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Sessions by their id or the beginning of it; empty: all.
    pub sessions: Vec<String>,
    /// Tools or methods as patterns; empty: all.
    pub tools: Vec<String>,
}

/// One call to be sent.
#[derive(Clone, Debug, Serialize)]
pub struct Planned {
    /// Number, from 1.
    pub number: usize,
    /// Which recorded session, from 0.
    pub session: usize,
    /// Which recorded connection, from 0; calls of HTTP/2 have one each.
    pub connection: usize,
    /// From the first call, ns.
    pub at_ns: i64,
    /// Recorded end of the call, from the first call, ns.
    #[serde(skip)]
    pub over_ns: i64,
    /// The call.
    #[serde(flatten)]
    pub what: What,
    /// Recorded header fields of its request.
    #[serde(skip)]
    pub headers: Headers,
    /// Recorded result or error; null if there was none.
    #[serde(skip)]
    pub recorded: Value,
    /// Recorded time to the reply, ms.
    pub recorded_ms: Option<f64>,
    /// When its caller left without a reply, ms.
    pub left_ms: Option<f64>,
}

/// What is asked.
#[derive(Clone, Debug, Serialize)]
pub struct What {
    /// Its id as recorded.
    pub id: crate::model::id::RpcId,
    /// Method.
    pub method: String,
    /// Tool.
    pub tool: Option<String>,
    /// `params`.
    pub params: Value,
}

/// The whole schedule.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Schedule {
    /// Recorded session ids; null for calls without one.
    pub sessions: Vec<Option<String>>,
    /// Calls in order of time.
    pub calls: Vec<Planned>,
}

impl Schedule {
    /// From a recording. Handshakes are left out, as every session is opened anew, and so is what
    /// an earlier replay or probe asked for its own sake.
    pub fn new(tape: &Tape, selection: &Selection) -> Schedule {
        let mut schedule = Schedule::default();
        let mut connections: FxHashMap<_, usize> = FxHashMap::default();
        let mut sessions: FxHashMap<Option<String>, usize> = FxHashMap::default();
        let mut first = None;
        for exchange in &tape.exchanges {
            if !wants_session(selection, exchange.session.as_deref()) {
                continue;
            }
            for call in exchange.calls.iter().filter(|c| is_replayed(c, selection)) {
                let start = *first.get_or_insert(exchange.at_ns);
                let fresh = schedule.sessions.len();
                let session = *sessions.entry(exchange.session.clone()).or_insert(fresh);
                if session == fresh {
                    schedule.sessions.push(exchange.session.clone());
                }
                let lone = (u32::MAX, schedule.calls.len() as u64);
                let key = if exchange.is_h2 { lone } else { exchange.connection };
                let fresh = connections.len();
                let reply = exchange.reply(call);
                let recorded = reply.and_then(|m| m.message.clone()).map(content).unwrap_or_default();
                let ms = |ns: i64| ns as f64 / 1e6;
                schedule.calls.push(Planned {
                    number: schedule.calls.len() + 1,
                    session,
                    connection: *connections.entry(key).or_insert(fresh),
                    at_ns: exchange.at_ns - start,
                    over_ns: exchange.over_ns(call) - start,
                    what: What {
                        id: call.id.clone(),
                        method: call.method.clone(),
                        tool: call.tool().map(str::to_owned),
                        params: call.params.clone(),
                    },
                    headers: exchange.headers.clone(),
                    recorded,
                    recorded_ms: reply.map(|m| ms(m.after_ns)),
                    left_ms: exchange.left_ns.filter(|_| reply.is_none()).map(ms),
                });
            }
        }
        schedule
    }
}

fn wants_session(selection: &Selection, session: Option<&str>) -> bool {
    selection.sessions.is_empty()
        || session.is_some_and(|s| selection.sessions.iter().any(|w| s.starts_with(w.as_str())))
}

fn is_replayed(call: &TapeCall, selection: &Selection) -> bool {
    let name = call.tool().unwrap_or(&call.method);
    if call.params.get("_meta").is_some_and(|m| m.get(LOOKUP).is_some()) {
        return false;
    }
    !matches!(call.method.as_str(), "initialize" | "server/discover" | "subscriptions/listen")
        && (selection.tools.is_empty() || selection.tools.iter().any(|t| glob(t, name)))
}

/// The `result` or `error` of a reply.
pub(super) fn content(mut message: Value) -> Value {
    let part = if message.get("error").is_some() { "error" } else { "result" };
    message.get_mut(part).map(Value::take).unwrap_or_default()
}
