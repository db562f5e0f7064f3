//! Calls without a reply, and replies without a call.

use crate::kit::*;

const BOTH: &str = "by proxy+server, high";

fn one_call(t: &mut Traffic, s: &Session) -> X {
    append(t, s, 5, "walk-0017")
}

// ---- no-reply

/// Three ways to end a response without a message.
pub fn ends_without_a_message() {
    for how in 0..3 {
        let (mut t, s) = known("s-1111");
        let a = one_call(&mut t, &s);
        t.wait(20);
        match how {
            0 => {
                t.open(a);
                t.chunk(a, ": ping - 2026\r\n\r\n");
                t.end(a);
            }
            1 => t.status(a, 200, ""),
            _ => t.respond(a, 204, "", ""),
        }
        let report = finds(&t, &[&format!("orphaned/no-reply journal_append#5 {BOTH}")]);
        assert_eq!(outcome(&report, "journal_append#5"), "NoReply None");
    }
}

/// Keep-alives for longer than anyone waits.
pub fn silent_for_long() {
    let (mut t, s) = known("s-1111");
    let a = one_call(&mut t, &s);
    t.open(a);
    for n in 1..30 {
        t.at(10_000 + n * 15_000).chunk(a, ": ping - 2026\r\n\r\n");
    }
    finds(&t, &[&format!("orphaned/no-reply journal_append#5 {BOTH}")]);
}

/// The caller waited for its deadline and gave up.
pub fn caller_gives_up() {
    let (mut t, s) = known("s-1111");
    let a = one_call(&mut t, &s);
    t.open(a);
    t.wait(60_000).close(a);
    finds(&t, &[&format!("orphaned/no-reply journal_append#5 {BOTH}")]);
}

/// A call that is still open when the input ends is not known to have been lost.
pub fn input_ends_first() {
    let (mut t, s) = known("s-1111");
    let a = one_call(&mut t, &s);
    t.open(a);
    t.until(200_000);
    let report = silent(&t);
    assert_eq!(outcome(&report, "journal_append#5"), "Unobserved Unknown");
}

/// Only the client's packets were captured.
pub fn one_direction_only() {
    let (mut t, s) = known("s-1111");
    let a = one_call(&mut t, &s);
    t.answer(a, &append_result("walk-0017"));
    t.until(500_000);
    let mut packets = t.packets();
    packets.retain(|p| p.bytes[36..38] == 8000u16.to_be_bytes());
    let report = analyze(&packets);
    same(&report, &[]);
}

/// The capture begins in the middle of a call.
pub fn input_begins_later() {
    let (mut t, s) = known("s-1111");
    let a = one_call(&mut t, &s);
    let before = t.packets().len();
    t.wait(50).answer(a, &append_result("walk-0017"));
    t.until(500_000);
    let packets = t.packets().split_off(before);
    same(&analyze(&packets), &[]);
}

/// Cancelled calls: no reply, an error, a late reply, a clean end.
pub fn cancelled() {
    for how in 0..5 {
        let (mut t, s) = known("s-1111");
        let a = one_call(&mut t, &s);
        t.wait(3).open(a);
        t.wait(500).cancel(&s, 5);
        t.wait(5);
        match how {
            0 => t.close(a),
            1 => t.reply(a, &error_of("5", 0, "Request cancelled")),
            2 => {
                t.wait(3000);
                t.answer(a, &append_result("walk-0017"));
            }
            3 => t.end(a),
            _ => {
                t.close(a);
            }
        }
        t.until(500_000);
        let report = silent(&t);
        assert!(outcome(&report, "journal_append#5").starts_with("Cancelled"), "{how}");
    }
}

/// One id for all: the cancel is of the call that waits, not of one answered since.
pub fn cancelled_with_a_constant_id() {
    let (mut t, s) = known("s-1111");
    let a = append(&mut t, &s, 1, "walk-0017");
    t.wait(3).open(a);
    let b = update(t.wait(20), &s, 1, "park-0042");
    t.wait(20).answer(b, &update_result("park-0042"));
    t.wait(500).cancel(&s, 1);
    t.wait(5).close(a);
    t.until(20_000);
    let report = analyze(&t.packets());
    assert!(outcome(&report, "journal_append#1").starts_with("Cancelled"), "{:#?}", lines(&report));
    assert!(lines(&report).iter().all(|l| l.starts_with("session/")), "{:#?}", lines(&report));
}

/// DELETE while a call is in flight ends its stream: the client gave up its session and all in it.
pub fn session_deleted_meanwhile() {
    let (mut t, s) = known("s-1111");
    let a = one_call(&mut t, &s);
    t.wait(3).open(a);
    t.wait(500).delete(&s, 200);
    t.wait(2).end(a);
    t.until(20_000);
    silent(&t);
}

