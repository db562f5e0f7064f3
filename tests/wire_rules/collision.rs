//! `crossed/id-collision` and `session/id-reused-in-flight`: one id in flight twice on a session.

use crate::kit::*;

const HURT: &str = "crossed/id-collision entity_update#3 <- journal_append#3 by client+proxy+server, high";
const HUNG: &str = "orphaned/no-reply journal_append#3 by client+proxy+server, high";
const REUSED: &str = "session/id-reused-in-flight entity_update#3 <- journal_append#3 by client, low";

/// A posted first, then B with the same id; the clock stands 217 ms after A.
fn posted(t: &mut Traffic, s: &Session, a_id: &str, b_id: &str) -> (X, X) {
    let a = append(t, s, a_id, "walk-0017");
    if !t.json {
        t.wait(3).open(a);
    }
    t.wait(214);
    let b = update(t, s, b_id, "park-0042");
    (a, b)
}

/// FACTS: A's handler ends first: B gets A's payload, A hangs until its caller gives up.
pub fn first_ends_first() {
    for json in [false, true] {
        let (mut t, s) = known_in("s-1111", json);
        let (a, b) = posted(&mut t, &s, "3", "3");
        t.wait(383).reply(b, &append_reply("3", "walk-0017"));
        if !json {
            t.wait(5000).chunk(a, ": ping - 2026-11-29 20:00:15\r\n\r\n");
        }
        t.at(70_000).close(a);
        let report = finds(&t, &[HURT, HUNG]);
        let cites = |rule: &str| report.findings.iter().find(|f| f.rule == rule).unwrap().calls.clone();
        let (mut crossed, mut hung) = (cites("crossed/id-collision"), cites("orphaned/no-reply"));
        assert_eq!(crossed[0], hung[1], "each cites the other");
        crossed.sort();
        hung.sort();
        assert_eq!(crossed, hung);
        assert_eq!(outcome(&report, "entity_update#3"), "Result Foreign");
        assert_eq!(outcome(&report, "journal_append#3"), "NoReply None");
        assert_eq!(report.findings.iter().find(|f| f.rule == "crossed/id-collision").unwrap().batch, Some(2));
    }
}

/// FACTS: B's handler ends first: B gets its own reply, A hangs and its reply is dropped.
pub fn second_ends_first() {
    for json in [false, true] {
        let (mut t, s) = known_in("s-1111", json);
        let (a, b) = posted(&mut t, &s, "3", "3");
        t.wait(300).answer(b, &update_result("park-0042"));
        t.at(70_000).close(a);
        let report = analyze(&t.packets());
        let mut got = lines(&report);
        got.retain(|l| l != REUSED);
        assert_eq!(got, [HUNG]);
        assert_eq!(outcome(&report, "entity_update#3"), "Result Own");
    }
}

/// FACTS: A's caller disconnects after B was posted: B's stream ends clean and empty (Python).
pub fn caller_disconnects_after() {
    let (mut t, s) = known("s-1111");
    let (a, b) = posted(&mut t, &s, "3", "3");
    t.wait(100).close(a);
    t.wait(300).open(b);
    t.wait(5).end(b);
    t.until(20_000);
    let report = analyze(&t.packets());
    let got = lines(&report);
    assert!(got.contains(&"orphaned/no-reply entity_update#3 by client+proxy+server, high".to_owned()), "{got:#?}");
    assert!(!got.iter().any(|l| l.starts_with("crossed/")), "{got:#?}");
}

/// The same on servers that do it right: B gets its own reply.
pub fn caller_disconnects_after_rightly() {
    let (mut t, s) = known("s-1111");
    let (a, b) = posted(&mut t, &s, "3", "3");
    t.wait(100).close(a);
    t.wait(300).answer(b, &update_result("park-0042"));
    t.until(20_000);
    let got = lines(&analyze(&t.packets()));
    assert!(!got.iter().any(|l| l.contains(" entity_update#3") && !l.starts_with("session/")), "{got:#?}");
    assert!(!got.iter().any(|l| l.starts_with("crossed/")), "{got:#?}");
}

/// FACTS: A's caller disconnects first, then the id is reused: no overlap on the wire.
pub fn no_overlap_on_the_wire() {
    for json in [false, true] {
        let (mut t, s) = known_in("s-1111", json);
        let a = append(&mut t, &s, 3, "walk-0017");
        if !json {
            t.wait(3).open(a);
        }
        t.wait(200).close(a);
        t.wait(100);
        let b = update(&mut t, &s, 3, "park-0042");
        t.wait(300).reply(b, &append_reply("3", "walk-0017"));
        t.until(20_000);
        let report = analyze(&t.packets());
        let got = lines(&report);
        assert!(got.contains(&HURT.to_owned()), "{got:#?}");
        assert_eq!(got.iter().filter(|l| l.starts_with("orphaned/") && l.contains(" journal_append#3 ")).count(), 1);
        assert_eq!(got.len(), 2, "{got:#?}");
    }
}

