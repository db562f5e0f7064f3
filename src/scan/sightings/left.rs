//! What is left of a share of the sessions of a lot, as bytes: lines that stay, and counts of the others.

use super::pack::{Last, Pack, Reader, Writer};
use super::{VERSION, coded};
use crate::join::apart::Stays;
use crate::join::past::{Gone, Left, SessionPast};
use crate::join::sources::Shown;
use crate::model::record::AccessRecord;
use std::sync::Arc;

/// A share of the sessions of a lot, folded.
#[derive(Debug, Default)]
pub struct Folded {
    /// Every sighting of it was there.
    pub is_whole: bool,
    /// Lines that stay, in the order of the log.
    pub stays: Vec<Stays>,
    /// What is left of the others.
    pub left: Left,
}

impl Folded {
    /// The payload for a share of this number.
    pub fn payload(&self, share: u32) -> String {
        let mut w = Writer::default();
        self.is_whole.put(&mut w);
        let Left { sessions, gone, shown } = &self.left;
        list(sessions, &mut w, |(id, session), w| {
            id.put(w);
            put_session(session, w);
        });
        let Gone { core: _, is_any, exchanges, calls, tool_calls, unobserved, order } = gone;
        is_any.put(&mut w);
        [exchanges, calls, tool_calls, unobserved].iter().for_each(|n| n.put(&mut w));
        let unit = unit_of(order);
        unit.put(&mut w);
        let mut last = (0, 0);
        list(order, &mut w, |(ns, exchange), w| {
            let units = ns / unit;
            units.wrapping_sub(last.0).put(w);
            exchange.wrapping_sub(last.1).cast_signed().put(w);
            last = (units, *exchange);
        });
        shown.is_some().put(&mut w);
        let Shown { sessions, begins, requests, replies } = shown.unwrap_or_default();
        [sessions, begins, requests, replies].iter().for_each(|b| b.put(&mut w));
        list(&self.stays, &mut w, |line, w| {
            line.is_outline.put(w);
            line.record.put(w);
        });
        format!("{VERSION}k{share}.{}", coded(&w.bytes))
    }

    /// Reads it back; none: the bytes are not one.
    pub fn read(plain: &[u8]) -> Option<Folded> {
        let r = &mut Reader::new(plain, 0);
        r.last = Last::default();
        let is_whole = bool::get(r)?;
        let sessions = read_list(r, |r| Some((Arc::get(r)?, session(r)?)))?;
        let is_any = bool::get(r)?;
        let (exchanges, calls, tool_calls, unobserved) = (r.number()?, r.number()?, r.number()?, r.number()?);
        let unit = i64::get(r)?;
        let mut last = (0i64, 0u64);
        let order = read_list(r, |r| {
            let (units, exchange) = (i64::get(r)?, i64::get(r)?);
            last = (last.0.wrapping_add(units), last.1.wrapping_add(exchange.cast_unsigned()));
            Some((last.0.wrapping_mul(unit), last.1))
        })?;
        let is_shown = bool::get(r)?;
        let (sessions_shown, begins, requests, replies) = (bool::get(r)?, bool::get(r)?, bool::get(r)?, bool::get(r)?);
        let shown = is_shown.then_some(Shown { sessions: sessions_shown, begins, requests, replies });
        let stays =
            read_list(r, |r| Some(Stays { is_outline: bool::get(r)?, record: Box::new(AccessRecord::get(r)?) }))?;
        let gone = Gone { core: None, is_any, exchanges, calls, tool_calls, unobserved, order };
        r.is_done().then_some(Folded { is_whole, stays, left: Left { sessions, gone, shown } })
    }
}

/// The coarsest unit that all times are told in, ns: logs have milliseconds, and there is one of each call.
fn unit_of(order: &[(i64, u64)]) -> i64 {
    let fits = |unit: &i64| order.iter().all(|(ns, _)| ns % unit == 0);
    [1_000_000_000, 1_000_000, 1_000].into_iter().find(fits).unwrap_or(1)
}

fn put_session(s: &SessionPast, w: &mut Writer) {
    s.calls.put(w);
    [s.started, s.ended, s.answered].iter().for_each(|t| t.put(w));
    [&s.client, &s.server, &s.revision, &s.endpoint].iter().for_each(|text| text.put(w));
    list(&s.peers, w, |ip, w| ip.put(w));
    list(&s.numbers, w, |(ns, n), w| {
        ns.put(w);
        n.put(w);
    });
}

fn session(r: &mut Reader<'_>) -> Option<SessionPast> {
    let mut s = SessionPast::default();
    s.calls = r.number()?;
    (s.started, s.ended, s.answered) = (Pack::get(r)?, Pack::get(r)?, Pack::get(r)?);
    (s.client, s.server, s.revision, s.endpoint) = (Pack::get(r)?, Pack::get(r)?, Pack::get(r)?, Pack::get(r)?);
    s.peers = read_list(r, Pack::get)?;
    s.numbers = read_list(r, |r| Some((i64::get(r)?, i64::get(r)?)))?;
    Some(s)
}

fn list<T>(all: &[T], w: &mut Writer, mut each: impl FnMut(&T, &mut Writer)) {
    w.number(all.len() as u64);
    all.iter().for_each(|x| each(x, w));
}

fn read_list<T>(r: &mut Reader<'_>, mut each: impl FnMut(&mut Reader<'_>) -> Option<T>) -> Option<Vec<T>> {
    let count = r.number()?;
    // Not made as long as it says: that may be a lie.
    (0..count).map(|_| each(r)).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::model::place::Place;
    use crate::model::time::Time;
    use crate::scan::sightings::{Payload, folded, parse};

    fn some(ns: i64) -> Folded {
        let mut session = SessionPast::default();
        session.calls = 300;
        (session.started, session.ended) = (Some(Time::from_ns(ns, 3)), Some(Time::from_ns(ns + 7, 9)));
        (session.client, session.endpoint) = (Some("a/1".into()), Some("/mcp".into()));
        session.peers = vec!["192.0.2.1".parse().unwrap(), "2001:db8::1".parse().unwrap()];
        session.numbers = vec![(ns, 4), (ns + 1, -4)];
        let sessions = vec![("one".into(), session), ("two".into(), SessionPast::default())];
        let mut left = Left { sessions, ..Left::default() };
        left.gone.order = vec![(ns, 1 << 48), (ns + 5_000_000, (1 << 48) + 9), (ns - 2_000_000, 7)];
        (left.gone.is_any, left.gone.exchanges, left.gone.calls) = (true, 9, 8);
        (left.gone.tool_calls, left.gone.unobserved) = (7, 6);
        left.shown = Some(Shown { sessions: true, replies: true, ..Shown::default() });
        let line = |number, is_outline| {
            let record = AccessRecord { place: Some(Place::line(0, number)), repeat: 1, ..AccessRecord::default() };
            Stays { record: Box::new(record), is_outline }
        };
        Folded { is_whole: true, stays: vec![line(3, true), line(90, false)], left }
    }

    #[test]
    fn what_is_left_is_read_back() {
        for all in [Folded::default(), some(1_791_158_400_000_000_000), some(1_791_158_400_000_000_001), some(-1_000)] {
            let line = folded("00000003-ab", 5, &all);
            let (key, payload) = parse(&line).unwrap();
            let back = match payload {
                Payload::Folded(5, back) => format!("{back:?}"),
                other => format!("{other:?}"),
            };
            assert_eq!((key, back), ("00000003-ab", format!("{all:?}")));
            for end in 0..line.len() {
                assert!(parse(&line[..end]).is_err(), "{end}");
            }
        }
    }
}
