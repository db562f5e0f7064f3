//! Replies and streams that break the protocol without a crossing.

use crate::kit::*;

const LIST: &str = r#"{"tools":[{"name":"get_park","inputSchema":{"type":"object"},"outputSchema":{"type":"object","properties":{"park":{"type":"string"},"area":{"type":"number"}},"required":["park","area"]}}]}"#;

fn listed() -> (Traffic, Session) {
    let mut t = Traffic::new();
    let s = t.session("s-1111");
    let x = t.ask(&s, 1, "tools/list", "{}");
    t.wait(5).answer(x, LIST);
    t.wait(100);
    (t, s)
}

fn get_park(t: &mut Traffic, s: &Session, id: i64, result: &str) {
    let x = t.wait(50).tool(s, id, "get_park", r#"{"park":"p9"}"#);
    t.wait(5).answer(x, result);
}

// ---- schema-mismatch

pub fn result_breaks_the_schema() {
    for bad in [r#"{"park":"p9"}"#, r#"{"park":"p9","area":"big"}"#] {
        let (mut t, s) = listed();
        get_park(&mut t, &s, 2, &document(bad));
        finds(&t, &["protocol/schema-mismatch get_park#2 by server, medium"]);
    }
}

/// Errors, requests for input, tasks, results without structured content, and conforming ones.
pub fn results_that_need_not_conform() {
    let (mut t, s) = listed();
    let all = [
        document(r#"{"park":"p9","area":4.5}"#),
        r#"{"content":[],"structuredContent":{"park":7},"isError":true}"#.to_owned(),
        plain("no structure at all"),
        r#"{"resultType":"input_required","inputRequests":{},"structuredContent":{"x":1}}"#.to_owned(),
        r#"{"task":{"taskId":"t-1","status":"working"},"structuredContent":{"x":1}}"#.to_owned(),
    ];
    for (n, result) in all.iter().enumerate() {
        get_park(&mut t, &s, 2 + n as i64, result);
    }
    silent(&t);
}

/// A sibling whose schema takes anything is no owner for it.
pub fn beside_a_sibling_of_a_lax_schema() {
    for lax in [r#"{"type":"object"}"#, r#"{"type":"object","properties":{"tags":{"type":"array"}}}"#] {
        let (mut t, s) = listed();
        let x = t.ask(&s, 2, "tools/list", "{}");
        let tags = format!(r#"{{"name":"tags","inputSchema":{{"type":"object"}},"outputSchema":{lax}}}"#);
        t.wait(5).answer(x, &LIST.replace(r#""tools":["#, &format!(r#""tools":[{tags},"#)));
        let a = t.wait(50).tool(&s, 3, "get_park", r#"{"park":"p9"}"#);
        let b = t.tool(&s, 4, "tags", "{}");
        t.wait(20).answer(a, &document(r#"{"park":"p9"}"#));
        t.answer(b, &document(r#"{"tags":["wet"]}"#));
        finds(&t, &["protocol/schema-mismatch get_park#3 by server, medium"]);
    }
}

/// The schema that counts is the one last listed.
pub fn schema_listed_anew() {
    let (mut t, s) = listed();
    get_park(&mut t, &s, 2, &document(r#"{"park":"p9","area":4.5}"#));
    let x = t.ask(&s, 3, "tools/list", "{}");
    t.wait(5).answer(x, &LIST.replace(r#""required":["park","area"]"#, r#""required":["park"]"#));
    get_park(&mut t, &s, 4, &document(r#"{"park":"p9"}"#));
    silent(&t);
}

// ---- id-retyped

pub fn id_of_another_type() {
    for (asked, answered) in [("5", "\"5\""), ("\"5\"", "5")] {
        let (mut t, s) = known("s-1111");
        let x = append(&mut t, &s, asked, "walk-0017");
        t.wait(5).reply(x, &append_reply(answered, "walk-0017"));
        finds(&t, &[&format!("protocol/id-retyped journal_append#{asked} by server, medium")]);
    }
}

/// Strings that look like numbers, and numbers written in other ways, come back as sent.
pub fn ids_of_every_type_come_back() {
    for id in ["\"5\"", "5", "\"a1b2c3d4-7\"", "9007199254740993", "\"\"", "-1", "\"mcp-remote-reinit-3\""] {
        let (mut t, s) = known("s-1111");
        let x = append(t.wait(20), &s, id, "walk-0017");
        t.wait(5).answer(x, &append_result("walk-0017"));
        silent(&t);
    }
}

// ---- get-stream

fn streams(n: i64, mut each: impl FnMut(&mut Traffic, &Session)) -> Traffic {
    let (mut t, s) = known("s-1111");
    for i in 0..n {
        each(t.at(20_000 + i * 70_000), &s);
    }
    let at = 20_000 + n * 70_000;
    let x = append(t.at(at), &s, 7, "walk-0017");
    t.wait(5).answer(x, &append_result("walk-0017"));
    t
}

pub fn dropped_again_and_again() {
    let t = streams(4, |t, s| {
        let get = t.get(s, None);
        t.wait(60_000).server_close(get);
    });
    finds(&t, &["protocol/get-stream by proxy+server, low"]);
}

pub fn refused_again_and_again() {
    for status in [409, 400] {
        let t = streams(4, |t, s| {
            let get = t.get_request(s, None);
            t.wait(2).status(
                get,
                status,
                &error_of("\"server-error\"", -32600, "Only one SSE stream is allowed per session"),
            );
        });
        finds(&t, &["protocol/get-stream by proxy+server, low"]);
    }
}

/// No such stream; streams to be polled; twice only; the session's end.
pub fn get_streams_that_end_rightly() {
    silent(&streams(6, |t, s| {
        let get = t.get_request(s, None);
        t.wait(2).status(get, 405, &error_of("null", -32000, "Method not allowed."));
    }));
    silent(&streams(6, |t, s| {
        let get = t.get(s, None);
        t.chunk(get, "id: e-1\nretry: 1000\ndata: \n\n");
        t.wait(2000).end(get);
    }));
    silent(&streams(2, |t, s| {
        let get = t.get(s, None);
        t.wait(60_000).server_close(get);
    }));
    let (mut t, s) = known("s-1111");
    let get = t.get(&s, None);
    t.wait(5000).delete(&s, 200);
    t.wait(2).end(get);
    silent(&t);
}

crate::table::tests!(
    result_breaks_the_schema,
    results_that_need_not_conform,
    beside_a_sibling_of_a_lax_schema,
    schema_listed_anew,
    id_of_another_type,
    ids_of_every_type_come_back,
    dropped_again_and_again,
    refused_again_and_again,
    get_streams_that_end_rightly,
);
