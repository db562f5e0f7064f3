//! Windows in lines without session ids.

#![allow(clippy::unwrap_used)]

use super::patterns::{Pattern, Patterns};
use crate::mcp::Visit;
use crate::model::exchange::Mark;
use crate::model::place::{Place, Vantage};
use crate::model::record::When;
use crate::model::time::Time;
use std::net::IpAddr;

fn patterns(lines: &[(i64, u8, u16)]) -> Vec<Pattern> {
    let mut patterns = Patterns::default();
    for (n, (second, client, status)) in lines.iter().enumerate() {
        let place = Place::line(0, n as u64 + 1);
        let at = Time::from_ns(second * 1_000_000_000, 0);
        let mut v = Visit::new(n as u64, place, Vantage::Proxy, When { at, error_ns: 500_000_000 });
        v.method = Some("POST".into());
        v.target = Some("/mcp".into());
        v.peer = Some(IpAddr::from([192, 0, 2, *client]));
        v.status = Some(*status);
        v.head = Some(Mark { place, at });
        patterns.line(&v);
    }
    patterns.finish().windows
}

/// Lines `(second, client, status)` as the windows in them: refused line, line of the handshake, loose.
fn windows(lines: &[(i64, u8, u16)]) -> Vec<(u64, u64, bool)> {
    let told = |p: Pattern| (p.refused.place.number, p.initialize.place.number, p.is_loose);
    patterns(lines).into_iter().map(told).collect()
}

/// When it recovered, and how long it was silent, s.
fn then(lines: &[(i64, u8, u16)]) -> Vec<(Option<i64>, Option<i64>)> {
    let s = |ns: i64| ns / 1_000_000_000;
    patterns(lines).into_iter().map(|p| (p.recovered.map(|t| s(t.ns())), p.silence_ns.map(s))).collect()
}

#[test]
fn a_refusal_its_handshake_and_what_follows() {
    assert_eq!(windows(&[(0, 1, 200), (9, 1, 404), (10, 1, 404), (11, 1, 200), (11, 1, 202)]), [(2, 4, false)]);
    // Nothing of a handshake, or of another client long after.
    assert_eq!(windows(&[(9, 1, 404), (11, 1, 200), (12, 1, 200)]), []);
    assert_eq!(windows(&[(9, 1, 404), (111, 2, 200), (111, 2, 202)]), []);
}

#[test]
fn a_client_that_did_nothing_else_is_known_however_late_it_comes() {
    assert_eq!(windows(&[(0, 1, 404), (4000, 2, 200), (7000, 1, 200), (7100, 1, 202)]), [(1, 3, true)]);
    // It went on meanwhile: the 404 was of another session of that address, or of something else.
    assert_eq!(windows(&[(0, 1, 404), (10, 1, 200), (20, 1, 200), (7000, 1, 200), (7001, 1, 202)]), []);
    assert_eq!(windows(&[(0, 1, 404), (90_000, 1, 200), (90_001, 1, 202)]), []);
}

#[test]
fn among_refusals_and_answers_by_turns_a_window_is_not_sure() {
    let turns = [(0, 1, 200), (1, 1, 404), (2, 1, 200), (3, 1, 404), (4, 1, 200), (5, 1, 202)];
    assert_eq!(windows(&turns), [(2, 5, true)]);
    assert_eq!(windows(&turns[2..]), [(2, 3, false)]);
}

#[test]
fn another_address_counts_until_the_refused_one_comes_itself() {
    let stranger = [(0, 1, 404), (5, 2, 200), (5, 2, 202), (100, 3, 200)];
    assert_eq!(windows(&stranger), [(1, 2, true)]);
    let itself = [&stranger[..], &[(200, 1, 200), (200, 1, 202)]].concat();
    assert_eq!(windows(&itself), [(1, 5, true)]);
    // One handshake explains one refusal.
    assert_eq!(windows(&[(0, 1, 404), (1, 3, 404), (5, 2, 200), (5, 2, 202)]), [(1, 3, true)]);
}

#[test]
fn a_handshake_can_come_from_as_many_addresses_as_it_has_requests() {
    let each = [(0, 1, 200), (9, 2, 404), (10, 3, 404), (11, 4, 200), (11, 5, 202), (12, 6, 200), (31, 7, 200)];
    assert_eq!(windows(&each), [(2, 4, true)]);
    assert_eq!(then(&each), [(Some(12), Some(19))]);
    // Clients of that kind shake hands from one address each: these lines are of three of them.
    let steady = [(0, 4, 200), (1, 4, 202), (2, 7, 200), (2, 7, 202), (9, 1, 404), (11, 4, 200), (12, 8, 202)];
    assert_eq!(windows(&steady), []);
}

#[test]
fn what_another_address_did_is_told_from_its_handshake_on() {
    let lines = [(0, 1, 404), (5, 2, 200), (5, 2, 202), (6, 2, 200), (26, 2, 200), (100, 3, 200), (190, 2, 200)];
    assert_eq!((windows(&lines), then(&lines)), (vec![(1, 2, true)], vec![(Some(6), Some(20))]));
}
