//! `crosswire serve` to a client of a few lines.

use crate::kit::{analyze, crosswire, interrupt, start};
use crate::raw::{Answer, Client, address};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

const COLLISION: &str = "fixtures/02-crossed-id-collision/backend.pcap";

fn serve(args: &[&str]) -> (Child, String) {
    let all: Vec<&str> = ["serve", "--listen", "127.0.0.1:0", "--format", "json"].iter().chain(args).copied().collect();
    let mut child = start(&all);
    let (address, _) = address(&mut child);
    (child, address)
}

fn report(child: Child) -> Value {
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A server of two tools, each saying its own name.
fn script(dir: &Path, faults: Value) -> String {
    let reply = |tool: &str| {
        let message = json!({"jsonrpc": "2.0", "id": 0, "result": {"content": [{"type": "text", "text": tool}]}});
        json!({"method": "tools/call", "tool": tool, "arguments": {}, "stream": tool == "a", "messages": [{"after_ms": 5, "message": message}], "end_ms": 6})
    };
    let script = json!({"schema": "crosswire.script/1", "replies": [reply("a"), reply("b")], "faults": faults});
    let path = dir.join("script.json");
    std::fs::write(&path, script.to_string()).unwrap();
    path.to_str().unwrap().to_owned()
}

fn said(answer: &Answer) -> &str {
    answer.replies[0]["result"]["content"][0]["text"].as_str().unwrap()
}

#[test]
fn a_recorded_collision_is_played_again() {
    let dir = tempfile::tempdir().unwrap();
    let recording = dir.path().join("client.pcapng");
    let (child, address) = serve(&[COLLISION, "-w", recording.to_str().unwrap(), "--speed", "4"]);
    let client = Client { timeout: Duration::from_millis(1200), ..Client::open(&address) };
    let tools = client.ask(1.into(), "tools/list", json!({})).unwrap();
    assert!(tools.replies[0]["result"]["tools"].as_array().unwrap().len() > 3);
    std::thread::scope(|scope| {
        let hanging = scope.spawn(|| client.call(7, "journal_append", json!({"note": "x"})));
        let crossed = client.call(8, "entity_update", json!({"entity": "y"})).unwrap();
        assert_eq!(crossed.replies[0]["id"], 8);
        assert!(crossed.replies[0].to_string().contains("Crossed the ford"), "{crossed:?}");
        assert!(hanging.join().unwrap().is_none());
    });
    let report = report(child);
    let hung = report["requests"].as_array().unwrap().iter().find(|r| r["tool"] == "journal_append").unwrap().clone();
    assert!(hung["answered_ms"].is_null() && hung["left_ms"].as_f64().unwrap() > 1000.0, "{hung}");
    assert_eq!((&report["lost"], &report["initialized"]), (&1.into(), &1.into()));
    analyze(&recording);
}

#[test]
fn a_finding_becomes_a_script_that_shows_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("repro.json");
    let made = crosswire(&["serve", COLLISION, "--write-script", path.to_str().unwrap()]);
    assert_eq!(made.status.code(), Some(0));
    let script: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    assert!(script["about"].as_str().unwrap().starts_with("crossed/id-collision: "));
    let tools: Vec<&str> = script["replies"].as_array().unwrap().iter().filter_map(|r| r["tool"].as_str()).collect();
    assert_eq!(tools, ["journal_append", "entity_update"]);
    let (child, address) = serve(&[path.to_str().unwrap()]);
    let client = Client::open(&address);
    let crossed = client.call(1, "entity_update", json!({})).unwrap();
    assert!(crossed.replies[0].to_string().contains("Crossed the ford"));
    report(child);
    let none = crosswire(&["serve", COLLISION, "--write-script", path.to_str().unwrap(), "--finding", "99"]);
    assert_eq!(none.status.code(), Some(2));
}

#[test]
fn every_fault_does_what_it_says() {
    let dir = tempfile::tempdir().unwrap();
    let faults = json!([
        {"call": 1, "do": "wrong-id"}, {"call": 2, "do": "duplicate"}, {"call": 3, "do": "drop"},
        {"call": 4, "do": "delay", "ms": 300}, {"call": 5, "do": "late", "ms": 300}, {"call": 6, "do": "hang"},
        {"call": 7, "do": "swap"}, {"call": 9, "do": "forget-session"},
    ]);
    let (child, address) = serve(&[&script(dir.path(), faults)]);
    let client = Client::open(&address);
    let call = |id| client.call(id, "a", json!({})).unwrap();
    assert_eq!(call(1).replies[0]["id"], 2);
    assert_eq!(call(2).replies.len(), 2);
    assert_eq!(call(3).replies.len(), 0);
    for id in [4, 5] {
        let before = Instant::now();
        assert_eq!(said(&call(id)), "a");
        assert!(before.elapsed() >= Duration::from_millis(300));
    }
    let impatient =
        Client { session: client.session.clone(), timeout: Duration::from_millis(200), address: address.clone() };
    assert!(impatient.call(6, "a", json!({})).is_none());
    std::thread::scope(|scope| {
        let first = scope.spawn(|| call(7));
        std::thread::sleep(Duration::from_millis(100));
        let second = client.call(8, "b", json!({})).unwrap();
        assert_eq!((said(&second), &second.replies[0]["id"]), ("a", &8.into()));
        let first = first.join().unwrap();
        assert_eq!((said(&first), &first.replies[0]["id"]), ("b", &7.into()));
    });
    assert_eq!(call(9).status, 404);
    assert_eq!(call(10).status, 404);
    let anew = Client::open(&address);
    assert_eq!(said(&anew.call(1, "a", json!({})).unwrap()), "a");
    let report = report(child);
    assert_eq!((&report["injected"], &report["initialized"]), (&9.into(), &2.into()));
    let requests = report["requests"].as_array().unwrap();
    let dropped = requests.iter().find(|r| r["fault"] == "drop").unwrap();
    assert!(dropped["retried_as"].is_u64() && dropped["answered_ms"].is_null());
}

