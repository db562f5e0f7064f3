//! Logs without captures: one clock over several logs, lines that are missing, and sequences that
//! people write by hand.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crosswire::analyze::run;
use crosswire::model::options::{AnalyzeOptions, ReadOptions};
use crosswire::model::report::{Confidence, Report};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

mod bodies;
mod clocks;
mod ended_by;
mod identities;
mod mixed;
mod of_logs;
mod shapes;
mod words;
mod writers;

const FILES: [&str; 3] = ["client.jsonl", "access.json.log", "journal.short-iso-precise"];

fn fixture(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/05-stale-empty-success").join(file)
}

fn analyze(files: &[PathBuf]) -> Report {
    let names: Vec<String> = files.iter().map(|f| f.display().to_string()).collect();
    let report = run(&names, &ReadOptions::default(), &AnalyzeOptions::default()).unwrap();
    assert!(report.troubles.is_empty(), "{:?}", report.troubles);
    report
}

/// Rule, victim and fault of every finding; stale session and number of lost calls of every window.
fn said(report: &Report) -> BTreeSet<String> {
    let name = |k| {
        let call = report.calls.iter().find(|c| Some(c.key) == k);
        call.map(|c| format!("{:?} {:?} {:?}", c.method, c.tool, c.id)).unwrap_or_default()
    };
    let findings = report.findings.iter().map(|f| format!("{} {} {:?}", f.rule, name(f.victim), f.fault));
    let windows = report.windows.iter().map(|w| format!("{:?} {:?} {}", w.stale_session, w.cause, w.lost.len()));
    findings.chain(windows).collect()
}

/// Rule and session of every finding that is more than possible.
fn surely(report: &Report) -> BTreeSet<String> {
    let sure = report.findings.iter().filter(|f| f.confidence > Confidence::Possible);
    sure.map(|f| format!("{} {:?}", f.rule, f.session)).collect()
}

#[test]
fn lines_missing_from_one_log_accuse_nobody_for_sure() {
    let all: Vec<PathBuf> = FILES.iter().map(|f| fixture(f)).collect();
    let text = std::fs::read_to_string(fixture(FILES[1])).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(FILES[1]);
    for access in [clocks::combined(&text), clocks::coarse(&text), text] {
        let lines: Vec<&str> = access.lines().collect();
        for others in [vec![all[0].clone(), all[2].clone()], vec![all[0].clone()], vec![]] {
            let without = |missing: Option<usize>| {
                let kept: Vec<&str> =
                    lines.iter().enumerate().filter(|(i, _)| Some(*i) != missing).map(|(_, l)| *l).collect();
                std::fs::write(&path, kept.join("\n")).unwrap();
                surely(&analyze(&[others.clone(), vec![path.clone()]].concat()))
            };
            let truth = without(None);
            for missing in 0..lines.len() {
                let new: Vec<_> = without(Some(missing)).into_iter().filter(|f| !truth.contains(f)).collect();
                assert!(new.is_empty(), "{} of {others:?} without line {}: {new:?}", lines[0], missing + 1);
            }
        }
    }
}

/// The windows of a sequence as people paste it: when each was opened, and the silence after it.
fn windows(text: &str) -> Vec<(String, Option<f64>)> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("issue.md");
    std::fs::write(&path, text).unwrap();
    let report = analyze(&[path]);
    report.windows.iter().map(|w| (w.opened.unwrap().clock(), w.silence_s)).collect()
}

#[test]
fn sequences_written_by_hand_give_their_windows() {
    let first = "\
# Calls vanish after a restart

Seen on 2026-08-14, from the access log:

```
17:19:48  POST /mcp -> 200
17:19:52  POST /mcp -> 404   stale session id
17:19:52  POST /mcp -> 200   initialize
17:19:53  POST /mcp -> 202   notifications/initialized
17:19:53  POST /mcp -> 200   resources/list
17:19:54  POST /mcp -> 200   tools/list
17:30:58  POST /mcp -> 404   next cycle
17:30:58  POST /mcp -> 200
17:30:59  POST /mcp -> 202
17:30:59  POST /mcp -> 200   x3
```
";
    assert_eq!(windows(first), [("17:19:52".to_owned(), Some(664.0)), ("17:30:58".to_owned(), None)]);
    let second = "The list came back empty:\n\n- 09:02:11  POST /mcp -> 404\n- 09:02:12  POST /mcp -> 200\n- 09:02:12  POST /mcp -> 202\n- 09:02:13  POST /mcp -> 200\n- 09:02:22  POST /mcp -> 200  the same call, works\n";
    assert_eq!(windows(second), [("09:02:11".to_owned(), Some(9.0))]);
    let clean = "```\n12:00:00  POST /mcp -> 200\n12:00:00  POST /mcp -> 202\n12:00:01  POST /mcp -> 200\n12:00:05  DELETE /mcp -> 404\n12:00:09  GET /mcp -> 405\n```\n";
    assert_eq!(windows(clean), []);
}

