//! Content rules where only logs carry bodies.

use super::{analyze, rules};

const TAGS: [&str; 7] = [
    "amber-lantern-17",
    "birch-kettle-41",
    "cobalt-ferry-52",
    "dapple-mill-63",
    "elder-quarry-74",
    "copper-anvil-29",
    "violet-harbour-83",
];

/// A client's record of results without arguments, of calls of one tool of which the last two run at once, and
/// the access log of the proxy, which has the request bodies.
fn echoes(results: [&str; 7]) -> Vec<&'static str> {
    let folder = tempfile::tempdir().unwrap();
    let (record, access) = (folder.path().join("client.jsonl"), folder.path().join("access.log"));
    let sid = "f4d7795fb7194aa6";
    let (mut calls, mut lines) = (String::new(), String::new());
    for (n, (tag, result)) in TAGS.into_iter().zip(results).enumerate() {
        let at = if n < 6 { n as f64 * 3.0 } else { 15.4 };
        let stamp = |s: f64| {
            let t = chrono::DateTime::from_timestamp_millis(1_795_981_361_000 + (s * 1000.0) as i64).unwrap();
            t.format("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
        };
        calls += &format!(
            "{{\"at\":\"{}\",\"ended\":\"{}\",\"tool\":\"echo\",\"id\":{n},\"session\":\"{sid}\",\"outcome\":\"ok\",\"result\":{{\"content\":[{{\"type\":\"text\",\"text\":\"you said {result}\"}}]}}}}\n",
            stamp(at),
            stamp(at + 1.0)
        );
        let body = format!(
            r#"{{\"jsonrpc\":\"2.0\",\"id\":{n},\"method\":\"tools/call\",\"params\":{{\"name\":\"echo\",\"arguments\":{{\"tag\":\"{tag}\"}}}}}}"#
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
    assert_eq!(echoes(TAGS), Vec::<&str>::new());
    let mut crossed = TAGS;
    crossed.swap(5, 6);
    assert_eq!(echoes(crossed), ["crossed/unplaced", "crossed/unplaced"]);
    assert_eq!(echoes(["done"; 7]), Vec::<&str>::new());
}
