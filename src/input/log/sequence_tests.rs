//! Sequences as people write them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::Grade;
use super::sequence::FORMAT;
use super::testing::{Collected, read};
use crate::model::options::ReadOptions;
use crate::model::place::Vantage;
use crate::model::problem::ProblemKind;

fn run(text: &str) -> Collected {
    read(&FORMAT, text.as_bytes(), &ReadOptions::default())
}

/// Time of day, method, status, repetition and comment of each request.
fn told(text: &str) -> Vec<String> {
    let out = run(text);
    out.accesses()
        .iter()
        .filter(|r| r.vantage == Some(Vantage::Proxy))
        .map(|r| {
            let time = r.start.map_or("-".into(), |w| w.at.clock());
            let status = r.status.map_or("-".into(), |s| s.to_string());
            format!(
                "{time} {} {} {status} x{} {}",
                r.method.as_deref().unwrap_or("-"),
                r.target.as_deref().unwrap_or("-"),
                r.repeat,
                r.comment.as_deref().unwrap_or("")
            )
            .trim_end()
            .to_owned()
        })
        .collect()
}

#[test]
fn the_usual_ways_to_write_a_request() {
    for (line, expected) in [
        ("17:19:52  POST /mcp -> 404   stale session id", "17:19:52 POST /mcp 404 x1 stale session id"),
        ("17:19:52  POST /mcp → 404  x3", "17:19:52 POST /mcp 404 x3"),
        ("17:19:52 POST /mcp => 404 (x12)", "17:19:52 POST /mcp 404 x12"),
        ("17:19:52 3x POST /mcp -> 404", "17:19:52 POST /mcp 404 x3"),
        ("17:19:52.123  GET /mcp 409", "17:19:52 GET /mcp 409 x1"),
        ("[17:19:52] POST /mcp -> 404 # old id", "17:19:52 POST /mcp 404 x1 old id"),
        ("- 17:19:52 `POST /mcp` → `404` — stale", "17:19:52 POST /mcp 404 x1 stale"),
        ("> 1. 17:19:52 UTC: POST /mcp -> 404", "17:19:52 POST /mcp 404 x1"),
        ("| 17:19:52 | `POST /mcp` | 404 | stale |", "17:19:52 POST /mcp 404 x1 stale"),
        ("2026-07-19 17:19:52Z POST /mcp -> 202", "17:19:52 POST /mcp 202 x1"),
        ("2026-07-19T12:19:52-05:00 POST /mcp -> 202", "17:19:52 POST /mcp 202 x1"),
        ("17:19:52–17:20:01 POST /mcp -> 404 x3", "17:19:52 POST /mcp 404 x3"),
        ("17:19:52 POST /mcp HTTP/1.1 -> 404 Not Found", "17:19:52 POST /mcp 404 x1 Not Found"),
        ("17:19:52 192.0.2.7 POST /mcp -> 404", "17:19:52 POST /mcp 404 x1"),
        ("17:19:52 POST /mcp (tools/call) -> 200", "17:19:52 POST /mcp 200 x1"),
        ("17:19:52 POST /mcp -> (no reply)", "17:19:52 POST /mcp - x1 no reply"),
        ("17:19:52 DELETE https://mcp.example/mcp -> 200", "17:19:52 DELETE /mcp 200 x1"),
        ("17:19:52 initialize -> 200", "17:19:52 POST - 200 x1"),
        ("POST /mcp -> 404", "- POST /mcp 404 x1"),
        ("17:19:52 \"POST /mcp HTTP/1.1\" 404 stale", "17:19:52 POST /mcp 404 x1 stale"),
        ("17:19:52 POST /mcp->404 stale", "17:19:52 POST /mcp 404 x1 stale"),
        ("17:19:52 POST /mcp ->404", "17:19:52 POST /mcp 404 x1"),
        ("17:19:52 post /mcp -> 404", "17:19:52 POST /mcp 404 x1"),
        ("17:19:52 POST /mcp ........ 404 stale", "17:19:52 POST /mcp 404 x1 stale"),
        ("19/Jul/2026:17:19:52 +0000 POST /mcp -> 404", "17:19:52 POST /mcp 404 x1"),
        ("[19/Jul/2026:12:19:52 -0500] POST /mcp -> 404", "17:19:52 POST /mcp 404 x1"),
        ("Jul 19 17:19:52 POST /mcp -> 404", "17:19:52 POST /mcp 404 x1"),
        (
            "17:19:52 POST /mcp -&gt; 404 &quot;old&quot; id &amp; none new",
            "17:19:52 POST /mcp 404 x1 \"old\" id & none new",
        ),
        ("&gt; 17:19:52&nbsp;POST /mcp &rarr; 404 &times;3", "17:19:52 POST /mcp 404 x3"),
        ("17:19:52 POST /mcp -\\> 404", "17:19:52 POST /mcp 404 x1"),
    ] {
        assert_eq!(told(line), [expected], "{line}");
    }
}

#[test]
fn what_is_no_request_is_none() {
    for line in [
        "Then we POST /mcp and get 404 again.",
        "POST /mcp returns 404 after a restart -> clients must initialize",
        "2026-11-29 19:43:52,451 httpx INFO HTTP Request: POST http://127.0.0.1/mcp \"HTTP/1.1 200 OK\"",
        "INFO:     127.0.0.1:57788 - \"POST /mcp HTTP/1.1\" 200 OK",
        "POST /mcp 200 5.123 ms - 120",
        "17:19:52 the server was restarted",
        "17:19:52 INFO Then get /mcp and 404 again",
        "Jul 19 17:19:52 host python[7]: INFO:     10.0.0.21:0 - \"POST /mcp HTTP/1.1\" 200 OK",
        "2026-11-29 19:42:08,100 INFO 127.0.0.1:57788 - \"POST /mcp HTTP/1.1\" 404",
        "## 404 -> 200",
    ] {
        assert!(told(line).is_empty(), "{line}");
        assert_ne!((FORMAT.grade)(line.as_bytes()), Grade::Likely, "{line}");
    }
}

