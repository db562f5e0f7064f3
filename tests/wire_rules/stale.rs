//! Session ids that the server no longer knows.

use crate::kit::*;
use crosswire::model::report::Cause;

const GONE: &str = "Session not found";
const FAST: &str = "stale/404-window by nobody, low";
const LOST: &str = "stale/404-window by client, medium";

/// A call on a session that the server has forgotten, refused.
fn refused(t: &mut Traffic, s: &Session, id: i64, status: u16, body: &str) -> X {
    let x = append(t, s, id, "walk-0017");
    t.wait(3).status(x, status, body);
    x
}

fn gone() -> String {
    error_of("\"server-error\"", -32600, GONE)
}

// ---- 404-window

pub fn call_sent_again() {
    let (mut t, s) = known("s-1111");
    refused(t.at(20_000), &s, 7, 404, &gone());
    let new = t.wait(100).handshake(&client("2025-06-18"), Some("s-2222"));
    let x = append(&mut t, &new, 7, "walk-0017");
    t.wait(20).answer(x, &append_result("walk-0017"));
    let report = finds(&t, &[FAST]);
    let w = &report.windows[0];
    assert_eq!((w.stale_session.as_deref(), w.new_session.as_deref()), (Some("s-1111"), Some("s-2222")));
    assert!(w.lost.is_empty());
    assert!(
        w.opened < w.initialize
            && w.initialize < w.recovered
            && w.recovered <= w.next_call.map(|n| n.plus_ns(50_000_000))
    );
}

/// The first calls of the new session are in flight together, so that a part can end among them.
pub fn first_calls_overlap() {
    let (mut t, s) = known("s-1111");
    refused(t.at(20_000), &s, 7, 404, &gone());
    let new = t.wait(100).handshake(&client("2025-06-18"), Some("s-2222"));
    let first = append(&mut t, &new, 7, "walk-0017");
    let slow = update(t.wait(10), &new, 8, "park-0042");
    t.wait(10).answer(first, &append_result("walk-0017"));
    for n in 9..14 {
        let x = append(t.wait(10), &new, n, &format!("walk-00{n}"));
        t.wait(5).answer(x, &append_result(&format!("walk-00{n}")));
    }
    t.wait(500).answer(slow, &update_result("park-0042"));
    for n in 14..24 {
        let x = append(t.wait(10), &new, n, &format!("walk-00{n}"));
        t.wait(5).answer(x, &append_result(&format!("walk-00{n}")));
    }
    let report = finds(&t, &[FAST]);
    assert!(report.windows[0].next_call.is_some() && report.windows[0].silence_s.is_some());
}

