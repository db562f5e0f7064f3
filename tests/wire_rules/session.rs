//! How session ids and JSON-RPC ids are used.

use crate::kit::*;

// ---- shared

pub fn two_numberings_side_by_side() {
    let mut t = Traffic::new();
    let s = t.session("s-1111");
    let mut other = s.clone();
    other.client = [10, 0, 0, 22].into();
    for n in 1..8 {
        let (entry, entity) = (format!("walk-{n:04}"), format!("park-{n:04}"));
        let x = append(t.wait(100), &s, n, &entry);
        t.wait(20).answer(x, &append_result(&entry));
        let x = update(t.wait(100), &other, n, &entity);
        t.wait(20).answer(x, &update_result(&entity));
    }
    finds(&t, &["session/shared by client, low"]);
}

/// One numbering whose requests arrive out of order and from ten addresses.
pub fn one_numbering_from_ten_addresses() {
    let mut t = Traffic::new();
    let s = t.session("s-1111");
    for n in [1, 3, 2, 4, 6, 5, 7, 9, 8, 10, 12, 11] {
        let mut from = s.clone();
        from.client = [10, 0, 1, n as u8].into();
        let entry = format!("walk-{n:04}");
        let x = append(t.wait(10), &from, n, &entry);
        t.wait(20).answer(x, &append_result(&entry));
    }
    silent(&t);
}

/// One conversation after the other on one session.
pub fn one_after_the_other() {
    let mut t = Traffic::new();
    let s = t.session("s-1111");
    for _ in 0..2 {
        for n in 1..8 {
            let entry = format!("walk-{n:04}");
            let x = append(t.wait(100), &s, n, &entry);
            t.wait(20).answer(x, &append_result(&entry));
        }
    }
    silent(&t);
}

// ---- replica-split

pub fn known_by_turns() {
    let (mut t, s) = known("s-1111");
    for n in 0..6 {
        let x = append(t.at(20_000 + n * 1000), &s, 7 + n, "walk-0017");
        t.wait(5);
        if n % 2 == 0 {
            t.status(x, 404, &error_of("\"server-error\"", -32600, "Session not found"));
        } else {
            t.answer(x, &append_result("walk-0017"));
        }
    }
    let got = lines(&analyze(&t.packets()));
    assert_eq!(got, ["session/replica-split by proxy, medium"]);
}

/// Refused once and for all, with an answer that was on its way.
pub fn answered_while_it_ended() {
    let (mut t, s) = known("s-1111");
    let slow = append(t.at(20_000), &s, 7, "walk-0017");
    t.open(slow);
    let x = update(t.wait(50), &s, 8, "park-0042");
    t.wait(2).status(x, 404, &error_of("\"server-error\"", -32600, "Session not found"));
    t.wait(100).answer(slow, &append_result("walk-0017"));
    let new = t.wait(10).handshake(&client("2025-06-18"), Some("s-2222"));
    let x = update(&mut t, &new, 8, "park-0042");
    t.wait(5).answer(x, &update_result("park-0042"));
    finds(&t, &["stale/404-window by nobody, low"]);
}

// ---- not-echoed

pub fn never_sent_back() {
    let mut t = Traffic::new();
    let mut s = t.session("s-1111");
    // The handshake of this client already lacked it.
    let mut t = Traffic::new();
    let who = client("2025-06-18");
    let x = t.ask(&who, 0, "initialize", r#"{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{}}"#);
    let result =
        result_of("0", r#"{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"x","version":"1"}}"#);
    t.wait(2).respond(x, 200, "Mcp-Session-Id: s-1111\r\nContent-Type: application/json\r\n", &result);
    s.id = None;
    for n in 1..4 {
        let x = append(t.wait(100), &s, n, "walk-0017");
        t.wait(2).status(x, 400, &error_of("\"server-error\"", -32600, "Bad Request: Missing session ID"));
    }
    finds(&t, &["session/not-echoed by client, medium"]);
}

/// Servers that give an id and do not ask for it, and servers that give none.
pub fn not_asked_for() {
    for given in [Some("s-1111"), None] {
        let mut t = Traffic::new();
        let mut s = t.handshake(&client("2025-06-18"), given);
        s.id = None;
        for n in 1..6 {
            let entry = format!("walk-{n:04}");
            let x = append(t.wait(100), &s, n, &entry);
            t.wait(2).answer(x, &append_result(&entry));
        }
        silent(&t);
    }
}

crate::table::tests!(
    two_numberings_side_by_side,
    one_numbering_from_ten_addresses,
    one_after_the_other,
    known_by_turns,
    answered_while_it_ended,
    never_sent_back,
    not_asked_for,
);
