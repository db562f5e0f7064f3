//! Claims become findings here: sorted, each with proof, at most one crossed and one orphaned a call.

use super::stale::pattern::in_order;
use super::stale::replicas::{Split, splits};
use super::stale::sessions::{Refused, refused_sessions};
use super::stale::told::Told;
use super::stale::windows::{Story, stories};
use crate::join::patterns::Found;
use crate::join::{HopCall, ReplyRef, World};
use crate::mcp::Visit;
use crate::model::exchange::Mark;
use crate::model::id::SessionId;
use crate::model::place::Hop;
use crate::model::report::{CallKey, Confidence, Evidence, Finding, Severity, Window};
use crate::model::time::Time;
use rustc_hash::FxHashSet;
use std::cell::OnceCell;
use std::rc::Rc;
use std::sync::Arc;

/// What all rules claimed.
#[derive(Debug, Default)]
pub struct Checked {
    /// In order of time.
    pub findings: Vec<Finding>,
    /// In order of opening.
    pub windows: Vec<Window>,
}

/// Collects claims.
pub struct Claims<'w> {
    /// The rule that claims now.
    pub rule: &'static str,
    /// The world.
    pub world: &'w World,
    findings: Vec<Finding>,
    /// Windows found by the stale rules.
    pub windows: Vec<Window>,
    taken: FxHashSet<(&'static str, CallKey)>,
    stories: OnceCell<Rc<Vec<Story>>>,
    refused: OnceCell<Rc<Vec<Refused>>>,
    told: OnceCell<Rc<Told<'w>>>,
    in_order: OnceCell<Arc<Found>>,
    splits: OnceCell<Rc<Vec<Split<'w>>>>,
}

/// A finding to be made; what is left out has its usual value.
pub struct Claim {
    /// How bad.
    pub severity: Severity,
    /// How sure.
    pub confidence: Confidence,
    /// Who can be at fault.
    pub fault: Vec<Hop>,
    /// Who was right.
    pub cleared: Vec<Hop>,
    /// Session.
    pub session: Option<SessionId>,
    /// Beginning.
    pub at: Option<Time>,
    /// End.
    pub until: Option<Time>,
    /// The call that was hurt.
    pub victim: Option<CallKey>,
    /// The call that the content belongs to.
    pub owner: Option<CallKey>,
    /// Further calls.
    pub others: Vec<CallKey>,
    /// Calls in flight together.
    pub batch: Option<u64>,
    /// One sentence.
    pub summary: String,
    /// Proof.
    pub evidence: Vec<Evidence>,
    /// What each server-side vantage shows.
    pub shown: String,
    /// How long the caller waited.
    pub waited_ns: Option<i64>,
}

impl Default for Claim {
    fn default() -> Claim {
        Claim {
            severity: Severity::High,
            confidence: Confidence::Certain,
            fault: vec![],
            cleared: vec![],
            session: None,
            at: None,
            until: None,
            victim: None,
            owner: None,
            others: vec![],
            batch: None,
            summary: String::new(),
            evidence: vec![],
            shown: String::new(),
            waited_ns: None,
        }
    }
}

impl<'w> Claims<'w> {
    /// No claims yet.
    pub fn new(world: &'w World) -> Claims<'w> {
        Claims {
            rule: "",
            world,
            findings: vec![],
            windows: vec![],
            taken: FxHashSet::default(),
            stories: OnceCell::new(),
            refused: OnceCell::new(),
            told: OnceCell::new(),
            in_order: OnceCell::new(),
            splits: OnceCell::new(),
        }
    }

    /// Sessions that were refused, which several rules look at.
    pub fn refused(&self) -> Rc<Vec<Refused>> {
        self.refused.get_or_init(|| Rc::new(refused_sessions(self.world))).clone()
    }

    /// What the order of lines shows in logs that name no sessions.
    pub fn in_order(&self) -> Arc<Found> {
        self.in_order.get_or_init(|| in_order(self.world)).clone()
    }

    /// Sessions that one process of the server began and another refused.
    pub fn splits(&self) -> Rc<Vec<Split<'w>>> {
        self.splits.get_or_init(|| Rc::new(splits(self.world))).clone()
    }

    /// What became of them.
    pub fn stories(&self) -> Rc<Vec<Story>> {
        self.stories.get_or_init(|| Rc::new(stories(self.world, &self.refused(), &self.told()))).clone()
    }