/// Servers that key by `str(id)` take `7` and `"7"` for one.
pub fn number_and_string() {
    for (a_id, b_id) in [("7", "\"7\""), ("\"7\"", "7")] {
        let (mut t, s) = known("s-1111");
        let (a, b) = posted(&mut t, &s, a_id, b_id);
        // The reply carries A's id, in A's type.
        t.wait(383).reply(b, &append_reply(a_id, "walk-0017"));
        t.at(70_000).close(a);
        finds(
            &t,
            &[
                &format!(
                    "crossed/id-collision entity_update#{b_id} <- journal_append#{a_id} by client+proxy+server, high"
                ),
                &format!("orphaned/no-reply journal_append#{a_id} by client+proxy+server, high"),
            ],
        );
    }
}

/// Three in flight with one id: the last takes over, the others hang.
pub fn three_at_once() {
    let (mut t, s) = known("s-1111");
    let (a, b) = posted(&mut t, &s, "3", "3");
    let c = t.wait(50).tool(&s, 3, "weather", r#"{"place":"hut"}"#);
    t.wait(100).reply(c, &append_reply("3", "walk-0017"));
    t.at(70_000).close(a);
    t.close(b);
    let got = lines(&analyze(&t.packets()));
    assert!(
        got.contains(&"crossed/id-collision weather#3 <- journal_append#3 by client+proxy+server, high".to_owned()),
        "{got:#?}"
    );
    for hung in ["journal_append#3", "entity_update#3"] {
        assert_eq!(
            got.iter().filter(|l| l.starts_with("orphaned/") && l.contains(&format!(" {hung} "))).count(),
            1,
            "{got:#?}"
        );
    }
}

/// One tool that echoes nothing: which payload it was cannot be told, only that the id was reused.
pub fn same_tool_without_echo() {
    let (mut t, s) = known("s-1111");
    let a = t.tool(&s, 3, "weather", r#"{"place":"hut"}"#);
    t.wait(3).open(a);
    let b = t.wait(200).tool(&s, 3, "weather", r#"{"place":"lake"}"#);
    t.wait(100).reply(b, &result_of("3", &document(r#"{"celsius":3.5,"sky":"fog"}"#)));
    t.at(70_000).close(a);
    let got = lines(&analyze(&t.packets()));
    assert!(!got.iter().any(|l| l.starts_with("crossed/")), "{got:#?}");
    assert!(got.iter().any(|l| l.starts_with("orphaned/no-reply weather#3")), "{got:#?}");
}

/// Servers that bind replies to their transport answer both (Java, C#).
pub fn both_answered() {
    let (mut t, s) = known("s-1111");
    let (a, b) = posted(&mut t, &s, "3", "3");
    t.wait(100).answer(b, &update_result("park-0042"));
    t.wait(300).reply(a, &append_reply("3", "walk-0017"));
    finds(&t, &[REUSED]);
}

/// Go refuses the second.
pub fn second_refused() {
    let (mut t, s) = known("s-1111");
    let (a, b) = posted(&mut t, &s, "3", "3");
    t.wait(5).status(b, 400, &error_of("3", -32600, "duplicate in-flight request ID 3"));
    t.wait(300).reply(a, &append_reply("3", "walk-0017"));
    let got = lines(&analyze(&t.packets()));
    assert!(got.is_empty() || got == [REUSED], "{got:#?}");
}

/// Reuse after completion is normal: the hosted connector that sends id 1 for every request.
pub fn constant_id_in_sequence() {
    let mut t = Traffic::new();
    let s = t.session("s-1111");
    for n in 0..30 {
        let entry = format!("walk-{n:04}");
        let x = append(&mut t, &s, 1, &entry);
        t.wait(40).answer(x, &append_result(&entry));
        t.wait(10);
    }
    silent(&t);
}

/// Without sessions equal ids in flight are normal, from one address and agent too.
pub fn stateless() {
    for json in [false, true] {
        let mut t = Traffic::new();
        t.json = json;
        let s = client("2025-06-18");
        for round in 0..5 {
            let (entry, entity) = (format!("walk-{round:04}"), format!("park-{round:04}"));
            let a = append(&mut t, &s, 1, &entry);
            let b = update(&mut t, &s, 1, &entity);
            t.wait(30).answer(b, &update_result(&entity));
            t.wait(30).answer(a, &append_result(&entry));
        }
        silent(&t);
    }
}

/// The same message sent again (a retry after the connection broke) is no reuse.
pub fn same_message_again() {
    let (mut t, s) = known("s-1111");
    let a = append(&mut t, &s, 3, "walk-0017");
    t.wait(5).reset(a, End::Server);
    let b = append(t.wait(5), &s, 3, "walk-0017");
    t.wait(30).answer(b, &append_result("walk-0017"));
    let got = lines(&analyze(&t.packets()));
    assert!(got.iter().all(|l| l.starts_with("orphaned/cut-off journal_append#3 ")), "{got:#?}");
}

crate::table::tests!(
    first_ends_first,
    second_ends_first,
    caller_disconnects_after,
    caller_disconnects_after_rightly,
    no_overlap_on_the_wire,
    number_and_string,
    three_at_once,
    same_tool_without_echo,
    both_answered,
    second_refused,
    constant_id_in_sequence,
    stateless,
    same_message_again,
);
