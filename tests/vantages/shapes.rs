//! What an access log and the client's record say together of a call, where nothing shows bodies.

use super::{access_line, analyze};
use crosswire::model::place::Hop;
use crosswire::model::report::Confidence;

const SESSION: &str = "f4d7795fb7194aa6";
/// When the odd call begins, s.
const AT: f64 = 200.0;

/// A line of the client's record: when it called and was done, and what became of it.
fn record(id: u32, asked: f64, took: f64, outcome: &str) -> String {
    let stamp = |t: f64| {
        let t = chrono::DateTime::from_timestamp_micros(((1_795_981_200.0 + t) * 1e6) as i64).unwrap();
        t.format("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
    };
    format!(
        "{{\"at\":\"{}\",\"ended\":\"{}\",\"tool\":\"search\",\"id\":{id},\"session\":\"{SESSION}\",\"outcome\":\"{outcome}\"}}\n",
        stamp(asked),
        stamp(asked + took)
    )
}

/// Rule, confidence and fault of what is found of one odd call among twenty that are answered: its line (took,
/// status, bytes) and its record (took, outcome), and more lines of the log.
fn found(line: (f64, u16, u64), told: (f64, &str), more: &[String]) -> Vec<(&'static str, Confidence, Vec<Hop>)> {
    let post = |begin: f64, took: f64, status, bytes| {
        (begin + took, access_line(begin + took, took, "POST", status, bytes, SESSION))
    };
    let mut lines = vec![post(1.0, 0.01, 202, 0), post(AT, line.0, line.1, line.2)];
    let mut records = record(0, 0.5, 0.2, "ok");
    lines.push((0.7, access_line(0.7, 0.19, "POST", 200, 300, SESSION)));
    for n in 1..20u32 {
        let asked = f64::from(n) * 20.0 + f64::from(n * n % 7) + if n >= 10 { 90.0 } else { -15.0 };
        lines.push(post(asked + 0.002, 0.19, 200, 500));
        records += &record(n, asked, 0.2, "ok");
    }
    records += &record(77, AT - 0.002, told.0, told.1);
    lines.sort_by(|a, b| a.0.total_cmp(&b.0));
    let folder = tempfile::tempdir().unwrap();
    let (client, access) = (folder.path().join("client.jsonl"), folder.path().join("access.log"));
    std::fs::write(&client, records).unwrap();
    std::fs::write(&access, lines.into_iter().map(|l| l.1).chain(more.iter().cloned()).collect::<String>()).unwrap();
    analyze(&[client, access]).findings.into_iter().map(|f| (f.rule, f.confidence, f.fault)).collect()
}

#[test]
fn open_until_the_client_gave_up() {
    let hung = [("orphaned/no-reply", Confidence::Possible, vec![Hop::Server, Hop::Proxy])];
    let mut wanted = hung.to_vec();
    wanted[0].2.sort_unstable();
    assert_eq!(found((45.0, 200, 812), (45.001, "timeout"), &[]), wanted);
    // Cancelled, as the client may; and a call that took as long and was answered.
    let cancel = access_line(AT + 45.1, 0.01, "POST", 202, 0, SESSION);
    assert_eq!(found((45.0, 200, 812), (45.001, "timeout"), &[cancel]), []);
    assert_eq!(found((45.0, 200, 812), (45.001, "ok"), &[]), []);
}

#[test]
fn over_long_before_the_client_s_timeout() {
    let over = [("orphaned/false-timeout", Confidence::Possible, vec![])];
    assert_eq!(found((0.3, 200, 812), (45.0, "timeout"), &[]), over);
    // Who gives up at once has no timeout.
    assert_eq!(found((0.3, 200, 812), (4.0, "timeout"), &[]), []);
}

#[test]
fn a_head_without_what_should_have_followed() {
    let mut cut = [("orphaned/cut-off", Confidence::Possible, vec![Hop::Server, Hop::Proxy])];
    cut[0].2.sort_unstable();
    assert_eq!(found((1.2, 200, 0), (1.203, "error"), &[]), cut);
    assert_eq!(found((1.2, 200, 420), (1.203, "error"), &[]), []);
}

#[test]
fn a_call_answered_202() {
    let accepted = [("orphaned/accepted-only", Confidence::Possible, vec![Hop::Server])];
    assert_eq!(found((0.002, 202, 0), (0.01, "empty"), &[]), accepted);
    // Two of them: one may be a notification, and which is not told.
    let another = access_line(AT + 0.3, 0.002, "POST", 202, 0, SESSION);
    let rules: Vec<&str> = found((0.002, 202, 0), (0.01, "empty"), &[another]).iter().map(|f| f.0).collect();
    assert!(!rules.contains(&"orphaned/accepted-only"), "{rules:?}");
}