    /// What the logs say of starts and stops.
    pub fn told(&self) -> Rc<Told<'w>> {
        self.told.get_or_init(|| Rc::new(Told::of(self.world))).clone()
    }

    fn family(&self) -> &'static str {
        self.rule.split('/').next().unwrap_or(self.rule)
    }

    /// Has a rule of `family` a finding about this call?
    pub fn has(&self, family: &'static str, call: CallKey) -> bool {
        self.taken.contains(&(family, call))
    }

    /// Makes a finding, unless one of the same family stands about the same call.
    pub fn claim(&mut self, claim: Claim) {
        let family = self.family();
        if let Some(victim) = claim.victim
            && matches!(family, "crossed" | "orphaned")
            && !self.taken.insert((family, victim))
        {
            return;
        }
        let mut calls: Vec<CallKey> = vec![];
        for key in claim.victim.into_iter().chain(claim.owner).chain(claim.others) {
            if !calls.contains(&key) {
                calls.push(key);
            }
        }
        let (mut fault, mut cleared) = (claim.fault, claim.cleared);
        fault.sort_unstable();
        fault.dedup();
        cleared.sort_unstable();
        cleared.dedup();
        cleared.retain(|h| !fault.contains(h));
        self.findings.push(Finding {
            rule: self.rule,
            severity: claim.severity,
            confidence: claim.confidence,
            fault,
            cleared,
            session: claim.session,
            at: claim.at,
            until: claim.until,
            calls,
            victim: claim.victim,
            owner: claim.owner,
            batch: claim.batch,
            summary: claim.summary,
            evidence: one_a_line(claim.evidence),
            shown: claim.shown,
            waited_ns: claim.waited_ns,
        });
    }

    /// All findings, in order of time.
    pub fn finish(mut self) -> Checked {
        self.findings.sort_by_key(|f| (f.at.map_or(i64::MAX, Time::ns), f.rule, f.victim));
        self.windows.sort_by_key(|w| w.opened.map_or(i64::MAX, Time::ns));
        Checked { findings: self.findings, windows: self.windows }
    }
}

/// Request, status and end of an exchange are one line in a log: it is cited once, with all that it proves.
fn one_a_line(all: Vec<Evidence>) -> Vec<Evidence> {
    let mut out: Vec<Evidence> = vec![];
    for e in all {
        let same = |o: &&mut Evidence| e.line.is_some() && (o.input, o.line, o.frame) == (e.input, e.line, e.frame);
        match (out.iter_mut().find(same), &e.text) {
            (Some(known), Some(text)) => match &mut known.text {
                Some(said) if said.split("; ").any(|s| s == text) => {}
                Some(said) => *said = format!("{said}; {text}"),
                None => known.text = e.text,
            },
            (Some(_), None) => {}
            (None, _) => out.push(e),
        }
    }
    out
}

/// Proof at a mark of an exchange.
pub fn at_mark(visit: &Visit, mark: Mark, text: impl Into<String>) -> Evidence {
    let frame = mark.place.as_frame();
    let stream = visit.stream.filter(|_| frame.is_some() && mark.place.input == visit.input);
    Evidence {
        input: Some(mark.place.input),
        frame,
        line: mark.place.as_line(),
        offset: None,
        cursor: None,
        text: Some(text.into()),
        filter: match (stream, frame) {
            (Some(s), Some(f)) => Some(format!("tcp.stream eq {s} && frame.number == {f}")),
            _ => None,
        },
    }
}

/// Proof at a line of a log.
pub fn at_line(place: crate::model::place::Place, text: impl Into<String>) -> Evidence {
    Evidence {
        input: Some(place.input),
        frame: None,
        line: place.as_line(),
        offset: None,
        cursor: None,
        text: Some(text.into()),
        filter: None,
    }
}

/// Proof at the request of an exchange.
pub fn at_request(visit: &Visit, text: impl Into<String>) -> Evidence {
    at_mark(visit, Mark { place: visit.place, at: visit.asked }, text)
}

/// Proof at a reply.
pub fn at_reply(world: &World, r: ReplyRef, text: impl Into<String>) -> Option<Evidence> {
    let (visit, reply) = world.reply(r)?;
    Some(at_mark(visit, reply.last, text))
}

/// A call in words: `entity_update (id 3)`.
pub fn call_name(world: &World, call: &HopCall) -> String {
    let rpc = world.visits.get(call.visit as usize).and_then(|v| v.rpc.get(call.rpc as usize));
    let name = rpc.and_then(|r| r.tool.as_deref().or(r.method.as_deref())).unwrap_or("a call");
    match rpc.and_then(|r| r.id.as_ref()) {
        Some(id) => format!("{name} (id {id})"),
        None => name.to_owned(),
    }
}

/// A duration as people write it: `217 ms`, `6.0 s`, `4 min 0 s`.
pub fn duration(ns: i64) -> String {
    let ms = ns / 1_000_000;
    match ms {
        ..1_000 => format!("{ms} ms"),
        1_000..120_000 => format!("{:.1} s", ns as f64 / 1e9),
        _ => format!("{} min {} s", ms / 60_000, ms % 60_000 / 1000),
    }
}
