//! The proof that probing can see: faults of known kinds are put into its own path, between the
//! server and itself, and each must be found.
//!
//! A relay on this machine passes calls on to the server under test and spoils the replies: what
//! is proved is the whole way, sockets and parser included.

use super::plan::{Configuration, Kind, Maker, Slow};
use super::repetition;
use super::volley::Range;
use crate::drive::check::Fault;
use crate::drive::client::{Ask, Client};
use crate::drive::message;
use crate::drive::server::{Answer, Next, Server, Talk};
use crate::drive::session::Session;
use crate::drive::stop::Stop;
use crate::drive::target::Target;
use crate::drive::wire::{Asked, Heard};
use crate::mcp::jsonrpc::{self, Payload};
use crate::mcp::scan;
use serde::Serialize;
use std::io;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// What is done to the replies of two calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Seed {
    /// Nothing: the path itself must be clean.
    Nothing,
    /// Their bodies are swapped; the ids stay.
    SwappedBodies,
    /// Their ids are swapped; the bodies stay.
    WrongIds,
    /// One never comes.
    LostReply,
    /// One comes a second time, on the GET stream.
    ReplyOnGet,
}

/// All of them.
pub const SEEDS: &[Seed] = &[Seed::Nothing, Seed::SwappedBodies, Seed::WrongIds, Seed::LostReply, Seed::ReplyOnGet];

impl Seed {
    /// What must be found, and how often.
    fn expected(self) -> Option<(Fault, usize)> {
        match self {
            Seed::Nothing => None,
            Seed::SwappedBodies => Some((Fault::WrongBody, 2)),
            Seed::WrongIds => Some((Fault::WrongId, 2)),
            Seed::LostReply => Some((Fault::Lost, 1)),
            Seed::ReplyOnGet => Some((Fault::WrongStream, 1)),
        }
    }

    /// As people read it.
    pub fn text(self) -> &'static str {
        match self {
            Seed::Nothing => "nothing seeded",
            Seed::SwappedBodies => "two bodies swapped",
            Seed::WrongIds => "two ids swapped",
            Seed::LostReply => "a reply dropped",
            Seed::ReplyOnGet => "a reply on the GET stream",
        }
    }
}

/// How one seed came out.
#[derive(Clone, Debug, Serialize)]
pub struct Check {
    /// What was seeded.
    pub seed: Seed,
    /// It came out as it should: red where a fault was seeded, green where none was.
    pub passed: bool,
    /// What was found, or why it could not be done.
    pub found: String,
}

/// Seeds each fault in turn.
pub fn run(range: &Range<'_>, maker: &Maker<'_>) -> Vec<Check> {
    let mut all = vec![];
    for &seed in SEEDS {
        if range.client.stop.is_set() {
            break;
        }
        all.push(one(range, maker, seed).unwrap_or_else(|why| Check { seed, passed: false, found: why }));
    }
    all
}

fn one(range: &Range<'_>, maker: &Maker<'_>, seed: Seed) -> Result<Check, String> {
    let stop = Stop::default();
    let server = Server::bind("127.0.0.1:0", None, stop.clone()).map_err(|e| format!("no relay: {e}"))?;
    let address = server.address().map_err(|e| format!("no relay: {e}"))?;
    // Nothing of this is evidence on the server, so nothing of it is recorded.
    let upstream = Client { recorder: None, ..range.client.clone() };
    let relay = Relay { upstream, seed, patience: range.patience, held: Mutex::default(), changed: Condvar::new() };
    let target = Target {
        authority: address.to_string(),
        host: "127.0.0.1".into(),
        port: address.port(),
        ..range.client.target.clone()
    };
    let client = Client { target, headers: vec![], recorder: None, stop: range.client.stop.clone() };
    let through = Range { client: &client, tags: range.tags, patience: range.patience, elsewhere: Mutex::default() };
    let c = Configuration {
        kind: Kind::Distinct,
        batch: 2,
        slow: Slow::First,
        mixed: false,
        pooled: false,
        get: seed == Seed::ReplyOnGet,
    };
    std::thread::scope(|scope| {
        scope.spawn(|| server.run(&relay));
        let result = Session::open(&client, range.patience * 2).map(|session| {
            let repetition = repetition::run(&through, maker, &c, 100, std::slice::from_ref(&session), None);
            session.close(&client);
            repetition
        });
        stop.set();
        let verdict = result.map_err(|e| e.to_string())?.verdict;
        let count = |fault| verdict.claims.iter().filter(|c| c.fault == fault).count();
        let passed = match seed.expected() {
            None => verdict.claims.is_empty() && verdict.verified == 2,
            Some((fault, n)) => count(fault) == n && verdict.claims.len() == n,
        };
        let names: Vec<&str> = verdict.claims.iter().map(|c| c.fault.text()).collect();
        let found =
            if names.is_empty() { format!("{} of 2 replies right", verdict.verified) } else { names.join(", ") };
        Ok(Check { seed, passed, found })
    })
}