#[test]
fn a_connection_is_reset() {
    use std::io::{Read, Write};
    let dir = tempfile::tempdir().unwrap();
    let recording = dir.path().join("reset.pcapng");
    let faults = json!([{"tool": "a", "do": "reset"}]);
    let (child, address) = serve(&[&script(dir.path(), faults), "-w", recording.to_str().unwrap()]);
    let client = Client::open(&address);
    let mut stream = std::net::TcpStream::connect(&address).unwrap();
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "a", "arguments": {}}})
        .to_string();
    let session = client.session.clone().unwrap();
    write!(stream, "POST /mcp HTTP/1.1\r\nHost: h\r\nMcp-Session-Id: {session}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}", body.len()).unwrap();
    let error = stream.read_to_end(&mut vec![]).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    let report = report(child);
    assert_eq!((&report["injected"], &report["lost"]), (&1.into(), &1.into()));
    // A recorded reset is played as one.
    let again = dir.path().join("again.json");
    let made = crosswire(&["serve", recording.to_str().unwrap(), "--write-script", again.to_str().unwrap()]);
    assert_eq!(made.status.code(), Some(0), "{made:?}");
    let script: Value = serde_json::from_slice(&std::fs::read(&again).unwrap()).unwrap();
    assert!(script["replies"].as_array().unwrap().iter().any(|r| r["end"] == "reset"), "{script}");
}

#[test]
fn a_stop_in_the_middle_of_a_call_is_nobodys_fault() {
    let dir = tempfile::tempdir().unwrap();
    let recording = dir.path().join("stopped.pcapng");
    let faults = json!([{"tool": "a", "do": "hang"}]);
    let (child, address) = serve(&[&script(dir.path(), faults), "-w", recording.to_str().unwrap()]);
    let client = Client::open(&address);
    std::thread::scope(|scope| {
        let hanging = scope.spawn(|| client.call(1, "a", json!({})));
        std::thread::sleep(Duration::from_millis(400));
        report(child);
        hanging.join().unwrap();
    });
    let report = analyze(&recording);
    assert_eq!((&report["findings"], &report["calls"][1]["outcome"]), (&json!([]), &"unobserved".into()), "{report}");
}

#[test]
fn a_reply_on_the_get_stream() {
    let dir = tempfile::tempdir().unwrap();
    let (child, address) = serve(&[&script(dir.path(), json!([{"tool": "b", "do": "on-get"}]))]);
    let client = Client::open(&address);
    let listening = Client { session: client.session.clone(), timeout: Duration::from_secs(2), address };
    std::thread::scope(|scope| {
        let stream = scope.spawn(|| listening.send("GET", ""));
        std::thread::sleep(Duration::from_millis(200));
        assert_eq!(client.call(1, "b", json!({})).unwrap().replies.len(), 0);
        std::thread::sleep(Duration::from_millis(200));
        // The stream ends when the server stops; what came on it is then whole or cut.
        report(child);
        let _ = stream.join();
    });
}

#[test]
fn the_unmatched_are_treated_as_asked() {
    let dir = tempfile::tempdir().unwrap();
    let script = script(dir.path(), json!([]));
    for (policy, expected) in [("repeat", Some("a")), ("error", None), ("refuse", None)] {
        let (child, address) = serve(&[&script, "--unmatched", policy]);
        let client = Client::open(&address);
        assert_eq!(said(&client.call(1, "a", json!({"q": 1})).unwrap()), "a");
        let again = client.call(2, "a", json!({"q": 2})).unwrap();
        assert_eq!(
            again.replies.first().and_then(|r| r["result"]["content"][0]["text"].as_str()),
            expected,
            "{policy}"
        );
        assert_eq!(again.status, if policy == "refuse" { 404 } else { 200 });
        let report = report(child);
        assert_eq!(report["unmatched"], if policy == "repeat" { 0 } else { 1 });
        assert_eq!(report["requests"][2]["matched"], "in-order");
    }
}

#[test]
fn what_cannot_be_played_is_trouble() {
    let dir = tempfile::tempdir().unwrap();
    for (name, text, expected) in [
        ("a.json", "{\"schema\": \"crosswire.script/9\"}", "crosswire.script/1"),
        ("b.json", "{\"schema\": \"crosswire.script/1\", \"faults\": [{\"do\": \"explode\"}]}", "explode"),
        ("c.log", "not a capture\n", "expected a capture"),
        ("d.json", "{\"schema\": \"crosswire.script/1\"}", "holds no replies"),
        (
            "e.json",
            "{\"about\": \"\", \"schema\": \"crosswire.script/1\", \"replies\": [{\"method\": \"x\", \"status\": 99}]}",
            "expected 200 to 599",
        ),
        (
            "f.json",
            "{\"schema\": \"crosswire.script/1\", \"replies\": [{\"method\": \"x\", \"head_ms\": -5}]}",
            "expected times",
        ),
        (
            "g.json",
            "{\"schema\": \"crosswire.script/1\", \"replies\": [{\"method\": \"x\", \"messages\": [{\"message\": 5}]}]}",
            "JSON-RPC object",
        ),
        (
            "h.json",
            "{\"schema\": \"crosswire.script/1\", \"faults\": [{\"call\": 0, \"do\": \"drop\"}]}",
            "numbered from 1",
        ),
    ] {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        let output = crosswire(&["serve", path.to_str().unwrap(), "--listen", "127.0.0.1:0"]);
        assert_eq!(output.status.code(), Some(2), "{name}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(expected), "{name}: {output:?}");
    }
}
