//! What is usual for each tool: the shape of its results, and whether it echoes its arguments.

use super::known::ToolKey;
use super::words::{TEXTS, Words};
use super::{Judge, Sample};
use crate::join::answers::HopCallId;
use crate::mcp::content::{ArgumentValues, occurs};
use crate::mcp::shape::{Learnt, ShapeId, Shapes};
use crate::model::limits::SAMPLE_BYTES;
use crate::model::time::Time;
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::Arc;

/// Replies of a tool in which a value is looked for before it counts as distinctive.
const SAMPLE: usize = 100;
/// Replies of a tool that are learnt from: more of them tell nothing new.
const LEARNT_FROM: u32 = 1024;
/// Different tool lists of a server that are kept.
const TOOL_LISTS: usize = 16;
const _: () = assert!(SAMPLE <= TEXTS);

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
    pub sample: Vec<Sample>,
    /// Their words.
    pub words: Words,
    /// Something was learnt that is not in `learnt` yet.
    is_new: bool,
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

/// Works out anew what each tool's results look like.
fn conclude(habits: &mut FxHashMap<ToolKey, Habit>, shapes_of: &Shapes) {
    let typical = typical(habits);
    for ((hop, tool), habit) in habits.iter_mut().filter(|(_, h)| h.is_new) {
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
        habit.learnt = Learnt::default();
        from.iter().for_each(|s| habit.learnt.learn(shapes_of.paths(*s)));
        habit.words.index();
        habit.is_new = false;
    }
}

impl Judge<'_> {
    /// Learns from the visits of `new`; the others taught before.
    pub(super) fn learn(&mut self, new: Range<usize>) {
        self.learn_lists(new.clone());
        let answers = self.answers;
        for list in &answers.by_group {
            let mut alone: Option<Vec<bool>> = None;
            for (n, c) in list.iter().enumerate() {
                let Some((call, rpc)) = self.call(*c).filter(|(call, _)| new.contains(&(call.visit as usize))) else {
                    continue;
                };
                let Some(key) = self.tool_key(call, rpc) else { continue };
                if self.known.habits.get(&key).is_some_and(|h| h.replies >= LEARNT_FROM) {
                    continue;
                }
                let Some((reply, body)) = self.result(call).filter(|(r, _)| !r.tool_error) else { continue };
                let echoes = rpc.values().iter().any(|v| occurs(body, v));
                let shape = self.known.shape_of(reply);
                let alone = alone.get_or_insert_with(|| self.alone(list));
                let room = self.known.sampled + body.len() <= SAMPLE_BYTES;
                let habit = self.known.habits.entry(key).or_default();
                habit.is_new = true;
                habit.replies += 1;
                if let Some(shape) = shape {
                    *habit.shapes.entry(shape).or_default() += 1;
                    if alone.get(n) == Some(&true) {
                        habit.alone.push(shape);
                    }
                    if habit.sample.len() < SAMPLE && room {
                        let values = ArgumentValues(rpc.values().to_vec());
                        habit.sample.push(Sample { body: body.clone(), values });
                        habit.words.add(body);
                        self.known.sampled += body.len();
                    }
                }
                if !rpc.values().is_empty() {
                    habit.could_echo += 1;
                    habit.echoed += u32::from(echoes);
                }
            }
        }
        conclude(&mut self.known.habits, &self.known.shapes);
    }

    fn learn_lists(&mut self, new: Range<usize>) {
        let mut changed = vec![];
        for (v, visit) in self.visits.iter().enumerate().take(new.end).skip(new.start) {
            if visit.tools.is_empty() {
                continue;
            }
            let Some((hop, _)) = self.answers.group_of.get(v).and_then(|g| self.groups.all.get(*g as usize)) else {
                continue;
            };
            self.known.schemas.learn(*hop, visit);
            let lists = self.known.tool_lists.entry(*hop).or_default();
            for body in visit.replies.iter().filter_map(|r| r.body.as_ref()) {
                if lists.len() < TOOL_LISTS && !lists.contains(body) {
                    lists.add(body);
                    changed.push(*hop);
                }
            }
        }
        for hop in changed {
            if let Some(lists) = self.known.tool_lists.get_mut(&hop) {
                lists.index();
            }
        }
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
