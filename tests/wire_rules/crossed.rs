//! Crossings without an id collision: wrong ids, bodies, streams, sessions, and copies.

use crate::kit::*;

/// Two calls in flight at once, each on its own stream; the clock stands after both.
fn pair(t: &mut Traffic, s: &Session) -> (X, X) {
    let a = append(t, s, 5, "walk-0017");
    let b = update(t.wait(20), s, 6, "park-0042");
    t.wait(50);
    (a, b)
}

// ---- wrong-id

pub fn ids_exchanged() {
    for json in [false, true] {
        let (mut t, s) = known_in("s-1111", json);
        let (a, b) = pair(&mut t, &s);
        t.reply(a, &append_reply("6", "walk-0017"));
        t.wait(5).reply(b, &update_reply("5", "park-0042"));
        let report = finds(
            &t,
            &[
                "crossed/wrong-id journal_append#5 <- entity_update#6 by proxy+server, high",
                "crossed/wrong-id entity_update#6 <- journal_append#5 by proxy+server, high",
            ],
        );
        assert_eq!(outcome(&report, "journal_append#5"), "Result Foreign");
    }
}

/// A whole reply went down the other's stream, and nothing down its own.
pub fn whole_reply_on_the_other_stream() {
    let (mut t, s) = known("s-1111");
    let (a, b) = pair(&mut t, &s);
    t.reply(a, &update_reply("6", "park-0042"));
    t.wait(5).open(b);
    t.end(b);
    let got =
        lines(&finds_crossed(&t, &["crossed/wrong-id journal_append#5 <- entity_update#6 by proxy+server, high"]));
    assert!(
        got.iter().all(|l| l.starts_with("crossed/") || l.starts_with("orphaned/no-reply entity_update#6 ")),
        "{got:#?}"
    );
}

/// Behind a proxy the server alone is left.
pub fn seen_behind_the_proxy() {
    let mut t = Traffic::new();
    t.forwarded = true;
    let s = t.session("s-1111");
    let (a, b) = pair(&mut t, &s);
    t.reply(a, &append_reply("6", "walk-0017"));
    t.wait(5).reply(b, &update_reply("5", "park-0042"));
    let report = finds(
        &t,
        &[
            "crossed/wrong-id journal_append#5 <- entity_update#6 by server, high",
            "crossed/wrong-id entity_update#6 <- journal_append#5 by server, high",
        ],
    );
    assert_eq!(report.findings[0].cleared, [crosswire::model::place::Hop::Proxy]);
}

