//! Rules that packets alone cannot show: for each, records of a client that make it fire, and others that come near
//! and must not.

use super::{Path, PathBuf, analyze, rules};
use crosswire::model::place::Hop;
use crosswire::model::report::Report;
use serde_json::{Value, json};

/// Rule, what makes it fire, what comes near.
type Row = (&'static str, fn() -> Vec<&'static str>, fn() -> Vec<&'static str>);

const TABLE: &[Row] = &[
    ("crossed/at-client", another_s_result_recorded, results_written_anew),
    ("crossed/unplaced", crossing_without_a_capture, results_that_name_a_sibling_s_argument),
    ("orphaned/never-sent", call_that_nothing_saw, call_before_the_capture),
    ("orphaned/empty-success", empty_success_that_nothing_saw, empty_success_of_a_call_that_was_seen),
    ("orphaned/empty-success", empty_result_that_nothing_saw, full_result_that_nothing_saw),
    ("orphaned/false-timeout", timeout_after_the_reply, timeout_before_the_reply),
    ("orphaned/no-reply", hung_by_two_logs, hung_by_one_log),
    ("orphaned/cut-off", left_by_two_logs, answered_by_the_client_s_record),
    ("orphaned/late-reply", line_that_ends_after_the_timeout, timeout_as_the_line_ends),
    ("session/id-reused-in-flight", id_used_again_by_the_client_s_record, id_used_again_later),
];

#[test]
fn each_fires_where_it_must_and_not_where_it_comes_near() {
    for (rule, fires, near) in TABLE {
        let found = fires();
        assert!(found.contains(rule), "{rule} is not among {found:?}");
        let found = near();
        assert!(!found.contains(rule), "{rule} is among {found:?}");
    }
}

fn fixture(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/02-crossed-id-collision").join(file)
}

/// What is found in the client's record, changed, beside another input.
fn with(other: &str, change: impl Fn(&mut Vec<Value>)) -> Vec<&'static str> {
    rules(&report_with(other, change))
}

fn report_with(other: &str, change: impl Fn(&mut Vec<Value>)) -> Report {
    let folder = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(fixture("client.jsonl")).unwrap();
    let mut records: Vec<Value> = text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    change(&mut records);
    records.sort_by_key(|r| r["at"].as_str().unwrap().to_owned());
    let path = folder.path().join("client.jsonl");
    std::fs::write(&path, records.iter().map(|r| format!("{r}\n")).collect::<String>()).unwrap();
    analyze(&[path, fixture(other)])
}

/// The record of a call by a tag in its arguments.
fn of<'a>(records: &'a mut [Value], argument: &str) -> &'a mut Value {
    records.iter_mut().find(|r| r["arguments"].to_string().contains(argument)).unwrap()
}

fn records_result(record: &mut Value, result: Value) {
    let fields = record.as_object_mut().unwrap();
    fields.remove("result_sha256");
    fields.insert("result".into(), result);
}

fn another_s_result_recorded() -> Vec<&'static str> {
    with("front.pcap", |records| {
        let theirs = of(records, "\"A-5\"").clone();
        let mine = of(records, "\"B-5\"");
        mine["result"] = theirs["result"].clone();
        mine["result_sha256"] = theirs["result_sha256"].clone();
    })
}

/// By a client that keeps of a result its hash alone.
#[test]
fn a_hash_alone_says_whose_result_was_recorded() {
    let hashes = |swapped: bool| {
        with("front.pcap", |records| {
            records.iter_mut().for_each(|r| drop(r.as_object_mut().unwrap().remove("result")));
            let (mine, theirs) = ("\"B-5\"", "\"A-5\"");
            let hash = of(records, theirs)["result_sha256"].clone();
            assert!(hash.is_string());
            if swapped {
                of(records, mine)["result_sha256"] = hash;
            }
        })
    };
    assert!(hashes(true).contains(&"crossed/at-client"), "{:?}", hashes(true));
    assert!(!hashes(false).contains(&"crossed/at-client"), "{:?}", hashes(false));
}

/// Behind a proxy a call can be missing because the proxy lost it.
#[test]
fn what_a_capture_behind_a_proxy_lacks_may_be_the_proxy_s() {
    let faults = |other: &str| {
        let report = report_with(other, |records| records.push(unseen("19:38:47", "timeout")));
        let finding = report.findings.iter().find(|f| f.rule == "orphaned/never-sent").unwrap();
        (finding.fault.clone(), finding.cleared.clone())
    };
    assert_eq!(faults("front.pcap"), (vec![Hop::Client], vec![Hop::Proxy, Hop::Server]));
    assert_eq!(faults("backend.pcap"), (vec![Hop::Client, Hop::Proxy], vec![Hop::Server]));
}

