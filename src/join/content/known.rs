//! What earlier traffic taught, which later traffic is judged by.

use super::super::schema::Schemas;
use super::learn::Habit;
use super::words::Words;
use crate::mcp::shape::{Plain, ShapeId, Shapes};
use crate::mcp::visit::Reply;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A tool at a hop.
pub(super) type ToolKey = (u32, Arc<str>);

/// What is usual for each tool of each hop, as learnt so far. Hops are numbered alike as long as this is kept.
#[derive(Default)]
pub struct Known {
    pub(super) schemas: Schemas,
    pub(super) habits: FxHashMap<ToolKey, Habit>,
    pub(super) tool_lists: FxHashMap<u32, Words>,
    pub(super) shapes: Shapes,
    pub(super) plain: Plain,
    /// Bytes of replies that are kept as samples.
    pub(super) sampled: usize,
}

impl Known {
    /// The shape of a reply's result, worked out when it is first asked for.
    pub(super) fn shape_of(&mut self, reply: &Reply) -> Option<ShapeId> {
        *reply.shape.get_or_init(|| Some(self.shapes.of(reply.result()?)))
    }
}