pub fn call_lost() {
    let (mut t, s) = known("s-1111");
    refused(t.at(20_000), &s, 7, 404, &gone());
    let new = t.wait(100).handshake(&client("2025-06-18"), Some("s-2222"));
    let x = t.ask(&new, 1, "tools/list", "{}");
    t.wait(5).answer(x, r#"{"tools":[]}"#);
    let x = update(t.wait(13_500), &new, 2, "park-0042");
    t.wait(20).answer(x, &update_result("park-0042"));
    let report = finds(&t, &[LOST]);
    let w = &report.windows[0];
    assert_eq!(w.lost.len(), 1);
    assert!((13.0..14.0).contains(&w.silence_s.unwrap()), "{:?}", w.silence_s);
}

/// Every session of the server dies at once.
pub fn all_sessions_die_at_once() {
    let mut t = Traffic::new();
    let mut all = vec![];
    for (n, id) in ["s-1111", "s-2222", "s-3333"].iter().enumerate() {
        let mut who = client("2025-06-18");
        who.client = [10, 0, 0, 30 + n as u8].into();
        all.push((who.clone(), t.wait(10).handshake(&who, Some(id))));
    }
    t.at(20_000);
    for (n, (who, old)) in all.iter().enumerate() {
        refused(&mut t, old, 7, 404, &gone());
        let new = t.wait(100).handshake(who, Some(&format!("n-{n}")));
        let x = append(&mut t, &new, 7, "walk-0017");
        t.wait(20).answer(x, &append_result("walk-0017"));
    }
    let report = finds(&t, &[FAST, FAST, FAST]);
    assert!(report.windows.iter().all(|w| w.cause == Some(Cause::Restart)), "{:?}", report.windows);
}

/// The client ended the session itself and used it again.
pub fn used_after_delete() {
    let (mut t, s) = known("s-1111");
    t.at(20_000).delete(&s, 200);
    refused(t.wait(50), &s, 7, 404, &error_of("\"server-error\"", -32600, "Not Found: Session has been terminated"));
    let new = t.wait(100).handshake(&client("2025-06-18"), Some("s-2222"));
    let x = append(&mut t, &new, 7, "walk-0017");
    t.wait(20).answer(x, &append_result("walk-0017"));
    let report = finds(&t, &[FAST]);
    assert_eq!(report.windows[0].cause, Some(Cause::Deleted));
}

/// 404s that speak of no session.
pub fn other_404s() {
    let mut t = Traffic::new();
    let who = client("");
    for path in ["/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-authorization-server", "/register"] {
        let x = t.wait(10).http(&who, "GET", path, "", "");
        t.wait(2).respond(x, 404, "Content-Type: text/plain\r\n", "Not Found");
    }
    // A wrong path, before any session.
    let x = t.http(&who, "POST", "/", "", &request("0", "initialize", "{}"));
    t.wait(2).respond(x, 404, "Content-Type: text/plain\r\n", "Not Found");
    let s = t.wait(10).session("s-1111");
    let x = t.wait(10).http(&s, "GET", "/.well-known/openid-configuration", "", "");
    t.wait(2).respond(x, 404, "Content-Type: text/plain\r\n", "Not Found");
    let x = append(&mut t, &s, 1, "walk-0017");
    t.wait(2).answer(x, &append_result("walk-0017"));
    t.delete(&s, 404);
    t.until(60_000);
    silent(&t);
}

/// An unknown method is 404 with -32601 (2026-07-28), and some older servers do the same.
pub fn unknown_method() {
    for revision in ["2025-11-25", "2026-07-28"] {
        let mut t = Traffic::new();
        let s = if revision == "2026-07-28" { client(revision) } else { t.session_of("s-1111", revision) };
        let x = t.ask(&s, 3, "resources/templates/list", "{}");
        t.wait(2).status(x, 404, &error_of("3", -32601, "Method not found"));
        t.until(60_000);
        let new = t.handshake(&client("2025-06-18"), Some("s-2222"));
        t.wait(10).delete(&new, 200);
        silent(&t);
    }
}

/// An edge's own words while the backend restarts; the session lives on.
pub fn an_edge_speaks_for_the_server() {
    for (status, text) in
        [(404, "404 page not found\n"), (503, "no available server\n"), (502, "<html>Bad Gateway</html>")]
    {
        let (mut t, s) = known("s-1111");
        let x = t.at(20_000).ask(&s, 7, "ping", "{}");
        t.wait(2).respond(x, status, "Content-Type: text/plain\r\nServer: traefik\r\n", text);
        let x = append(t.wait(5_000), &s, 8, "walk-0017");
        t.wait(20).answer(x, &append_result("walk-0017"));
        t.until(60_000);
        let got = lines(&analyze(&t.packets()));
        assert!(got.iter().all(|l| l.starts_with("orphaned/cut-off ping#7 ")), "{status}: {got:#?}");
    }
}

/// GET 405 and 409, DELETE 404 and 405, 401 before OAuth, 307 for a slash, health checks.
pub fn refusals_that_mean_nothing() {
    let mut t = Traffic::new();
    let who = client("");
    let x = t.post(&who, &request("0", "initialize", "{}"));
    t.wait(2).respond(x, 401, "WWW-Authenticate: Bearer\r\n", "");
    let x = t.wait(5).http(&who, "POST", "/mcp/", "", &request("0", "initialize", "{}"));
    t.wait(2).respond(x, 307, "Location: /mcp\r\n", "");
    let s = t.session("s-1111");
    for status in [405, 409] {
        let x = t.get_request(&s, None);
        t.wait(2).status(x, status, &error_of("null", -32000, "Method not allowed."));
    }
    let x = append(&mut t, &s, 1, "walk-0017");
    t.wait(2).answer(x, &append_result("walk-0017"));
    t.delete(&s, 405);
    t.delete(&s, 404);
    t.until(60_000);
    silent(&t);
}

// ---- stranded

pub fn never_starts_anew() {
    let (mut t, s) = known("s-1111");
    for n in 0..4 {
        refused(t.at(20_000 + n * 5_000), &s, 7 + n, 404, &gone());
    }
    t.until(120_000);
    finds(&t, &["stale/stranded by client, medium"]);
}

/// The input ends too soon to say "never".
pub fn watched_too_short() {
    let (mut t, s) = known("s-1111");
    refused(t.at(20_000), &s, 7, 404, &gone());
    t.until(21_000);
    silent(&t);
}

// ---- wrong-status

pub fn other_statuses() {
    for (status, body) in [
        (400, error_of("null", -32000, "Bad Request: No valid session ID provided")),
        (401, error_of("null", -32001, "Session not found")),
        (403, error_of("null", -32000, "Session expired")),
        (500, error_of("null", -32603, "Session not found")),
        (200, error_of("7", -32600, "Session not found")),
    ] {
        let (mut t, s) = known("s-1111");
        refused(t.at(20_000), &s, 7, status, &body);
        refused(t.wait(1000), &s, 8, status, &body.replace('7', "8"));
        t.until(60_000);
        let got = lines(&analyze(&t.packets()));
        assert_eq!(
            got.iter().filter(|l| l.starts_with("stale/wrong-status")).collect::<Vec<_>>(),
            ["stale/wrong-status by server, medium"],
            "{status}: {got:#?}"
        );
        assert!(
            !got.iter().any(|l| l.starts_with("stale/404-window") || l.starts_with("crossed/")),
            "{status}: {got:#?}"
        );
    }
}

/// 400s that do not speak of an unknown session.
pub fn other_400s() {
    let mut t = Traffic::new();
    let who = client("2025-06-18");
    // Python: a request without an id gets a fresh, useless session header.
    let x = append(&mut t, &who, 1, "walk-0017");
    t.wait(2).respond(
        x,
        400,
        "Mcp-Session-Id: useless-1\r\nContent-Type: application/json\r\n",
        &error_of("\"server-error\"", -32600, "Bad Request: Missing session ID"),
    );
    let s = t.session("s-1111");
    let x = t.ask(&s, 1, "tools/list", "{}");
    t.wait(2).status(x, 400, &error_of("\"server-error\"", -32600, "Bad Request: Unsupported protocol version: 2099"));
    let x = append(t.wait(50), &s, 2, "walk-0017");
    t.wait(2).answer(x, &append_result("walk-0017"));
    let x = append(t.wait(50), &s, 3, "walk-0018");
    t.wait(2).status(x, 401, &error_of("null", -32001, "token expired"));
    t.until(60_000);
    silent(&t);
}

// ---- reinit-storm

fn opened(n: i64, used: bool, every_ms: i64) -> Traffic {
    let mut t = Traffic::new();
    for i in 0..n {
        let who = client("2025-06-18");
        let s = t.at(i * every_ms).handshake(&who, Some(&format!("s-{i:04}")));
        if used {
            let x = append(&mut t, &s, 1, "walk-0017");
            t.wait(2).answer(x, &append_result("walk-0017"));
        }
    }
    t.until(n * every_ms + 10_000);
    t
}

pub fn session_after_session() {
    finds(&opened(12, false, 2_000), &["stale/reinit-storm by client, low"]);
}

/// Sessions that are used, and single probes that are never deleted.
pub fn sessions_that_are_used() {
    silent(&opened(12, true, 2_000));
    silent(&opened(3, false, 2_000));
    silent(&opened(8, false, 600_000));
}

crate::table::tests!(
    call_sent_again,
    first_calls_overlap,
    call_lost,
    all_sessions_die_at_once,
    used_after_delete,
    other_404s,
    unknown_method,
    an_edge_speaks_for_the_server,
    refusals_that_mean_nothing,
    never_starts_anew,
    watched_too_short,
    other_statuses,
    other_400s,
    session_after_session,
    sessions_that_are_used,
);