/// Passes requests on, and spoils the replies of tool calls.
struct Relay {
    upstream: Client,
    seed: Seed,
    patience: Duration,
    held: Mutex<Held>,
    changed: Condvar,
}

#[derive(Default)]
struct Held {
    /// Replies of the tool calls so far.
    replies: Vec<Vec<u8>>,
}

impl Answer for Relay {
    fn answer(&self, asked: &Asked, talk: &mut Talk<'_>) -> io::Result<Next> {
        if &*asked.method == "GET" {
            return self.stream(talk);
        }
        let heard = self.pass_on(asked)?;
        let mut headers = vec![];
        if let Some(id) = heard.header("mcp-session-id") {
            headers.push(("Mcp-Session-Id".to_owned(), id.to_owned()));
        }
        let status = heard.status.unwrap_or(502);
        let is_call =
            matches!(jsonrpc::parse(&asked.body), Payload::One(m) if m.method.as_deref() == Some("tools/call"));
        let own = message::replies(&heard).into_iter().next().map(|r| r.raw);
        let body = match own {
            Some(reply) if is_call => match self.spoil(reply) {
                Some(spoiled) => spoiled,
                None => return Ok(Next::Close),
            },
            Some(reply) => reply,
            None => vec![],
        };
        if !body.is_empty() {
            headers.push(("Content-Type".to_owned(), "application/json".to_owned()));
        }
        talk.whole(status, &headers, &body)?;
        Ok(Next::Keep)
    }
}

impl Relay {
    fn pass_on(&self, asked: &Asked) -> io::Result<Heard> {
        const OWN: [&str; 4] = ["host", "content-length", "connection", "transfer-encoding"];
        let fields = asked.headers.iter().filter(|(n, _)| !OWN.contains(&&**n));
        let ask = Ask {
            method: if &*asked.method == "DELETE" { "DELETE" } else { "POST" },
            headers: fields.map(|(n, v)| (n.to_string(), v.to_string())).collect(),
            body: String::from_utf8_lossy(&asked.body).into_owned(),
        };
        self.upstream.once(&ask, self.patience)
    }

    /// Holds the reply until the other one is here, then gives what is to be sent in its place.
    fn spoil(&self, reply: Vec<u8>) -> Option<Vec<u8>> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let own = held.replies.len();
        held.replies.push(reply.clone());
        self.changed.notify_all();
        let (held, _) = self
            .changed
            .wait_timeout_while(held, self.patience, |h| h.replies.len() < 2)
            .unwrap_or_else(PoisonError::into_inner);
        let other = held.replies.get(1 - own.min(1)).cloned().unwrap_or_default();
        match self.seed {
            Seed::Nothing | Seed::ReplyOnGet => Some(reply),
            Seed::SwappedBodies => Some(with_id(&other, &reply)),
            Seed::WrongIds => Some(with_id(&reply, &other)),
            Seed::LostReply => (own == 0).then_some(reply),
        }
    }

    fn stream(&self, talk: &mut Talk<'_>) -> io::Result<Next> {
        talk.begin_events(200, &[])?;
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let (held, _) = self
            .changed
            .wait_timeout_while(held, self.patience, |h| h.replies.is_empty())
            .unwrap_or_else(PoisonError::into_inner);
        let first = held.replies.first().cloned();
        drop(held);
        if let Some(reply) = first {
            talk.event(&reply, None)?;
        }
        talk.end_chunks()?;
        Ok(Next::Close)
    }
}

/// The message with the id of another.
pub(in crate::drive) fn with_id(message: &[u8], other: &[u8]) -> Vec<u8> {
    let mut out = b"{\"jsonrpc\":\"2.0\"".to_vec();
    for (key, from) in [("id", other), ("result", message), ("error", message)] {
        if let Some(value) = scan::member(from, key) {
            out.extend(format!(",\"{key}\":").bytes());
            out.extend(value);
        }
    }
    out.push(b'}');
    out
}
