//! A long capture or log is joined in parts, and clean calls leave memory behind each. Whatever the parts are,
//! the findings, windows, sessions and counts are those of the whole.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crosswire::analyze::run;
use crosswire::model::options::{AnalyzeOptions, ReadOptions};
use crosswire::model::report::Report;
use std::path::{Path, PathBuf};

/// The fixtures, or what `CROSSWIRE_SETS` names.
fn folder() -> PathBuf {
    std::env::var_os("CROSSWIRE_SETS").map_or(Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures"), PathBuf::from)
}

fn files(folder: &Path, wanted: fn(&str) -> bool, out: &mut Vec<PathBuf>) {
    for entry in folder.read_dir().unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            files(&path, wanted, out);
        } else if wanted(&name) {
            out.push(path);
        }
    }
}

fn analyze(capture: &Path, options: &AnalyzeOptions) -> Report {
    run(&[capture.display().to_string()], &ReadOptions::default(), options).unwrap()
}

/// Joined as a whole: what will be shown of all that was said is not known before.
fn whole() -> AnalyzeOptions {
    AnalyzeOptions { bodies: true, ..AnalyzeOptions::default() }
}

/// In parts, of which only the calls stay that findings cite.
fn cited(part_visits: usize) -> AnalyzeOptions {
    AnalyzeOptions { cited_calls_only: true, part_visits, ..AnalyzeOptions::default() }
}

/// Everything that a report says which does not list its calls.
fn said(report: &Report) -> Vec<String> {
    let mut out = vec![serde_json::to_string(&report.summary).unwrap(), report.summary.unobserved.to_string()];
    out.extend(report.sessions.iter().map(|s| serde_json::to_string(s).unwrap()));
    out.extend(report.windows.iter().map(|w| serde_json::to_string(w).unwrap()));
    out.extend(report.windows.iter().map(|w| format!("{:?}", w.sequence)));
    out.extend(report.findings.iter().map(|f| serde_json::to_string(f).unwrap()));
    out
}

/// And its calls, without what was said.
fn listed(report: &Report) -> Vec<String> {
    let mut out = said(report);
    out.extend(report.calls.iter().map(|call| {
        let mut call = call.clone();
        call.bodies = None;
        serde_json::to_string(&call).unwrap()
    }));
    out
}

#[test]
fn parts_of_any_size_say_what_the_whole_says() {
    let mut all = vec![];
    files(&folder(), |name| name.contains(".pcap"), &mut all);
    assert!(all.len() > 12, "{all:?}");
    for capture in all {
        let whole = said(&analyze(&capture, &whole()));
        for part_visits in [1, 2, 7, 64] {
            let parts = said(&analyze(&capture, &cited(part_visits)));
            assert_eq!(parts, whole, "{} in parts of {part_visits}", capture.display());
        }
    }
}

/// The folders that hold a capture and more, each with the files that are read together.
fn sets(folder: &Path, out: &mut Vec<Vec<String>>) {
    let mut all: Vec<PathBuf> = folder.read_dir().unwrap().map(|e| e.unwrap().path()).collect();
    all.sort();
    all.iter().filter(|p| p.is_dir()).for_each(|p| sets(p, out));
    let name = |p: &Path| p.file_name().unwrap().to_string_lossy().into_owned();
    // One rendering of each log: two of one are two logs of the same requests.
    let is_one = |p: &Path| {
        let name = name(p);
        name.contains(".pcap") && !name.ends_with(".json")
            || ["access.json.log", "journal.json", "client.jsonl"].contains(&&*name)
    };
    let set: Vec<String> = all.iter().filter(|p| p.is_file() && is_one(p)).map(|p| p.display().to_string()).collect();
    if set.iter().any(|n| n.contains(".pcap")) {
        out.push(set.clone());
        out.extend((0..set.len()).filter(|_| set.len() > 1).map(|left_out| {
            set.iter().enumerate().filter(|(n, _)| *n != left_out).map(|(_, name)| name.clone()).collect()
        }));
    }
}

