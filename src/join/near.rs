//! What gave reason to look and is no finding, and why: said with `-v`.

use super::calls::{JointCall, World};
use super::clients::was_answered;
use super::fate::Fate;
use crate::model::record::ClientOutcome;
use crate::model::report::Near;

/// Lines of one kind at most; how many more there are is said.
const LINES: usize = 50;

impl World {
    /// Near-findings in words, each with the call it is about.
    pub fn near_findings(&self) -> Vec<Near> {
        let mut out = vec![];
        let content = self.contents.near.iter().filter_map(|(c, other, why)| {
            let joint = self.joint(*c)?;
            let name = self.call_words(joint);
            let other = other.and_then(|o| self.joint(o)).map(|j| format!(" (the other: {})", self.call_words(j)));
            Some(about(joint, format!("{name}: no crossing: {why}{}", other.unwrap_or_default())))
        });
        capped(content.collect(), &mut out);
        capped(self.calls.iter().filter_map(|j| self.no_orphan(j)).collect(), &mut out);
        out
    }

    fn no_orphan(&self, joint: &JointCall) -> Option<Near> {
        let name = || self.call_words(joint);
        let Some(&front) = joint.hops.first() else {
            let record = joint.client?;
            let (visit, n) = (self.visit_of(record)?, self.hop_call(record)?.visit);
            if self.covered.contains_key(&record) {
                return None;
            }
            let why = if visit.client_outcome == Some(ClientOutcome::Aborted) {
                "the client gave it up itself"
            } else if was_answered(visit) {
                "the client has its answer, so that it was sent, whatever a log lacks"
            } else if self.logs.contested.iter().any(|(c, _)| *c == n) {
                "a log lacks one of several calls that went out together, and does not show which"
            } else {
                "no input covers its time and shows one request too few"
            };
            return joint
                .lines
                .is_empty()
                .then(|| about(joint, format!("{}: seen by the client alone, not called never sent: {why}", name())));
        };
        let (call, visit) = (self.hop_call(front)?, self.visit_of(front)?);
        if call.answer.is_some() || !visit.place.is_frame {
            return None;
        }
        let why = match self.fate_at(front) {
            Fate::Cancelled => "its caller cancelled it",
            Fate::Unobserved if visit.one_direction => "only one direction of its connection was captured",
            Fate::Unobserved if visit.request_gap || visit.response_gap => {
                "bytes of its exchange are missing, a reply may have been in them"
            }
            Fate::Unobserved => "it was still open when the input ended, or may have been resumed unseen",
            _ => return None,
        };
        Some(about(joint, format!("{}: no reply seen, not called an orphan: {why}", name())))
    }

    fn call_words(&self, joint: &JointCall) -> String {
        let rpc = joint.hops.first().or(joint.client.as_ref()).and_then(|c| self.rpc_of(*c));
        let name = rpc.and_then(|r| r.tool.as_deref().or(r.method.as_deref())).unwrap_or("call");
        match rpc.and_then(|r| r.id.as_ref()) {
            Some(id) => format!("{} {name} (id {id})", joint.key),
            None => format!("{} {name}", joint.key),
        }
    }
}

fn about(joint: &JointCall, text: String) -> Near {
    Near { call: Some(joint.key), text }
}

fn capped(mut lines: Vec<Near>, out: &mut Vec<Near>) {
    let more = lines.len().saturating_sub(LINES);
    lines.truncate(LINES);
    out.extend(lines);
    if more > 0 {
        out.push(Near { call: None, text: format!("and {more} more of this kind") });
    }
}
