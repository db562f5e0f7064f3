//! Takes the lines of some sessions of a log, apart from all others, and finds which of them a rule may still want: a
//! log of one busy host is looked at by many at once, and what they leave is small enough for one.
//!
//! A session's story asks three things of others. Whether it lived on while they were refused, and whether it may be
//! the new one of a client that was: every share is shown all refusals. Which request without a session opened it:
//! whoever joins all shares has such requests, and every session's first lines. What is not known here is answered so
//! that more stays than must, never less.

use super::lines::SLICE_WAITING;
use super::part::Fate;
use super::past::Left;
use super::retire::{Parts, Ruling};
use super::sightings::{self, Handshakes};
use crate::mcp::Visit;
use crate::mcp::visit::without_slash;
use crate::model::record::AccessRecord;
use rustc_hash::FxHashSet;

/// Of a share no fewer lines are looked at together.
const LEAST_WAITING: usize = 1024;

/// One of the shares into which the sessions of a log are dealt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Which, from 0.
    pub number: u32,
    /// Of how many.
    pub of: u32,
}

impl Share {
    /// The share of `of` that a session is in: the same on every machine (FNV-1a, and the last step of SplitMix64, since
    /// its bits are alike for short texts that are alike).
    pub fn of_session(session: &str, of: u32) -> Share {
        let hash = |h: u64, b: u8| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3);
        let hash = session.bytes().fold(0xcbf2_9ce4_8422_2325, hash);
        let mixed = (hash ^ hash >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32;
        Share { number: (mixed % u64::from(of.max(1))) as u32, of }
    }

    fn has(self, session: &str) -> bool {
        Share::of_session(session, self.of) == self
    }
}

/// Must every share see this line? See [`super::hints::refuses`]: access logs say no words.
pub fn is_of_all(record: &AccessRecord) -> bool {
    record.session.is_some() && matches!(record.status, Some(400 | 404))
}

/// A line that stays.
#[derive(Debug)]
pub struct Stays {
    /// The line.
    pub record: Box<AccessRecord>,
    /// Its session's story needs that it was, and no more of it.
    pub is_outline: bool,
}

impl Stays {
    pub(super) fn fate(&self) -> Fate {
        if self.is_outline { Fate::Outline } else { Fate::Wanted }
    }
}

/// The access lines of the sessions of a share, in the order of the file.
pub struct Apart {
    share: Share,
    /// Lines that are looked at together, of about as long as in [a slice](super::lines::SLICE_WAITING); half of them wait
    /// for the next ones.
    waiting: usize,
    /// Paths that were seen.
    paths: FxHashSet<String>,
    pending: Vec<Visit>,
    /// Visits that stay whatever they are: few, one of each path.
    forced: FxHashSet<u64>,
    handshakes: Handshakes,
    parts: Parts,
}

impl Apart {
    /// No line yet. `endpoint` is a path known from elsewhere; `core` the time that is answered for.
    pub fn new(share: Share, endpoint: Option<&str>, core: Option<(i64, i64)>) -> Apart {
        let mut parts = Parts::default();
        parts.answer_for(core);
        parts.look_apart();
        Apart {
            share,
            waiting: (SLICE_WAITING / share.of.max(1) as usize).max(LEAST_WAITING),
            paths: endpoint.map(|p| without_slash(p).to_owned()).into_iter().collect(),
            pending: vec![],
            forced: FxHashSet::default(),
            handshakes: Handshakes::default(),
            parts,
        }
    }

    /// Takes a line that names a session: one of the share's, or [of all](is_of_all).
    pub fn access(&mut self, record: Box<AccessRecord>) {
        let (Some(place), Some(session)) = (record.place, &record.session) else { return };
        let is_own = self.share.has(session);
        let Some(path) = sightings::path_of(&record) else { return };
        // Of requests without a session only those to paths that are known are looked at.
        let is_new = is_own && !self.paths.contains(path) && self.paths.insert(path.to_owned());
        let mut visit = sightings::visit(&record, place);
        if is_own {
            if is_new || record.repeat > 1 {
                self.forced.insert(visit.exchange);
            }
            visit.line = Some(record);
        }
        self.pending.push(visit);
        if self.pending.len() >= self.waiting {
            self.settle(false);
        }
    }

    /// No more lines come: those that stay, in the order of the file, and what is left of the others.
    pub fn finish(mut self) -> (Vec<Stays>, Left) {
        self.settle(true);
        let (kept, past) = self.parts.finish_apart();
        let stays =
            |(fate, visit): (Fate, Visit)| Some(Stays { record: visit.line?, is_outline: fate == Fate::Outline });
        let mut kept: Vec<Stays> = kept.into_iter().filter_map(stays).collect();
        kept.sort_by_key(|k| k.record.place.map(|p| p.number));
        (kept, Left::of(past))
    }