/// A client's record of 40 calls in 40 minutes, and the access log of the proxy; the client's clock is
/// `off_s` ahead and runs `ppm` fast.
fn forty_calls(folder: &Path, off_s: f64, ppm: f64) -> [PathBuf; 2] {
    let epoch = 1_795_981_361.0;
    let stamp = |t: f64| {
        let t = chrono::DateTime::from_timestamp_micros((t * 1e6) as i64).unwrap();
        t.format("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
    };
    let (mut record, mut access) = (String::new(), String::new());
    for n in 0..40u32 {
        let asked = f64::from(n) * 60.0 + f64::from(n * n % 17);
        let own = |t: f64| stamp(epoch + t + off_s + t * ppm / 1e6);
        record += &format!(
            "{{\"at\":\"{}\",\"ended\":\"{}\",\"tool\":\"search\",\"id\":{n},\"session\":\"f4d7795fb7194aa6\",\"outcome\":\"ok\"}}\n",
            own(asked),
            own(asked + 0.2)
        );
        access += &format!(
            "{{\"msec\":\"{:.3}\",\"remote_addr\":\"10.0.0.7\",\"method\":\"POST\",\"uri\":\"/mcp\",\"status\":\"200\",\"request_time\":\"0.190\",\"mcp_session_id\":\"f4d7795fb7194aa6\"}}\n",
            epoch + asked + 0.195
        );
    }
    let paths = [folder.join("client.jsonl"), folder.join("access.log")];
    std::fs::write(&paths[0], record).unwrap();
    std::fs::write(&paths[1], access).unwrap();
    paths
}

#[test]
fn a_clock_that_drifts_is_told_and_corrected() {
    let folder = tempfile::tempdir().unwrap();
    for (off_s, ppm) in [(0.0, 200.0), (-3600.0, -150.0), (3.0, 0.0), (0.0, 0.0)] {
        let report = analyze(&forty_calls(folder.path(), off_s, ppm));
        let clock = &report.inputs[0].clock;
        let joined: Vec<u64> = report.inputs.iter().map(|i| i.joined).collect();
        assert_eq!((report.calls.len(), joined, report.findings.len()), (40, vec![40, 40], 0), "{off_s} s, {ppm} ppm");
        assert!((clock.offset_ms.unwrap() + off_s * 1000.0).abs() < 10.0, "{clock:?}");
        match clock.drift_ppm {
            Some(found) => assert!((found + ppm).abs() <= clock.drift_error_ppm.unwrap(), "{clock:?}"),
            None => assert!(ppm == 0.0, "{clock:?}"),
        }
    }
}

fn rules(report: &Report) -> Vec<&'static str> {
    report.findings.iter().map(|f| f.rule).collect()
}