/// By a client that parses results and keeps no hash of what it received.
fn results_written_anew() -> Vec<&'static str> {
    fn anew(value: &Value) -> Value {
        match value {
            Value::Object(o) => o.iter().rev().map(|(k, v)| (k.clone(), anew(v))).collect(),
            Value::Array(a) => a.iter().map(anew).collect(),
            other => other.clone(),
        }
    }
    with("front.pcap", |records| {
        for record in records.iter_mut().filter(|r| !r["result"].is_null()) {
            let result = anew(&record["result"]);
            records_result(record, result);
        }
    })
}

fn crossing_without_a_capture() -> Vec<&'static str> {
    with("access.json.log", |_| {})
}

fn results_that_name_a_sibling_s_argument() -> Vec<&'static str> {
    with("access.json.log", |records| {
        let text = |text: &str| json!({"content": [{"type": "text", "text": text}]});
        records_result(of(records, "trail-204"), text("trail-204 is closed"));
        records_result(of(records, "\"A-5\""), text("fast:A-5, and B-5 is next"));
    })
}

/// A record of a call that is in no other input.
fn unseen(second: &str, outcome: &str) -> Value {
    json!({"at": format!("2026-11-29T{second}.100000Z"), "ended": format!("2026-11-29T{second}.900000Z"),
        "method": "tools/call", "tool": "memory_read", "arguments": {"key": "nowhere"}, "id": 99,
        "session": "880af36cca1744e8b1b2a196bbdd815c", "outcome": outcome})
}

fn call_that_nothing_saw() -> Vec<&'static str> {
    with("front.pcap", |records| records.push(unseen("19:38:47", "timeout")))
}

fn call_before_the_capture() -> Vec<&'static str> {
    with("front.pcap", |records| records.push(unseen("19:37:47", "timeout")))
}

fn empty_success_that_nothing_saw() -> Vec<&'static str> {
    with("front.pcap", |records| records.push(unseen("19:38:47", "empty")))
}

/// The record of a success that nothing else saw, with its result.
fn unseen_result(result: &Value) -> Vec<&'static str> {
    with("front.pcap", |records| {
        let mut record = unseen("19:38:47", "ok");
        records_result(&mut record, result.clone());
        records.push(record);
    })
}

fn empty_result_that_nothing_saw() -> Vec<&'static str> {
    unseen_result(&json!({"content": [], "isError": false}))
}

fn full_result_that_nothing_saw() -> Vec<&'static str> {
    unseen_result(&json!({"content": [{"type": "text", "text": "found"}]}))
}

fn empty_success_of_a_call_that_was_seen() -> Vec<&'static str> {
    with("front.pcap", |records| {
        let record = of(records, "\"A-5\"");
        record["outcome"] = "empty".into();
        records_result(record, json!({"content": []}));
    })
}

fn times_out(record: &mut Value, at: &str) {
    record["outcome"] = "timeout".into();
    record["ended"] = at.into();
    record.as_object_mut().unwrap().retain(|name, _| !name.starts_with("result"));
}

fn timeout_after_the_reply() -> Vec<&'static str> {
    with("front.pcap", |records| times_out(of(records, "\"B-5\""), "2026-11-29T19:38:56.954421Z"))
}

fn timeout_before_the_reply() -> Vec<&'static str> {
    with("front.pcap", |records| times_out(of(records, "\"B-5\""), "2026-11-29T19:38:56.452115Z"))
}

/// The caller of `A-slow-4` gives up, and another uses its id meanwhile; the proxy's line has no byte.
fn hung_by_two_logs() -> Vec<&'static str> {
    with("access.json.log", |records| of(records, "\"A-slow-4\"")["id"] = 4.into())
}

fn hung_by_one_log() -> Vec<&'static str> {
    with("journal.json", |_| {})
}

/// As above, with ids that are no others'.
fn left_by_two_logs() -> Vec<&'static str> {
    with("access.json.log", |records| of(records, "\"A-slow-4\"")["id"] = 44.into())
}

fn answered_by_the_client_s_record() -> Vec<&'static str> {
    with("access.json.log", |records| of(records, "\"A-slow-4\"")["outcome"] = "ok".into())
}

/// The line of `entity_update` has bytes and ends at 19:38:46.842.
fn line_that_ends_after_the_timeout() -> Vec<&'static str> {
    with("access.json.log", |records| times_out(of(records, "trail-204"), "2026-11-29T19:38:46.549000Z"))
}

fn timeout_as_the_line_ends() -> Vec<&'static str> {
    with("access.json.log", |records| times_out(of(records, "trail-204"), "2026-11-29T19:38:46.842506Z"))
}

fn id_used_again_by_the_client_s_record() -> Vec<&'static str> {
    with("journal.json", |_| {})
}

/// By a caller that had given the other up.
fn id_used_again_later() -> Vec<&'static str> {
    with("journal.json", |records| {
        for record in records.iter_mut().filter(|r| r["outcome"] == "timeout") {
            let asked = record["at"].as_str().unwrap().replace(".2", ".3").replace(".4", ".45");
            record["ended"] = asked.into();
        }
    })
}
