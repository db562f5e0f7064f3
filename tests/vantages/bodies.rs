//! Content rules where only logs carry bodies.

use super::{analyze, rules};

/// A record without arguments of three calls of one tool, two of them at once, and the access log of the proxy,
/// which has the request bodies; what the client took for its results is `results`.
fn three_echoes(results: [&str; 3]) -> Vec<&'static str> {
    let folder = tempfile::tempdir().unwrap();
    let (record, access) = (folder.path().join("client.jsonl"), folder.path().join("access.log"));
    let sid = "f4d7795fb7194aa6";
    let asked = [(1, 0.0, "amber-lantern-17"), (2, 2.0, "copper-anvil-29"), (3, 2.4, "violet-harbour-83")];
    let (mut calls, mut lines) = (String::new(), String::new());
    for ((id, at, tag), result) in asked.into_iter().zip(results) {
        let stamp = |s: f64| {
            let t = chrono::DateTime::from_timestamp_millis(1_795_981_361_000 + (s * 1000.0) as i64).unwrap();
            t.format("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
        };
        calls += &format!(
            "{{\"at\":\"{}\",\"ended\":\"{}\",\"tool\":\"echo\",\"id\":{id},\"session\":\"{sid}\",\"outcome\":\"ok\",\"result\":{{\"content\":[{{\"type\":\"text\",\"text\":\"you said {result}\"}}]}}}}\n",
            stamp(at),
            stamp(at + 1.0)
        );
        let body = format!(
            r#"{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{{\"name\":\"echo\",\"arguments\":{{\"tag\":\"{tag}\"}}}}}}"#
        );
        lines += &format!(
            "{{\"msec\":\"{:.3}\",\"remote_addr\":\"10.0.0.7\",\"method\":\"POST\",\"uri\":\"/mcp\",\"status\":\"200\",\"body_bytes_sent\":\"210\",\"request_time\":\"0.990\",\"mcp_session_id\":\"{sid}\",\"request_body\":\"{body}\"}}\n",
            1_795_981_361.0 + at + 0.995
        );
    }
    std::fs::write(&record, calls).unwrap();
    std::fs::write(&access, lines).unwrap();
    rules(&analyze(&[record, access]))
}

#[test]
fn request_bodies_in_an_access_log_show_whose_result_the_client_took() {
    let own = ["amber-lantern-17", "copper-anvil-29", "violet-harbour-83"];
    assert_eq!(three_echoes(own), Vec::<&str>::new());
    let crossed = three_echoes([own[0], own[2], own[1]]);
    assert!(crossed.iter().all(|r| r.starts_with("crossed/")) && !crossed.is_empty(), "{crossed:?}");
    // Results that name no call's argument are nobody else's.
    assert_eq!(three_echoes(["done", "done", "done"]), Vec::<&str>::new());
}