#[test]
fn a_request_answered_202_was_sent() {
    let folder = tempfile::tempdir().unwrap();
    let paths = forty_calls(folder.path(), 0.0, 0.0);
    let log = std::fs::read_to_string(&paths[1]).unwrap();
    let lines: Vec<String> = log
        .lines()
        .enumerate()
        .map(|(n, l)| if n == 20 { l.replace("\"200\"", "\"202\"") } else { l.to_owned() })
        .collect();
    std::fs::write(&paths[1], lines.join("\n")).unwrap();
    let found = rules(&analyze(&paths));
    assert!(!found.iter().any(|r| r.starts_with("orphaned/")), "{found:?}");
    let without: Vec<&str> = log.lines().enumerate().filter(|(n, _)| *n != 20).map(|(_, l)| l).collect();
    std::fs::write(&paths[1], without.join("\n")).unwrap();
    let found: Vec<_> = analyze(&paths).findings.iter().map(|f| (f.rule, f.confidence)).collect();
    assert_eq!(found, [("orphaned/never-sent", Confidence::Possible)]);
    // A success with an empty text is one without content, whatever the client calls it.
    let record = std::fs::read_to_string(&paths[0]).unwrap();
    let empty: Vec<String> = record
        .lines()
        .enumerate()
        .map(|(n, l)| if n == 20 { l.replace("\"ok\"", "\"ok\",\"text\":\"\"") } else { l.to_owned() })
        .collect();
    std::fs::write(&paths[0], empty.join("\n")).unwrap();
    assert_eq!(rules(&analyze(&paths)), ["orphaned/empty-success"]);
}

#[test]
fn a_line_that_fits_two_calls_is_ambiguous() {
    let folder = tempfile::tempdir().unwrap();
    let (record, access) = (folder.path().join("client.jsonl"), folder.path().join("access.log"));
    let mut calls = String::new();
    let mut lines = String::new();
    // Two at once in every minute, and one alone half a minute later.
    for minute in 0..6 {
        for (second, tool) in [(5, "search"), (5, "fetch"), (35, "search")] {
            calls += &format!(
                "{{\"at\":\"2026-11-29T19:4{minute}:{second:02}.100Z\",\"ended\":\"2026-11-29T19:4{minute}:{second:02}.300Z\",\"tool\":\"{tool}\",\"outcome\":\"ok\"}}\n"
            );
            lines += &format!(
                "10.0.0.7 - - [29/Nov/2026:19:4{minute}:{second:02} +0000] \"POST /mcp HTTP/1.1\" 200 182 \"-\" \"x\"\n"
            );
        }
    }
    std::fs::write(&record, calls).unwrap();
    std::fs::write(&access, lines).unwrap();
    let report = analyze(&[record, access]);
    let joined: Vec<_> = report.inputs.iter().map(|i| (i.joined, i.ambiguous)).collect();
    assert_eq!((report.calls.len(), joined), (18, vec![(18, 12), (18, 12)]));
    assert!(report.findings.is_empty());
}

/// One line of an access log with sessions.
fn access_line(end_s: f64, took_s: f64, method: &str, status: u16, bytes: u64, session: &str) -> String {
    format!(
        "{{\"msec\":\"{:.3}\",\"method\":\"{method}\",\"uri\":\"/mcp\",\"status\":\"{status}\",\"body_bytes_sent\":\"{bytes}\",\"request_time\":\"{took_s:.3}\",\"mcp_session_id\":\"{session}\"}}\n",
        1_795_981_200.0 + end_s
    )
}

#[test]
fn an_access_log_shows_the_shape_of_a_hung_call_and_no_more() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    let sid = "f4d7795fb7194aa6";
    let found = |odd: &[String]| {
        let mut lines = access_line(0.0, 0.01, "POST", 200, 300, "") + &access_line(0.1, 0.01, "POST", 202, 0, sid);
        lines += &access_line(5.0, 0.2, "POST", 200, 500, sid);
        lines.extend(odd.iter().map(String::as_str));
        lines += &access_line(900.0, 0.2, "POST", 200, 500, sid);
        std::fs::write(&path, lines).unwrap();
        let report = analyze(std::slice::from_ref(&path));
        report.findings.iter().map(|f| (f.rule, f.confidence)).collect::<Vec<_>>()
    };
    let hung = access_line(65.0, 60.001, "POST", 200, 0, sid);
    assert_eq!(found(std::slice::from_ref(&hung)), [("orphaned/no-reply", Confidence::Possible)]);
    for legal in [
        access_line(65.0, 60.001, "POST", 200, 180, sid),
        access_line(65.0, 41.7, "POST", 200, 0, sid),
        access_line(65.0, 60.001, "POST", 202, 0, sid),
        access_line(65.0, 60.001, "GET", 200, 0, sid),
        access_line(65.0, 60.001, "POST", 200, 0, ""),
    ] {
        assert_eq!(found(std::slice::from_ref(&legal)), [], "{legal}");
    }
    let cancel = access_line(65.2, 0.002, "POST", 202, 0, sid);
    assert_eq!(found(&[hung, cancel]), [], "its caller cancelled it");
    let left = access_line(65.0, 60.0, "POST", 499, 0, sid);
    assert_eq!(found(&[left]), [("orphaned/cut-off", Confidence::Certain)]);
}

