//! How one request is answered.

use super::report::{Matched, Served};
use super::script::{Ending, Entry, FaultRule, Said, What};
use super::{Player, State, Unmatched, now, since};
use crate::drive::server::{Answer, Next, Talk, Waited};
use crate::drive::wire::Asked;
use serde_json::{Value, json};
use std::io;
use std::sync::PoisonError;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// How long a call waits for the one that it is to be swapped with.
const SWAP_MS: u64 = 5000;
/// How long a call's own stream outlives the reply that went to the GET stream. Were both written at once, it would be
/// chance which of the two a client hears of first, and clients differ in what they make of either.
const ON_GET_MS: u64 = 250;
/// A client that never leaves is let go after this.
const PATIENCE: Duration = Duration::from_secs(3600);

/// One request in hand.
struct Turn {
    index: usize,
    id: Value,
    start: Instant,
    session: Option<String>,
    fault: Option<FaultRule>,
}

impl Turn {
    fn does(&self, what: What) -> bool {
        self.fault.as_ref().is_some_and(|f| f.what == what)
    }
    /// Extra time of a fault, ms.
    fn extra(&self, what: What) -> f64 {
        let ms = self.fault.as_ref().filter(|f| f.what == what).map(|f| f.ms.unwrap_or(60_000));
        ms.map_or(0.0, |ms| ms as f64)
    }
}

impl Answer for Player {
    fn answer(&self, asked: &Asked, talk: &mut Talk<'_>) -> io::Result<Next> {
        if asked.target.split('?').next() != Some(self.path.as_str()) {
            return refuse(talk, 404);
        }
        let session = asked.header("mcp-session-id").map(str::to_owned);
        match &*asked.method {
            "POST" => self.post(asked, session, talk),
            "GET" => self.listen(session, talk),
            "DELETE" => {
                let known = session.is_some_and(|s| self.lock().sessions.remove(&s));
                refuse(talk, if known { 200 } else { 404 })
            }
            _ => refuse(talk, 405),
        }
    }
}

fn refuse(talk: &mut Talk<'_>, status: u16) -> io::Result<Next> {
    talk.whole(status, &[], b"")?;
    Ok(Next::Keep)
}

fn json_response(talk: &mut Talk<'_>, status: u16, extra: &[(String, String)], body: &Value) -> io::Result<Next> {
    let mut headers = vec![("Content-Type".to_owned(), "application/json".to_owned())];
    headers.extend_from_slice(extra);
    talk.whole(status, &headers, body.to_string().as_bytes())?;
    Ok(Next::Keep)
}

fn error(id: &Value, code: i64, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}

impl Player {
    fn post(&self, asked: &Asked, session: Option<String>, talk: &mut Talk<'_>) -> io::Result<Next> {
        let start = Instant::now();
        let Ok(message) = serde_json::from_slice::<Value>(&asked.body) else {
            return json_response(talk, 400, &[], &error(&Value::Null, -32700, "Parse error"));
        };
        let Some(method) = message.get("method").and_then(Value::as_str) else {
            // An answer to a request of the server.
            return refuse(talk, if message.is_array() { 400 } else { 202 });
        };
        let params = message.get("params").cloned().unwrap_or_default();
        let tool = (method == "tools/call").then(|| params.get("name")?.as_str()).flatten().map(str::to_owned);
        let arguments =
            if tool.is_some() { params.get("arguments").cloned().unwrap_or(json!({})) } else { params.clone() };
        let id = message.get("id").cloned();
        let mut state = self.lock();
        let is_known = !self.script.sessions
            || method == "initialize"
            || session.as_ref().is_some_and(|s| state.sessions.contains(s));
        let (mut entry, mut matched, mut fault) = (None, None, None);
        if is_known && id.is_some() {
            let (found, how) = self.find(&mut state, method, tool.as_deref(), &arguments);
            (entry, matched) = (found, Some(how));
            fault = tool.as_deref().and_then(|t| self.fault(&mut state, t));
        }
        let served = Served {
            number: 0,
            at: now(),
            peer: talk.peer().to_string(),
            session: session.clone(),
            method: method.to_owned(),
            tool,
            arguments,
            id: id.clone().unwrap_or_default(),
            matched,
            fault: fault.as_ref().map(|f| f.what),
            status: None,
            answered_ms: None,
            left_ms: None,
            cancelled: false,
            retried_as: None,
        };
        let index = self.note(&mut state, served);
        if method == "notifications/cancelled" {
            let cancelled = params.get("requestId").cloned().unwrap_or_default();
            let of =
                state.requests.iter_mut().rev().find(|r| r.session == session && r.id == cancelled && !r.id.is_null());
            of.into_iter().for_each(|r| r.cancelled = true);
        }
        drop(state);
        if !is_known {
            let status = if session.is_some() { 404 } else { 400 };
            self.update(index, |s| s.status = Some(status));
            return json_response(talk, status, &[], &error(&id.unwrap_or_default(), -32600, "Session not found"));
        }
        let Some(id) = id else {
            self.update(index, |s| s.status = Some(202));
            return refuse(talk, 202);
        };
        let turn = Turn { index, id, start, session, fault };
        match entry {
            Some(entry) if method == "initialize" => self.initialize(&turn, &entry, talk),
            Some(entry) => self.play(&turn, entry, talk),
            None => self.make_up(&turn, method, talk),
        }
    }