#[test]
fn captures_in_parts_beside_logs_say_what_the_whole_says() {
    let mut all = vec![];
    sets(&folder(), &mut all);
    assert!(all.len() > 12, "{all:?}");
    let analyze = |names: &[String], options: &AnalyzeOptions| run(names, &ReadOptions::default(), options).unwrap();
    for names in all {
        let report = analyze(&names, &whole());
        let (few, all) = (said(&report), listed(&report));
        for part_visits in [1, 7, 64] {
            assert_eq!(said(&analyze(&names, &cited(part_visits))), few, "{names:?} in parts of {part_visits}");
            let options = AnalyzeOptions { part_visits, ..AnalyzeOptions::default() };
            assert_eq!(listed(&analyze(&names, &options)), all, "{names:?}, all listed, in parts of {part_visits}");
        }
    }
}

#[test]
fn a_log_in_parts_says_what_the_whole_says() {
    let mut all = vec![];
    files(&folder(), |name| !name.contains(".pcap"), &mut all);
    let mut windows = 0;
    for log in all {
        let whole = said(&analyze(&log, &whole()));
        windows += whole.iter().filter(|l| l.contains("stale/")).count();
        for part_visits in [64, 500, 8192] {
            let parts = said(&analyze(&log, &cited(part_visits)));
            assert_eq!(parts, whole, "{} in parts of {part_visits}", log.display());
        }
    }
    assert!(windows > 3, "{windows}");
}

/// A line whose time a bad disk spoiled, and one that a wrong clock put before its session began, are no first use of it.
#[test]
fn a_line_of_a_wrong_time_changes_nothing_for_others() {
    let line = |n: u32, time: &str, (status, took): (u16, &str), asked: &str, given: &str| {
        format!(
            "{{\"time_iso8601\":\"{time}\",\"remote_addr\":\"192.0.2.7\",\"request_id\":\"{n:032x}\",\"request_method\":\"POST\",\
             \"request_uri\":\"/mcp\",\"status\":{status},\"body_bytes_sent\":300,\"request_time\":{took},\"http_mcp_session_id\":\"{asked}\",\
             \"sent_http_mcp_session_id\":\"{given}\",\"http_user_agent\":\"node\"}}\n"
        )
    };
    let at = |minute: u32| format!("2026-10-03T{:02}:{:02}:00+00:00", 12 + minute / 60, minute % 60);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    for wrong in ["2026-10-03T1f:30:00+00:00", "2026-10-03T02:30:00+00:00", "1970-01-01T00:00:01+00:00"] {
        for failed in 4..7 {
            let mut log = line(0, &at(0), (200, "0.1"), "old", "");
            log += &line(1, &at(1), (404, "0.1"), "old", "");
            log += &line(2, &at(30), (200, "0.1"), "", "new");
            log += &line(3, &at(31), (202, "0.1"), "new", "");
            for n in 4..40 {
                let time = if n == 30 { wrong.to_owned() } else { at(30 + n) };
                // The first ones fail, and then one that was asked before another is answered behind it.
                let status = if n < failed { 502 } else { 200 };
                log += &line(n, &time, (status, if n == failed { "150.0" } else { "0.1" }), "new", "");
            }
            std::fs::write(&path, log).unwrap();
            let whole = analyze(&path, &whole());
            assert_eq!(whole.windows.len(), 1, "{:?}", whole.findings);
            // What is out of order is put in order among the lines that are looked at together.
            for part_visits in if wrong.contains('f') { vec![4, 16, 8192] } else { vec![8192] } {
                let parts = said(&analyze(&path, &cited(part_visits)));
                assert_eq!(parts, said(&whole), "{wrong}, {failed}, in parts of {part_visits}");
            }
        }
    }
}

