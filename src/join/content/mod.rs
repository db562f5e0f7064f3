//! Whose reply is it, by what is in it.
//!
//! Who owns a reply is a score over independent signs, each kept with its proof: argument values
//! echoed, the tool's output schema, the shape learnt from the tool's uncontested replies. A reply
//! counts as foreign only if a sign speaks for another call *and* one speaks against its own.

mod known;
mod learn;
mod verdict;
mod words;

use super::answers::{self, Answers, HopCall, HopCallId, NEVER, ReplyRef, rpc};
use super::groups::{GroupId, Groups};
use super::schema::Mismatch;
use crate::mcp::content::{ArgumentValues, occurs};
use crate::mcp::shape::ShapeId;
use crate::mcp::visit::{Reply, Rpc, Visit};
use crate::model::time::Time;
pub use known::Known;
use known::ToolKey;
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::Arc;
pub use verdict::{Sign, Verdict};
use verdict::{by_echo, confidence};

/// What content says of all calls.
#[derive(Default)]
pub struct Contents {
    /// Foreign replies by the call that got them.
    pub foreign: FxHashMap<HopCallId, Verdict>,
    /// Replies that do not satisfy their own tool's schema.
    pub mismatch: FxHashMap<HopCallId, Mismatch>,
    /// Calls whose own reply is confirmed by content.
    pub confirmed: rustc_hash::FxHashSet<HopCallId>,
    /// Calls of which content does not yet say whose reply they got.
    pub unsettled: rustc_hash::FxHashSet<HopCallId>,
    /// Replies that hold something of another call's and are no finding.
    pub near: Vec<Near>,
}

/// A call whose reply gave reason to look, the other call where there is one, and why it is no finding.
pub type Near = (HopCallId, Option<HopCallId>, &'static str);

/// Near-findings kept for `-v`.
const NEAR: usize = 200;

/// A reply that is kept to see what is common in a tool's replies, and what its call asked for.
struct Sample {
    body: Arc<[u8]>,
    values: ArgumentValues,
}

struct Judge<'a> {
    visits: &'a [Visit],
    answers: &'a Answers,
    groups: &'a Groups,
    known: &'a mut Known,
    near: Vec<Near>,
}

/// Calls looked at on either side of one, at most.
const NEIGHBOURS: usize = 256;
/// How long a call whose caller has gone can still produce a reply that lands elsewhere, ns.
const GONE_NS: i64 = 600 * 1_000_000_000;

/// Judges the replies of all calls by what is known and what the visits of `new` teach.
pub fn contents(
    visits: &[Visit],
    answers: &Answers,
    groups: &Groups,
    known: &mut Known,
    new: Range<usize>,
) -> Contents {
    let mut judge = Judge { visits, answers, groups, known, near: vec![] };
    judge.learn(new);
    let mut out = Contents::default();
    let mut suspects = vec![];
    for group in 0..answers.by_group.len() {
        judge.group(group as GroupId, &mut out, &mut suspects);
    }
    judge.other_groups(&suspects, &mut out);
    out.unsettled.extend(suspects.iter().map(|(c, _)| *c));
    let owned = |c: &HopCallId| out.foreign.contains_key(c);
    let odd = suspects.iter().map(|(c, _)| *c).filter(|c| !owned(c) && !out.mismatch.contains_key(c));
    let why = "its reply does not look like its tool's other results, and no call in flight can be its owner";
    judge.near.extend(odd.take(NEAR).map(|c| (c, None, why)));
    judge.near.retain(|(c, _, _)| !owned(c));
    out.near = judge.near;
    out
}

impl<'a> Judge<'a> {
    fn call(&self, c: HopCallId) -> Option<(&'a HopCall, &'a Rpc)> {
        let call = self.answers.calls.get(c as usize)?;
        Some((call, rpc(self.visits, call)?))
    }

