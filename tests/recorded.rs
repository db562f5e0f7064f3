//! Recordings from browsers and debugging proxies go through the whole analysis as captures do.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crosswire::analyze;
use crosswire::model::options::{AnalyzeOptions, ReadOptions};
use crosswire::model::report::Report;
use serde_json::{Value, json};

/// A HAR entry of one POST to `/mcp`, from `start` for `ms` milliseconds.
fn post(start: &str, ms: u64, session: Option<&str>, sent: &Value, status: u16, got: Option<&Value>) -> Value {
    let session_header = |s: &str| json!({"name": "Mcp-Session-Id", "value": s});
    let mut headers = vec![json!({"name": "Content-Type", "value": "application/json"})];
    headers.extend(session.map(session_header));
    let mut reply_headers = vec![json!({"name": "Content-Type", "value": "application/json"})];
    if session.is_none() {
        reply_headers.push(session_header("4d1f0a7f3c0e4c3c9b7d"));
    }
    let text = got.map(ToString::to_string).unwrap_or_default();
    json!({
        "startedDateTime": format!("2026-11-29T19:00:{start}Z"), "time": ms, "serverIPAddress": "127.0.0.1",
        "request": {"method": "POST", "url": "http://127.0.0.1:9311/mcp", "headers": headers,
                    "postData": {"mimeType": "application/json", "text": sent.to_string()}},
        "response": {"status": status, "headers": reply_headers,
                     "content": {"size": text.len(), "mimeType": "application/json", "text": text}},
        "timings": {"send": 0, "wait": ms, "receive": 0}
    })
}

fn call(id: u64, tag: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "echo", "arguments": {"tag": tag}}})
}

fn reply(id: u64, tag: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": format!("echo: {tag}")}]}})
}

/// A session in which two calls overlap; `first` and `second` are what they get.
fn session(first: &Value, second: &Value) -> Report {
    let id = Some("4d1f0a7f3c0e4c3c9b7d");
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-06-18",
        "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    let welcome = json!({"jsonrpc": "2.0", "id": 0, "result": {"protocolVersion": "2025-06-18", "capabilities": {},
        "serverInfo": {"name": "s", "version": "1"}}});
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let entries = [
        post("00.000", 5, None, &hello, 200, Some(&welcome)),
        post("00.010", 1, id, &ready, 202, None),
        post("01.000", 900, id, &call(3, "alpha-481516"), 200, Some(first)),
        post("01.100", 500, id, &call(4, "bravo-234215"), 200, Some(second)),
    ];
    let har = json!({"log": {"version": "1.2", "creator": {"name": "t", "version": "1"}, "entries": entries}});
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("browser.har");
    std::fs::write(&file, har.to_string()).unwrap();
    analyze::run(&[file.display().to_string()], &ReadOptions::default(), &AnalyzeOptions::default()).unwrap()
}

#[test]
fn a_clean_recording_is_clean() {
    let report = session(&reply(3, "alpha-481516"), &reply(4, "bravo-234215"));
    assert!(report.troubles.is_empty(), "{:?}", report.troubles);
    assert_eq!(report.inputs[0].format.as_deref(), Some("har"));
    assert_eq!((report.inputs[0].records, report.summary.exchanges, report.summary.tool_calls), (4, 4, 2));
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    assert!(report.inputs[0].problems.is_empty(), "{:?}", report.inputs[0].problems);
}

#[test]
fn crossed_replies_are_found_in_a_recording() {
    let report = session(&reply(3, "bravo-234215"), &reply(4, "alpha-481516"));
    let rules: Vec<_> = report.findings.iter().map(|f| f.rule).collect();
    assert_eq!(rules, ["crossed/foreign-body"; 2]);
    let entries: Vec<_> = report.findings.iter().flat_map(|f| &f.evidence).filter_map(|e| e.line).collect();
    assert!(entries.contains(&3) && entries.contains(&4), "{entries:?}");
    assert!(report.findings.iter().flat_map(|f| &f.evidence).all(|e| e.frame.is_none()));
}
