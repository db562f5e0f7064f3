//! Sends recorded calls to a live server with the concurrency they had, and judges every reply.

mod judge;
pub mod report;
pub mod schedule;

use super::client::{Client, Line};
use super::message::{self, Reply};
use super::probe::may_call;
use super::record::now_ns;
use super::session::{Session, refusal};
use super::wire::Heard;
use crate::model::exchange::End;
use crate::model::id::RpcId;
use judge::{Owners, difference};
use report::{Played, Report, Verdict};
use rustc_hash::FxHashMap;
use schedule::{Planned, Schedule, content};
use serde_json::Value;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How to replay.
#[derive(Clone, Debug)]
pub struct Options {
    /// Recorded times are divided by this.
    pub speed: f64,
    /// No waiting but for the calls that were over before.
    pub asap: bool,
    /// Rounds.
    pub times: u64,
    /// Each call is sent up to so much later.
    pub jitter: Duration,
    /// Ids are given out anew, one after the other in each session.
    pub renumber: bool,
    /// On which connections.
    pub connections: Connections,
    /// How long a caller waits.
    pub patience: Duration,
    /// Tools that may be called though they are not marked read-only.
    pub allow: Vec<String>,
    /// Names of header fields whose recorded values are sent.
    pub recorded_headers: Vec<String>,
}

impl Options {
    /// Of a call's recorded header fields those that are to be sent.
    fn of_recorded(&self, call: &Planned) -> Vec<(String, String)> {
        let wanted = |name: &str| self.recorded_headers.iter().any(|w| w.eq_ignore_ascii_case(name));
        let fields = call.headers.iter().filter(|(name, _)| wanted(name));
        fields.map(|(name, value)| (name.to_string(), value.to_string())).collect()
    }
}

/// On which connections calls are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connections {
    /// On the same ones as recorded.
    Recorded,
    /// On any that is free; a new one is opened only if none is.
    Pooled,
    /// One a call.
    Own,
}

/// Most calls in flight.
const IN_FLIGHT: usize = 512;

/// What one call brought.
struct Landed {
    index: usize,
    id: RpcId,
    session: Option<String>,
    sent_ns: i64,
    over_ns: i64,
    replies: Vec<Reply>,
    refused: Option<String>,
    not_sent: Option<String>,
}

#[derive(Default)]
struct Progress {
    landed: Vec<Landed>,
    done: Vec<bool>,
    /// Calls before this one were sent, or will not be.
    turn: usize,
    passed: Vec<bool>,
    flying: usize,
    /// Kept connections by their key.
    lines: FxHashMap<usize, Vec<Line>>,
}

struct Round<'a> {
    client: &'a Client,
    options: &'a Options,
    schedule: &'a Schedule,
    sessions: Vec<Session>,
    tools: &'a FxHashMap<String, Value>,
    progress: Mutex<Progress>,
    changed: Condvar,
}

/// Replays the schedule. Whatever goes wrong is in the report's troubles.
pub fn run(client: &Client, schedule: &Schedule, options: &Options) -> Report {
    let mut report = Report {
        schema: "crosswire.replay/1",
        target: client.target.to_string(),
        calls: vec![],
        stopped: false,
        troubles: vec![],
    };
    let owners = Owners::new(&schedule.calls);
    let mut seed = now_ns().unsigned_abs();
    for round in 1..=options.times {
        if client.stop.is_set() {
            break;
        }
        match rounds(client, schedule, options, &mut seed) {
            Ok(landed) => report.calls.extend(judged(round, schedule, &owners, landed, client.stop.is_set())),
            Err(why) => {
                report.troubles.push(why);
                break;
            }
        }
    }
    report.stopped = client.stop.is_set();
    let is_judged = |c: &Played| !matches!(c.verdict, Verdict::NotSent { .. } | Verdict::Refused { .. });
    let tools = || report.calls.iter().filter(|c| c.tool.is_some());
    if !report.stopped && tools().next().is_some() && !tools().any(is_judged) {
        let first = tools().next().map_or_else(String::new, |c| c.verdict.text());
        report.troubles.push(format!("no tool was called, so nothing was tested; the first was {first}"));
    }
    if report.stopped {
        let of = schedule.calls.len() as u64 * options.times;
        report.troubles.push(format!("stopped: {} of {of} calls were sent", report.calls.len()));
    }
    report
}