    fn settle(&mut self, last: bool) {
        let when = |v: &Visit| (v.answered(), v.exchange);
        if !self.pending.is_sorted_by_key(when) {
            self.pending.sort_by_key(when);
        }
        let done = if last { self.pending.len() } else { self.pending.len().saturating_sub(self.waiting / 2) };
        let lines = self.pending.get_mut(..done).unwrap_or_default();
        self.handshakes.name(lines);
        let forced = &self.forced;
        let rule = |v: &Visit| match (v.line.is_some(), forced.contains(&v.exchange)) {
            (false, _) => Ruling::OfOthers,
            (true, true) => Ruling::AtLeast(Fate::Outline),
            (true, false) => Ruling::AtLeast(Fate::Clean),
        };
        self.parts.take_lines(&mut self.pending, done, &rule);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::model::place::Place;
    use crate::model::record::When;
    use crate::model::time::Time;

    /// Two sessions of different shares of two.
    const SESSIONS: [&str; 2] = ["own", "other"];

    fn line(number: u64, session: &str, status: u16, path: &str) -> AccessRecord {
        let at = When { at: Time::from_ns(number as i64 * 1_000_000_000, 9), error_ns: 1 };
        AccessRecord {
            place: Some(Place::line(0, number)),
            end: Some(at),
            method: Some("POST".into()),
            target: Some(path.into()),
            status: Some(status),
            bytes: Some(300),
            session: Some(session.into()),
            repeat: 1,
            ..AccessRecord::default()
        }
    }

    /// The numbers of the lines that stay of what the share of a session is shown.
    fn stays(session: &str, lines: Vec<AccessRecord>) -> Vec<u64> {
        let share = Share::of_session(session, 2);
        let mut apart = Apart::new(share, None, None);
        lines
            .into_iter()
            .filter(|l| is_of_all(l) || share.has(l.session.as_ref().unwrap()))
            .for_each(|l| apart.access(Box::new(l)));
        let (stays, left) = apart.finish();
        assert!(stays.iter().all(|s| s.record.session.as_deref() == Some(session)));
        assert_eq!(left.sessions.iter().map(|(id, _)| &**id).collect::<Vec<_>>(), [session]);
        stays.iter().map(|s| s.record.place.unwrap().number).collect()
    }

    #[test]
    fn sessions_are_in_one_share_each() {
        let [a, b] = SESSIONS.map(|s| Share::of_session(s, 2));
        assert_ne!(a, b);
        for of in [1, 2, 7, 16] {
            let mut counts = vec![0; of as usize];
            for n in 0..1000u32 {
                counts[Share::of_session(&format!("session-{n}"), of).number as usize] += 1;
            }
            assert!(counts.iter().all(|c| *c > 500 / of), "{counts:?}");
        }
    }

    /// Of a clean session its first requests stay, and the one that says that it lived on while another was refused.
    #[test]
    fn what_others_were_refused_is_known_in_each_share() {
        let [own, other] = SESSIONS;
        let clean = |from| (from..from + 40).map(|n| line(n, own, 200, "/mcp")).collect::<Vec<_>>();
        let alone = stays(own, clean(1));
        assert_eq!(alone, [1]);
        let mut lines = clean(1);
        lines[19] = line(20, other, 404, "/mcp");
        assert_eq!(stays(own, lines), [1, 21]);
        // One that begins afterwards may be that client's: its first calls stay, and what may have been sent again.
        let mut lines = clean(1000);
        lines.insert(0, line(990, other, 404, "/mcp"));
        assert_eq!(stays(own, lines), (1000..=1015).collect::<Vec<_>>());
        // Hours later it is nobody's.
        let mut lines = clean(20_000);
        lines.insert(0, line(990, other, 404, "/mcp"));
        assert_eq!(stays(own, lines), [20_000]);
    }

    /// What cancels a call is known by the call, wherever the lines between that are looked at together begin anew.
    #[test]
    fn what_cancels_a_call_stays_with_it() {
        let own = SESSIONS[0];
        let half = SLICE_WAITING as u64 / 4;
        for last in [half - 1, half, half + 1] {
            let mut lines: Vec<AccessRecord> = (1..half * 3).map(|n| line(n, own, 200, "/mcp")).collect();
            let (call, cancel) = (last as usize - 1, last as usize);
            (lines[call].status, lines[call].duration_ns) = (Some(499), Some(0));
            lines[cancel].status = Some(202);
            assert_eq!(stays(own, lines), [1, last, last + 1]);
        }
    }

    /// Requests without a session, which others look at, are of the endpoint on its paths alone.
    #[test]
    fn a_line_of_each_path_stays() {
        let path = |n| if n > 30 { "/other/" } else { "/mcp" };
        assert_eq!(stays("a", (1..60).map(|n| line(n, "a", 200, path(n))).collect()), [1, 31]);
    }
}
