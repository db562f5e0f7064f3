//! What the lines of proxies say of calls that were left hanging: by their flags, and where they name no session.

use super::{access_line, analyze};
use crosswire::model::place::Hop;
use crosswire::model::report::Confidence;

/// A line of a proxy: when it began and took, s, its status and body bytes, and who ended it.
type Writes = fn(f64, f64, &str, u16, u64, By) -> String;

#[derive(Clone, Copy, PartialEq)]
enum By {
    Nobody,
    Caller,
    Deadline,
    Server,
}

fn stamp(at: f64, format: &str) -> String {
    chrono::DateTime::from_timestamp_micros(((1_795_946_400.0 + at) * 1e6) as i64).unwrap().format(format).to_string()
}

fn envoy(at: f64, took: f64, method: &str, status: u16, bytes: u64, by: By) -> String {
    let flag = match by {
        By::Nobody => "-",
        By::Caller => "DC",
        By::Deadline => "SI",
        By::Server => "UC",
    };
    format!(
        "[{}] \"{method} /mcp HTTP/1.1\" {status} {flag} 158 {bytes} {:.0} 12 \"10.0.0.5\" \"cli/1.0\" \"{:08x}-9e75-4f87-8605-00a226bf4900\" \"mcp.example\" \"10.1.0.1:8000\"\n",
        stamp(at, "%Y-%m-%dT%H:%M:%S%.3fZ"),
        took * 1000.0,
        (at * 1000.0) as u64
    )
}

fn haproxy(at: f64, took: f64, method: &str, status: u16, bytes: u64, by: By) -> String {
    let flags = match (by, status) {
        (By::Nobody, _) => "----",
        (By::Caller, 0) => "CH--",
        (By::Caller, _) => "CD--",
        (By::Deadline, _) => "sD--",
        (By::Server, _) => "SD--",
    };
    let status = if status == 0 { -1 } else { i32::from(status) };
    let ms = took * 1000.0;
    format!(
        "{} edge-1 haproxy[18879]: 10.0.0.5:40000 [{}] mcp trailhead/mcp1 0/0/0/{ms:.0}/{ms:.0} {status} {} - - {flags} 1/1/0/0/0 0/0 {{745b2234a9ff40a4b4512f1c2aee0a0b}} {{}} \"{method} /mcp HTTP/1.1\"\n",
        stamp(at + took, "%b %d %H:%M:%S"),
        stamp(at, "%d/%b/%Y:%H:%M:%S%.3f"),
        bytes + 200
    )
}

fn traefik(at: f64, took: f64, method: &str, status: u16, bytes: u64, _: By) -> String {
    format!(
        "10.0.0.5 - - [{}] \"{method} /mcp HTTP/1.1\" {status} {bytes} \"-\" \"cli/1.0\" 53 \"mcp@docker\" \"http://10.1.0.1:8000\" {:.0}ms\n",
        stamp(at, "%d/%b/%Y:%H:%M:%S +0000"),
        took * 1000.0
    )
}

fn named(at: f64, took: f64, method: &str, status: u16, bytes: u64, _: By) -> String {
    format!(
        "10.0.0.5 - - [{}] \"{method} /mcp HTTP/1.1\" {status} {bytes} \"-\" \"cli/1.0\" rt={took:.3} urt=\"{took:.3}\"\n",
        stamp(at + took, "%d/%b/%Y:%H:%M:%S +0000")
    )
}

fn json(at: f64, took: f64, method: &str, status: u16, bytes: u64, _: By) -> String {
    // nginx writes the status that it has; one for "nothing was sent" is 499.
    let status = if status == 0 { 499 } else { status };
    access_line(at + took - 34_800.0, took, method, status, bytes, "").replace(",\"mcp_session_id\":\"\"", "")
}

