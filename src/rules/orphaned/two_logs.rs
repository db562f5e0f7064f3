//! Calls that nothing with content saw and of which two logs say that they got no answer: the client's record, and the
//! proxy's line, which shows a success of no bytes.

use super::unanswered::{PATIENCE_NS, partner};
use crate::join::World;
use crate::join::answers::HopCallId;
use crate::join::calls::JointCall;
use crate::join::two_logs::{Both, both};
use crate::mcp::Visit;
use crate::model::exchange::Mark;
use crate::model::place::Hop;
use crate::model::record::ClientOutcome;
use crate::model::report::{Confidence, Severity};
use crate::rules::claim::{Claim, at_mark, at_request, call_name, duration};

/// How such a call ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Its caller ended it before its patience can have run out.
    CallerLeft,
    /// Its caller waited long, or its response ended empty while it waited, or its id was used again meanwhile.
    NoReply,
    /// It was ended while its caller waited.
    Broken,
}

/// Such a call.
pub struct Told<'w> {
    /// How it ended.
    pub ending: Ending,
    joint: &'w JointCall,
    record: &'w Visit,
    line: &'w Visit,
    how: String,
    partner: Option<HopCallId>,
}

/// Every such call.
pub fn unanswered(world: &World) -> impl Iterator<Item = Told<'_>> {
    world.calls.iter().filter_map(|joint| of(world, joint))
}

/// Calls of which the client recorded a timeout, and of which the proxy's line says that it sent something until later:
/// how much later, and the claim without its rule's words.
pub fn late(world: &World) -> impl Iterator<Item = (i64, Claim)> {
    world.calls.iter().filter_map(|joint| {
        let b = both(world, joint)?;
        let after = b.ended.since(b.gave_up);
        let is_late = b.record.client_outcome == Some(ClientOutcome::Timeout) && after > b.error_ns;
        if !is_late || b.line.bytes.is_none_or(|n| n == 0) {
            return None;
        }
        let call = world.hop_call(joint.client?)?;
        let end = b.record.ended?;
        let evidence = vec![
            at_mark(b.record, end, "the client's record: timeout"),
            at_request(b.line, format!("the proxy's line of it: {} bytes", b.line.bytes.unwrap_or(0))),
        ];
        let claim = Claim {
            severity: Severity::Low,
            confidence: Confidence::Possible,
            session: b.line.session.clone(),
            at: Some(call.asked),
            until: Some(b.ended),
            victim: Some(joint.key),
            evidence,
            waited_ns: Some(end.at.since(call.asked)),
            shown: "answered late".into(),
            ..Claim::default()
        };
        Some((after, Claim { summary: call_name(world, call), ..claim }))
    })
}

fn of<'w>(world: &'w World, joint: &'w JointCall) -> Option<Told<'w>> {
    let Both { record, line, gave_up, ended, error_ns } = both(world, joint).filter(Both::is_unanswered)?;
    let partner = partner(world, joint.client?);
    let while_waiting = gave_up.since(ended) > error_ns;
    let waited = gave_up.since(record.asked);
    let gives_up = matches!(record.client_outcome, Some(ClientOutcome::Timeout | ClientOutcome::Aborted));
    let (ending, how) = match record.client_outcome? {
        outcome if outcome.is_without_answer() && while_waiting => {
            (Ending::NoReply, "its response ended without a byte while its caller waited".to_owned())
        }
        _ if gives_up && (partner.is_some() || waited >= PATIENCE_NS) => (
            Ending::NoReply,
            format!("its caller gave up after {}, and the proxy had sent it nothing", duration(waited)),
        ),
        _ if gives_up => (
            Ending::CallerLeft,
            format!("its caller ended it after {}, and the proxy had sent it nothing", duration(waited)),
        ),
        ClientOutcome::Lost => (
            Ending::Broken,
            format!("its connection failed after {}, and the proxy had sent it nothing", duration(waited)),
        ),
        _ => return None,
    };
    Some(Told { ending, joint, record, line, how, partner })
}

/// The claim about such a call.
pub fn claim(world: &World, told: &Told<'_>) -> Option<Claim> {
    let call = world.hop_call(told.joint.client?)?;
    let name = call_name(world, call);
    let end = told.record.ended.unwrap_or(Mark { place: told.record.place, at: told.record.asked });
    let mut evidence = vec![
        at_mark(told.record, end, format!("the client's record of {name}: no answer")),
        at_request(told.line, "the proxy's line of it: status 200, 0 body bytes"),
    ];
    let mut summary = format!("{name} was sent and never answered: {}.", told.how);
    let mut fault = match (told.ending, told.record.client_outcome) {
        // Who ended it by himself did so; whether one that waited in vain had to, no log of these says.
        (Ending::CallerLeft, Some(ClientOutcome::Aborted)) => vec![Hop::Client],
        (Ending::CallerLeft, _) => vec![Hop::Client, Hop::Proxy, Hop::Server],
        (Ending::NoReply | Ending::Broken, _) => vec![Hop::Proxy, Hop::Server],
    };
    let mut others = vec![];
    if let Some((c, other)) = told.partner.and_then(|p| Some((p, world.hop_call(p)?))) {
        let whose = call_name(world, other);
        fault.push(Hop::Client);
        others.extend(world.key(c));
        evidence.extend(world.visit_of(c).map(|v| at_request(v, format!("request of {whose}, with the same id"))));
        summary = format!("{summary} Its id was in flight twice: {whose} used it meanwhile.");
    }
    Some(Claim {
        severity: if told.ending == Ending::NoReply { Severity::High } else { Severity::Medium },
        // Which line is the call's is told by times, which a line that is missing beside it makes another's.
        confidence: Confidence::Possible,
        fault,
        session: told.record.session.clone().or_else(|| told.line.session.clone()),
        at: Some(call.asked),
        until: Some(end.at),
        victim: Some(told.joint.key),
        others,
        summary,
        evidence,
        waited_ns: Some(end.at.since(call.asked)),
        shown: "status 200, 0 body bytes".into(),
        ..Claim::default()
    })
}