#[test]
fn ids_used_again_one_after_the_other_in_a_log_of_bodies_are_no_reuse_in_flight() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    let line = |n: u32, took_s: f64| {
        let end = f64::from(n) * 10.0 + took_s;
        let body = format!(
            r#"{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{{\"name\":\"search\",\"arguments\":{{\"q\":\"number {n}\"}}}}}}"#
        );
        access_line(end, took_s, "POST", 200, 500, "f4d7795fb7194aa6")
            .replace("}\n", &format!(",\"request_body\":\"{body}\"}}\n"))
    };
    let found = |took_s: f64| {
        let lines: String = (0..20).map(|n| line(n, took_s)).collect();
        std::fs::write(&path, lines).unwrap();
        let report = analyze(std::slice::from_ref(&path));
        assert!(report.calls.iter().all(|c| c.tool.as_deref() == Some("search")), "{:?}", report.calls);
        rules(&report).into_iter().collect::<BTreeSet<_>>()
    };
    assert_eq!(found(2.0), BTreeSet::new());
    assert!(found(15.0).contains("session/id-reused-in-flight"));
}

#[test]
fn a_client_that_names_no_session_is_held_against_every_line() {
    let folder = tempfile::tempdir().unwrap();
    let paths = forty_calls(folder.path(), 0.0, 0.0);
    let record = std::fs::read_to_string(&paths[0]).unwrap().replace(",\"session\":\"f4d7795fb7194aa6\"", "");
    std::fs::write(
        &paths[0],
        record
            .lines()
            .enumerate()
            .map(|(n, l)| if n == 20 { l.replace("\"ok\"", "\"timeout\"") } else { l.to_owned() })
            .collect::<Vec<_>>()
            .join("\n"),
    )
    .unwrap();
    assert_eq!(rules(&analyze(&paths)), Vec::<&str>::new());
}