#[test]
fn an_issue_text_gives_its_sequence_and_counts_what_it_cannot_read() {
    let text = "## Stale session after a restart (2026-07-19)\r\n\r\nmcp 1.26.0, protocol 2025-06-18.\r\n\r\n```\r\n\
        23:59:58  POST /mcp -> 404   stale session id\r\n\
        00:00:11  POST /mcp -> 200   initialize (new session 28731ae8108048b2b7529375ef255631)\r\n\
        00:00:11  POST /mcp -> 202   initialized\r\n\
        00:00:25  POST /mcp -> 200   tools/call memory_read, 13.5 s later\r\n\
        00:01:00  nobody knows\r\n\
        INFO:     127.0.0.1:57788 - \"POST /mcp HTTP/1.1\" 404 Not Found\r\n\
        127.0.0.1 - - [20/Jul/2026:00:02:00 +0000] \"POST /mcp HTTP/1.1\" 200 362 \"-\" \"-\"\r\n```\r\n\r\nThat is all.\r\n";
    assert_eq!((FORMAT.grade)(text.as_bytes()), Grade::Likely);
    let out = run(text);
    let of_server: Vec<_> = out.accesses().into_iter().filter(|r| r.vantage == Some(Vantage::Server)).collect();
    assert_eq!((of_server.len(), of_server[0].status), (1, Some(404)));
    let records: Vec<_> = out.accesses().into_iter().filter(|r| r.vantage == Some(Vantage::Proxy)).collect();
    let starts: Vec<_> = records.iter().filter_map(|r| r.start.or(r.end)).map(|w| w.at.to_string()).collect();
    assert_eq!(
        starts,
        [
            "2026-07-19T23:59:58Z",
            "2026-07-20T00:00:11Z",
            "2026-07-20T00:00:11Z",
            "2026-07-20T00:00:25Z",
            "2026-07-20T00:02:00Z"
        ]
    );
    let methods: Vec<_> = records.iter().map(|r| r.rpc_method.as_deref()).collect();
    assert_eq!(methods, [None, Some("initialize"), Some("notifications/initialized"), Some("tools/call"), None]);
    assert_eq!(records[1].session_given.as_deref(), Some("28731ae8108048b2b7529375ef255631"));
    assert!(records[3].duration_ns.is_none());
    assert_eq!(out.entries.len(), 7);
    let faults: Vec<_> = out.faults().iter().map(|f| (f.0, f.1)).collect();
    assert_eq!(faults, [(ProblemKind::UnknownLine, 10)]);
    assert!(out.problems.iter().any(|(kind, ..)| *kind == ProblemKind::InferredTime));
}

#[test]
fn measures_and_tools_are_read_where_they_belong_to_the_request() {
    let out = run("17:19:52 POST /mcp -> 200 (60.0s) 0 bytes hung\n17:21:00 POST /mcp tools/call memory_read -> 404\n");
    let r = out.accesses()[0];
    assert_eq!((r.duration_ns, r.bytes), (Some(60_000_000_000), Some(0)));
    assert_eq!(r.end.unwrap().at.clock(), "17:20:52");
    assert_eq!(
        (out.accesses()[1].rpc_method.as_deref(), out.accesses()[1].rpc_tool.as_deref()),
        (Some("tools/call"), Some("memory_read"))
    );
}

#[test]
fn a_time_of_day_after_one_in_full_goes_on_over_midnight() {
    let days = |text: &str| -> Vec<String> {
        run(text).accesses().iter().map(|r| r.start.unwrap().at.to_string()[..10].to_owned()).collect()
    };
    let dated = "2026-07-19 23:59:58  POST /mcp => 200\n2026-07-19 23:59:59  POST /mcp => 404\n";
    let after = "00:00:01  POST /mcp => 200 (initialize)\n00:00:01  POST /mcp => 202\n00:00:02  POST /mcp => 200\n";
    let wanted = ["2026-07-19", "2026-07-19", "2026-07-20", "2026-07-20", "2026-07-20"];
    assert_eq!(days(&format!("{dated}{after}")), wanted);
    // The same day, and a date that is written again.
    assert_eq!(days("2026-07-19 11:59:59 POST /mcp -> 404\n12:00:01 POST /mcp -> 200\n"), ["2026-07-19", "2026-07-19"]);
    let again = format!("{dated}{after}2026-07-19 23:59:59 POST /mcp -> 404\n");
    assert_eq!(days(&again).last().unwrap(), "2026-07-19");
}

#[test]
fn what_is_not_written_of_times_is_said() {
    let said = |text: &str| -> Vec<(ProblemKind, String)> {
        run(text).problems.iter().map(|(kind, _, text)| (*kind, text.clone())).collect()
    };
    let untimed = said("POST /mcp -> 200\nPOST /mcp -> 404\nPOST /mcp -> 200 initialize\n");
    assert!(untimed.len() == 3 && untimed.iter().all(|(kind, _)| *kind == ProblemKind::NoTime), "{untimed:?}");
    let dateless = said("17:19:52 POST /mcp -> 404\n17:19:53 POST /mcp -> 200\n");
    assert!(dateless.iter().all(|(_, text)| text.contains("without a date") && text.contains("UTC")), "{dateless:?}");
    assert_eq!(said("2026-07-19T17:19:52Z POST /mcp -> 404\n2026-07-19T17:19:53Z POST /mcp -> 200\n"), []);
}
