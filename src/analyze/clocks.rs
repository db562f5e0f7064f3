//! What some logs show of each other's clocks, for those who fold other parts of the same logs.

use super::logs::Sighted;
use crate::join::logs;
use crate::mcp::Tracked;
use crate::model::options::{GivenClock, ReadOptions};
use crate::model::place::InputId;
use crate::model::report::InputInfo;

/// The clocks of `sighted`, in their order, on that of one of them; none: nothing tells. Where no two have anything in
/// common, all are none: there is no clock to be on.
pub fn clocks(sighted: Vec<Sighted>, read: &ReadOptions) -> Vec<Option<GivenClock>> {
    let gathered = super::gathered(sighted);
    let writers = super::writers::writers(&gathered.inputs);
    let endpoint = read.endpoint.as_deref();
    let found = logs::read(gathered.records, &mut Tracked::default(), endpoint, false, writers, &[]);
    let of = |(input, info): (InputId, &InputInfo)| {
        // What has no times got them from another, and they are of these lines alone.
        let offset = found.offsets.get(&input).copied().flatten().filter(|_| !found.ordered.contains_key(&input))?;
        let (first, last) = info.first.zip(info.last)?;
        Some(offset.to_give(first.plus_ns(last.since(first) / 2)))
    };
    let clocks: Vec<Option<GivenClock>> = (0..).zip(&gathered.inputs).map(of).collect();
    if clocks.iter().flatten().count() < 2 { vec![None; clocks.len()] } else { clocks }
}