/// A client's log of whole frames, an access log, and no capture: the calls are joined by when they began,
/// and the crossing is the client's, the proxy's or the server's.
#[test]
fn frames_in_a_client_log_show_a_crossing_without_a_capture() {
    let folder = tempfile::tempdir().unwrap();
    let (frames, access) = (folder.path().join("mcp-server-park.log"), folder.path().join("access.log"));
    let base = 60.0;
    let mut log = String::new();
    let mut said = |at: f64, who: &str, json: &str| {
        let t = chrono::DateTime::from_timestamp_millis(1_795_981_200_000 + ((base + at) * 1000.0) as i64).unwrap();
        let stamp = t.format("%Y-%m-%dT%H:%M:%S%.3fZ");
        log += &format!("{stamp} [park] [info] Message from {who}: {json} {{ metadata: undefined }}\n");
    };
    let tool = |name: &str, member: &str| {
        format!(
            r#"{{"name":"{name}","inputSchema":{{"type":"object"}},"outputSchema":{{"type":"object","properties":{{"{member}":{{"type":"string"}}}},"required":["{member}"]}}}}"#
        )
    };
    let asked = |id: u32, tool: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{{"n":{id}}}}}}}"#
        )
    };
    let park = r#"{"content":[{"type":"text","text":"{}"}],"structuredContent":{"park":"Yosemite"}}"#;
    said(0.0, "client", r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#);
    let list = format!(
        r#"{{"jsonrpc":"2.0","id":1,"result":{{"tools":[{},{}]}}}}"#,
        tool("get_park", "park"),
        tool("compute_route", "route")
    );
    said(0.005, "server", &list);
    said(1.0, "client", &asked(2, "get_park"));
    said(1.9, "client", &asked(3, "compute_route"));
    said(3.0, "server", &format!(r#"{{"jsonrpc":"2.0","id":3,"result":{park}}}"#));
    let sid = "f4d7795fb7194aa6";
    let lines = access_line(base + 0.005, 0.004, "POST", 200, 900, sid)
        + &access_line(base + 3.002, 2.001, "POST", 200, 400, sid)
        + &access_line(base + 3.201, 1.3, "POST", 200, 300, sid);
    std::fs::write(&frames, log).unwrap();
    std::fs::write(&access, lines).unwrap();
    let report = analyze(&[frames, access]);
    let lines_of = |tool: &str| {
        let call = report.calls.iter().find(|c| c.tool.as_deref() == Some(tool)).unwrap();
        call.sightings.iter().map(|s| (s.input, s.line.unwrap())).collect::<BTreeSet<_>>()
    };
    assert_eq!(lines_of("get_park"), BTreeSet::from([(0, 3), (1, 2)]));
    assert_eq!(lines_of("compute_route"), BTreeSet::from([(0, 4), (1, 3)]));
    assert_eq!(rules(&report), ["crossed/unplaced"]);
    use crosswire::model::place::Hop::{Client, Proxy, Server};
    assert_eq!(
        (&report.findings[0].fault[..], &report.findings[0].cleared[..]),
        (&[Client, Proxy, Server][..], &[][..])
    );
}

/// A line of an nginx access log in JSON.
fn nginx(second: u32, status: u16, session: &str, given: &str) -> String {
    format!(
        r#"{{"time_iso8601":"2026-10-05T12:00:{second:02}+00:00","msec":1791201{:03}.045,"remote_addr":"10.11.211.197","remote_port":"49937","request_method":"POST","request_uri":"/mcp","server_protocol":"HTTP/1.1","status":{status},"body_bytes_sent":397,"request_time":0.019,"upstream_status":"{status}","http_mcp_session_id":"{session}","sent_http_mcp_session_id":"{given}","http_user_agent":"agent/1"}}"#,
        600 + second
    )
}

fn rules_of(lines: &[String]) -> BTreeSet<&'static str> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    std::fs::write(&path, lines.join("\n") + "\n").unwrap();
    analyze(&[path]).findings.iter().map(|f| f.rule).collect()
}

/// Lines of a server that logs no session ids.
#[test]
fn a_400_in_a_log_without_session_ids_is_no_id_that_was_not_sent_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("server.log");
    let line = |ms: u32, text: &str| format!("2026-11-29T19:50:{:02}.{:03}Z {text}\n", ms / 1000, ms % 1000);
    let post = |ms: u32, status: &str| line(ms, &format!("INFO:     10.0.0.7:0 - \"POST /mcp HTTP/1.1\" {status}"));
    let created = "2026-11-29 19:50:01,000 INFO [mcp.server.streamable_http_manager] Created new transport with session ID: 745b2234a9ff40a4b4512f1c2aee0a0b";
    let log = line(1000, created)
        + &post(1002, "200 OK")
        + &post(1004, "202 Accepted")
        + &post(1100, "200 OK")
        + &post(2000, "400 Bad Request")
        + &post(3000, "400 Bad Request")
        + &post(4000, "400 Bad Request");
    std::fs::write(&path, log).unwrap();
    let report = analyze(&[path]);
    assert!(!rules(&report).contains(&"session/not-echoed"), "{:?}", report.findings);
    // Where the log has ids, and these requests none, it is one.
    let given = "745b2234a9ff40a4";
    let with_ids = [nginx(1, 200, "", given), nginx(2, 400, "", ""), nginx(3, 400, "", ""), nginx(4, 400, "", "")];
    assert!(rules_of(&with_ids).contains("session/not-echoed"), "{:?}", rules_of(&with_ids));
}