// ---- accepted-only

pub fn only_202() {
    let (mut t, s) = known("s-1111");
    let a = one_call(&mut t, &s);
    t.wait(2).status(a, 202, "");
    t.until(20_000);
    finds(&t, &["orphaned/accepted-only journal_append#5 by server, high"]);
}

/// Notifications, and responses to the server's requests, are answered 202.
pub fn what_202_is_for() {
    let (mut t, s) = known("s-1111");
    t.notify(&s, "notifications/roots/list_changed", "{}");
    let x = t.post(&s, &result_of("9", "{}"));
    t.wait(2).respond(x, 202, "", "");
    // TypeScript sends its 202 chunked.
    let x = t.post(&s, &result_of("10", "{}"));
    t.wait(2).open(x);
    t.end(x);
    silent(&t);
}

/// Servers take a null or fractional id in their own ways; refusals are no orphans.
pub fn odd_ids_refused() {
    for status in [400, 415] {
        let (mut t, s) = known("s-1111");
        for id in ["null", "1.5"] {
            let x = append(t.wait(10), &s, id, "walk-0017");
            t.wait(2).status(x, status, &error_of("null", -32600, "Invalid Request"));
        }
        silent(&t);
    }
}

// ---- cut-off

pub fn reset_by_the_server() {
    let (mut t, s) = known("s-1111");
    let a = one_call(&mut t, &s);
    t.wait(30).reset(a, End::Server);
    finds(&t, &["orphaned/cut-off journal_append#5 by proxy+server, medium"]);
}

pub fn closed_by_the_server() {
    let (mut t, s) = known("s-1111");
    let a = one_call(&mut t, &s);
    t.open(a);
    t.wait(30).server_close(a);
    finds(&t, &["orphaned/cut-off journal_append#5 by proxy+server, medium"]);
}

pub fn reset_by_the_caller() {
    let (mut t, s) = known("s-1111");
    let a = one_call(&mut t, &s);
    t.wait(600).reset(a, End::Client);
    finds(&t, &["orphaned/cut-off journal_append#5 by client, medium"]);
}

pub fn gateway_errors() {
    for status in [502, 503, 504, 524] {
        let (mut t, s) = known("s-1111");
        let a = one_call(&mut t, &s);
        t.wait(30).respond(a, status, "Content-Type: text/html\r\n", "<html>gateway</html>");
        finds(&t, &["orphaned/cut-off journal_append#5 by proxy+server, medium"]);
    }
}

/// A connection closed after its reply, or between calls, cut nothing.
pub fn closed_after_the_reply() {
    for by in [End::Client, End::Server] {
        let (mut t, s) = known("s-1111");
        let a = one_call(&mut t, &s);
        t.wait(30).answer(a, &append_result("walk-0017"));
        let b = update(t.on(a), &s, 6, "park-0042");
        t.wait(30).answer(b, &update_result("park-0042"));
        match by {
            End::Client => t.close(b),
            End::Server => t.server_close(b),
        }
        t.reset(b, by);
        silent(&t);
    }
}

/// The next connection comes from the same port.
pub fn port_used_again() {
    let (mut t, s) = known("s-1111");
    let a = append(t.use_port(50_000), &s, 5, "walk-0017");
    t.wait(30).answer(a, &append_result("walk-0017"));
    t.close(a);
    let b = update(t.wait(30).use_port(50_000), &s, 6, "park-0042");
    t.wait(30).answer(b, &update_result("park-0042"));
    t.reset(b, End::Client);
    let c = append(t.wait(30).use_port(50_000), &s, 7, "walk-0018");
    assert!(t.port(a) == 50_000 && t.port(b) == 50_000 && t.port(c) == 50_000);
    t.wait(30).answer(c, &append_result("walk-0018"));
    silent(&t);
}

// ---- late-reply

pub fn after_the_caller_closed() {
    let (mut t, s) = known("s-1111");
    let a = one_call(&mut t, &s);
    t.open(a);
    t.wait(60_000).half_close(a);
    t.wait(5_000).answer(a, &append_result("walk-0017"));
    let report = finds(&t, &["orphaned/late-reply journal_append#5 by nobody, low"]);
    assert_eq!(outcome(&report, "journal_append#5"), "Result Own");
}

/// A caller that says at once that it sends no more, and reads on.
pub fn half_close_right_after_the_request() {
    let (mut t, s) = known("s-1111");
    let a = one_call(&mut t, &s);
    t.half_close(a);
    t.wait(200).answer(a, &append_result("walk-0017"));
    t.server_close(a);
    silent(&t);
}

// ---- stray-reply

