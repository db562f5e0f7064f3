//! Decides which exchanges no rule can still need.
//!
//! Clean is what every rule has looked past: a request that was answered once, whole, on its own stream, under
//! its own id, by a reply that content does not give to another call, and that was in flight with no call of
//! which the same cannot be said. Whoever adds a rule that needs more of clean exchanges has to keep it here;
//! `tests/parts.rs` compares findings with and without.

use super::chain::Chains;
use super::groups::GroupKey;
use super::hints::{Hangs, Refuses, may_be_call, may_refuse, refuses};
use super::kept::Kept;
pub use super::part::Stays;
use super::part::{Fate, Part};
use super::past::{Numbering, Past, SessionPast, hashed, without_bodies, without_replies};
use super::patterns::Found;
use super::quiet::is_clean_line;
use super::refusals::Refusals;
use super::unlogged::is_unlogged;
use crate::mcp::{Tracked, Visit};
use crate::model::id::RpcId;
use crate::model::limits::{KEPT_LINES, KEPT_VISITS};

/// The requests that follow a session's start for this long show whether calls that another refused were sent again, ns.
const FRESH_NS: i64 = 15_000_000_000;
/// Calls of a session that a window's sequence can show.
const FIRST_CALLS: u32 = 3;
/// Exchanges of one session kept for how its ids run, or after a refusal.
const KEPT: u32 = 256;

/// An exchange that is over and goes on into the next part: whether it is odd by itself, and by more than a gap, what
/// was decided, and as which of all it ended.
struct Carried {
    visit: Visit,
    odd: bool,
    told: bool,
    fate: Fate,
    nth: u32,
}

/// Joins a capture in parts, and keeps what the rules need at the end.
#[derive(Default)]
pub struct Parts {
    stays: Stays,
    past: Past,
    carried: Vec<Carried>,
    kept: Kept,
    /// Where all stays: as which of all each of `kept` ended.
    nths: Vec<u32>,
    /// Exchanges that have ended.
    ended: u32,
    /// A line had a time.
    timed: bool,
    /// How many may be kept; none: as `model/limits.rs` says.
    most: Option<usize>,
    /// Calls of lines before these that look as if they had hung.
    hung: Hangs,
    /// Why each of `kept` stays, where only some sessions of a log are looked at.
    fates: Option<Vec<Fate>>,
}

/// What is known of a line before its session's story is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Ruling {
    /// It is no less than this.
    AtLeast(Fate),
    /// It was found to be this by others, who had the whole story.
    Found(Fate),
    /// It was refused, of a session that others look at.
    OfOthers,
}

impl Parts {
    /// Nothing joined yet.
    pub fn new(stays: Stays) -> Parts {
        Parts { stays, ..Parts::default() }
    }

    /// Takes exchanges that have ended; `open` are those that have begun and not ended.
    pub fn take(&mut self, ended: Vec<Visit>, open: Vec<Visit>) {
        let carried = std::mem::take(&mut self.carried);
        let (old, over) = (carried.len(), carried.len() + ended.len());
        let mut odd: Vec<bool> = carried.iter().map(|c| c.odd).collect();
        let mut told: Vec<bool> = carried.iter().map(|c| c.told).collect();
        let mut fates: Vec<Fate> = carried.iter().map(|c| c.fate).collect();
        let mut nths: Vec<u32> = carried.iter().map(|c| c.nth).collect();
        nths.extend((self.ended..).take(ended.len()));
        self.ended = self.ended.saturating_add(ended.len() as u32);
        let visits: Vec<Visit> = carried.into_iter().map(|c| c.visit).chain(ended).chain(open).collect();
        odd.resize(visits.len(), false);
        told.resize(visits.len(), false);
        fates.resize(visits.len(), Fate::Clean);
        let part = Part::new(&visits, &mut self.past, old..over, self.stays);
        part.find_odd(&mut odd, &mut told, over);
        if let Stays::All { values } = self.stays {
            let go_on = part.go_on(&odd, over);
            return self.keep_all(visits.into_iter().zip(nths), &odd, &go_on, values);
        }
        part.want(&odd, &mut fates);
        let mut go_on = part.go_on(&odd, over);
        let keys: Vec<GroupKey> = (0..over).map(|v| part.key(v)).collect();
        let Part { order, chains, .. } = part;
        self.outline(&visits, &order, &keys, &mut fates, old..over);
        let behind = together(&chains, &mut fates, &mut go_on, over);
        for (v, (visit, nth)) in visits.into_iter().zip(nths).enumerate() {
            let fate = fates.get(v).copied().unwrap_or(Fate::Wanted);
            if go_on.get(v) == Some(&true) {
                let (odd, told) = (odd.get(v) == Some(&true), told.get(v) == Some(&true));
                self.carried.push(Carried { visit, odd, told, fate, nth });
                continue;
            }
            match (fate, keys.get(v)) {
                (Fate::Clean, _) if behind.get(v) == Some(&true) => drop(self.past.gone.pass(visit.at.at)),
                (Fate::Clean, Some(key)) => self.past.retire(key, visit),
                (Fate::Outline, _) => self.kept.push(without_bodies(visit)),
                (Fate::Wanted, _) if self.stays == Stays::WantedWhole || told.get(v) != Some(&false) => {
                    self.kept.push(visit);
                }
                // What was in flight with something odd may own its reply; its own was looked at. So was one before a
                // gap.
                _ => self.kept.push(without_replies(visit)),
            }
        }
        self.cap(KEPT_VISITS);
    }