/// What an odd request is: its begin, duration, method, status, bytes, and who ended it.
type Odd = (f64, f64, &'static str, u16, u64, By);

type Found = Vec<(&'static str, Confidence, Vec<Hop>)>;

/// A log of a handshake, of forty calls that are answered, and of odd requests among them, in the order of their ends.
fn log(write: Writes, odd: &[Odd]) -> String {
    let mut all: Vec<Odd> = vec![
        (0.0, 0.02, "POST", 200, 362, By::Nobody),
        (0.1, 0.02, "POST", 202, 0, By::Nobody),
        (0.2, 0.02, "GET", 405, 30, By::Nobody),
    ];
    all.extend(
        (0..40u32).map(|n| {
            (f64::from(n) * 13.0 + f64::from(n * n % 7) + 1.5, 0.2, "POST", 200, u64::from(400 + n), By::Nobody)
        }),
    );
    all.extend(odd);
    all.sort_by(|a, b| (a.0 + a.1).total_cmp(&(b.0 + b.1)));
    all.into_iter().map(|(at, took, method, status, bytes, by)| write(at, took, method, status, bytes, by)).collect()
}

fn of(texts: &[(&str, String)]) -> Found {
    let folder = tempfile::tempdir().unwrap();
    let paths: Vec<_> = texts.iter().map(|(name, _)| folder.path().join(name)).collect();
    paths.iter().zip(texts).for_each(|(path, (_, text))| std::fs::write(path, text).unwrap());
    analyze(&paths).findings.into_iter().map(|f| (f.rule, f.confidence, f.fault)).collect()
}

fn alone(write: Writes, odd: &[Odd]) -> Found {
    of(&[("access.log", log(write, odd))])
}

fn no_reply() -> Found {
    vec![("orphaned/no-reply", Confidence::Possible, vec![Hop::Proxy, Hop::Server])]
}

fn cut_off(fault: &[Hop]) -> Found {
    vec![("orphaned/cut-off", Confidence::Possible, fault.to_vec())]
}

const ANY: &[Hop] = &[Hop::Client, Hop::Proxy, Hop::Server];

#[test]
fn flags_show_a_call_that_hung() {
    for write in [envoy as Writes, haproxy] {
        for by in [By::Caller, By::Deadline] {
            assert_eq!(alone(write, &[(200.0, 60.0, "POST", 200, 0, by)]), no_reply());
            // At no usual deadline, and long.
            assert_eq!(alone(write, &[(200.0, 47.0, "POST", 200, 0, by)]), no_reply());
            // A stream; a short one; an answer and then the end of it.
            assert_eq!(alone(write, &[(200.0, 60.0, "GET", 200, 0, by)]), []);
            assert_eq!(alone(write, &[(200.0, 5.0, "POST", 200, 0, by)]), []);
            assert_eq!(alone(write, &[(200.0, 47.0, "POST", 200, 4000, by)]), []);
        }
        assert_eq!(alone(write, &[(200.0, 47.0, "POST", 200, 0, By::Nobody)]), []);
        assert_eq!(alone(write, &[(200.0, 47.0, "POST", 200, 0, By::Server)]), []);
    }
}

#[test]
fn who_leaves_before_a_response_ended_the_call_and_may_have_had_to() {
    for write in [envoy as Writes, haproxy] {
        let left = |took| alone(write, &[(200.0, took, "POST", 0, 0, By::Caller)]);
        assert_eq!(left(4.0), cut_off(&[Hop::Client]));
        assert_eq!(left(47.0), cut_off(ANY));
        assert_eq!(left(60.0), cut_off(&[Hop::Proxy, Hop::Server]));
        assert_eq!(alone(write, &[(200.0, 47.0, "GET", 0, 0, By::Caller)]), []);
    }
}

#[test]
fn a_log_without_sessions_shows_the_shape_of_a_hung_call() {
    for write in [envoy as Writes, traefik, named, json] {
        assert_eq!(alone(write, &[(200.0, 60.0, "POST", 200, 0, By::Nobody)]), no_reply());
        for legal in [
            (200.0, 60.0, "POST", 200, 180, By::Nobody),
            (200.0, 41.7, "POST", 200, 0, By::Nobody),
            (200.0, 60.0, "POST", 202, 0, By::Nobody),
            (200.0, 60.0, "GET", 200, 0, By::Nobody),
        ] {
            assert_eq!(alone(write, &[legal]), []);
        }
        // A stream of notifications (2026-07-28) is opened again whenever its idle end has come.
        let again = |n: u32| (100.0 + 60.2 * f64::from(n), 60.0, "POST", 200, 0, By::Nobody);
        assert_eq!(alone(write, &[again(0), again(1), again(2)]), []);
    }
    // Its method says so.
    let listens = access_line(260.0, 60.0, "POST", 200, 0, "")
        .replace(",\"mcp_session_id\":\"\"", ",\"http_mcp_method\":\"subscriptions/listen\"");
    let line = json(200.0, 60.0, "POST", 200, 0, By::Nobody);
    let with = |odd: &str| of(&[("access.log", log(json, &[]).replacen('\n', &format!("\n{odd}"), 1))]);
    assert_eq!(with(&listens), []);
    assert_eq!(with(&line), no_reply());
    // No endpoint.
    assert_eq!(with(&line.replace("/mcp", "/upload")), []);
}

/// The client's record of the forty calls, and of one that took so long and came to that.
fn records(took: f64, outcome: &str) -> String {
    let record = |at: f64, took: f64, outcome: &str| {
        let format = "%Y-%m-%dT%H:%M:%S%.3fZ";
        let (at, ended) = (stamp(at - 0.01, format), stamp(at + took + 0.01, format));
        format!("{{\"at\":\"{at}\",\"ended\":\"{ended}\",\"tool\":\"search\",\"outcome\":\"{outcome}\"}}\n")
    };
    let all = (0..40u32).map(|n| record(f64::from(n) * 13.0 + f64::from(n * n % 7) + 1.5, 0.2, "ok"));
    all.collect::<String>() + &record(209.2, took, outcome)
}

fn with_record(write: Writes, odd: Odd, outcome: &str, more: &[Odd]) -> Found {
    let client = records(odd.1, outcome);
    of(&[("access.log", log(write, &[&[odd], more].concat())), ("client.jsonl", client)])
}

#[test]
fn the_client_s_timeout_beside_a_line_without_a_session() {
    for write in [envoy as Writes, haproxy, traefik] {
        let odd = (209.2, 5.0, "POST", 200, 0, By::Caller);
        assert_eq!(with_record(write, odd, "timeout", &[]), cut_off(ANY));
        assert_eq!(with_record(write, odd, "ok", &[]), []);
        // A body came.
        assert_eq!(with_record(write, (209.2, 5.0, "POST", 200, 4000, By::Nobody), "timeout", &[]), []);
        // It was cancelled.
        assert_eq!(with_record(write, odd, "timeout", &[(214.3, 0.01, "POST", 202, 0, By::Nobody)]), []);
        let long = (209.2, 45.0, "POST", 200, 0, By::Caller);
        assert_eq!(with_record(write, long, "timeout", &[]), no_reply());
    }
}

#[test]
fn a_499_after_a_deadline_is_not_the_fault_of_who_waited() {
    let certain = |fault: &[Hop]| vec![("orphaned/cut-off", Confidence::Certain, fault.to_vec())];
    let left = |took| alone(json, &[(200.0, took, "POST", 499, 0, By::Caller)]);
    assert_eq!(left(4.0), certain(&[Hop::Client]));
    assert_eq!(left(47.0), certain(ANY));
    for deadline in [60.0, 120.0, 300.0] {
        assert_eq!(left(deadline), certain(&[Hop::Proxy, Hop::Server]), "{deadline}");
    }
    let told = |took, outcome| with_record(json, (209.2, took, "POST", 499, 0, By::Caller), outcome, &[]);
    assert_eq!(told(45.0, "timeout"), certain(&[Hop::Proxy, Hop::Server]));
    assert_eq!(told(60.0, "aborted"), certain(&[Hop::Client]));
    assert_eq!(told(4.0, "timeout"), certain(ANY));
}

/// A client that gives up may cancel, which a log without sessions shows by a notification of the same client.
#[test]
fn a_cancelled_call_was_not_left_hanging() {
    for write in [envoy as Writes, traefik, named, json] {
        let hung = (200.0, 60.0, "POST", 200, 0, By::Nobody);
        let cancel = |at| (at, 0.01, "POST", 202, 0, By::Nobody);
        assert_eq!(alone(write, &[hung, cancel(259.9)]), []);
        assert_eq!(alone(write, &[hung, cancel(260.3)]), []);
        assert_eq!(alone(write, &[hung, cancel(265.0)]), no_reply());
    }
}
