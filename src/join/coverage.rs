//! Which inputs would have shown a call that the client claims to have made.

use super::answers::HopCallId;
use super::calls::World;
use crate::model::report::Confidence;
use crate::model::time::Time;
use rustc_hash::FxHashSet;

/// By then after being issued a request is on its way, ns.
const ON_ITS_WAY_NS: i64 = 2_000_000_000;

/// Inputs that cover a call, and how sure its absence from them makes.
#[derive(Clone, Debug)]
pub struct Coverage {
    /// The inputs, captures first.
    pub inputs: Vec<u32>,
    /// Absence from one log is possible only; from two independent inputs probable; from a capture
    /// without loss that covers the path, certain.
    pub confidence: Confidence,
}

impl World {
    /// Inputs with records before the call was issued and after it would have been seen, which show
    /// requests of its kind; none: nothing follows from not having seen it.
    pub fn coverage(&self, c: HopCallId) -> Option<Coverage> {
        let visit = self.visit_of(c)?;
        if visit.at.error_ns > i64::MAX / 8 {
            return None;
        }
        let (at, by) = (visit.asked, visit.asked.plus_ns(ON_ITS_WAY_NS));
        let mut captures: Vec<u32> = self.of_this_client(c);
        captures.retain(|i| self.spans(*i, at, by));
        let mut logs: Vec<u32> = self.logs.access_inputs.iter().copied().filter(|i| self.spans(*i, at, by)).collect();
        let whole = captures.iter().any(|i| !self.lossy_inputs.contains(i));
        let confidence = match (whole, captures.len() + logs.len()) {
            (true, _) => Confidence::Certain,
            (_, 0) => return None,
            (_, 1) => Confidence::Possible,
            _ => Confidence::Probable,
        };
        let mut inputs = captures;
        inputs.append(&mut logs);
        Some(Coverage { inputs, confidence })
    }

    fn spans(&self, input: u32, at: Time, by: Time) -> bool {
        let shifted = self.logs.offsets.get(&input).copied().flatten().map_or(0, |o| o.ns);
        let first = self.input_start.get(&input).map(|t| t.plus_ns(shifted));
        let last = self.input_end.get(&input).map(|t| t.plus_ns(shifted));
        first.is_some_and(|t| t <= at) && last.is_some_and(|t| t >= by) && !self.gapped_inputs.contains(&input)
    }

    /// Captures that hold other calls of the same client's record, so that they are on its path.
    fn of_this_client(&self, c: HopCallId) -> Vec<u32> {
        let Some(input) = self.visit_of(c).map(|v| v.input) else { return vec![] };
        let mut found: FxHashSet<u32> = FxHashSet::default();
        for joint in &self.calls {
            if joint.client.and_then(|c| self.visit_of(c)).is_some_and(|v| v.input == input) {
                found.extend(
                    joint.hops.iter().filter_map(|h| self.visit_of(*h)).filter(|v| v.place.is_frame).map(|v| v.input),
                );
            }
        }
        let mut list: Vec<u32> = found.into_iter().collect();
        list.sort_unstable();
        list
    }
}