    /// Keeps all, those that are not odd without what was said.
    fn keep_all(&mut self, over: impl Iterator<Item = (Visit, u32)>, odd: &[bool], go_on: &[bool], values: bool) {
        for (v, (visit, nth)) in over.enumerate() {
            let odd = odd.get(v) != Some(&false);
            if go_on.get(v) == Some(&true) {
                self.carried.push(Carried { visit, odd, told: odd, fate: Fate::Wanted, nth });
            } else {
                self.nths.push(nth);
                self.kept.push(if odd { visit } else { hashed(visit, values) });
            }
        }
    }

    /// Takes the first `done` lines of a log that is read alone, in order of time.
    pub(super) fn take_lines(&mut self, all: &mut Vec<Visit>, done: usize, rule: &dyn Fn(&Visit) -> Ruling) {
        self.hung.add(all, done);
        let lines = all.get(..done).unwrap_or_default();
        let of_lines = lines.iter().filter(|v| !is_unlogged(v) && rule(v) != Ruling::OfOthers);
        of_lines.for_each(|line| self.past.shown.get_or_insert_default().add(line));
        for line in lines.iter().filter(|v| may_refuse(v)) {
            self.past.refusals.note(line);
        }
        self.timed |= lines.iter().any(|v| v.at.is_known());
        for line in all.drain(..done.min(all.len())) {
            let least = match rule(&line) {
                Ruling::AtLeast(fate) => fate,
                Ruling::Found(fate) => {
                    self.keep(line, fate);
                    continue;
                }
                Ruling::OfOthers => continue,
            };
            // Where others have a time, one whose own cannot be read stands nowhere in its session's story.
            if self.timed && !line.at.is_known() {
                self.keep(line, Fate::Wanted);
                continue;
            }
            let key = GroupKey::of(&line);
            let begins = is_unlogged(&line) && line.carries("initialize");
            let Past { sessions, refusals, gone, .. } = &mut self.past;
            let mut fate = if begins && refusals.may_explain(line.asked, &line) {
                Fate::Outline
            } else if begins || is_clean_line(&line) {
                Fate::Clean
            } else {
                Fate::Wanted
            };
            // What may have cancelled a call that looks as if it had hung.
            if line.status == Some(202) && !self.hung.is_empty() && self.hung.may_be_cancelled(&key, line.asked) {
                fate = Fate::Wanted;
            }
            fate = fate.max(least);
            if let GroupKey::Session(_) = &key {
                let story = sessions.entry(key.clone()).or_default();
                if self.fates.is_some() {
                    // Where it began may be said by a line that names no session.
                    story.began = Some(story.began.unwrap_or(line.asked));
                }
                fate = fate.max(needs(refusals, story, &line));
                if fate == Fate::Clean {
                    gone.retire(story, line);
                    continue;
                }
            }
            match fate {
                Fate::Clean => self.past.retire(&key, line),
                fate => self.keep(line, fate),
            }
        }
        self.cap(KEPT_LINES);
    }

