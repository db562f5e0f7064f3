//! The guard: refuses a request whose id is in flight on its session, so that the server cannot take
//! the one's reply for the other's.
//!
//! An id is in flight from its request until a reply with it passes on any stream of the session,
//! until the client cancels it, or until its request was refused. Where a client leaves or a stream
//! ends without the reply, the server may still be at work on it: such an id stays taken for the time
//! the user chose. Ids are compared as text, as some servers do: `7` and `"7"` are one.

use crate::mcp::jsonrpc::{self, Kind, Payload};
use crate::mcp::scan;
use crate::model::id::RpcId;
use crate::model::limits::GUARDED_CALLS;
use rustc_hash::FxHashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Ids in flight, by session.
pub(super) struct Guard {
    hold: Duration,
    calls: Mutex<Calls>,
    next: AtomicU64,
}

#[derive(Default)]
struct Calls {
    sessions: FxHashMap<String, FxHashMap<String, Held>>,
    count: usize,
}

struct Held {
    ticket: u64,
    since: Instant,
}

/// A call that was let through.
pub(super) struct Ticket {
    session: String,
    id: String,
    number: u64,
}

/// A request that must not go on.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    /// The id as the request spells it, as JSON.
    pub(super) id: String,
}

impl Refusal {
    /// The body of the answer.
    pub(super) fn body(&self) -> String {
        let text = format!(
            "refused by crosswire proxy --guard: a request with id {} is already in flight on this session; wait for its \
             reply or use another id",
            self.id
        );
        format!(
            r#"{{"jsonrpc":"2.0","id":{},"error":{{"code":-32600,"message":{}}}}}"#,
            self.id,
            serde_json::Value::from(text)
        )
    }
}

impl Guard {
    pub(super) fn new(hold: Duration) -> Guard {
        Guard { hold, calls: Mutex::default(), next: AtomicU64::new(0) }
    }

    fn lock(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a POST of this body through, with the calls in it; or not.
    pub(super) fn admit(&self, session: &str, body: &[u8]) -> Result<Vec<Ticket>, Refusal> {
        let payload = jsonrpc::parse(body);
        let messages = match &payload {
            Payload::One(m) => std::slice::from_ref(m),
            Payload::Batch(all, _) => all.as_slice(),
            Payload::Other | Payload::Invalid => &[],
        };
        let now = Instant::now();
        let mut calls = self.lock();
        let mut tickets: Vec<Ticket> = vec![];
        for m in messages {
            match (m.kind, &m.id) {
                (Kind::Request, Some(id)) => {
                    let text = id.loose().to_string();
                    let held = calls.sessions.get(session).and_then(|s| s.get(&text));
                    if held.is_some_and(|h| now.duration_since(h.since) < self.hold) {
                        tickets.drain(..).for_each(|t| calls.remove(&t));
                        return Err(Refusal { id: id.to_string() });
                    }
                    if calls.count >= GUARDED_CALLS {
                        calls.forget_old(now, self.hold);
                    }
                    if calls.count >= GUARDED_CALLS {
                        continue;
                    }
                    let number = self.next.fetch_add(1, Ordering::Relaxed);
                    let of = calls.sessions.entry(session.to_owned()).or_default();
                    if of.insert(text.clone(), Held { ticket: number, since: now }).is_none() {
                        calls.count += 1;
                    }
                    tickets.push(Ticket { session: session.to_owned(), id: text, number });
                }
                (Kind::Notification, _) if m.method.as_deref() == Some("notifications/cancelled") => {
                    if let Some(id) = m.params.and_then(|p| scan::member(p, "requestId")) {
                        calls.forget(session, &jsonrpc::id(id).loose());
                    }
                }
                _ => {}
            }
        }
        Ok(tickets)
    }

    /// A reply with this id has passed.
    pub(super) fn answered(&self, session: &str, id: &RpcId) {
        self.lock().forget(session, &id.loose());
    }

    /// The call will not be answered.
    pub(super) fn release(&self, ticket: Ticket) {
        self.lock().remove(&ticket);
    }

    /// The session is no more.
    pub(super) fn ended(&self, session: &str) {
        let mut calls = self.lock();
        if let Some(gone) = calls.sessions.remove(session) {
            calls.count -= gone.len();
        }
    }
}

impl Calls {
    fn forget(&mut self, session: &str, id: &str) {
        let Some(of) = self.sessions.get_mut(session) else { return };
        if of.remove(id).is_some() {
            self.count -= 1;
        }
        if of.is_empty() {
            self.sessions.remove(session);
        }
    }

    fn remove(&mut self, ticket: &Ticket) {
        let held = self.sessions.get(&ticket.session).and_then(|s| s.get(&ticket.id));
        if held.is_some_and(|h| h.ticket == ticket.number) {
            self.forget(&ticket.session, &ticket.id);
        }
    }

    fn forget_old(&mut self, now: Instant, hold: Duration) {
        self.sessions.retain(|_, of| {
            of.retain(|_, h| now.duration_since(h.since) < hold);
            !of.is_empty()
        });
        self.count = self.sessions.values().map(FxHashMap::len).sum();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const HOLD: Duration = Duration::from_secs(300);

    fn call(id: &str) -> Vec<u8> {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{}}}}"#).into_bytes()
    }

    #[test]
    fn an_id_is_free_again_after_its_reply() {
        let guard = Guard::new(HOLD);
        assert_eq!(guard.admit("s", &call("7")).unwrap().len(), 1);
        assert!(guard.admit("s", &call("8")).is_ok());
        assert!(guard.admit("other", &call("7")).is_ok());
        let refusal = guard.admit("s", &call("\"7\"")).err().unwrap();
        assert_eq!(refusal.id, "\"7\"");
        let body: serde_json::Value = serde_json::from_str(&refusal.body()).unwrap();
        assert_eq!((&body["id"], &body["error"]["code"]), (&"7".into(), &(-32600).into()));
        guard.answered("s", &RpcId::Int(7));
        assert!(guard.admit("s", &call("7")).is_ok());
    }

    #[test]
    fn a_cancelled_call_and_an_ended_session_hold_nothing() {
        let guard = Guard::new(HOLD);
        guard.admit("s", &call("7")).unwrap();
        let cancel = br#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#;
        assert!(guard.admit("s", cancel).unwrap().is_empty());
        guard.admit("s", &call("7")).unwrap();
        guard.ended("s");
        let mut tickets = guard.admit("s", &call("7")).unwrap();
        guard.release(tickets.pop().unwrap());
        assert!(guard.admit("s", &call("7")).is_ok());
        assert_eq!(guard.lock().count, 1);
    }

    #[test]
    fn a_batch_is_let_through_whole_or_not_at_all() {
        let guard = Guard::new(HOLD);
        let batch = |a: &str, b: &str| [b"[", &call(a)[..], b",", &call(b), b"]"].concat();
        assert_eq!(guard.admit("s", &batch("1", "1")).err().unwrap().id, "1");
        assert_eq!(guard.admit("s", &batch("1", "2")).unwrap().len(), 2);
    }

    #[test]
    fn an_id_that_is_never_answered_is_free_after_a_time() {
        let guard = Guard::new(Duration::ZERO);
        guard.admit("s", &call("7")).unwrap();
        assert!(guard.admit("s", &call("7")).is_ok());
        assert_eq!(guard.lock().count, 1);
    }
}