/// The server's own requests and their numbers are another direction's.
pub fn server_requests_with_the_same_numbers() {
    let (mut t, s) = known("s-1111");
    let (a, b) = pair(&mut t, &s);
    t.open(a);
    t.event(a, &request("6", "elicitation/create", r#"{"message":"Sure?"}"#));
    let answer = t.wait(10).post(&s, &result_of("6", r#"{"action":"accept"}"#));
    t.wait(2).status(answer, 202, "");
    t.event(a, &request("5", "sampling/createMessage", "{}"));
    let answer = t.wait(10).post(&s, &error_of("5", -1, "rejected"));
    t.wait(2).status(answer, 202, "");
    t.answer(a, &append_result("walk-0017"));
    t.wait(5).answer(b, &update_result("park-0042"));
    silent(&t);
}

// ---- foreign-body

pub fn bodies_swapped() {
    for json in [false, true] {
        let (mut t, s) = known_in("s-1111", json);
        let (a, b) = pair(&mut t, &s);
        t.answer(a, &update_result("park-0042"));
        t.wait(5).answer(b, &append_result("walk-0017"));
        let report = finds(
            &t,
            &[
                "crossed/foreign-body journal_append#5 <- entity_update#6 by proxy+server, high",
                "crossed/foreign-body entity_update#6 <- journal_append#5 by proxy+server, high",
            ],
        );
        let certain = crosswire::model::report::Confidence::Certain;
        assert!(report.findings.iter().all(|f| f.confidence == certain));
    }
}

/// Two calls of one tool that echoes its argument.
pub fn bodies_of_one_tool_swapped() {
    let (mut t, s) = known("s-1111");
    let a = update(&mut t, &s, 5, "park-0042");
    let b = update(&mut t, &s, 6, "lake-0099");
    t.wait(50).answer(a, &update_result("lake-0099"));
    t.wait(5).answer(b, &update_result("park-0042"));
    finds(
        &t,
        &[
            "crossed/foreign-body entity_update#5 <- entity_update#6 by proxy+server, high",
            "crossed/foreign-body entity_update#6 <- entity_update#5 by proxy+server, high",
        ],
    );
}

/// Told by shape alone: neither tool echoes anything.
pub fn bodies_told_by_shape() {
    let (mut t, s) = known("s-1111");
    let a = t.tool(&s, 5, "weather", r#"{"place":"hut"}"#);
    let b = t.tool(&s, 6, "trail_count", "{}");
    t.wait(50).answer(a, &document(r#"{"celsius":12.5,"sky":"clear"}"#));
    t.answer(b, &document(r#"{"trails":17}"#));
    for n in 0..4 {
        let x = t.wait(20).tool(&s, 10 + n, "trail_count", "{}");
        t.wait(5).answer(x, &document(r#"{"trails":17}"#));
    }
    let a = t.wait(20).tool(&s, 25, "weather", r#"{"place":"hut"}"#);
    let b = t.tool(&s, 26, "trail_count", "{}");
    t.wait(50).answer(a, &document(r#"{"trails":17}"#));
    t.answer(b, &document(r#"{"celsius":12.5,"sky":"clear"}"#));
    finds_crossed(
        &t,
        &[
            "crossed/foreign-body weather#25 <- trail_count#26 by proxy+server, high",
            "crossed/foreign-body trail_count#26 <- weather#25 by proxy+server, high",
        ],
    );
}

/// One tool, nothing echoed: cannot be told, and is not.
pub fn bodies_that_cannot_be_told() {
    let (mut t, s) = known("s-1111");
    let a = t.tool(&s, 5, "weather", r#"{"place":"hut"}"#);
    let b = t.tool(&s, 6, "weather", r#"{"place":"lake"}"#);
    t.wait(50).answer(a, &document(r#"{"celsius":3.5,"sky":"fog"}"#));
    t.answer(b, &document(r#"{"celsius":30.5,"sky":"sun"}"#));
    silent(&t);
}

/// A search that happens to name what a sibling asked about.
pub fn results_that_name_a_siblings_argument() {
    let (mut t, s) = known("s-1111");
    for n in 0..4 {
        let x = t.tool(&s, 10 + n, "search", &format!(r#"{{"query":"summit walks {n}"}}"#));
        t.wait(20).answer(x, &document(r#"{"hits":["forest-0001","forest-0002"]}"#));
    }
    let a = t.wait(20).tool(&s, 30, "search", r#"{"query":"lakes nearby"}"#);
    let b = update(&mut t, &s, 31, "lake-0099");
    t.wait(30).answer(a, &document(r#"{"hits":["lake-0099","lake-0100"]}"#));
    t.wait(5).answer(b, &update_result("lake-0099"));
    silent(&t);
}

/// A relation that holds both ways: each result names the other's argument, as it must.
pub fn neighbours_of_each_other() {
    let (mut t, s) = known("s-1111");
    let node = |t: &mut Traffic, id: i64, name: &str| t.tool(&s, id, "neighbours", &format!(r#"{{"node":"{name}"}}"#));
    for n in 0..4 {
        let x = node(&mut t, 10 + n, &format!("junction-{n}"));
        t.wait(20).answer(x, &document(r#"{"neighbours":["bridge-77"]}"#));
    }
    let a = node(t.wait(20), 30, "north-gate");
    let b = node(&mut t, 31, "south-gate");
    t.wait(30).answer(a, &document(r#"{"neighbours":["south-gate"]}"#));
    t.wait(5).answer(b, &document(r#"{"neighbours":["north-gate"]}"#));
    silent(&t);
}

/// A tool that for once says in plain words that it found nothing, beside a tool of plain text.
pub fn plain_text_for_once() {
    let (mut t, s) = known("s-1111");
    let a = t.tool(&s, 30, "weather", r#"{"place":"nowhere"}"#);
    let b = t.tool(&s, 31, "motd", "{}");
    t.wait(30).answer(a, &plain("No such place."));
    t.wait(5).answer(b, &plain("Welcome to the trail."));
    silent(&t);
}

/// The same, of a tool that usually echoes.
pub fn nothing_found_for_once() {
    let (mut t, s) = known("s-1111");
    let a = update(&mut t, &s, 30, "ghost-0001");
    let b = t.tool(&s, 31, "motd", "{}");
    let c = append(&mut t, &s, 32, "walk-0017");
    t.wait(30).answer(a, &plain("No such entity."));
    t.wait(5).answer(b, &plain("Welcome to the trail."));
    t.wait(5).answer(c, &append_result("walk-0017"));
    silent(&t);
}

/// A reply in passing names what a sibling asked about, in a shape that its tool did not have before.
pub fn siblings_named_in_passing() {
    for odd in [
        plain("No such entity; did you mean lake-0099?"),
        document(r#"{"entity":"PARK-0042","version":8,"note":"see lake-0099"}"#),
        document(r#"{"redirected":["lake-0099"],"total":7}"#),
    ] {
        let (mut t, s) = known("s-1111");
        let a = update(&mut t, &s, 30, "park-0042");
        let b = append(&mut t, &s, 31, "lake-0099");
        t.wait(30).answer(a, &odd);
        t.answer(b, &append_result("lake-0099"));
        silent(&t);
    }
}

/// An empty result has less than usual, as another tool's results always have.
pub fn empty_for_once() {
    let (mut t, s) = known("s-1111");
    for n in 0..4 {
        let x = t.tool(&s, 40 + n * 2, "find", &format!(r#"{{"query":"lake number {n}"}}"#));
        t.wait(10).answer(x, &document(&format!(r#"{{"query":"lake number {n}","hits":[{{"rank":{n}}}]}}"#)));
        let x = t.tool(&s, 41 + n * 2, "starred", "{}");
        t.wait(10).answer(x, &document(r#"{"hits":[]}"#));
    }
    let a = t.tool(&s, 60, "find", r#"{"query":"nothing like it"}"#);
    let b = t.tool(&s, 61, "starred", "{}");
    t.wait(30).answer(a, &document(r#"{"hits":[]}"#));
    t.answer(b, &document(r#"{"hits":[]}"#));
    silent(&t);
}

/// Errors of a tool, and errors of JSON-RPC, have their own shape.
pub fn errors_beside_a_sibling() {
    let (mut t, s) = known("s-1111");
    let (a, b) = pair(&mut t, &s);
    t.answer(a, r#"{"content":[{"type":"text","text":"locked by park-0042"}],"isError":true}"#);
    t.wait(5).reply(b, &error_of("6", -32603, "walk-0017 is in the way"));
    silent(&t);
}

// ---- wrong-stream

pub fn on_another_post_beside_its_own() {
    let (mut t, s) = known("s-1111");
    let (a, b) = pair(&mut t, &s);
    t.open(a);
    t.event(a, &update_reply("6", "park-0042"));
    t.wait(5).answer(a, &append_result("walk-0017"));
    t.wait(5).open(b);
    t.end(b);
    let report = finds_crossed(&t, &["crossed/wrong-stream journal_append#5 <- entity_update#6 by proxy+server, high"]);
    let lost = report.findings.iter().filter(|f| f.rule.starts_with("orphaned/")).count();
    assert_eq!(lost, 1, "the owner was left without its reply: {:?}", lines(&report));
}

pub fn on_the_get_stream() {
    let (mut t, s) = known("s-1111");
    let get = t.get(&s, None);
    let a = append(t.wait(50), &s, 5, "walk-0017");
    t.wait(3).open(a);
    t.wait(50).event(get, &append_reply("5", "walk-0017"));
    t.wait(5).end(a);
    finds_crossed(&t, &["crossed/wrong-stream journal_append#5 <- journal_append#5 by proxy+server, high"]);
}

/// What a GET stream is for.
pub fn notifications_on_the_get_stream() {
    let (mut t, s) = known("s-1111");
    let get = t.get(&s, None);
    let a = append(t.wait(50), &s, 5, "walk-0017");
    t.event(get, r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
    t.event(get, &request("5", "ping", "{}"));
    let pong = t.wait(5).post(&s, &result_of("5", "{}"));
    t.wait(2).status(pong, 202, "");
    t.chunk(get, ": keepalive\n\n");
    t.wait(20).answer(a, &append_result("walk-0017"));
    silent(&t);
}

/// Progress, logs and pings before the reply; keep-alives of every kind.
pub fn talk_before_the_reply() {
    let (mut t, s) = known("s-1111");
    let (a, b) = pair(&mut t, &s);
    t.open(a);
    t.chunk(a, "retry: 3000\nid: 0/0\ndata: \n\n");
    t.event(a, r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":6,"progress":1}}"#);
    t.event(a, r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"park-0042"}}"#);
    t.event(a, &request("0", "ping", "{}"));
    for ping in [": ping - 2026-11-29 20:00:10.1\r\n\r\n", ": keepalive\n\n", ": ping\n\n", ":\n\n"] {
        t.wait(15_000).chunk(a, ping);
    }
    t.answer(a, &append_result("walk-0017"));
    t.wait(5).answer(b, &update_result("park-0042"));
    silent(&t);
}

// ---- duplicate-reply

pub fn twice_on_its_own_stream() {
    let (mut t, s) = known("s-1111");
    let a = append(&mut t, &s, 5, "walk-0017");
    t.wait(20).open(a);
    t.event(a, &append_reply("5", "walk-0017"));
    t.wait(2).answer(a, &append_result("walk-0017"));
    finds(&t, &["crossed/duplicate-reply journal_append#5 <- journal_append#5 by proxy+server, high"]);
}

pub fn again_on_a_later_stream() {
    let (mut t, s) = known("s-1111");
    let a = append(&mut t, &s, 5, "walk-0017");
    t.wait(20).answer(a, &append_result("walk-0017"));
    let b = update(t.wait(20), &s, 6, "park-0042");
    t.wait(20).open(b);
    t.event(b, &append_reply("5", "walk-0017"));
    t.answer(b, &update_result("park-0042"));
    finds(&t, &["crossed/duplicate-reply entity_update#6 <- journal_append#5 by proxy+server, high"]);
}

pub fn again_on_a_get_stream() {
    let (mut t, s) = known("s-1111");
    let get = t.get(&s, None);
    let a = append(t.wait(20), &s, 5, "walk-0017");
    t.wait(20).answer(a, &append_result("walk-0017"));
    t.wait(5).event(get, &append_reply("5", "walk-0017"));
    finds(&t, &["crossed/duplicate-reply journal_append#5 <- journal_append#5 by proxy+server, high"]);
}

/// Equal replies to equal questions with one id for all are not copies.
pub fn equal_replies_to_equal_questions() {
    let (mut t, s) = known("s-1111");
    for _ in 0..10 {
        let x = t.ask(&s, 1, "ping", "{}");
        t.wait(10).answer(x, "{}");
    }
    silent(&t);
}

// ---- other-session

/// The reply reached a client of another session; its owner hangs.
pub fn into_another_session() {
    let (mut t, s) = known("s-1111");
    let mut who = client("2025-06-18");
    who.client = [10, 0, 0, 22].into();
    let other = t.handshake(&who, Some("s-2222"));
    let a = update(t.wait(20), &s, 7, "park-0042");
    t.wait(3).open(a);
    let b = update(t.wait(20), &other, 7, "lake-0099");
    t.wait(50).answer(b, &update_result("park-0042"));
    t.at(80_000).close(a);
    let report = finds_crossed(&t, &["crossed/other-session entity_update#7 <- entity_update#7 by proxy+server, high"]);
    let f = report.findings.iter().find(|f| f.rule == "crossed/other-session").unwrap();
    assert_eq!(f.session.as_deref(), Some("s-2222"), "the session whose caller was hurt");
}

/// Both reached the other's client.
pub fn swapped_between_sessions() {
    let (mut t, s) = known("s-1111");
    let mut who = client("2025-06-18");
    who.client = [10, 0, 0, 22].into();
    let other = t.handshake(&who, Some("s-2222"));
    warm(&mut t, &other);
    warm(&mut t, &other);
    let a = update(t.wait(20), &s, 7, "park-0042");
    let b = update(t.wait(20), &other, 7, "lake-0099");
    t.wait(50).answer(b, &update_result("park-0042"));
    t.wait(5).answer(a, &update_result("lake-0099"));
    let rule = "crossed/other-session entity_update#7 <- entity_update#7 by proxy+server, high";
    finds_crossed(&t, &[rule, rule]);
}

/// Two sessions ask for the same things with equal ids at once, and one record names the other's.
pub fn equal_ids_in_two_sessions() {
    let (mut t, s) = known("s-1111");
    let mut who = client("2025-06-18");
    who.client = [10, 0, 0, 22].into();
    let other = t.handshake(&who, Some("s-2222"));
    warm(&mut t, &other);
    t.at(20_000);
    let a = update(&mut t, &s, 7, "park-0042");
    let b = update(&mut t, &other, 7, "park-0042");
    let c = append(&mut t, &s, 8, "walk-0017");
    t.wait(50).answer(b, &update_result("park-0042"));
    t.answer(c, &document(r#"{"receipt":"r-1","entry":"walk-0017"}"#));
    t.wait(5).answer(a, &update_result("park-0042"));
    silent(&t);
}

/// The crossed findings are these; what else is found is of another family.
#[track_caller]
fn finds_crossed(t: &Traffic, want: &[&str]) -> crosswire::model::report::Report {
    let report = analyze(&t.packets());
    let mut got = lines(&report);
    got.retain(|l| l.starts_with("crossed/"));
    let mut want: Vec<String> = want.iter().map(|w| (*w).to_owned()).collect();
    want.sort();
    assert_eq!(got, want, "{:#?}", lines(&report));
    checks_of_every_report(&report);
    report
}

crate::table::tests!(
    ids_exchanged,
    whole_reply_on_the_other_stream,
    seen_behind_the_proxy,
    server_requests_with_the_same_numbers,
    bodies_swapped,
    bodies_of_one_tool_swapped,
    bodies_told_by_shape,
    bodies_that_cannot_be_told,
    results_that_name_a_siblings_argument,
    neighbours_of_each_other,
    plain_text_for_once,
    nothing_found_for_once,
    siblings_named_in_passing,
    empty_for_once,
    errors_beside_a_sibling,
    on_another_post_beside_its_own,
    on_the_get_stream,
    notifications_on_the_get_stream,
    talk_before_the_reply,
    twice_on_its_own_stream,
    again_on_a_later_stream,
    again_on_a_get_stream,
    equal_replies_to_equal_questions,
    into_another_session,
    swapped_between_sessions,
    equal_ids_in_two_sessions,
);
