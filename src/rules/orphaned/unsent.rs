//! Calls that the client says it made and nobody else saw: shared by `never-sent` and `empty-success`.

use crate::join::World;
use crate::join::answers::HopCallId;
use crate::join::calls::JointCall;
use crate::join::coverage::Coverage;
use crate::join::sources::file_of;
use crate::model::place::Hop;
use crate::model::record::ClientOutcome;
use crate::model::report::Confidence;
use crate::rules::claim::{Claim, at_request, call_name};

/// A call in a client's record that no input shows which would have shown it.
pub struct Unsent<'w> {
    /// The call.
    pub joint: &'w JointCall,
    /// The client's record of it.
    pub record: HopCallId,
    /// What covers it.
    pub coverage: Coverage,
    /// What the client says became of it.
    pub outcome: Option<ClientOutcome>,
}

/// Every such call.
pub fn unsent(world: &World) -> Vec<Unsent<'_>> {
    world
        .calls
        .iter()
        .filter(|j| j.hops.is_empty() && j.lines.is_empty())
        .filter_map(|joint| {
            let record = joint.client?;
            let outcome = world.visit_of(record)?.client_outcome;
            // A call that the client itself gave up may never have been meant to leave it.
            if outcome == Some(ClientOutcome::Aborted) {
                return None;
            }
            Some(Unsent { joint, record, coverage: world.coverage(record)?, outcome })
        })
        .collect()
}

/// Has the client a success without content for the call: said so, or an empty text and no result?
pub fn is_empty_success(world: &World, u: &Unsent<'_>) -> bool {
    let nothing = || {
        let visit = world.visit_of(u.record);
        visit.is_some_and(|v| v.replies.is_empty() && v.comment.as_deref().is_some_and(|t| t.trim().is_empty()))
    };
    match u.outcome {
        Some(ClientOutcome::Empty) => true,
        Some(ClientOutcome::Ok) => nothing(),
        _ => false,
    }
}

/// The claim, with what both rules have in common.
pub fn claim(world: &World, u: &Unsent<'_>, what: &str) -> Option<Claim> {
    let (call, visit) = (world.hop_call(u.record)?, world.visit_of(u.record)?);
    let name = call_name(world, call);
    let mut evidence = vec![at_request(visit, format!("the client's record of {name}"))];
    let mut inputs: Vec<u32> = vec![];
    for input in u.coverage.inputs.iter().map(|i| file_of(*i)) {
        // Two sources of one file stand apart.
        if !inputs.contains(&input) {
            inputs.push(input);
        }
    }
    for input in inputs {
        evidence.push(crate::model::report::Evidence {
            input: Some(input),
            frame: None,
            line: None,
            offset: None,
            cursor: None,
            text: Some("covers the time, and does not show the call".into()),
            filter: None,
        });
    }
    Some(Claim {
        confidence: u.coverage.confidence,
        fault: vec![Hop::Client],
        // What never reached the proxy can have failed neither there nor behind it.
        cleared: if u.coverage.confidence > Confidence::Possible { vec![Hop::Proxy, Hop::Server] } else { vec![] },
        session: visit.session.clone(),
        at: Some(call.asked),
        until: visit.ended.map(|e| e.at),
        victim: Some(u.joint.key),
        summary: format!("the client says that it issued {name}; {what}"),
        evidence,
        waited_ns: visit.ended.map(|e| e.at.since(call.asked)),
        shown: "never seen".into(),
        ..Claim::default()
    })
}