    fn keep(&mut self, line: Visit, fate: Fate) {
        if let Some(fates) = &mut self.fates {
            fates.push(fate);
        }
        self.kept.push(if fate == Fate::Wanted { line } else { without_bodies(line) });
    }

    /// Takes a line that is not clean, of a log that names no sessions.
    pub(super) fn keep_line(&mut self, line: Visit) {
        self.kept.push(line);
        self.cap(KEPT_LINES);
    }

    /// Lets it answer for a time only, and keep whatever is not clean: the memory was planned for.
    pub(super) fn answer_for(&mut self, core: Option<(i64, i64)>) {
        self.past.gone.core = core;
        self.most = Some(usize::MAX);
    }

    /// Lets it look at some sessions of a log only, and know why each line stays.
    pub(super) fn look_apart(&mut self) {
        self.fates = Some(vec![]);
    }

    /// The lines that stay, in order of time or so, with why, and what is left of the others.
    pub(super) fn finish_apart(mut self) -> (Vec<(Fate, Visit)>, Past) {
        let last = self.past.take_last();
        let mut kept = vec![];
        self.kept.append_to(&mut kept);
        let stays = self.fates.unwrap_or_default().into_iter().zip(kept);
        (stays.chain(last.into_iter().map(|v| (Fate::Outline, v))).collect(), self.past)
    }

    /// What is left of lines that were passed.
    pub(super) fn past(&mut self) -> &mut Past {
        &mut self.past
    }

    /// What the lines of the log showed by their order.
    pub fn found(&mut self, found: Found) {
        self.past.patterns = Some(found.into());
    }

    fn cap(&mut self, most: usize) {
        while let Some(visit) = self.kept.excess(self.most.unwrap_or(most)) {
            self.past.dropped += 1;
            self.past.forget(&GroupKey::of(&visit), &visit);
        }
    }

    /// What is left for the rules: what retired, everything kept with what `rest` has, and how many of
    /// these visits are not of `rest`.
    pub fn finish(mut self, rest: Tracked) -> (Past, Tracked, usize) {
        if matches!(self.stays, Stays::All { .. }) {
            return self.finish_all(rest);
        }
        let last = self.past.take_last();
        self.past.close();
        let mut visits = Vec::with_capacity(self.kept.len() + last.len() + self.carried.len() + rest.visits.len());
        self.kept.append_to(&mut visits);
        visits.extend(last);
        visits.extend(self.carried.into_iter().map(|c| c.visit));
        let known = visits.len();
        visits.extend(rest.visits);
        (self.past, Tracked { visits, ..rest }, known)
    }

    /// The same where all stayed: only what was learnt is past, all else is worked out at the end, from all. They
    /// stand in the order in which they ended, as they would if nothing had been joined before.
    fn finish_all(self, rest: Tracked) -> (Past, Tracked, usize) {
        let mut kept = vec![];
        self.kept.append_to(&mut kept);
        let kept = self.nths.into_iter().zip(kept);
        let mut all: Vec<(u32, Visit)> = kept.chain(self.carried.into_iter().map(|c| (c.nth, c.visit))).collect();
        all.sort_by_key(|(nth, _)| *nth);
        let known = all.len();
        let visits = all.into_iter().map(|(_, visit)| visit).chain(rest.visits).collect();
        (self.past.learnt(), Tracked { visits, ..rest }, known)
    }

    /// Marks the exchanges of `new` that their sessions' stories need, in order of time.
    fn outline(
        &mut self,
        visits: &[Visit],
        order: &[u32],
        keys: &[GroupKey],
        fates: &mut [Fate],
        new: std::ops::Range<usize>,
    ) {
        for visit in visits.get(new.clone()).unwrap_or_default().iter().filter(|v| may_refuse(v)) {
            self.past.refusals.note(visit);
        }
        for v in order.iter().map(|v| *v as usize).filter(|v| new.contains(v)) {
            let (Some(visit), Some(key), Some(fate)) = (visits.get(v), keys.get(v), fates.get_mut(v)) else { continue };
            if matches!(key, GroupKey::Client(..)) {
                continue;
            }
            let Past { sessions, refusals, .. } = &mut self.past;
            *fate = (*fate).max(needs(refusals, sessions.entry(key.clone()).or_default(), visit));
        }
    }
}

