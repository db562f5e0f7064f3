//! What an access line and the client's record say together of a call, where no input shows bodies.

use super::ended_by::{PATIENCE_NS, bytes_text, fault_of_leaving, is_bodiless};
use crate::join::World;
use crate::join::answers::HopCallId;
use crate::join::calls::JointCall;
use crate::join::two_logs::may_be_cancelled;
use crate::mcp::Visit;
use crate::model::place::Hop;
use crate::model::record::ClientOutcome;
use crate::model::report::{Confidence, Evidence, Severity};
use crate::rules::claim::{Claim, Claims, at_mark, at_request, call_name, duration};
use crate::rules::stale::told::Told;

/// Beyond what the clocks can be off, two ends that are this near are one, ns.
const ONE_END_NS: i64 = 2_000_000_000;
/// The line of a call that was accepted begins this near to where the record has it, beyond the clocks, ns.
const ACCEPTED_NS: i64 = 2_000_000_000;

/// The end of a call as a proxy's line and the client's record have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Status 200, open until the client gave up.
    Hung,
    /// Without a body, open until the client gave up sooner than callers do.
    Left,
    /// Status 200 and a body, over long before the client's timeout.
    OverBefore,
    /// Status 200 and no body, and the client has an error.
    CutShort,
}

/// A call whose line was joined to the client's record for sure.
pub struct Shaped<'w> {
    joint: &'w JointCall,
    record: &'w Visit,
    line: &'w Visit,
    at: HopCallId,
    /// How far the two clocks may be apart, ns.
    error_ns: i64,
    shape: Shape,
}

/// Every call of that shape which is no crossing's.
pub fn shaped<'w>(world: &'w World, claims: &Claims<'_>, wanted: Shape) -> Vec<Shaped<'w>> {
    let calls = world.calls.iter().filter(|j| j.client.is_some() && !claims.has("crossed", j.key));
    let all = calls.filter_map(|joint| {
        let (at, record) = (*joint.hops.first()?, world.visit_of(joint.client?)?);
        let line = world.visit_of(at)?;
        let has_bodies =
            joint.hops.iter().filter_map(|c| world.visit_of(*c)).any(|v| v.place.is_frame || !v.replies.is_empty());
        if has_bodies || line.status != Some(200) || !line.is_post() || is_unsure(world, at, joint.client) {
            return None;
        }
        let error_ns = error_of(world, record) + error_of(world, line);
        let shape = shape(world, record, line, error_ns)?;
        Some(Shaped { joint, record, line, at, error_ns, shape })
    });
    // Of a line with a session and no byte `two_logs` tells more, or has a reason not to.
    let is_told = |s: &Shaped<'_>| s.shape == Shape::Left && s.line.session.is_some() && s.line.bytes == Some(0);
    all.filter(|s| s.shape == wanted && !is_told(s)).collect()
}

/// May the line, or the record, be another call's? That a further log's line may be takes nothing from the two.
fn is_unsure(world: &World, line: HopCallId, record: Option<HopCallId>) -> bool {
    let visits = [Some(line), record].into_iter().flatten().filter_map(|c| world.hop_call(c));
    visits.map(|c| c.visit).any(|v| world.logs.ambiguous.contains(&v))
}

fn shape(world: &World, record: &Visit, line: &Visit, error_ns: i64) -> Option<Shape> {
    let took = line.duration_ns?;
    let after = record.ended?.at.since(line.ended?.at);
    let is_patient = record.ended?.at.since(record.asked) >= PATIENCE_NS;
    match record.client_outcome? {
        ClientOutcome::Timeout if !is_patient => {
            let is_left = after.abs() <= error_ns + ONE_END_NS && is_bodiless(line);
            (is_left && !may_be_cancelled(world, line, took)).then_some(Shape::Left)
        }
        ClientOutcome::Timeout if after.abs() <= error_ns + ONE_END_NS => {
            (!may_be_cancelled(world, line, took)).then_some(Shape::Hung)
        }
        ClientOutcome::Timeout if after > error_ns + ONE_END_NS && line.bytes.is_some_and(|b| b > 0) => {
            Some(Shape::OverBefore)
        }
        ClientOutcome::Error | ClientOutcome::Lost if line.bytes == Some(0) && after.abs() <= error_ns + ONE_END_NS => {
            Some(Shape::CutShort)
        }
        _ => None,
    }
}

/// How far the clock of a source may be off, and how wide its times are, ns.
fn error_of(world: &World, v: &Visit) -> i64 {
    let clock = world.logs.clock_error(v.input);
    clock.saturating_add(v.at.error_ns.min(ONE_END_NS))
}