/// A log whose lines say nothing but HTTP, with refusals, and only late the session that they are of.
fn late_sessions() -> String {
    let mut log = String::new();
    for n in 0..3000u32 {
        let second = format!("29/Nov/2026:19:{:02}:{:02} +0000", 10 + n / 600, n / 10 % 60);
        let client = n % 7;
        let method = if n % 11 == 0 { "GET" } else { "POST" };
        let (status, bytes) = match n % 400 {
            200 => (404, 42),
            210..217 if client == (n - n % 400 + 200) % 7 => (200, 300),
            217..224 if client == (n - n % 400 + 200) % 7 => (202, 0),
            _ if n % 90 == 0 => (200, 0),
            _ => (200, 362),
        };
        let session = if n > 2200 { format!("{:032x}", n / 400) } else { "-".to_owned() };
        log += &format!(
            "192.0.2.{client} - - [{second}] \"{method} /mcp HTTP/1.1\" {status} {bytes} \"-\" \"connector/1\" rt=0.005 sid=\"{session}\"\n"
        );
    }
    log
}

/// A log with sessions, of which some are gone, and most now and then have a request refused with 400 that says nothing:
/// of one request where the session goes on, else perhaps of the session.
fn bad_requests() -> String {
    let mut log = String::new();
    let mut line = |n: u32, client: u32, method: &str, status: u32, (asked, given): (&str, &str)| {
        let second = format!("29/Nov/2026:{:02}:{:02}:{:02} +0000", 10 + n / 3600, n / 60 % 60, n % 60);
        log += &format!(
            "192.0.2.{client} - - [{second}] \"{method} /mcp HTTP/1.1\" {status} 300 \"-\" \"connector/1\" rt=0.005 sid=\"{asked}\" ssid=\"{given}\"\n"
        );
    };
    for client in 0..40u32 {
        let (old, new) = (format!("{client:032x}"), format!("{:032x}", 1000 + client));
        let from = client * 200;
        line(from, client, "POST", 200, ("-", &old));
        line(from, client, "POST", 202, (&old, "-"));
        for n in 1..60 {
            let status = if n == 20 + client % 3 || client % 8 == 7 && n > 50 { 400 } else { 200 };
            line(from + n, client, "POST", status, (&old, "-"));
        }
        if client % 4 != 0 {
            continue;
        }
        line(from + 60, client, "POST", 404, (&old, "-"));
        line(from + 61, client, "POST", 200, ("-", &new));
        line(from + 61, client, "POST", 202, (&new, "-"));
        for n in 62..120 {
            line(from + n, client, "POST", if n == 80 { 400 } else { 200 }, (&new, "-"));
        }
    }
    log
}

#[test]
fn a_bad_request_of_a_session_that_goes_on_is_not_kept_for() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("access.log");
    std::fs::write(&log, bad_requests()).unwrap();
    let whole = analyze(&log, &whole());
    assert_eq!(whole.windows.len(), 14);
    assert!(whole.findings.iter().any(|f| f.rule == "stale/wrong-status"), "{:?}", whole.findings);
    for part_visits in [2, 64, 512] {
        assert_eq!(said(&analyze(&log, &cited(part_visits))), said(&whole), "in parts of {part_visits}");
    }
}

#[test]
fn lines_that_say_little_are_not_lost_when_others_say_more() {
    let folder = tempfile::tempdir().unwrap();
    for (name, lines) in [("quiet.log", 2200), ("late.log", 3000)] {
        let log = folder.path().join(name);
        let text: String = late_sessions().lines().take(lines).flat_map(|l| [l, "\n"]).collect();
        std::fs::write(&log, text).unwrap();
        let whole = analyze(&log, &whole());
        assert!(whole.summary.calls > 1000, "{name}: {:?}", whole.summary);
        assert_eq!(whole.windows.is_empty(), name == "late.log");
        for part_visits in [16, 300, 8192] {
            assert_eq!(said(&analyze(&log, &cited(part_visits))), said(&whole), "{name} in parts of {part_visits}");
        }
    }
}

#[test]
fn a_call_has_the_same_key_whether_it_is_listed_or_not() {
    let capture = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/16-large-concurrency/backend.pcap.xz");
    let whole = analyze(&capture, &AnalyzeOptions::default());
    let parts = analyze(&capture, &cited(16));
    assert!(!parts.calls.is_empty() && parts.calls.len() < whole.calls.len());
    for call in &parts.calls {
        let same = whole.calls.iter().find(|c| c.key == call.key).unwrap();
        assert_eq!(serde_json::to_string(call).unwrap(), serde_json::to_string(same).unwrap());
    }
}
