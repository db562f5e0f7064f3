//! Who wrote a log: files of one log in turn, one of several replicas, the log of another server, and what that says
//! of the lines that it lacks.

use super::{analyze, nginx, rules};
use chrono::{DateTime, Duration, Utc};
use crosswire::model::place::Hop;
use crosswire::model::report::{Confidence, Report};
use std::path::{Path, PathBuf};

fn start() -> DateTime<Utc> {
    "2026-11-29T10:00:00Z".parse().unwrap()
}

fn report(folder: &Path, files: &[(&str, String)]) -> Report {
    let path = |(name, text): &(&str, String)| -> PathBuf {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    analyze(&files.iter().map(path).collect::<Vec<_>>())
}

fn all(files: &[(&str, String)]) -> Report {
    report(tempfile::tempdir().unwrap().path(), files)
}

/// One session in each file, at the same distances.
fn turn(session: &str, refused: &str, second: u32) -> String {
    let mut lines = vec![];
    if !refused.is_empty() {
        lines.push(nginx(second - 3, 404, refused, ""));
    }
    lines.push(nginx(second, 200, "", session));
    lines.push(nginx(second + 1, 202, session, ""));
    lines.extend([3, 5, 6, 9, 11].iter().map(|s| nginx(second + s, 200, session, "")));
    lines.join("\n") + "\n"
}

#[test]
fn files_of_a_rotated_log_are_no_two_views_of_one_traffic() {
    let (old, new) = (turn("a1b2c3d4e5f60718", "", 2), turn("b1b2c3d4e5f60718", "a1b2c3d4e5f60718", 25));
    for names in [["access.log.1", "access.log"], ["access.log-20261005", "access.log"], ["before.log", "after.log"]] {
        let [a, b] = [(names[0], old.clone()), (names[1], new.clone())];
        for files in [[a.clone(), b.clone()], [b, a]] {
            let report = all(&files);
            assert_eq!(rules(&report), ["stale/404-window"], "{names:?}");
            assert_eq!((report.summary.sessions, report.summary.calls), (2, 13), "{names:?}");
            assert!(report.inputs.iter().all(|i| i.joined == 0), "{names:?}");
        }
    }
    // One name with a number does not make two replicas' logs one: they go on beside each other.
    let beside =
        |second: u32| (0..9).map(|n| nginx(second + 2 * n, 200, "a1b2c3d4e5f60718", "") + "\n").collect::<String>();
    let report = all(&[("app.log.1", beside(1)), ("app.log.2", beside(2))]);
    assert_eq!(rules(&report), Vec::<&str>::new());
}

/// A line that says `text` in the log of a pod.
fn pod(pod: u32, second: u32, text: &str) -> String {
    format!("[pod/mcp-{pod}/server] 2026-11-29T10:00:{second:02}.000000000Z {text}\n")
}

const BEGUN: &str = "Created new transport with session ID: aaaa1111aaaa1111aaaa1111aaaa1111";
const REFUSED: &str = "Rejected request with unknown or expired session ID: aaaa1111aaaa1111aaaa1111aaaa1111";
const UP: &str = "StreamableHTTP session manager started";
const ANSWERED: &str = "INFO:     10.0.0.5:0 - \"POST /mcp HTTP/1.1\" 200 OK";
const NOT_FOUND: &str = "INFO:     10.0.0.5:0 - \"POST /mcp HTTP/1.1\" 404 Not Found";

#[test]
fn replicas_say_themselves_that_one_does_not_know_another_s_session() {
    let told = |lines: &[String]| {
        let found = all(&[("server.log", lines.concat())]).findings;
        found.into_iter().map(|f| (f.rule, f.confidence, f.fault)).collect::<Vec<_>>()
    };
    let split = [("session/replica-split", Confidence::Probable, vec![Hop::Proxy])];
    let mut turns = vec![pod(0, 0, UP), pod(1, 1, UP), pod(0, 2, BEGUN), pod(0, 2, ANSWERED)];
    for second in [5, 9, 13, 17] {
        turns.extend([pod(1, second, REFUSED), pod(1, second, NOT_FOUND), pod(0, second + 2, ANSWERED)]);
    }
    turns.push(pod(0, 40, ANSWERED));
    assert_eq!(told(&turns), split);
    let words: Vec<String> = turns.iter().filter(|l| !l.contains("HTTP/1.1")).cloned().collect();
    assert_eq!(told(&words), split);
    // A process that begins when the other is gone takes its place: that is a restart.
    let restarted: Vec<String> =
        turns.iter().filter(|l| !l.contains("mcp-1") || !l.contains(UP)).map(|l| l.replace("mcp-1", "mcp-2")).collect();
    let restarted: Vec<String> = restarted.into_iter().filter(|l| !l.contains("HTTP/1.1")).collect();
    assert!(told(&restarted).iter().all(|(rule, ..)| *rule != "session/replica-split"), "{:?}", told(&restarted));
    // Nor did one process begin it that ended it before.
    let ended =
        [&words[..3], &[pod(0, 4, "Terminating session: aaaa1111aaaa1111aaaa1111aaaa1111")], &words[3..]].concat();
    assert!(told(&ended).iter().all(|(rule, ..)| *rule != "session/replica-split"), "{:?}", told(&ended));
    // Nobody is said not to have come back who is answered afterwards by lines that name no session.
    let of_one: Vec<String> = turns.iter().map(|l| l.replace("mcp-1", "mcp-0")).collect();
    assert_eq!(told(&of_one), []);
}

/// A line of a proxy that names its upstream.
fn sent_to(second: u32, status: u16, upstream: &str) -> String {
    let session = "aaaa1111aaaa1111aaaa1111aaaa1111";
    nginx(second, status, session, "")
        .replace("\"upstream_status\"", &format!("\"upstream_addr\":\"{upstream}\",\"upstream_status\""))
}

#[test]
fn a_404_on_a_live_session_is_a_split_as_far_as_upstreams_show_it() {
    let told = |lines: &[String]| {
        let found = all(&[("access.log", lines.join("\n") + "\n")]).findings;
        found.into_iter().map(|f| (f.rule, f.confidence, f.fault)).collect::<Vec<_>>()
    };
    let (one, two) = ("10.1.0.1:8000", "10.1.0.2:8000");
    let split = |confidence, fault| vec![("session/replica-split", confidence, fault)];
    let known = [nginx(1, 200, "", "aaaa1111aaaa1111aaaa1111aaaa1111"), sent_to(2, 200, one), sent_to(3, 200, one)];
    let with = |more: &[String]| told(&[&known[..], more].concat());
    assert_eq!(
        with(&[sent_to(5, 404, two), sent_to(7, 200, one), sent_to(9, 404, two), sent_to(11, 200, one)]),
        split(Confidence::Probable, vec![Hop::Proxy]),
        "the first line names no upstream"
    );
    let known = [sent_to(2, 200, one), sent_to(3, 200, one)];
    let with = |more: &[String]| told(&[&known[..], more].concat());
    assert_eq!(with(&[sent_to(5, 404, two), sent_to(7, 200, one)]), split(Confidence::Certain, vec![Hop::Proxy]));
    assert_eq!(with(&[sent_to(5, 404, one), sent_to(7, 200, one)]), split(Confidence::Possible, vec![]));
    assert_eq!(with(&[sent_to(5, 200, one), sent_to(7, 200, two)]), []);
}

/// Calls of a client, `(second, server, outcome)`, and the lines of a proxy for those that `is_logged`.
fn record(calls: &[(i64, &str, &str)], is_logged: fn(usize, &str) -> bool) -> [(&'static str, String); 2] {
    let session = "aaaa1111aaaa1111aaaa1111aaaa1111";
    let (mut client, mut access) = (String::new(), String::new());
    for (n, (second, server, outcome)) in calls.iter().enumerate() {
        let asked = start() + Duration::seconds(*second);
        let over = asked + Duration::milliseconds(200);
        let stamp = |t: DateTime<Utc>| t.format("%Y-%m-%dT%H:%M:%S%.3fZ").to_string();
        let said = match *outcome {
            "ok" => r#""outcome":"ok","result":{"content":[{"type":"text","text":"done"}]}"#.to_owned(),
            other => format!("\"outcome\":\"{other}\""),
        };
        client += &format!(
            "{{\"at\":\"{}\",\"ended\":\"{}\",\"server\":\"{server}\",\"tool\":\"find\",\"id\":{n},{said}}}\n",
            stamp(asked),
            stamp(over)
        );
        if is_logged(n, server) {
            let msec = (over - Duration::milliseconds(5)).timestamp_millis() as f64 / 1e3;
            access += &format!(
                "{{\"msec\":\"{msec:.3}\",\"method\":\"POST\",\"uri\":\"/mcp\",\"status\":\"200\",\"body_bytes_sent\":\"300\",\"request_time\":\"0.190\",\"mcp_session_id\":\"{session}\"}}\n"
            );
        }
    }
    [("client.jsonl", client), ("access.log", access)]
}

#[test]
fn a_log_that_lacks_answered_calls_tells_nothing_by_what_else_it_lacks() {
    let mut calls: Vec<(i64, &str, &str)> = (0..40).map(|n| (n * 7 + n * n % 5, "parks", "ok")).collect();
    calls[20].2 = "error";
    let of = |files: &[(&str, String)]| all(files).findings.into_iter().map(|f| (f.rule, f.fault)).collect::<Vec<_>>();
    let never = [("orphaned/never-sent", vec![Hop::Client])];
    assert_eq!(of(&record(&calls, |n, _| n != 20)), never, "one call alone is not in the log");
    assert_eq!(of(&record(&calls, |n, _| !(17..=23).contains(&n))), [], "so are answered ones: lines are missing");
    assert_eq!(of(&record(&calls, |n, _| n % 2 == 1)), [], "one of two replicas");
    // Calls to another server.
    let mut mixed = calls.clone();
    mixed.iter_mut().skip(3).step_by(4).for_each(|call| (call.1, call.2) = ("maps", "error"));
    assert_eq!(of(&record(&mixed, |n, server| server == "parks" && n != 20)), never);
}

/// A log of ends to the second, and a client whose calls took long: starts are not ends.
#[test]
fn a_line_at_the_end_of_a_call_is_not_taken_for_its_beginning() {
    let (mut client, mut access) = (String::new(), String::new());
    for n in 0..25i64 {
        let asked = start() + Duration::milliseconds(n * 9_000 + n * n % 11 * 700);
        let over = asked + Duration::milliseconds(200 + n * 1_300 % 6_000);
        let stamp = |t: DateTime<Utc>| t.format("%Y-%m-%dT%H:%M:%S%.3fZ").to_string();
        client += &format!(
            "{{\"at\":\"{}\",\"ended\":\"{}\",\"tool\":\"find\",\"id\":{n},\"outcome\":\"ok\",\"result\":{{\"content\":[]}}}}\n",
            stamp(asked),
            stamp(over)
        );
        let when = over.format("%d/%b/%Y:%H:%M:%S +0000");
        access += &format!("10.0.0.5 - - [{when}] \"POST /mcp HTTP/1.1\" 200 {} \"-\" \"cli/1.0\"\n", 400 + n);
    }
    let report = all(&[("access.log", access), ("client.jsonl", client)]);
    assert_eq!((report.calls.len(), report.inputs[1].joined), (25, 25), "{:?}", report.inputs);
    assert_eq!(report.inputs[1].clock.offset_ms, Some(0.0));
}

/// A log of whole seconds at which requests began, with how long they took.
#[test]
fn within_a_second_lines_stand_in_the_order_in_which_they_were_over() {
    let line = |second: u32, status: u16, took: u32| {
        format!(
            "10.0.0.5 - - [29/Nov/2026:10:00:{second:02} +0000] \"POST /mcp HTTP/1.1\" {status} 90 \"-\" \"cli/1.0\" 5 \"mcp@docker\" \"http://10.1.0.1:8000\" {took}ms\n"
        )
    };
    let begins = [line(5, 200, 100), line(30, 404, 20), line(40, 200, 40), line(40, 202, 3), line(41, 200, 20)];
    assert_eq!(rules(&all(&[("access.log", begins.concat())])), ["stale/404-window"]);
    let other = [line(5, 200, 100), line(30, 404, 20), line(40, 202, 3), line(40, 200, 40), line(41, 200, 20)];
    assert_eq!(rules(&all(&[("access.log", other.concat())])), Vec::<&str>::new());
}

/// A log without session ids in which a client that had been answered is only refused from then on.
#[test]
fn refusals_without_end_are_told_without_session_ids() {
    let line = |second: u32, method: &str, status: u16, address: u8| {
        format!(
            "10.0.0.{address} - - [29/Nov/2026:10:00:{second:02} +0000] \"{method} /mcp HTTP/1.1\" {status} 90 \"-\" \"cli/1.0\"\n"
        )
    };
    let told = |lines: &[String]| {
        let found = all(&[("access.log", lines.concat())]).findings;
        found.into_iter().map(|f| (f.rule, f.confidence, f.fault)).collect::<Vec<_>>()
    };
    let answered = [line(1, "POST", 200, 5), line(1, "POST", 202, 5), line(5, "POST", 200, 5)];
    let refused = [10, 20, 30, 40].map(|second| line(second, "POST", 404, 5));
    let with = |more: &[String]| told(&[&answered[..], more].concat());
    assert_eq!(with(&refused), [("stale/stranded", Confidence::Possible, vec![])]);
    // Twice only; answered afterwards; somebody who never was answered; streams that are not there.
    assert_eq!(with(&refused[2..]), []);
    assert_eq!(with(&[&refused[..], &[line(50, "POST", 200, 5)]].concat()), []);
    assert_eq!(with(&[10, 20, 30, 40].map(|second| line(second, "POST", 404, 9))), []);
    assert_eq!(with(&[10, 20, 30, 40].map(|second| line(second, "GET", 404, 5))), []);
}

/// A log without any times has its order.
#[test]
fn the_order_of_lines_shows_a_window_where_there_are_no_times() {
    let line = |what: &str, status: &str| format!("INFO:     10.0.0.5:40000 - \"{what} /mcp HTTP/1.1\" {status}\n");
    let (begins, noted) = (line("POST", "200 OK"), line("POST", "202 Accepted"));
    let refused = line("POST", "404 Not Found");
    let told = |lines: &[&String]| {
        let report = all(&[("server.log", lines.iter().map(|l| l.as_str()).collect())]);
        assert!(report.windows.iter().all(|w| w.opened.is_none() && w.sequence.iter().all(|l| l.at.is_none())));
        report.findings.into_iter().map(|f| (f.rule, f.confidence)).collect::<Vec<_>>()
    };
    let known = [&begins, &noted, &begins];
    let window = [("stale/404-window", Confidence::Possible)];
    assert_eq!(told(&[&known[..], &[&refused, &begins, &noted, &begins]].concat()), window);
    assert_eq!(told(&[&known[..], &[&refused, &begins, &begins]].concat()), []);
    assert_eq!(told(&[&known[..], &[&begins, &noted, &refused]].concat()), []);
}