/// Does the story of its session need the visit? Notes what it adds to the story.
fn needs(refusals: &mut Refusals, session: &mut SessionPast, visit: &Visit) -> Fate {
    let mut need = Fate::Clean;
    let begins = visit.carries("initialize");
    if begins {
        session.began = Some(session.began.unwrap_or(visit.asked));
    }
    if begins || visit.carries("notifications/initialized") {
        need = Fate::Outline;
        // What stands before it by a wrong clock is no use of it.
        (session.used, session.tool_calls) = (None, 0);
    } else if session.used.is_none_or(|t| visit.asked <= t) {
        need = Fate::Outline;
        if visit.status.is_some_and(|s| (200..300).contains(&s)) {
            session.used = session.used.into_iter().chain([visit.answered()]).min();
        }
    }
    if may_be_call(visit) && session.tool_calls == 0 {
        need = Fate::Outline;
    }
    // The first request after others were refused says whether this session lived on.
    if let Some(before) = session.asked.replace(visit.asked)
        && refusals.lives_on(before, visit)
    {
        need = Fate::Outline;
    }
    session.tool_calls += u32::from(may_be_call(visit));
    // How a client went on after a refusal, however long ago: up to its first calls, and what it sent again.
    if let Some(began) = session.began
        && refusals.may_explain(began, visit)
        && (session.tool_calls <= FIRST_CALLS || visit.asked.since(began) <= FRESH_NS && refusals.has_asked(visit))
    {
        need = Fate::Outline;
    }
    // A 400 in no words was about one request, if the session goes on: one answer shows that.
    let goes_on = visit.status.is_some_and(|s| s < 300) && !visit.is_get();
    if session.doubted.take_if(|t| goes_on && visit.asked > *t).is_some() {
        need = Fate::Outline;
    }
    match refuses(visit) {
        Some(Refuses::Session) => session.refused = true,
        Some(Refuses::Perhaps) => session.doubted = session.doubted.max(Some(visit.answered())),
        None => {}
    }
    let ids = visit.requests().filter_map(|r| r.id.as_ref());
    let by_id = ids.map(|id| by_number(session, id)).max().unwrap_or(Fate::Clean);
    if by_id == Fate::Wanted || session.refused {
        if session.kept < KEPT {
            session.kept += 1;
            need = Fate::Wanted;
        }
        return need;
    }
    need.max(by_id)
}

/// Lets the exchanges of a chain leave together: one that goes on or is wanted holds the others. Gives those
/// that are not the first of their chain, which is the one that counts as the call.
fn together(chains: &Chains, fates: &mut [Fate], go_on: &mut [bool], over: usize) -> Vec<bool> {
    let mut behind = vec![false; over];
    for chain in chains.all.iter().filter(|c| c.len() > 1) {
        let most = chain.iter().filter_map(|v| fates.get(*v as usize)).copied().max();
        let stays = chain.iter().any(|v| *v as usize >= over || go_on.get(*v as usize) == Some(&true));
        for (n, v) in chain.iter().map(|v| *v as usize).enumerate() {
            if let (Some(fate), Some(most)) = (fates.get_mut(v), most) {
                *fate = most;
            }
            if let Some(slot) = go_on.get_mut(v) {
                *slot |= stays;
            }
            if let Some(slot) = behind.get_mut(v) {
                *slot = n > 0;
            }
        }
    }
    behind
}

/// A number that its session has passed already is wanted, since two conversations may share it. A connector
/// that sends one id for every call is no such case: only the first repetition is kept.
fn by_number(session: &mut SessionPast, id: &RpcId) -> Fate {
    let Some(n) = super::conversations::number(id) else { return Fate::Clean };
    let Some(before) = session.numbering.replace(Numbering { greatest: n, latest: n, steps: 0, repeats: false }) else {
        return Fate::Clean;
    };
    let grew = n > before.greatest;
    let repeats = n == before.latest && before.steps < 2;
    session.numbering = Some(Numbering {
        greatest: before.greatest.max(n),
        latest: n,
        steps: before.steps.saturating_add(u32::from(grew)),
        repeats: before.repeats || repeats,
    });
    match (grew, repeats) {
        (true, _) => Fate::Clean,
        (false, true) if before.repeats => Fate::Clean,
        (false, true) => Fate::Outline,
        (false, false) => Fate::Wanted,
    }
}
