//! The batch of a call: the tool calls of its session in flight with it, itself included.

use crate::join::World;
use crate::join::answers::HopCallId;

/// Size of the batch of a call at its hop.
pub fn batch(world: &World, c: HopCallId) -> Option<u64> {
    let size = world.batch_of(c).len() as u64;
    (size > 0).then_some(size)
}
