//! Runs every configuration and counts what comes.

use super::plan::{Configuration, Maker, configurations};
use super::repetition::{self, Repetition};
use super::report::{CallRef, Counts, Finding, LISTED, Report, Row};
use super::volley::{Flight, Pool, Range};
use super::{Options, Progress};
use crate::drive::check::{Claim, Expect, Fault};
use crate::drive::session::{Session, SessionError};
use crate::model::time::Time;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Calls in flight at most where repetitions run at once.
const IN_FLIGHT: usize = 64;

/// Runs the sweep into the report.
pub fn run(
    range: &Range<'_>,
    maker: &Maker<'_>,
    options: &Options,
    report: &mut Report,
    progress: &mut dyn FnMut(Progress),
) {
    let has_mix = maker.kit.echo.len() + maker.kit.plain.len() > 1;
    let all = configurations(&options.batches, has_mix);
    report.planned = all.len();
    let mut pace = Pace { next: Instant::now(), rate: options.rate };
    for (n, c) in all.iter().enumerate() {
        let summary = &report.summary;
        progress(Progress { done: n, of: all.len(), calls: summary.calls, wrong: summary.wrong() });
        let mut row = Row::new(n + 1, *c);
        let outcome = configuration(range, maker, options, &mut pace, c, &mut row, &mut report.findings);
        report.summary.merge(&row.counts);
        if row.repetitions > 0 {
            report.configurations.push(row);
        }
        match outcome {
            Ok(()) if !range.client.stop.is_set() => {}
            Ok(()) | Err(SessionError::Stopped) => break,
            Err(e) => {
                report.troubles.push(format!("the sweep ended at configuration {}: {e}", n + 1));
                break;
            }
        }
    }
    let summary = &report.summary;
    progress(Progress {
        done: report.configurations.len(),
        of: all.len(),
        calls: summary.calls,
        wrong: summary.wrong(),
    });
    conclude(report);
}

/// Says what the counts cannot.
fn conclude(report: &mut Report) {
    for row in &report.configurations {
        let c = &row.counts;
        let judged = c.verified + c.id_only + c.wrong();
        if judged == 0 && !row.configuration.kind.collides() && c.calls > c.abandoned {
            let text = format!("configuration {}: every call was refused, so nothing was tested", row.number);
            report.troubles.push(text);
        }
    }
    for row in report.configurations.iter().filter(|r| r.counts.refused > 0) {
        let (n, of) = (row.counts.refused, row.counts.calls);
        let why = row.refusal.as_deref().unwrap_or("no reason");
        report
            .notes
            .push(format!("configuration {}: {n} of {of} calls were refused, the first with: {why}", row.number));
    }
    let met = |r: &Row| r.collided == Some(0);
    let missed: Vec<String> = report.configurations.iter().filter(|r| met(r)).map(|r| r.number.to_string()).collect();
    if !missed.is_empty() {
        let text = "no two calls of one id were in flight at once, so these show nothing: configuration";
        report.notes.push(format!("{text} {}", missed.join(", ")));
    }
    if report.configurations.iter().any(|r| r.get_stream == Some(false)) {
        report.notes.push("the server opens no GET stream".into());
    }
}

/// Keeps the rate of calls within bounds.
struct Pace {
    next: Instant,
    rate: f64,
}

impl Pace {
    fn wait(&mut self, range: &Range<'_>, calls: usize) -> bool {
        let go = range.client.stop.sleep_until(self.next);
        self.next = self.next.max(Instant::now()) + Duration::from_secs_f64(calls as f64 / self.rate);
        go
    }
}

fn configuration(
    range: &Range<'_>,
    maker: &Maker<'_>,
    options: &Options,
    pace: &mut Pace,
    c: &Configuration,
    row: &mut Row,
    findings: &mut Vec<Finding>,
) -> Result<(), SessionError> {
    let mut latencies = vec![];
    let most = at_once(c, options.repetitions);
    let mut kept: Option<Vec<Session>> = None;
    let pool = c.pooled.then(Pool::default);
    let mut outcome = Ok(());
    for first in (0..options.repetitions).step_by(most as usize) {
        let at_once = most.min(options.repetitions - first);
        if !pace.wait(range, c.calls() * at_once as usize) {
            break;
        }
        let done = Mutex::new(vec![]);
        let once = |number: u64, sessions: &[Session]| {
            let first_id = 1 + if disturbs(c) { 0 } else { (number as usize * c.calls()) as i64 };
            let repetition = repetition::run(range, maker, c, first_id, sessions, pool.as_ref());
            let names = sessions.iter().map(|s| s.id.clone()).collect::<Vec<_>>();
            done.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((number, repetition, names));
        };
        let fresh = || {
            (0..c.sessions()).map(|_| Session::open(range.client, range.patience * 2)).collect::<Result<Vec<_>, _>>()
        };
        let result = if disturbs(c) {
            std::thread::scope(|scope| {
                let run = |number| -> Result<(), SessionError> {
                    let sessions = fresh()?;
                    once(number, &sessions);
                    sessions.iter().for_each(|s| s.close(range.client));
                    Ok(())
                };
                let threads: Vec<_> = (first..first + at_once).map(|n| scope.spawn(move || run(n))).collect();
                threads.into_iter().filter_map(|t| t.join().ok()).collect::<Result<(), _>>()
            })
        } else {
            let sessions = match kept.take() {
                Some(sessions) => Ok(sessions),
                None => fresh(),
            };
            sessions.map(|sessions| {
                once(first, &sessions);
                kept = Some(sessions);
            })
        };
        let mut done = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        done.sort_by_key(|(number, ..)| *number);
        for (number, repetition, names) in done {
            count(range, row, number + 1, &repetition, &names, findings, &mut latencies);
        }
        if result.is_err() {
            outcome = result;
            break;
        }
    }
    kept.iter().flatten().for_each(|s| s.close(range.client));
    latencies.sort_by(f64::total_cmp);
    row.median_ms = latencies.get(latencies.len() / 2).copied();
    row.max_ms = latencies.last().copied();
    outcome
}

