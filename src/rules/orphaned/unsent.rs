//! Calls that the client says it made and nobody else saw: shared by `never-sent` and `empty-success`.

use crate::join::World;
use crate::join::answers::HopCallId;
use crate::join::calls::JointCall;
use crate::join::coverage::Coverage;
use crate::join::sources::file_of;
use crate::mcp::scan;
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

/// Has the client a success without content for the call: said so, an empty text and no result, or a result with
/// nothing in it?
pub fn is_empty_success(world: &World, u: &Unsent<'_>) -> bool {
    let nothing = || {
        let Some(visit) = world.visit_of(u.record) else { return false };
        let said_nothing = visit.comment.as_deref().is_some_and(|t| t.trim().is_empty());
        if visit.replies.is_empty() {
            said_nothing
        } else {
            visit.replies.iter().all(|r| r.result().is_some_and(is_bare))
        }
    };
    match u.outcome {
        Some(ClientOutcome::Empty) => true,
        Some(ClientOutcome::Ok) => nothing(),
        _ => false,
    }
}

/// A result of a tool call (specification of tools, "Tool Result") whose content is no block, or blocks of blank text.
fn is_bare(result: &[u8]) -> bool {
    let is_blank = |block: &[u8]| {
        let text = scan::member(block, "text").and_then(scan::text);
        text.is_some_and(|t| t.trim().is_empty())
    };
    let mut all_blank = true;
    let content = scan::member(result, "content").filter(|c| c.first() == Some(&b'['));
    let is_list = content.is_some_and(|c| scan::elements(c, |block| all_blank &= is_blank(block)));
    is_list && all_blank && scan::member(result, "structuredContent").is_none()
}

/// Who can have kept a call from the inputs that do not show it: a proxy too, where all of them look from behind it,
/// and the server, where its own log alone lacks what it may have taken and never answered.
pub fn culprits(coverage: &Coverage) -> Vec<Hop> {
    match (coverage.is_behind, coverage.as_asked) {
        (false, _) => vec![Hop::Client],
        (true, true) => vec![Hop::Client, Hop::Proxy],
        (true, false) => vec![Hop::Client, Hop::Proxy, Hop::Server],
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
        fault: culprits(&u.coverage),
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

#[cfg(test)]
mod tests {
    use super::is_bare;

    #[test]
    fn a_result_is_bare_if_nothing_is_in_it() {
        for bare in [r#"{"content":[]}"#, r#"{"content": [ {"type":"text","text":" "} ],"isError":false}"#] {
            assert!(is_bare(bare.as_bytes()), "{bare}");
        }
        for full in [
            r#"{"content":[{"type":"text","text":""},{"type":"text","text":"x"}]}"#,
            r#"{"content":[{"type":"image","data":"","mimeType":"image/png"}]}"#,
            r#"{"content":[],"structuredContent":{"n":1}}"#,
            r#"{"tools":[]}"#,
            "{}",
        ] {
            assert!(!is_bare(full.as_bytes()), "{full}");
        }
    }
}