impl Shaped<'_> {
    /// The claim: what the log shows in `summary`'s words, and nothing that only bodies would show.
    pub fn claim(&self, world: &World, fault: Vec<Hop>) -> Option<Claim> {
        let call = world.hop_call(self.at)?;
        let (name, took) = (call_name(world, call), duration(self.line.duration_ns.unwrap_or(0)));
        let bytes = bytes_text(self.line);
        let waited = self.record.ended.map(|e| e.at.since(self.record.asked));
        let gave_up = duration(waited.unwrap_or(0));
        let summary = match self.shape {
            Shape::Hung => format!(
                "{name} may never have been answered: the log has its request open until the client gave up after \
                 {gave_up}, with status 200 and {bytes}. Bodies would be needed to say whether its reply was \
                 among them."
            ),
            Shape::Left => format!(
                "{name} was sent and never answered, as far as the log tells: its caller gave up after {gave_up}, and had \
                 been sent status 200 and {bytes}."
            ),
            Shape::OverBefore => format!(
                "the client recorded a timeout of {name} after {gave_up}; the log has its request answered with status \
                 200 and {bytes} after {took}. Bodies would be needed to say whether its reply was among them."
            ),
            Shape::CutShort => format!(
                "{name} was answered with status 200 and no body, after {took}, and the client has an error for it: \
                 what should have followed was cut off."
            ),
        };
        let mut evidence = vec![at_request(self.line, format!("status 200, {bytes}, ended after {took}"))];
        evidence.extend(at_end(self.record));
        Some(Claim {
            confidence: Confidence::Possible,
            fault,
            session: self.line.session.clone().or(self.record.session.clone()),
            at: Some(self.record.asked),
            until: self.record.ended.map(|e| e.at),
            victim: Some(self.joint.key),
            summary,
            evidence,
            waited_ns: waited,
            shown: format!("status 200, {bytes}"),
            ..Claim::default()
        })
    }

    /// The claim about one that its caller left, with who that leaves.
    pub fn claim_of_leaving(&self, world: &World) -> Option<Claim> {
        let fault = fault_of_leaving(self.line.duration_ns.unwrap_or(0), Some(self.record));
        self.claim(world, fault).map(|c| Claim { severity: Severity::Medium, ..c })
    }

    /// Does the log of a server or of its manager say that it stopped while the call was open?
    pub fn server_stopped(&self, told: &Told<'_>) -> bool {
        let Some(end) = self.line.ended else { return false };
        let mut turns = told.between(Some(self.record.asked), end.at, self.error_ns + ONE_END_NS);
        turns.any(|t| t.is_aligned && t.kind.is_up() == Some(false))
    }
}

/// Proof: what the client has for the call, where it has the end.
fn at_end(record: &Visit) -> Option<Evidence> {
    record.ended.map(|e| at_mark(record, e, format!("the client's record: {}", told(record))))
}

fn told(record: &Visit) -> &'static str {
    match record.client_outcome {
        Some(ClientOutcome::Timeout) => "timeout",
        Some(ClientOutcome::Lost) => "lost",
        Some(ClientOutcome::Empty) => "an empty success",
        _ => "an error",
    }
}

/// Calls that the client has nothing for, and of which a log has a 202 where they should stand.
pub fn accepted(world: &World, claims: &Claims<'_>) -> Vec<Claim> {
    let calls = world.calls.iter().filter(|j| !claims.has("crossed", j.key));
    calls.filter_map(|joint| accepted_one(world, joint)).collect()
}

fn accepted_one(world: &World, joint: &JointCall) -> Option<Claim> {
    if !joint.hops.is_empty() || !joint.lines.is_empty() {
        return None;
    }
    let (record, call) = (world.visit_of(joint.client?)?, world.hop_call(joint.client?)?);
    let nothing =
        matches!(record.client_outcome, Some(ClientOutcome::Empty | ClientOutcome::Timeout | ClientOutcome::Lost));
    let list = world.of_session.get(record.session.as_ref().filter(|_| nothing)?)?;
    let asked = |v: &u32| world.visits.get(*v as usize).map(|x| x.asked);
    let reach = ACCEPTED_NS + error_of(world, record);
    let from = list.partition_point(|v| asked(v).is_some_and(|t| t < record.asked.plus_ns(-2 * reach)));
    let near = list.get(from..)?.iter().filter_map(|v| world.visits.get(*v as usize));
    let near: Vec<&Visit> = near.take_while(|v| v.asked <= record.asked.plus_ns(2 * reach)).collect();
    // Where calls are answered on their own exchange a 202 stands for no call (not so in the 2024-11-05 transport).
    let on_posts =
        list.iter().filter_map(|v| world.visits.get(*v as usize)).any(|v| v.is_post() && v.status == Some(200));
    let takes = |v: &&&Visit| !v.place.is_frame && v.is_post() && v.status == Some(202) && v.vantage != record.vantage;
    let lines: Vec<&&Visit> = near.iter().filter(takes).filter(|v| !v.carries("notifications/initialized")).collect();
    let [line] = lines.as_slice() else { return None };
    let apart = line.asked.since(record.asked).abs();
    let fits = world.logs.is_aligned(line.input)
        && world.logs.is_aligned(record.input)
        && apart <= ACCEPTED_NS + error_of(world, line) + error_of(world, record);
    if !fits || !on_posts || world.is_legacy(line) {
        return None;
    }
    let name = call_name(world, call);
    let mut evidence = vec![at_request(line, "status 202, the only request of the session about then")];
    evidence.extend(at_end(record));
    Some(Claim {
        confidence: Confidence::Possible,
        fault: vec![Hop::Server],
        session: record.session.clone(),
        at: Some(record.asked),
        until: record.ended.map(|e| e.at),
        victim: Some(joint.key),
        summary: format!(
            "{name} was answered 202 and nothing more, as far as the log tells: it has one request of the session about \
             then, and the client has {} for the call.",
            told(record)
        ),
        evidence,
        waited_ns: record.ended.map(|e| e.at.since(record.asked)),
        shown: "status 202".into(),
        ..Claim::default()
    })
}
