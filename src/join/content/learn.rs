//! What is usual for each tool: the shape of its results, and whether it echoes its arguments.

use super::{Judge, ToolKey};
use crate::join::answers::HopCallId;
use crate::mcp::content::occurs;
use crate::mcp::shape::{Learnt, ShapeId};
use crate::model::time::Time;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Replies of a tool in which a value is looked for before it counts as distinctive.
const SAMPLE: usize = 100;

/// What a tool's results usually look like.
#[derive(Default)]
pub(super) struct Habit {
    pub learnt: Learnt,
    shapes: FxHashMap<ShapeId, u32>,
    alone: Vec<ShapeId>,
    replies: u32,
    pub could_echo: u32,
    pub echoed: u32,
    /// Some of the tool's replies, to see whether a value is common in them.
    pub sample: Vec<HopCallId>,
}

/// For each shape at a hop, the tool of whose replies at least half have it.
fn typical(habits: &FxHashMap<ToolKey, Habit>) -> FxHashMap<(u32, ShapeId), Arc<str>> {
    let mut out = FxHashMap::default();
    for ((hop, tool), habit) in habits {
        for (shape, n) in &habit.shapes {
            if n * 2 >= habit.replies && *n >= 3 {
                out.insert((*hop, *shape), tool.clone());
            }
        }
    }
    out
}

impl Judge<'_> {
    pub(super) fn learn(&mut self) {
        for (v, visit) in self.visits.iter().enumerate() {
            if visit.tools.is_empty() {
                continue;
            }
            let Some((hop, _)) = self.answers.group_of.get(v).and_then(|g| self.groups.all.get(*g as usize)) else {
                continue;
            };
            self.schemas.learn(*hop, visit);
            let lists = self.tool_lists.entry(*hop).or_default();
            for body in visit.replies.iter().filter_map(|r| r.body.clone()) {
                if lists.len() < 16 && !lists.contains(&body) {
                    lists.push(body);
                }
            }
        }
        let mut habits: FxHashMap<ToolKey, Habit> = FxHashMap::default();
        for list in &self.answers.by_group {
            let alone = self.alone(list);
            for (c, alone) in list.iter().zip(alone) {
                let Some((call, rpc)) = self.call(*c) else { continue };
                let (Some(key), Some((reply, body))) = (self.tool_key(call, rpc), self.result(call)) else { continue };
                if reply.tool_error {
                    continue;
                }
                let habit = habits.entry(key).or_default();
                habit.replies += 1;
                if let Some(shape) = reply.shape {
                    *habit.shapes.entry(shape).or_default() += 1;
                    if alone {
                        habit.alone.push(shape);
                    }
                    if habit.sample.len() < SAMPLE {
                        habit.sample.push(*c);
                    }
                }
                if !rpc.values.0.is_empty() {
                    habit.could_echo += 1;
                    habit.echoed += u32::from(rpc.values.0.iter().any(|v| occurs(body, v)));
                }
            }
        }
        let typical = typical(&habits);
        for ((hop, tool), habit) in &mut habits {
            // Uncontested replies first; a tool that is never alone is known by what most of its
            // replies look like. A shape met once may be a crossing itself (a caller that has gone
            // leaves no trace of overlap), so it teaches nothing unless all are met once; nor does one
            // that is rare here and usual for another tool.
            let replies = habit.replies;
            let shapes = &habit.shapes;
            let lent = |s: &ShapeId, n: u32| n * 4 <= replies && typical.get(&(*hop, *s)).is_some_and(|t| t != tool);
            let usual = |s: &ShapeId| shapes.get(s).is_some_and(|n| *n >= 2 && n * 20 >= replies && !lent(s, *n));
            let alone = &habit.alone;
            let mut from: Vec<ShapeId> = alone.iter().copied().filter(|s| usual(s)).collect();
            if from.is_empty() {
                from = alone.iter().copied().filter(|s| shapes.get(s).is_some_and(|n| !lent(s, *n))).collect();
            }
            if from.len() < 3 {
                let most = (replies / 5).max(3);
                from = shapes
                    .iter()
                    .filter(|(s, n)| **n >= most && !lent(s, **n))
                    .flat_map(|(s, n)| std::iter::repeat_n(*s, *n as usize))
                    .collect();
            }
            from.iter().for_each(|s| habit.learnt.learn(self.shapes.paths(*s)));
        }
        self.habits = habits;
    }

    /// For each call of a group, was no other in flight with it?
    fn alone(&self, list: &[HopCallId]) -> Vec<bool> {
        let spans: Vec<(Time, Time)> = list
            .iter()
            .map(|c| {
                self.answers
                    .calls
                    .get(*c as usize)
                    .map_or((Time::from_ns(0, 0), Time::from_ns(0, 0)), |c| (c.asked, self.until(c)))
            })
            .collect();
        let mut latest: Option<Time> = None;
        spans
            .iter()
            .enumerate()
            .map(|(i, (asked, until))| {
                let before = latest.is_some_and(|l| l > *asked);
                let after = spans.get(i + 1).is_some_and(|(next, _)| next < until);
                latest = latest.max(Some(*until));
                !before && !after
            })
            .collect()
    }
}
