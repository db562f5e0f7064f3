//! The batch of a call: the tool calls of its session in flight with it, itself included.

use crate::join::World;
use crate::join::answers::HopCallId;

/// Calls looked at on either side, at most.
const NEIGHBOURS: usize = 512;

/// Size of the batch of a call at its hop.
pub fn batch(world: &World, c: HopCallId) -> Option<u64> {
    let call = world.hop_call(c)?;
    let list = world.answers.by_group.get(call.group as usize)?;
    let here = list.binary_search(&c).ok()?;
    let end = world.until(c);
    let is_tool = |x: HopCallId| world.rpc_of(x).is_some_and(|r| r.tool.is_some());
    let before = list.get(..here)?.iter().rev().take(NEIGHBOURS);
    let earlier = before.filter(|x| is_tool(**x) && world.until(**x).is_none_or(|t| t >= call.asked)).count();
    let after = list.get(here + 1..)?.iter().take(NEIGHBOURS);
    let later = after
        .filter(|x| is_tool(**x))
        .take_while(|x| world.hop_call(**x).is_some_and(|o| end.is_none_or(|e| o.asked <= e)))
        .count();
    Some((earlier + later + 1) as u64)
}