/// How many repetitions run at once: those that get a session of their own, as they wait long
/// where a reply is lost.
pub fn at_once(c: &Configuration, repetitions: u64) -> u64 {
    if disturbs(c) { repetitions.clamp(1, (IN_FLIGHT / c.calls().max(1)).max(1) as u64) } else { 1 }
}

/// Does it leave a session in a state that the next repetition must not meet?
fn disturbs(c: &Configuration) -> bool {
    use super::Kind::*;
    c.kind.collides() || matches!(c.kind, AbandonClose | AbandonCancel)
}

impl Row {
    fn new(number: usize, configuration: Configuration) -> Row {
        Row {
            number,
            configuration,
            repetitions: 0,
            counts: Counts::default(),
            median_ms: None,
            max_ms: None,
            collided: configuration.kind.collides().then_some(0),
            refusal: None,
            get_stream: None,
        }
    }
}

fn count(
    range: &Range<'_>,
    row: &mut Row,
    number: u64,
    repetition: &Repetition,
    sessions: &[Option<String>],
    findings: &mut Vec<Finding>,
    latencies: &mut Vec<f64>,
) {
    row.repetitions += 1;
    let counts = &mut row.counts;
    counts.calls += repetition.flights.len() as u64;
    counts.verified += repetition.verdict.verified as u64;
    counts.id_only += repetition.verdict.id_only as u64;
    for flight in &repetition.flights {
        let is_abandoned = flight.shot.expect == Expect::Abandoned;
        counts.abandoned += u64::from(is_abandoned);
        if let Some(why) = flight.refusal().filter(|_| !is_abandoned) {
            counts.refused += 1;
            row.refusal.get_or_insert(why);
        }
        if let Some(ms) = flight.latency_ms() {
            counts.late += u64::from(ms > range.patience.as_secs_f64() * 500.0);
            latencies.push(ms);
        }
    }
    if let Some(collided) = &mut row.collided {
        *collided += u64::from(overlaps(&repetition.flights));
    }
    if let Some(open) = repetition.get_open {
        row.get_stream = Some(open > 0);
    }
    for claim in &repetition.verdict.claims {
        row.counts.add(claim.fault);
        if findings.len() < LISTED {
            findings.push(finding(range, row.number, number, claim, &repetition.flights, sessions));
        }
    }
}

/// Was an id used while an earlier call of that id on its session could still be answered?
fn overlaps(flights: &[Flight]) -> bool {
    flights.iter().enumerate().any(|(i, a)| {
        let end = a.replies.first().map_or(i64::MAX, |r| r.at_ns);
        let same = |b: &&Flight| b.shot.session == a.shot.session && b.shot.id.loose() == a.shot.id.loose();
        flights.iter().skip(i + 1).filter(same).any(|b| b.sent_ns < end)
    })
}

fn finding(
    range: &Range<'_>,
    configuration: usize,
    repetition: u64,
    claim: &Claim,
    flights: &[Flight],
    sessions: &[Option<String>],
) -> Finding {
    let call = |i: Option<usize>| {
        let f = flights.get(i?)?;
        Some(CallRef {
            tool: f.shot.tool.clone(),
            id: f.shot.id.clone(),
            tag: range.tags.text(f.shot.tag),
            session: sessions.get(f.shot.session).cloned().flatten(),
            port: f.port,
            sent: Time::from_ns(f.sent_ns, 6),
        })
    };
    let (victim, owner) = (call(claim.victim), call(claim.owner));
    let summary = sentence(claim.fault, victim.as_ref(), owner.as_ref(), range.patience);
    Finding { configuration, repetition, fault: claim.fault, victim, owner, summary }
}

fn sentence(fault: Fault, victim: Option<&CallRef>, owner: Option<&CallRef>, patience: Duration) -> String {
    let name = |c: Option<&CallRef>| {
        c.map_or("a call of another time".to_owned(), |c| format!("{} id {} (port {})", c.tool, c.id, c.port))
    };
    let (v, o) = (name(victim), name(owner));
    match fault {
        Fault::WrongId => format!("{v} was answered with another id, which with its content belongs to {o}"),
        Fault::RetypedId => format!("{v} was answered with an id of another JSON type"),
        Fault::WrongBody => format!("{v} received the reply of {o}"),
        Fault::OtherSession => format!("{v} received the reply of {o}, which is of another session"),
        Fault::WrongStream => format!("the reply of {o} came on a stream that is not its own"),
        Fault::Duplicate => format!("{v} received the same reply twice"),
        Fault::Lost => format!("{v} was never answered (waited {:.1} s at most)", patience.as_secs_f64()),
    }
}