#[test]
fn a_400_on_a_session_that_goes_on_is_about_one_request() {
    let begin = [nginx(1, 200, "", "aaaa-1"), nginx(2, 202, "aaaa-1", ""), nginx(3, 200, "aaaa-1", "")];
    let goes_on = [nginx(4, 400, "aaaa-1", ""), nginx(6, 200, "aaaa-1", ""), nginx(9, 200, "aaaa-1", "")];
    assert_eq!(rules_of(&[&begin[..], &goes_on[..]].concat()), BTreeSet::new());
    // The same refusals, and the client starts anew.
    let anew = [nginx(4, 400, "aaaa-1", ""), nginx(6, 200, "", "bbbb-2"), nginx(7, 202, "bbbb-2", "")];
    let found = rules_of(&[&begin[..], &anew[..], &[nginx(9, 200, "bbbb-2", "")]].concat());
    assert!(found.contains("stale/wrong-status"), "{found:?}");
    // One refusal without words, and nothing after it, may be of a bad request; two are of the session.
    let confidence = |lines: &[String]| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("access.log");
        std::fs::write(&path, lines.join("\n")).unwrap();
        let report = analyze(&[path]);
        let lines = report.findings.iter().map(|f| {
            let cited: BTreeSet<_> = f.evidence.iter().map(|e| e.line).collect();
            assert_eq!(cited.len(), f.evidence.len(), "a line is cited once: {:?}", f.evidence);
            (f.rule, f.confidence)
        });
        lines.collect::<Vec<_>>()
    };
    let last = [&begin[..], &[nginx(4, 400, "aaaa-1", "")]].concat();
    assert_eq!(confidence(&last), [("stale/wrong-status", Confidence::Possible)]);
    let twice = [&last[..], &[nginx(5, 400, "aaaa-1", "")]].concat();
    assert_eq!(confidence(&twice), [("stale/wrong-status", Confidence::Probable)]);
    // With 404 it is said by the specification, and replicas take turns.
    let turns = [nginx(4, 404, "aaaa-1", ""), nginx(6, 200, "aaaa-1", ""), nginx(9, 200, "aaaa-1", "")];
    let found = rules_of(&[&begin[..], &turns[..]].concat());
    assert!(found.contains("session/replica-split"), "{found:?}");
}

#[test]
fn an_event_is_near_its_line_however_many_fields_the_journal_has() {
    let export = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/17-real-journald/journal.export");
    let truth = analyze(std::slice::from_ref(&export));
    assert!(truth.sessions.len() > 1 && !truth.findings.is_empty());
    let mut long = vec![];
    for line in std::fs::read(&export).unwrap().split_inclusive(|b| *b == b'\n') {
        long.extend_from_slice(line);
        if line.starts_with(b"__CURSOR=") {
            long.extend_from_slice("_FIELD_OF_A_JOURNAL=value\n".repeat(40).as_bytes());
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.export");
    std::fs::write(&path, long).unwrap();
    let report = analyze(&[path]);
    assert_eq!((said(&report), report.sessions.len()), (said(&truth), truth.sessions.len()));
}

#[test]
fn marks_line_ends_and_names_of_containers_change_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (record, access) = (folder.path().join("client.jsonl"), folder.path().join("access.log"));
    let case = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/04-stale-404-window");
    let json = std::fs::read_to_string(case.join("access.json.log")).unwrap();
    let calls = std::fs::read_to_string(case.join("client.jsonl")).unwrap();
    // The lines of calls that hang come when they are over, which the log must reach to lack any.
    let late = "127.0.0.1 - - [29/Nov/2026:19:50:00 +0000] \"GET /health HTTP/1.1\" 200 2 \"-\" \"probe\"\n";
    let lines = clocks::combined(&json) + late;
    let with = |calls: String, lines: String| {
        std::fs::write(&record, calls).unwrap();
        std::fs::write(&access, lines).unwrap();
        analyze(&[record.clone(), access.clone()])
    };
    let truth = said(&with(calls.clone(), lines.clone()));
    assert!(truth.iter().any(|s| s.starts_with("orphaned/never-sent")), "{truth:?}");
    let early = said(&with(calls.clone(), clocks::combined(&json)));
    assert!(!early.iter().any(|s| s.starts_with("orphaned/")), "{early:?}");
    let marked = with(format!("\u{feff}{calls}"), format!("\u{feff}{lines}"));
    assert!(marked.inputs.iter().all(|i| i.problems.is_empty()), "{:?}", marked.inputs);
    assert_eq!(said(&marked), truth);
    assert_eq!(said(&with(calls.replace('\n', "\r\n"), lines.replace('\n', "\r\n"))), truth);
    let named: String = lines.lines().map(|l| format!("nginx-1  | {l}\n")).collect();
    assert_eq!(said(&with(calls, named)), truth);
}
