//! Sends the calls of one wave at their times, each on its own connection or on shared ones, and
//! hears what comes on each.

use super::plan::{Leave, Shot};
use crate::drive::client::{Ask, Client, Line};
use crate::drive::message::{self, Reply};
use crate::drive::record::now_ns;
use crate::drive::session::Session;
use crate::drive::tags::Tags;
use crate::drive::wire::Heard;
use crate::model::exchange::End;
use rustc_hash::FxHashSet;
use serde_json::json;
use std::collections::VecDeque;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Connections of a shared pool.
pub const POOL: usize = 4;
/// How long a stream is listened to after its reply, and after the reply was seen elsewhere.
const AFTER: Duration = Duration::from_millis(250);

/// A call that was sent, and what came.
#[derive(Clone, Debug)]
pub struct Flight {
    /// The call.
    pub shot: Shot,
    /// When it was sent, ns since 1970.
    pub sent_ns: i64,
    /// The client's port.
    pub port: u16,
    /// HTTP status.
    pub status: Option<u16>,
    /// Results and errors on its stream.
    pub replies: Vec<Reply>,
    /// Why it could not be sent.
    pub failed: Option<String>,
}

impl Flight {
    /// From sending to the first reply, ms.
    pub fn latency_ms(&self) -> Option<f64> {
        Some((self.replies.first()?.at_ns - self.sent_ns) as f64 / 1e6)
    }

    /// Why it was refused, by HTTP status or by a JSON-RPC error, or could not be sent.
    pub fn refusal(&self) -> Option<String> {
        if let Some(why) = &self.failed {
            return Some(format!("it could not be sent: {why}"));
        }
        let status = self.status.filter(|s| *s >= 400);
        let error = self.replies.first().filter(|r| r.is_rpc_error);
        if status.is_none() && error.is_none() {
            return None;
        }
        let text = error.and_then(|r| r.error()).and_then(|e| Some(e.get("message")?.as_str()?.to_owned()));
        let words = [status.map(|s| format!("status {s}")), text];
        Some(words.into_iter().flatten().collect::<Vec<_>>().join(", "))
    }
}

/// What all calls of a run share.
pub struct Range<'a> {
    /// The client.
    pub client: &'a Client,
    /// Tags.
    pub tags: &'a Tags,
    /// How long a caller waits.
    pub patience: Duration,
    /// Tags whose reply someone else got: waiting for it is in vain.
    pub elsewhere: Mutex<FxHashSet<u32>>,
}

/// Connections that are kept between calls.
#[derive(Default)]
pub struct Pool(Mutex<Vec<Line>>);

impl Pool {
    fn take(&self) -> Option<Line> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }
    fn give(&self, line: Line) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    }
}

impl Range<'_> {
    /// Sends the calls and waits for all of them. With a `pool`, at most [`POOL`] are in flight.
    pub fn fire(&self, sessions: &[Session], shots: Vec<Shot>, pool: Option<&Pool>) -> Vec<Flight> {
        let start = Instant::now() + Duration::from_millis(2);
        let workers = if pool.is_some() { POOL.min(shots.len()) } else { shots.len() };
        let queue: Mutex<VecDeque<Shot>> = Mutex::new(shots.into());
        let flights = Mutex::new(vec![]);
        std::thread::scope(|scope| {
            for _ in 0..workers {
                scope.spawn(|| {
                    while let Some(shot) = next(&queue) {
                        if !self.client.stop.sleep_until(start + shot.at) {
                            break;
                        }
                        let Some(session) = sessions.get(shot.session) else { continue };
                        let flight = self.one(session, shot, pool);
                        flights.lock().unwrap_or_else(PoisonError::into_inner).push(flight);
                    }
                });
            }
        });
        let mut flights = flights.into_inner().unwrap_or_else(PoisonError::into_inner);
        flights.sort_by_key(|f: &Flight| f.sent_ns);
        flights
    }

    fn one(&self, session: &Session, shot: Shot, pool: Option<&Pool>) -> Flight {
        let ask = session.ask(&shot.id, "tools/call", &shot.params);
        let mut flight = Flight { shot, sent_ns: now_ns(), port: 0, status: None, replies: vec![], failed: None };
        if let Some(line) = pool.and_then(Pool::take).filter(Line::is_open) {
            match self.on(session, &ask, line, &mut flight, pool) {
                // The server may close a kept connection at any time; that says nothing of the call.
                Ok(heard) if heard.status.is_some() || heard.end.is_none() => {}
                _ => flight.sent_ns = 0,
            }
            if flight.sent_ns != 0 {
                return flight;
            }
        }
        let done = self.client.connect().and_then(|line| self.on(session, &ask, line, &mut flight, pool));
        flight.failed = done.err().map(|e| e.to_string());
        flight
    }

    fn on(
        &self,
        session: &Session,
        ask: &Ask,
        mut line: Line,
        flight: &mut Flight,
        pool: Option<&Pool>,
    ) -> io::Result<Heard> {
        flight.sent_ns = now_ns();
        flight.port = line.port();
        line.send(self.client, ask)?;
        let heard = match flight.shot.leave {
            Some(leave) => self.leave(session, &flight.shot, leave, &mut line),
            None => self.wait(flight.shot.tag, &mut line),
        };
        flight.status = heard.status;
        flight.replies = message::replies(&heard);
        match pool {
            Some(pool) if heard.end == Some(End::Complete) => pool.give(line),
            _ => line.close(),
        }
        Ok(heard)
    }

    fn wait(&self, tag: u32, line: &mut Line) -> Heard {
        let mut messages = 0;
        let mut answered: Option<Instant> = None;
        let mut in_vain: Option<Instant> = None;
        line.hear(Instant::now() + self.patience, |heard| {
            // Messages are read once; the rest of the time only the clock is.
            if heard.messages.len() > messages {
                messages = heard.messages.len();
                let replies = message::replies(heard);
                if !replies.is_empty() {
                    answered.get_or_insert_with(Instant::now);
                }
                let foreign = replies.iter().map(|r| self.tags.find(&r.raw)).filter(|t| !t.contains(&tag));
                self.elsewhere.lock().unwrap_or_else(PoisonError::into_inner).extend(foreign.flatten());
            }
            if in_vain.is_none() && self.elsewhere.lock().unwrap_or_else(PoisonError::into_inner).contains(&tag) {
                in_vain = Some(Instant::now());
            }
            answered.or(in_vain).is_some_and(|since| since.elapsed() >= AFTER)
        })
    }

    fn leave(&self, session: &Session, shot: &Shot, leave: Leave, line: &mut Line) -> Heard {
        let heard = line.hear(Instant::now() + leave.after, |_| false);
        if leave.cancel && heard.end.is_none() {
            let id: serde_json::Value = serde_json::from_str(&shot.id.to_string()).unwrap_or_default();
            let params = json!({"requestId": id, "reason": "probe"});
            let _ = self.client.once(&session.notify("notifications/cancelled", Some(params)), self.patience);
        }
        heard
    }
}

fn next(queue: &Mutex<VecDeque<Shot>>) -> Option<Shot> {
    queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
}