    fn initialize(&self, turn: &Turn, entry: &Entry, talk: &mut Talk<'_>) -> io::Result<Next> {
        let recorded = entry.messages.iter().find(|m| m.message.get("result").is_some());
        let Some(said) = recorded else { return self.play(turn, entry.clone(), talk) };
        self.welcome(turn, with_id(&said.message, &turn.id), talk)
    }

    fn welcome(&self, turn: &Turn, reply: Value, talk: &mut Talk<'_>) -> io::Result<Next> {
        let mut extra = vec![];
        if self.script.sessions {
            let id = format!("played-{}", self.tags.text(self.tags.take()));
            self.lock().sessions.insert(id.clone());
            extra.push(("Mcp-Session-Id".to_owned(), id));
        }
        let next = json_response(talk, 200, &extra, &reply)?;
        self.update(turn.index, |s| (s.status, s.answered_ms) = (Some(200), Some(since(turn.start))));
        Ok(next)
    }

    /// What the protocol asks for, where nothing was recorded.
    fn make_up(&self, turn: &Turn, method: &str, talk: &mut Talk<'_>) -> io::Result<Next> {
        let result = match method {
            "initialize" => Some(json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                "serverInfo": {"name": "crosswire-serve", "version": env!("CARGO_PKG_VERSION")}})),
            "ping" => Some(json!({})),
            "tools/list" => Some(json!({"tools": self.known_tools()})),
            _ => None,
        };
        if let Some(result) = result {
            self.update(turn.index, |s| s.matched = Some(Matched::MadeUp));
            let reply = json!({"jsonrpc": "2.0", "id": turn.id, "result": result});
            if method == "initialize" {
                return self.welcome(turn, reply, talk);
            }
            self.update(turn.index, |s| (s.status, s.answered_ms) = (Some(200), Some(since(turn.start))));
            return json_response(talk, 200, &[], &reply);
        }
        match self.unmatched {
            Unmatched::Refuse => {
                self.update(turn.index, |s| s.status = Some(404));
                refuse(talk, 404)
            }
            Unmatched::Hang => {
                talk.begin_events(200, &[])?;
                self.hang(turn, talk)
            }
            Unmatched::Repeat | Unmatched::Error => {
                self.update(turn.index, |s| (s.status, s.answered_ms) = (Some(200), Some(since(turn.start))));
                json_response(talk, 200, &[], &error(&turn.id, -32601, "nothing was recorded for this request"))
            }
        }
    }

    fn known_tools(&self) -> Vec<Value> {
        let mut names: Vec<&str> = self.script.replies.iter().filter_map(|e| e.tool.as_deref()).collect();
        names.sort_unstable();
        names.dedup();
        names.into_iter().map(|n| json!({"name": n, "inputSchema": {"type": "object"}})).collect()
    }

    fn play(&self, turn: &Turn, entry: Entry, talk: &mut Talk<'_>) -> io::Result<Next> {
        let own = entry.messages.iter().find(|m| is_reply(&m.message));
        if let Some(own) = own.filter(|_| entry.tool.is_some()) {
            self.enter(turn, &own.message);
        }
        let next = self.perform(turn, entry, talk);
        self.lock().swaps.leave(turn.index);
        next
    }

    fn perform(&self, turn: &Turn, mut entry: Entry, talk: &mut Talk<'_>) -> io::Result<Next> {
        if turn.does(What::ForgetSession) {
            (entry.status, entry.messages) = (404, vec![]);
        }
        // What is not the plain way needs a stream to be done on.
        let streams = [What::Late, What::Drop, What::Reset, What::Hang, What::Duplicate, What::OnGet];
        entry.stream |= streams.into_iter().any(|w| turn.does(w));
        let head = entry.head_ms / self.speed + turn.extra(What::Delay);
        if !self.until(turn, head, talk)? {
            return Ok(Next::Close);
        }
        if entry.status >= 300 {
            return self.failure(turn, &entry, talk);
        }
        self.update(turn.index, |s| s.status = Some(entry.status));
        if entry.stream { self.stream(turn, &entry, talk) } else { self.body(turn, &entry, talk) }
    }

    fn failure(&self, turn: &Turn, entry: &Entry, talk: &mut Talk<'_>) -> io::Result<Next> {
        if entry.status == 404
            && let Some(session) = &turn.session
        {
            self.lock().sessions.remove(session);
        }
        self.update(turn.index, |s| s.status = Some(entry.status));
        match entry.messages.first() {
            Some(said) => json_response(talk, entry.status, &[], &said.message),
            None => json_response(talk, entry.status, &[], &error(&turn.id, -32600, "Session not found")),
        }
    }

    fn body(&self, turn: &Turn, entry: &Entry, talk: &mut Talk<'_>) -> io::Result<Next> {
        let reply = entry.messages.iter().rfind(|m| is_reply(&m.message));
        let at = reply.map_or(entry.end_ms, |m| m.after_ms) / self.speed + turn.extra(What::Delay);
        if !self.until(turn, at, talk)? {
            return Ok(Next::Close);
        }
        match (reply, entry.end) {
            (Some(said), _) => {
                let next = json_response(talk, entry.status, &[], &self.dressed(turn, &said.message))?;
                self.update(turn.index, |s| s.answered_ms = Some(since(turn.start)));
                Ok(next)
            }
            (None, Ending::Complete) => refuse(talk, entry.status),
            (None, Ending::Cut) => Ok(Next::Close),
            (None, Ending::Reset) => Ok(Next::Reset),
            (None, Ending::Hang) => self.hang(turn, talk),
        }
    }

    fn stream(&self, turn: &Turn, entry: &Entry, talk: &mut Talk<'_>) -> io::Result<Next> {
        talk.begin_events(entry.status, &[])?;
        let shift = turn.extra(What::Delay) + turn.extra(What::Late);
        for Said { after_ms, message } in &entry.messages {
            if !self.until(turn, after_ms / self.speed + shift, talk)? {
                return Ok(Next::Close);
            }
            if !is_reply(message) {
                talk.event(message.to_string().as_bytes(), None)?;
                continue;
            }
            let reply = self.dressed(turn, message);
            match turn.fault.as_ref().map(|f| f.what) {
                Some(What::Drop) => return Ok(Next::Close),
                Some(What::Reset) => return Ok(Next::Reset),
                Some(What::Hang) => return self.hang(turn, talk),
                Some(What::OnGet) => {
                    let state = self.lock();
                    let stream = turn.session.as_ref().and_then(|s| state.streams.get(s));
                    let sent = stream.is_some_and(|s| s.send(reply).is_ok());
                    drop(state);
                    if sent {
                        self.update(turn.index, |s| s.answered_ms = Some(since(turn.start)));
                    }
                    let more = turn.fault.as_ref().and_then(|f| f.ms).unwrap_or(ON_GET_MS);
                    if !self.until(turn, since(turn.start) + more as f64, talk)? {
                        return Ok(Next::Close);
                    }
                }
                what => {
                    let times = if what == Some(What::Duplicate) { 2 } else { 1 };
                    for _ in 0..times {
                        talk.event(reply.to_string().as_bytes(), None)?;
                    }
                    self.update(turn.index, |s| s.answered_ms = Some(since(turn.start)));
                }
            }
        }
        match entry.end {
            Ending::Complete => {
                talk.end_chunks()?;
                Ok(Next::Keep)
            }
            Ending::Cut | Ending::Reset => {
                self.until(turn, entry.end_ms / self.speed, talk)?;
                Ok(if entry.end == Ending::Cut { Next::Close } else { Next::Reset })
            }
            Ending::Hang => self.hang(turn, talk),
        }
    }

    /// Waits until so many ms after the request; false if there is nobody to answer any more.
    fn until(&self, turn: &Turn, ms: f64, talk: &mut Talk<'_>) -> io::Result<bool> {
        let left = ms - since(turn.start);
        if left <= 0.0 {
            return Ok(true);
        }
        let waited = talk.wait(Duration::from_secs_f64(left.min(PATIENCE.as_secs_f64() * 1000.0) / 1000.0));
        if waited == Waited::ClientClosed {
            self.update(turn.index, |s| s.left_ms = Some(since(turn.start)));
        }
        Ok(waited == Waited::Elapsed)
    }

    fn hang(&self, turn: &Turn, talk: &mut Talk<'_>) -> io::Result<Next> {
        self.until(turn, PATIENCE.as_secs_f64() * 1000.0, talk)?;
        Ok(Next::Close)
    }

    /// Makes a call known to those that are to be swapped. One that asks for it waits until another comes.
    fn enter(&self, turn: &Turn, own: &Value) {
        let asks = turn.does(What::Swap);
        let is_swapped_at_all = self.script.faults.iter().any(|f| f.what == What::Swap);
        if !is_swapped_at_all || (turn.fault.is_some() && !asks) {
            return;
        }
        let mut state = self.lock();
        if let Some(other) = state.swaps.enter(turn.index, own.clone(), asks) {
            for index in [other, turn.index] {
                state.requests.get_mut(index).into_iter().for_each(|served| served.fault = Some(What::Swap));
            }
            self.changed.notify_all();
            return;
        }
        if !asks {
            return;
        }
        let wait = Duration::from_millis(turn.fault.as_ref().and_then(|f| f.ms).unwrap_or(SWAP_MS));
        let is_alone = |s: &mut State| s.swaps.is_alone(turn.index);
        let waited = self.changed.wait_timeout_while(state, wait, is_alone);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if state.swaps.is_alone(turn.index) {
            // Nobody came: nothing was done wrong.
            state.swaps.leave(turn.index);
            state.requests.get_mut(turn.index).into_iter().for_each(|served| served.fault = None);
        }
    }

    /// The reply with the id of the request, or with a wrong one; another call's, where it was swapped.
    fn dressed(&self, turn: &Turn, message: &Value) -> Value {
        let theirs = self.lock().swaps.leave(turn.index);
        let wrong = turn.fault.as_ref().filter(|f| f.what == What::WrongId).map(|f| {
            f.id.clone().unwrap_or_else(|| match turn.id.as_i64() {
                Some(n) => json!(n + 1),
                None => json!(format!("{}-wrong", turn.id.as_str().unwrap_or_default())),
            })
        });
        with_id(theirs.as_ref().unwrap_or(message), wrong.as_ref().unwrap_or(&turn.id))
    }

    fn listen(&self, session: Option<String>, talk: &mut Talk<'_>) -> io::Result<Next> {
        let is_wanted = self.script.get_stream || self.script.faults.iter().any(|f| f.what == What::OnGet);
        let Some(session) = session.filter(|_| is_wanted) else { return refuse(talk, 405) };
        if !self.lock().sessions.contains(&session) {
            return refuse(talk, 404);
        }
        let (sender, replies) = channel();
        self.lock().streams.insert(session, sender);
        talk.begin_events(200, &[])?;
        while talk.wait(Duration::from_millis(20)) == Waited::Elapsed {
            match replies.recv_timeout(Duration::from_millis(1)) {
                Ok(reply) => talk.event(reply.to_string().as_bytes(), None)?,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        Ok(Next::Close)
    }
}

fn is_reply(message: &Value) -> bool {
    message.get("method").is_none() && (message.get("result").is_some() || message.get("error").is_some())
}

fn with_id(message: &Value, id: &Value) -> Value {
    let mut message = message.clone();
    if let Some(object) = message.as_object_mut() {
        object.insert("id".into(), id.clone());
    }
    message
}