fn rounds(client: &Client, schedule: &Schedule, options: &Options, seed: &mut u64) -> Result<Vec<Landed>, String> {
    // What opens, asks and closes for a session sends the header fields of its first call.
    let of_session = |n: usize| {
        let mut of = client.clone();
        let first = schedule.calls.iter().find(|c| c.session == n);
        let recorded = first.map(|c| options.of_recorded(c)).unwrap_or_default();
        of.headers.extend(recorded.into_iter().filter(|(name, _)| !client.gives(name)));
        of
    };
    let clients: Vec<Client> = (0..schedule.sessions.len()).map(of_session).collect();
    let open = |of: &Client| Session::open(of, options.patience);
    let sessions = clients.iter().map(open).collect::<Result<Vec<_>, _>>().map_err(|e| e.to_string())?;
    let mut tools = FxHashMap::default();
    if schedule.calls.iter().any(|c| c.what.tool.is_some())
        && let (Some(first), Some(of)) = (sessions.first(), clients.first())
    {
        for tool in first.tools(of, options.patience).map_err(|e| e.to_string())? {
            let name = tool.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
            tools.insert(name, tool);
        }
    }
    let none = vec![false; schedule.calls.len()];
    let progress = Progress { done: none.clone(), passed: none, ..Progress::default() };
    let round = Round {
        client,
        options,
        schedule,
        sessions,
        tools: &tools,
        progress: Mutex::new(progress),
        changed: Condvar::new(),
    };
    round.fly(seed);
    let Round { sessions, progress, .. } = round;
    sessions.iter().zip(&clients).for_each(|(s, of)| s.close(of));
    let mut landed = progress.into_inner().unwrap_or_else(PoisonError::into_inner).landed;
    landed.sort_by_key(|l| l.index);
    Ok(landed)
}

impl Round<'_> {
    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fly(&self, seed: &mut u64) {
        let start = Instant::now();
        let mut by_end: Vec<usize> = (0..self.schedule.calls.len()).collect();
        by_end.sort_by_key(|i| self.schedule.calls.get(*i).map_or(0, |c| c.over_ns));
        let mut by_end = by_end.into_iter().peekable();
        let mut next_ids = vec![1_i64; self.sessions.len()];
        std::thread::scope(|scope| {
            for (index, call) in self.schedule.calls.iter().enumerate() {
                if self.options.asap {
                    // Every call that was over when this one was sent must be over now.
                    let is_before =
                        |i: &usize| *i != index && self.schedule.calls.get(*i).is_some_and(|c| c.over_ns <= call.at_ns);
                    while let Some(before) = by_end.next_if(is_before) {
                        self.wait(|p| p.done.get(before) == Some(&true));
                    }
                } else {
                    let at = Duration::from_nanos((call.at_ns.max(0) as f64 / self.options.speed) as u64);
                    self.client.stop.sleep_until(start + at);
                }
                self.wait(|p| p.flying < IN_FLIGHT);
                if self.client.stop.is_set() {
                    break;
                }
                let id = if self.options.renumber {
                    let next = next_ids.get_mut(call.session);
                    RpcId::Int(next.map_or(0, |n| std::mem::replace(n, *n + 1)))
                } else {
                    call.what.id.clone()
                };
                let late = self.options.jitter.mul_f64(random(seed));
                self.lock().flying += 1;
                scope.spawn(move || {
                    self.client.stop.sleep_until(Instant::now() + late);
                    let landed = self.one(index, call, id);
                    self.pass(index);
                    let mut progress = self.lock();
                    progress.flying -= 1;
                    if let Some(done) = progress.done.get_mut(index) {
                        *done = true;
                    }
                    progress.landed.push(landed);
                    self.changed.notify_all();
                });
            }
        });
    }

    fn wait(&self, is_so: impl Fn(&Progress) -> bool) {
        let mut progress = self.lock();
        while !is_so(&progress) && !self.client.stop.is_set() {
            let waited = self.changed.wait_timeout(progress, Duration::from_millis(20));
            progress = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn one(&self, index: usize, call: &Planned, id: RpcId) -> Landed {
        let session = self.sessions.get(call.session);
        let mut landed = Landed {
            index,
            id,
            session: session.and_then(|s| s.id.clone()),
            sent_ns: now_ns(),
            over_ns: i64::MAX,
            replies: vec![],
            refused: None,
            not_sent: self.why_not(call),
        };
        let Some(session) = session.filter(|_| landed.not_sent.is_none()) else { return landed };
        let mut ask = session.ask(&landed.id, &call.what.method, &call.what.params);
        ask.headers.extend(self.options.of_recorded(call));
        let kept = self.key(call).and_then(|key| self.lock().lines.get_mut(&key)?.pop());
        if let Some(line) = kept.filter(Line::is_open)
            && let Ok(heard) = self.on(line, &ask, call, &mut landed)
            && (heard.status.is_some() || heard.end.is_none())
        {
            return landed;
        }
        // A kept connection may have been closed meanwhile, which says nothing of the call.
        landed.over_ns = i64::MAX;
        if let Err(e) = self.client.connect().and_then(|line| self.on(line, &ask, call, &mut landed)) {
            landed.not_sent = Some(e.to_string());
        }
        landed
    }

    /// Under what a call's connection is kept; none where it is not.
    fn key(&self, call: &Planned) -> Option<usize> {
        match self.options.connections {
            Connections::Recorded => Some(call.connection),
            Connections::Pooled => Some(0),
            Connections::Own => None,
        }
    }

    /// Waits until every earlier call was sent: threads and connecting must not change the order.
    fn wait_for_turn(&self, index: usize) {
        if self.options.jitter.is_zero() {
            self.wait(|p| p.turn >= index);
        }
    }

    fn pass(&self, index: usize) {
        let mut progress = self.lock();
        if let Some(passed) = progress.passed.get_mut(index) {
            *passed = true;
        }
        while progress.passed.get(progress.turn) == Some(&true) {
            progress.turn += 1;
        }
        self.changed.notify_all();
    }

    fn on(
        &self,
        mut line: Line,
        ask: &super::client::Ask,
        call: &Planned,
        landed: &mut Landed,
    ) -> std::io::Result<Heard> {
        self.wait_for_turn(landed.index);
        landed.sent_ns = now_ns();
        line.send(self.client, ask)?;
        self.pass(landed.index);
        // A server works no faster because calls are sent faster: only a slower replay changes this.
        let slower = (1.0 / self.options.speed).max(1.0);
        let left = |ms: f64| Duration::try_from_secs_f64(ms * slower / 1000.0).unwrap_or_default();
        let patience = call.left_ms.map_or(self.options.patience, left);
        let mut answered: Option<Instant> = None;
        let mut count = 0;
        let heard = line.hear(Instant::now() + patience, |heard| {
            if heard.messages.len() > count {
                count = heard.messages.len();
                if !message::replies(heard).is_empty() {
                    answered.get_or_insert_with(Instant::now);
                }
            }
            answered.is_some_and(|a| a.elapsed() > Duration::from_millis(250))
        });
        landed.replies = message::replies(&heard);
        landed.over_ns = landed.replies.first().map_or_else(now_ns, |r| r.at_ns);
        let error = landed.replies.first().filter(|r| r.is_rpc_error && heard.status.is_some_and(|s| s >= 400));
        landed.refused = heard.status.filter(|s| *s >= 400).map(|_| refusal(&heard, error));
        if let Some(key) = self.key(call).filter(|_| heard.end == Some(End::Complete)) {
            self.lock().lines.entry(key).or_default().push(line);
        }
        Ok(heard)
    }

    fn why_not(&self, call: &Planned) -> Option<String> {
        let name = call.what.tool.as_deref()?;
        match self.tools.get(name) {
            None => Some("the server lists no such tool".into()),
            Some(tool) if !may_call(tool, name, &self.options.allow) => {
                Some(format!("not marked read-only; --allow {name} lets it be called"))
            }
            Some(_) => None,
        }
    }
}

/// From 0 to 1 (xorshift64, Marsaglia 2003).
fn random(seed: &mut u64) -> f64 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    (*seed >> 11) as f64 / (1u64 << 53) as f64
}

