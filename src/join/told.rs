//! What the client's record says it got, held against what the wire carried.

use super::answers::HopCallId;
use super::calls::{JointCall, World};
use crate::model::report::CallKey;
use rustc_hash::FxHashMap;

/// Whose reply the client recorded for a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// The one that came on the call's own stream.
    Same,
    /// One that came to another call.
    Other {
        /// That call.
        owner: CallKey,
        /// By the hash of its exact bytes, not by its value alone.
        exact: bool,
    },
    /// One that no call got on the wire.
    Unseen,
    /// Nothing that could be compared.
    Nothing,
}

impl World {
    /// Compares every client's record with the replies that were seen.
    pub fn told(&self) -> FxHashMap<CallKey, Told> {
        let recorded: Vec<(&JointCall, HopCallId)> = self
            .calls
            .iter()
            .filter_map(|j| Some((j, j.client?)))
            .filter(|(_, c)| self.recorded(*c).is_some())
            .collect();
        let mut out = FxHashMap::default();
        if recorded.is_empty() {
            return out;
        }
        let (mut by_hash, mut by_value) = (FxHashMap::default(), FxHashMap::default());
        for joint in &self.calls {
            let Some(reply) = joint.hops.first().and_then(|c| self.content_reply(*c)) else { continue };
            by_hash.entry(reply.sha256()).or_insert(joint.key);
            if let Some(value) = reply.value() {
                by_value.entry(value).or_insert_with(Vec::new).push(joint.key);
            }
        }
        for (joint, c) in recorded {
            out.insert(joint.key, self.compare_told(joint, c, &by_hash, &by_value));
        }
        out
    }

    fn compare_told(
        &self,
        joint: &JointCall,
        c: HopCallId,
        by_hash: &FxHashMap<[u8; 32], CallKey>,
        by_value: &FxHashMap<u64, Vec<CallKey>>,
    ) -> Told {
        let Some(mine) = self.recorded(c) else { return Told::Nothing };
        let seen = joint.hops.first().and_then(|h| self.content_reply(*h));
        let value = mine.value();
        let has_hash = mine.sha256() != [0; 32];
        if let Some(seen) = seen {
            let same_value = seen.value().is_some_and(|v| Some(v) == value);
            if has_hash && seen.sha256() == mine.sha256() || same_value {
                return Told::Same;
            }
        }
        if let Some(owner) = by_hash.get(&mine.sha256()).filter(|k| has_hash && **k != joint.key) {
            return Told::Other { owner: *owner, exact: true };
        }
        // Equal values of several calls name none of them.
        match value.and_then(|v| by_value.get(&v)).map(Vec::as_slice) {
            Some([owner]) if *owner != joint.key => Told::Other { owner: *owner, exact: false },
            _ if seen.is_some() => Told::Unseen,
            _ => Told::Nothing,
        }
    }

    /// The reply in a client's record.
    fn recorded(&self, c: HopCallId) -> Option<&crate::mcp::Reply> {
        self.reply(self.hop_call(c)?.answer?.at).map(|(_, r)| r)
    }

    /// The reply of a call where content is carried.
    fn content_reply(&self, c: HopCallId) -> Option<&crate::mcp::Reply> {
        let (visit, reply) = self.reply(self.hop_call(c)?.answer?.at)?;
        visit.place.is_frame.then_some(reply)
    }
}
