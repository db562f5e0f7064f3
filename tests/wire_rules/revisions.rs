//! What each revision of the protocol allows, and what is wrong in it all the same.

use crate::kit::*;

// ---- 2024-11-05: HTTP+SSE

/// A client of the old transport: its GET stream, and the path to POST to.
struct Legacy {
    who: Session,
    get: X,
    target: String,
}

fn connect(t: &mut Traffic, who: &Session, target: &str) -> Legacy {
    let get = t.http(who, "GET", "/sse", "Accept: text/event-stream\r\n", "");
    t.wait(2).open(get);
    t.chunk(get, &format!("event: endpoint\r\ndata: {target}\r\n\r\n"));
    let legacy = Legacy { who: who.clone(), get, target: target.to_owned() };
    legacy.ask(t.wait(5), "0", "initialize", r#"{"protocolVersion":"2024-11-05","capabilities":{},"clientInfo":{}}"#);
    t.wait(5).event(get, &result_of("0", r#"{"protocolVersion":"2024-11-05","capabilities":{},"serverInfo":{}}"#));
    legacy
}

impl Legacy {
    fn ask(&self, t: &mut Traffic, id: &str, method: &str, params: &str) {
        let x = t.http(&self.who, "POST", &self.target, "", &request(id, method, params));
        t.wait(1).respond(x, 202, "", "Accepted");
    }

    fn update(&self, t: &mut Traffic, id: &str, entity: &str) {
        self.ask(t, id, "tools/call", &format!(r#"{{"name":"entity_update","arguments":{{"entity":"{entity}"}}}}"#));
    }
}

const TARGETS: [&str; 3] = ["/messages/?session_id=aaaa1111", "/message?sessionId=aaaa1111", "/messages/aaaa1111"];

fn two(target: &str) -> (Traffic, Legacy, Legacy) {
    let mut t = Traffic::new();
    let mut other = client("");
    other.client = [10, 0, 0, 22].into();
    let a = connect(&mut t, &client(""), target);
    let b = connect(&mut t, &other, &target.replace("aaaa1111", "bbbb2222"));
    for n in 1..5 {
        for c in [&a, &b] {
            let entity = format!("forest-{n:04}");
            c.update(t.wait(10), &n.to_string(), &entity);
            t.wait(20).event(c.get, &update_reply(&n.to_string(), &entity));
        }
    }
    t.at(10_000);
    (t, a, b)
}

/// Every reply comes on the GET, out of order, with equal ids in two sessions.
pub fn replies_on_the_get() {
    for target in TARGETS {
        let (mut t, a, b) = two(target);
        a.update(&mut t, "7", "park-0042");
        b.update(&mut t, "7", "lake-0099");
        a.update(&mut t, "8", "park-0043");
        t.wait(20).event(a.get, &update_reply("8", "park-0043"));
        t.event(b.get, &update_reply("7", "lake-0099"));
        t.chunk(a.get, ": ping - 2026\r\n\r\n");
        t.wait(20).event(a.get, &update_reply("7", "park-0042"));
        let report = silent(&t);
        assert!(outcome(&report, "entity_update#7").starts_with("Result Own"), "{target}");
    }
}

/// Bodies exchanged between the sessions.
pub fn crossed_on_the_gets() {
    for target in TARGETS {
        let (mut t, a, b) = two(target);
        a.update(&mut t, "7", "park-0042");
        b.update(&mut t, "7", "lake-0099");
        t.wait(20).event(b.get, &update_reply("7", "park-0042"));
        t.until(400_000);
        let got = lines(&analyze(&t.packets()));
        assert!(
            got.iter().any(|l| l.starts_with("crossed/other-session entity_update#7 <- entity_update#7 ")),
            "{target}: {got:#?}"
        );
    }
}

pub fn orphaned_on_the_get() {
    for target in TARGETS {
        let (mut t, a, _) = two(target);
        a.update(&mut t, "7", "park-0042");
        t.until(400_000);
        let got = lines(&analyze(&t.packets()));
        assert!(
            matches!(&got[..], [one] if one.starts_with("orphaned/no-reply entity_update#7 ")),
            "{target}: {got:#?}"
        );
    }
}

/// The GET stream was opened before the capture began: nothing can be said.
pub fn get_opened_before_the_capture() {
    for target in TARGETS {
        let (mut t, a, _) = two(target);
        let before = t.packets().len();
        a.update(&mut t, "7", "park-0042");
        t.wait(20).event(a.get, &update_reply("7", "park-0042"));
        t.until(400_000);
        let report = analyze(&t.packets().split_off(before));
        same(&report, &[]);
    }
}

// ---- 2025-03-26: batches

fn batch(t: &mut Traffic, s: &Session) -> X {
    let call = |id: i64, entity: &str| {
        request(
            &id.to_string(),
            "tools/call",
            &format!(r#"{{"name":"entity_update","arguments":{{"entity":"{entity}"}}}}"#),
        )
    };
    let note = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{}}"#;
    t.post(s, &format!("[{},{note},{}]", call(31, "park-0042"), call(32, "lake-0099")))
}

/// One array, or one event a reply, in any order.
pub fn batches_answered() {
    for how in 0..3 {
        let mut t = Traffic::new();
        let s = t.session_of("s-1111", "2025-03-26");
        warm(&mut t, &s);
        let x = batch(&mut t, &s);
        let (one, two) = (update_reply("31", "park-0042"), update_reply("32", "lake-0099"));
        t.wait(20);
        match how {
            0 => t.status(x, 200, &format!("[{two},{one}]")),
            1 => {
                t.open(x);
                t.event(x, &two);
                t.event(x, &one);
                t.end(x);
            }
            _ => t.reply(x, &format!("[{one},{two}]")),
        }
        silent(&t);
    }
}

/// A broken member is answered with a null id (JSON-RPC 2.0 §6).
pub fn batches_with_a_broken_member() {
    let mut t = Traffic::new();
    let s = t.session_of("s-1111", "2025-03-26");
    let call = request("31", "tools/call", r#"{"name":"entity_update","arguments":{"entity":"park-0042"}}"#);
    let other = request("32", "ping", "{}");
    let x = t.post(&s, &format!(r#"[{call},{other},{{"foo":"boo"}}]"#));
    let replies =
        [update_reply("31", "park-0042"), result_of("32", "{}"), error_of("null", -32600, "Invalid Request")].join(",");
    t.wait(5).status(x, 200, &format!("[{replies}]"));
    silent(&t);
}

pub fn batches_crossed() {
    let mut t = Traffic::new();
    let s = t.session_of("s-1111", "2025-03-26");
    warm(&mut t, &s);
    let x = batch(&mut t, &s);
    t.wait(20).status(x, 200, &format!("[{},{}]", update_reply("31", "lake-0099"), update_reply("32", "park-0042")));
    finds(
        &t,
        &[
            "crossed/foreign-body entity_update#31 <- entity_update#32 by proxy+server, high",
            "crossed/foreign-body entity_update#32 <- entity_update#31 by proxy+server, high",
        ],
    );
}

pub fn batches_answered_in_part() {
    let mut t = Traffic::new();
    let s = t.session_of("s-1111", "2025-03-26");
    warm(&mut t, &s);
    let x = batch(&mut t, &s);
    t.wait(20).reply(x, &update_reply("32", "lake-0099"));
    finds(&t, &["orphaned/no-reply entity_update#31 by proxy+server, high"]);
}

// ---- resumption (2025-03-26 to 2025-11-25)

/// A call whose stream broke after its first event; `t` stands at the break.
fn broken(how: u8) -> (Traffic, Session, X) {
    let mut t = Traffic::new();
    let s = t.session_of("s-1111", "2025-11-25");
    warm(&mut t, &s);
    t.at(10_000);
    let a = append(&mut t, &s, 5, "walk-0017");
    t.open(a);
    match how {
        0 => t.chunk(a, "id: e-1\nretry: 500\ndata: \n\n"),
        _ => t.event_with_id(a, "e-1", r#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#),
    }
    t.wait(100);
    match how {
        0 => t.end(a),
        1 => t.reset(a, End::Client),
        _ => t.server_close(a),
    }
    t.wait(500);
    (t, s, a)
}

/// The reply comes on the resumed stream, which ends or stays open.
pub fn resumed() {
    for how in 0..3 {
        for stays in [false, true] {
            let (mut t, s, _) = broken(how);
            let get = t.get(&s, Some("e-1"));
            t.event_with_id(get, "e-2", &append_reply("5", "walk-0017"));
            let again = update(t.wait(50), &s, 6, "park-0042");
            t.wait(50).answer(again, &update_result("park-0042"));
            if stays {
                t.until(60_000);
            } else {
                t.end(get);
            }
            let report = silent(&t);
            assert_eq!(outcome(&report, "journal_append#5"), "Result Own");
        }
    }
}

/// Events sent before are replayed: no copies.
pub fn replayed() {
    let mut t = Traffic::new();
    let s = t.session_of("s-1111", "2025-11-25");
    let a = append(&mut t, &s, 5, "walk-0017");
    t.open(a);
    t.event_with_id(a, "e-1", &append_reply("5", "walk-0017"));
    t.end(a);
    for _ in 0..2 {
        let get = t.wait(50).get(&s, Some("e-0"));
        t.event_with_id(get, "e-1", &append_reply("5", "walk-0017"));
        t.end(get);
    }
    silent(&t);
}

/// The server ended the primed stream to be polled, and the input ends before the client is back.
pub fn input_ends_before_the_poll() {
    let (mut t, _, _) = broken(0);
    t.until(12_000);
    let report = silent(&t);
    assert_eq!(outcome(&report, "journal_append#5"), "Unobserved Unknown");
}

/// The client never came back for it: lost.
pub fn never_resumed() {
    for how in 0..3 {
        let (mut t, s, _) = broken(how);
        let again = update(t.wait(5000), &s, 6, "park-0042");
        t.wait(50).answer(again, &update_result("park-0042"));
        t.until(500_000);
        let got = lines(&analyze(&t.packets()));
        assert!(
            matches!(&got[..], [one] if one.starts_with("orphaned/") && one.contains(" journal_append#5 ")),
            "{got:#?}"
        );
    }
}

// ---- 2025-11-25: tasks

/// The first reply is a task; what the tool returned comes by `tasks/result`.
pub fn tasks() {
    let mut t = Traffic::new();
    let s = t.session_of("s-1111", "2025-11-25");
    warm(&mut t, &s);
    let a = append(&mut t, &s, 5, "walk-0017");
    let b = update(&mut t, &s, 6, "park-0042");
    t.wait(10).answer(a, r#"{"task":{"taskId":"t-786","status":"working","ttl":60000}}"#);
    let poll = t.wait(50).ask(&s, 7, "tasks/get", r#"{"taskId":"t-786"}"#);
    t.wait(5).answer(poll, r#"{"taskId":"t-786","status":"completed"}"#);
    t.answer(b, &update_result("park-0042"));
    let result = t.wait(50).ask(&s, 8, "tasks/result", r#"{"taskId":"t-786"}"#);
    t.wait(5).answer(result, &append_result("walk-0017"));
    silent(&t);
}

// ---- 2026-07-28: no session

fn modern() -> (Traffic, Session) {
    let mut t = Traffic::new();
    let s = client("2026-07-28");
    warm(&mut t, &s);
    t.at(10_000);
    (t, s)
}

/// Closing the stream is the cancel.
pub fn closing_cancels() {
    for reply in [false, true] {
        let (mut t, s) = modern();
        let a = append(&mut t, &s, 5, "walk-0017");
        t.open(a);
        t.wait(700).half_close(a);
        if reply {
            t.wait(50).answer(a, &append_result("walk-0017"));
        }
        t.until(500_000);
        let report = silent(&t);
        assert!(outcome(&report, "journal_append#5").starts_with("Cancelled"));
    }
}

/// A request for input is a complete reply; the retry has a new id.
pub fn input_required() {
    let (mut t, s) = modern();
    let a = append(&mut t, &s, 5, "walk-0017");
    let b = update(&mut t, &s, 6, "park-0042");
    t.wait(20).answer(a, r#"{"resultType":"input_required","inputRequests":{"q":{"method":"elicitation/create"}}}"#);
    t.answer(b, &update_result("park-0042"));
    let again =
        r#"{"name":"journal_append","arguments":{"entry":"walk-0017"},"inputResponses":{"q":{"action":"accept"}}}"#;
    let c = t.wait(300).ask(&s, 7, "tools/call", again);
    t.wait(20).answer(c, &append_result("walk-0017"));
    silent(&t);
}

/// `subscriptions/listen` may never be answered, however its stream ends.
pub fn listening() {
    for how in 0..4 {
        let (mut t, s) = modern();
        let a = t.ask(&s, 5, "subscriptions/listen", r#"{"notifications":{"toolsListChanged":true}}"#);
        t.open(a);
        t.event(a, r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
        t.wait(60_000);
        match how {
            0 => t.close(a),
            1 => t.server_close(a),
            2 => t.end(a),
            _ => {}
        }
        t.until(700_000);
        silent(&t);
    }
}

/// Clients of both eras probe first.
pub fn probing() {
    let mut t = Traffic::new();
    let x = t.ask(&client("2026-07-28"), 1, "server/discover", "{}");
    t.wait(2).status(x, 400, &error_of("\"server-error\"", -32600, "Bad Request: Missing session ID"));
    let s = t.session("s-1111");
    let x = append(&mut t, &s, 3, "walk-0017");
    t.wait(20).answer(x, &append_result("walk-0017"));
    let probe = client("2025-06-18");
    t.handshake(&probe, Some("probe-1"));
    t.until(60_000);
    silent(&t);
}

/// A session header is ignored and means nothing.
pub fn session_headers_are_ignored() {
    let (mut t, s) = modern();
    let a = Session { id: Some("left-over".into()), ..s.clone() };
    let x = append(&mut t, &a, 5, "walk-0017");
    let y = update(&mut t, &a, 6, "park-0042");
    t.wait(20).answer(y, &update_result("park-0042"));
    t.answer(x, &append_result("walk-0017"));
    let x = t.ask(&a, 7, "resources/subscribe", "{}");
    t.wait(2).status(x, 404, &error_of("7", -32601, "Method not found"));
    silent(&t);
}

/// Bodies exchanged are found without sessions too.
pub fn crossed_without_sessions() {
    let (mut t, s) = modern();
    let a = append(&mut t, &s, 5, "walk-0017");
    let b = update(&mut t, &s, 6, "park-0042");
    t.wait(20).answer(a, &update_result("park-0042"));
    t.answer(b, &append_result("walk-0017"));
    finds(
        &t,
        &[
            "crossed/foreign-body journal_append#5 <- entity_update#6 by proxy+server, high",
            "crossed/foreign-body entity_update#6 <- journal_append#5 by proxy+server, high",
        ],
    );
}

crate::table::tests!(
    replies_on_the_get,
    crossed_on_the_gets,
    orphaned_on_the_get,
    get_opened_before_the_capture,
    batches_answered,
    batches_with_a_broken_member,
    batches_crossed,
    batches_answered_in_part,
    resumed,
    replayed,
    input_ends_before_the_poll,
    never_resumed,
    tasks,
    closing_cancels,
    input_required,
    listening,
    probing,
    session_headers_are_ignored,
    crossed_without_sessions,
);