fn judged(round: u64, schedule: &Schedule, owners: &Owners, landed: Vec<Landed>, stopped: bool) -> Vec<Played> {
    let spans: FxHashMap<usize, (i64, i64)> = landed.iter().map(|l| (l.index, (l.sent_ns, l.over_ns))).collect();
    let mut out = vec![];
    for l in landed {
        let Some(call) = schedule.calls.get(l.index) else { continue };
        let verdict = verdict(call, owners, &l, &spans);
        if stopped && matches!(verdict, Verdict::Orphaned { .. }) {
            continue;
        }
        let took_ms = l.replies.first().map(|r| (r.at_ns - l.sent_ns) as f64 / 1e6);
        let slower = took_ms.zip(call.recorded_ms).is_some_and(|(t, r)| t > 2.0 * r + 100.0);
        out.push(Played {
            round,
            number: call.number,
            session: l.session,
            method: call.what.method.clone(),
            tool: call.what.tool.clone(),
            id: l.id,
            verdict,
            took_ms,
            recorded_ms: call.recorded_ms,
            slower,
        });
    }
    out
}

fn verdict(call: &Planned, owners: &Owners, l: &Landed, spans: &FxHashMap<usize, (i64, i64)>) -> Verdict {
    if let Some(why) = &l.not_sent {
        return Verdict::NotSent { why: why.clone() };
    }
    if let Some(why) = &l.refused {
        return Verdict::Refused { why: why.clone() };
    }
    let Some(reply) = l.replies.first() else {
        // One that left at once, as recorded, did not wait for its reply.
        let left_early = call.left_ms.is_some_and(|ms| ms < 1000.0);
        return if left_early { Verdict::Left } else { Verdict::Orphaned { as_recorded: call.recorded_ms.is_none() } };
    };
    let live = serde_json::from_slice(&reply.raw).map(content).unwrap_or_default();
    let found = owners.of(&live);
    // Only what was in flight at the same time can have been mixed up.
    let is_near = |i: &usize| spans.get(i).is_some_and(|(sent, over)| *sent <= reply.at_ns && *over >= l.sent_ns);
    let foreign = found.iter().copied().filter(|i| *i != l.index).find(is_near);
    let owner = foreign.filter(|_| !found.contains(&l.index)).map(|i| i + 1);
    if reply.id.as_ref() != Some(&l.id) || owner.is_some() {
        return Verdict::Crossed { owner, reply_id: reply.id.clone() };
    }
    match difference(&call.recorded, &live) {
        None => Verdict::Same,
        Some((path, differences)) => Verdict::Differs { path, differences },
    }
}