pub fn id_of_no_request() {
    let (mut t, s) = known("s-1111");
    let a = one_call(&mut t, &s);
    t.wait(20).open(a);
    t.event(a, &append_reply("9999", "walk-0404"));
    t.answer(a, &append_result("walk-0017"));
    finds(&t, &["orphaned/stray-reply by server, medium"]);
}

pub fn id_of_no_request_on_a_get_stream() {
    let (mut t, s) = known("s-1111");
    let get = t.get(&s, None);
    t.wait(20).event(get, &append_reply("9999", "walk-0404"));
    t.until(20_000);
    finds(&t, &["orphaned/stray-reply by server, medium"]);
}

/// The request was sent before the capture began.
pub fn asked_before_the_capture() {
    let (mut t, s) = known("s-1111");
    let get = t.get(&s, None);
    let a = one_call(&mut t, &s);
    let before = t.packets().len();
    t.wait(20).event(get, r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
    t.wait(20).answer(a, &append_result("walk-0017"));
    let b = update(t.wait(20).on(a), &s, 6, "park-0042");
    t.wait(20).answer(b, &update_result("park-0042"));
    same(&analyze(&t.packets().split_off(before)), &[]);
}

/// Errors that refuse a request as a whole carry no id of ours.
pub fn errors_with_made_up_ids() {
    let (mut t, s) = known("s-1111");
    for (status, id) in
        [(400, "\"server-error\""), (400, "null"), (406, "\"server-error\""), (415, "null"), (429, "null")]
    {
        let x = append(t.wait(20), &s, 5, "walk-0017");
        t.wait(2).status(x, status, &error_of(id, -32600, "Bad Request: not acceptable"));
    }
    silent(&t);
}

// ---- lost-at-proxy

/// The same calls in front of and behind a proxy; `lost` says what became of the last one's reply in front.
fn through_a_proxy(lost: impl Fn(&mut Traffic, X)) -> [Traffic; 2] {
    [false, true].map(|behind| {
        let mut t = Traffic::new();
        let (lag, lead) = if behind { (1, 0) } else { (0, 2) };
        t.forwarded = behind;
        if behind {
            t.server.set_port(9000);
        } else {
            t.server.set_ip([10, 0, 0, 1].into());
        }
        t.at(lag);
        let s = t.session("s-1111");
        warm(&mut t, &s);
        let a = append(t.at(10_000 + lag), &s, 5, "walk-0017");
        t.at(10_050 + lead);
        if behind {
            t.answer(a, &append_result("walk-0017"))
        } else {
            lost(&mut t, a)
        }
        let b = update(t.at(11_000 + lag), &s, 6, "park-0042");
        t.at(11_050 + lead).answer(b, &update_result("park-0042"));
        t
    })
}

pub fn reply_lost_at_the_proxy() {
    let [front, back] = through_a_proxy(|t, a| {
        t.open(a);
        t.end(a);
    });
    for order in [[&front, &back], [&back, &front]] {
        let report = analyze_all(&order.map(Traffic::packets).each_ref().map(|p| &p[..]));
        same(&report, &["orphaned/lost-at-proxy journal_append#5 by proxy, high"]);
    }
}

pub fn nothing_lost_at_the_proxy() {
    let [front, back] = through_a_proxy(|t, a| t.answer(a, &append_result("walk-0017")));
    let report = analyze_all(&[&front.packets(), &back.packets()]);
    same(&report, &[]);
    assert_eq!(report.summary.tool_calls, 18, "each call once, seen from both sides");
}

/// The proxy mixed up what the server said rightly.
pub fn crossed_at_the_proxy() {
    let [front, back] = through_a_proxy(|t, a| t.reply(a, &append_reply("999", "walk-0404")));
    let got = lines(&analyze_all(&[&front.packets(), &back.packets()]));
    assert!(got.iter().all(|l| !l.contains("server")), "the server is cleared: {got:#?}");
}

crate::table::tests!(
    ends_without_a_message,
    silent_for_long,
    caller_gives_up,
    input_ends_first,
    one_direction_only,
    input_begins_later,
    cancelled,
    cancelled_with_a_constant_id,
    session_deleted_meanwhile,
    only_202,
    what_202_is_for,
    odd_ids_refused,
    reset_by_the_server,
    closed_by_the_server,
    reset_by_the_caller,
    gateway_errors,
    closed_after_the_reply,
    port_used_again,
    after_the_caller_closed,
    half_close_right_after_the_request,
    id_of_no_request,
    id_of_no_request_on_a_get_stream,
    asked_before_the_capture,
    errors_with_made_up_ids,
    reply_lost_at_the_proxy,
    nothing_lost_at_the_proxy,
    crossed_at_the_proxy,
);