    fn reply(&self, r: ReplyRef) -> Option<&'a Reply> {
        self.visits.get(r.visit as usize)?.replies.get(r.reply as usize)
    }

    /// The reply that a call took for its own, if it is a result with content to judge.
    fn result(&self, call: &HopCall) -> Option<(&'a Reply, &'a Arc<[u8]>)> {
        let reply = self.reply(call.answer?.at)?;
        if reply.error.is_some() || reply.interim || reply.after_gap {
            return None;
        }
        Some((reply, reply.body.as_ref()?))
    }

    fn tool_key(&self, call: &HopCall, rpc: &Rpc) -> Option<ToolKey> {
        Some((call.hop, rpc.tool.clone()?))
    }

    /// Until when a call was in flight: its reply, else its stream's end, else open.
    fn until(&self, call: &HopCall) -> Time {
        answers::until(self.visits, call).unwrap_or(NEVER)
    }

    fn group(&mut self, group: GroupId, out: &mut Contents, suspects: &mut Vec<Suspect>) {
        let answers = self.answers;
        let Some(list) = answers.by_group.get(group as usize) else { return };
        for (i, &c) in list.iter().enumerate() {
            let Some(call) = answers.calls.get(c as usize) else { continue };
            let Some(rpc) = rpc(self.visits, call) else { continue };
            if rpc.tool.is_none() || self.result(call).is_none() {
                continue;
            }
            self.own_schema(c, out);
            let near = self.near(list, i);
            match self.judge(c, &near, out.mismatch.get(&c)) {
                Judged::Foreign(verdict) => drop(out.foreign.insert(c, verdict)),
                Judged::Likely(verdict, against) => {
                    out.foreign.insert(c, verdict);
                    suspects.push((c, against));
                }
                Judged::Own => drop(out.confirmed.insert(c)),
                Judged::Suspect(against) => suspects.push((c, against)),
                // Once the tool's habit is known there is nothing more to learn about it.
                Judged::Unclear if self.is_known(call, rpc) => {}
                Judged::Unclear => drop(out.unsettled.insert(c)),
            }
        }
    }

    fn own_schema(&mut self, c: HopCallId, out: &mut Contents) {
        if self.known.schemas.is_empty() {
            return;
        }
        let Some((call, rpc)) = self.call(c) else { return };
        let (Some(tool), Some((reply, _))) = (&rpc.tool, self.result(call)) else { return };
        if reply.tool_error {
            return;
        }
        if let Some(Err(m)) = self.known.schemas.check(call.hop, tool, call.asked, reply) {
            out.mismatch.insert(c, m);
        }
    }

    /// Calls of the group that the reply of the `i`th could belong to: in flight with it, or of the
    /// same id and never answered though their callers have gone.
    fn near(&self, list: &[HopCallId], i: usize) -> Vec<HopCallId> {
        let mut out = vec![];
        let Some((call, own)) = list.get(i).and_then(|c| self.call(*c)) else { return out };
        let until = self.until(call);
        let same_id = |c: &Rpc| match (&c.id, &own.id) {
            (Some(a), Some(b)) => a.loose() == b.loose(),
            _ => false,
        };
        let before = list.get(..i).unwrap_or_default().iter().rev().take(NEIGHBOURS);
        for &c in before {
            let Some((other, r)) = self.call(c) else { continue };
            if call.asked.since(other.asked) > GONE_NS {
                break;
            }
            let in_flight = self.until(other) >= call.asked;
            let gone = other.answer.is_none() && same_id(r);
            if r.tool.is_some() && (in_flight || gone) {
                out.push(c);
            }
        }
        for &c in list.get(i + 1..).unwrap_or_default().iter().take(NEIGHBOURS) {
            let Some((other, r)) = self.call(c) else { continue };
            if other.asked > until {
                break;
            }
            if r.tool.is_some() {
                out.push(c);
            }
        }
        out
    }

    fn judge(&mut self, c: HopCallId, near: &[HopCallId], mismatch: Option<&Mismatch>) -> Judged {
        let visits = self.visits;
        let Some(call) = self.answers.calls.get(c as usize) else { return Judged::Unclear };
        let Some(own) = rpc(visits, call) else { return Judged::Unclear };
        let Some(answer) = call.answer else { return Judged::Unclear };
        let Some(reply) = visits.get(answer.at.visit as usize).and_then(|v| v.replies.get(answer.at.reply as usize))
        else {
            return Judged::Unclear;
        };
        let Some(body) = reply.body.as_deref() else { return Judged::Unclear };
        let distinct = |v: &[u8]| !near.iter().any(|n| self.call(*n).is_some_and(|(_, r)| r.overlaps(v)));
        if own.values().iter().any(|v| occurs(body, v) && distinct(v) && !self.is_common(call, own, v)) {
            return Judged::Own;
        }
        let shape = self.known.shape_of(reply);
        let own_shape = self.fits(call, own, shape);
        let mut against = vec![];
        if self.lacks_echo(call, own, reply, body) {
            against.push(Sign::LacksOwnEcho);
        }
        if own_shape == Some(false) && !reply.tool_error {
            against.push(Sign::NotOwnShape);
        }
        if let Some(m) = mismatch {
            against.push(Sign::NotOwnSchema(m.what.clone()));
        }
        let mut best: Option<Verdict> = None;
        for &other in near {
            if let Some(v) = self.compare(c, other, near, &against)
                && best.as_ref().is_none_or(|b| (v.confidence, v.signs.len()) > (b.confidence, b.signs.len()))
            {
                best = Some(v);
            }
        }
        match best {
            // Without an echo, a call of another session that has one may be the better owner.
            Some(v) if !by_echo(&v) && !against.is_empty() => Judged::Likely(v, against),
            Some(v) => Judged::Foreign(v),
            None if !against.is_empty() => Judged::Suspect(against),
            None if own_shape == Some(true) && against.is_empty() && !near.is_empty() => {
                let others =
                    near.iter().any(|n| self.call(*n).is_some_and(|(o, r)| self.fits(o, r, shape) != Some(false)));
                if others { Judged::Unclear } else { Judged::Own }
            }
            None => Judged::Unclear,
        }
    }

    fn is_known(&self, call: &HopCall, own: &Rpc) -> bool {
        let habit = self.tool_key(call, own).and_then(|k| self.known.habits.get(&k));
        habit.is_some_and(|h| h.learnt.is_known())
    }

    /// Does a reply of this shape look like those of the call's tool?
    fn fits(&self, call: &HopCall, rpc: &Rpc, shape: Option<ShapeId>) -> Option<bool> {
        let habit = self.known.habits.get(&self.tool_key(call, rpc)?)?;
        habit.learnt.fits(self.known.shapes.paths(shape?))
    }

    /// Does the reply's shape tell its call's tool from another? Plain text has the shape of every tool's
    /// plain text, and what only lacks usual members may be an empty result.
    fn tells_tools_apart(&self, call: &HopCall, own: &Rpc, shape: Option<ShapeId>) -> bool {
        let habit = self.tool_key(call, own).and_then(|k| self.known.habits.get(&k));
        let (Some(habit), Some(paths)) = (habit, shape.map(|s| self.known.shapes.paths(s))) else { return false };
        !self.known.plain.is_at_most(paths) && habit.learnt.lacks_path_of(paths)
    }

    fn lacks_echo(&self, call: &HopCall, own: &Rpc, reply: &Reply, body: &[u8]) -> bool {
        let Some(habit) = self.tool_key(call, own).and_then(|k| self.known.habits.get(&k)) else { return false };
        // This reply itself is no part of the habit.
        let (could, echoed) = (habit.could_echo.saturating_sub(u32::from(call.answer.is_some())), habit.echoed);
        let usual = could >= 3 && echoed * 10 >= could * 9;
        usual && !reply.tool_error && !own.values().is_empty() && !own.values().iter().any(|v| occurs(body, v))
    }

    /// Is it known of the call's tool that most of its results hold nothing of the arguments?
    fn seldom_echoes(&self, call: &HopCall, own: &Rpc) -> bool {
        let habit = self.tool_key(call, own).and_then(|k| self.known.habits.get(&k));
        habit.is_some_and(|h| h.could_echo >= 3 && h.echoed * 2 < h.could_echo)
    }

    /// Does the reply of `c` belong to `other`?
    fn compare(&mut self, c: HopCallId, other: HopCallId, near: &[HopCallId], against: &[Sign]) -> Option<Verdict> {
        let visits = self.visits;
        let call = self.answers.calls.get(c as usize)?;
        let candidate = self.answers.calls.get(other as usize)?;
        let (own, theirs) = (rpc(visits, call)?, rpc(visits, candidate)?);
        let reply = visits.get(call.answer?.at.visit as usize)?.replies.get(call.answer?.at.reply as usize)?;
        let body = reply.body.as_deref()?;
        if self.lacks_echo(candidate, theirs, reply, body) {
            return None;
        }
        let shape = self.known.shape_of(reply);
        let tools_differ = own.tool != theirs.tool;
        // Whatever text they share: it looks like its own tool's results and not like the other's.
        if tools_differ
            && self.fits(call, own, shape) == Some(true)
            && self.fits(candidate, theirs, shape) == Some(false)
        {
            return None;
        }
        let mut signs = vec![];
        let echo = self.echo_of(c, other, near, body);
        if let Some(value) = &echo {
            signs.push(Sign::EchoesOther(value.clone()));
        }
        let same_id = matches!((&own.id, &theirs.id), (Some(a), Some(b)) if a.loose() == b.loose());
        let collision = same_id && self.groups.is_session(call.group) && candidate.answer.is_none();
        let fits_other = self.fits(candidate, theirs, shape);
        let telling = collision || self.tells_tools_apart(call, own, shape);
        if tools_differ && telling && against.contains(&Sign::NotOwnShape) && fits_other == Some(true) {
            signs.push(Sign::ShapeOfOther);
        }
        let against_schema = against.iter().any(|s| matches!(s, Sign::NotOwnSchema(_)));
        if let (true, true, Some(a), Some(b)) = (tools_differ, against_schema, &own.tool, &theirs.tool)
            && self.known.schemas.differ(call.hop, a, b, call.asked)
            && !self.known.schemas.takes_anything(candidate.hop, b, candidate.asked)
            && self.known.schemas.check(candidate.hop, b, candidate.asked, reply) == Some(Ok(()))
        {
            signs.push(Sign::SchemaOfOther);
        }
        if signs.is_empty() {
            return None;
        }
        // A reply that names the other's argument and is none of the other tool's names it in passing:
        // "did you mean", a list of what is new.
        let of_other = fits_other != Some(false) || signs.contains(&Sign::SchemaOfOther);
        if !of_other && !collision {
            return None;
        }
        if collision {
            signs.push(Sign::SameIdHangs);
        }
        // A tool that does not echo, of a relation that holds both ways, names the other by rights.
        let lacks_own = !own.values().is_empty() && !own.values().iter().any(|v| occurs(body, v));
        let mutual =
            echo.is_some() && lacks_own && !self.seldom_echoes(call, own) && self.holds_values_of(candidate, c, near);
        if mutual {
            signs.push(Sign::Mutual);
        }
        // A sign for the other and none against the own is a coincidence, not a crossing, unless the
        // other was waiting with the same id when this call was made.
        let waiting = collision && self.until(candidate) >= call.asked;
        if against.is_empty() && !mutual && !waiting {
            if self.near.len() < NEAR {
                let why = "its reply holds a value that only the other call asked with, and nothing speaks against its own call";
                self.near.push((c, Some(other), why));
            }
            return None;
        }
        signs.extend(against.iter().cloned());
        let confidence = confidence(&signs);
        Some(Verdict { owner: other, signs, confidence, collision, other_group: candidate.group != call.group })
    }

    /// An argument value of `other` that stands in `body` and could come from no other call.
    fn echo_of(&self, c: HopCallId, other: HopCallId, near: &[HopCallId], body: &[u8]) -> Option<Arc<str>> {
        let (call, own) = self.call(c)?;
        let (_, theirs) = self.call(other)?;
        let value = theirs.values().iter().find(|v| {
            occurs(body, v)
                && !own.overlaps(v)
                && !near.iter().any(|n| *n != other && self.call(*n).is_some_and(|(_, r)| r.overlaps(v)))
                && !self.is_common(call, own, v)
        })?;
        Some(Arc::from(String::from_utf8_lossy(value)))
    }

    /// Does the value stand in tool lists, or in many replies of the tool?
    fn is_common(&self, call: &HopCall, own: &Rpc, value: &[u8]) -> bool {
        if self.known.tool_lists.get(&call.hop).is_some_and(|l| l.having(value).next().is_some()) {
            return true;
        }
        let Some(habit) = self.tool_key(call, own).and_then(|k| self.known.habits.get(&k)) else { return false };
        // A reply whose own call asked for the value holds it for that reason.
        let own = call.answer.and_then(|a| self.reply(a.at)).and_then(|r| r.body.as_ref());
        let is_own = |s: &Sample| own.is_some_and(|b| Arc::ptr_eq(b, &s.body));
        let sample = habit.words.having(value).filter_map(|n| habit.sample.get(n));
        let hits = sample.filter(|s| !is_own(s) && !s.values.overlaps(value)).count();
        hits > 0 && hits * 100 >= habit.sample.len()
    }

    fn holds_values_of(&self, candidate: &HopCall, c: HopCallId, near: &[HopCallId]) -> bool {
        let Some((_, body)) = self.result(candidate) else { return false };
        let Some((_, own)) = self.call(c) else { return false };
        own.values()
            .iter()
            .any(|v| occurs(body, v) && !near.iter().any(|n| self.call(*n).is_some_and(|(_, r)| r.overlaps(v))))
    }

    /// Looks for owners of suspect replies among unanswered calls of other sessions at the hop, and
    /// among those whose own replies are suspect.
    fn other_groups(&mut self, suspects: &[Suspect], out: &mut Contents) {
        if suspects.is_empty() {
            return;
        }
        let mut hanging: FxHashMap<u32, Vec<HopCallId>> = FxHashMap::default();
        for (n, call) in self.answers.calls.iter().enumerate() {
            if call.answer.is_none() {
                hanging.entry(call.hop).or_default().push(n as HopCallId);
            }
        }
        // Replies that were exchanged between sessions leave nobody hanging, but two suspects.
        for (c, _) in suspects {
            if let Some((call, _)) = self.call(*c) {
                hanging.entry(call.hop).or_default().push(*c);
            }
        }
        for list in hanging.values_mut() {
            list.sort_by_key(|c| self.answers.calls.get(*c as usize).map(|c| c.asked));
        }
        for (c, against) in suspects {
            let c = *c;
            let Some((call, own)) = self.call(c) else { continue };
            // Where one server object serves several sessions, replies are routed by the bare id.
            let id = own.id.as_ref().map(crate::model::id::RpcId::loose);
            let same_id = |r: &Rpc| r.id.as_ref().map(crate::model::id::RpcId::loose) == id;
            let (until, asked, group) = (self.until(call), call.asked, call.group);
            let Some(list) = hanging.get(&call.hop) else { continue };
            let end = list.partition_point(|o| self.answers.calls.get(*o as usize).is_some_and(|o| o.asked <= until));
            let recent = list.get(..end).unwrap_or_default().iter().rev().take(NEIGHBOURS * 4);
            let in_flight = |o: &HopCall| o.answer.is_none() || self.until(o) >= asked;
            let near: Vec<HopCallId> = recent
                .copied()
                .filter(|o| {
                    self.call(*o).is_some_and(|(o, r)| {
                        o.group != group
                            && asked.since(o.asked) < GONE_NS
                            && r.tool.is_some()
                            && same_id(r)
                            && in_flight(o)
                    })
                })
                .collect();
            let best = near
                .iter()
                .filter_map(|o| self.compare(c, *o, &near, against))
                .filter(by_echo)
                .max_by_key(|v| v.confidence);
            if let Some(v) = best {
                out.foreign.insert(c, v);
            }
        }
    }
}

/// A call whose reply does not look like its own, and why.
type Suspect = (HopCallId, Vec<Sign>);

enum Judged {
    Own,
    Foreign(Verdict),
    Likely(Verdict, Vec<Sign>),
    Suspect(Vec<Sign>),
    Unclear,
}
