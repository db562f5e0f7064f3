//! One clock over several sources, whatever theirs say.

use super::{FILES, analyze, fixture, nginx, rules, said};
use chrono::{Duration, NaiveDateTime};
use crosswire::model::report::Confidence;
use std::path::{Path, PathBuf};

/// The text with every `2026-11-29T19:42:40` and every epoch of nginx moved.
fn moved(text: &str, seconds: i64) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("2026-") {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        match from.get(..19).and_then(|t| NaiveDateTime::parse_from_str(t, "%Y-%m-%dT%H:%M:%S").ok()) {
            Some(t) => {
                out.push_str(&(t + Duration::seconds(seconds)).format("%Y-%m-%dT%H:%M:%S").to_string());
                rest = &from[19..];
            }
            None => {
                out.push_str(&from[..5]);
                rest = &from[5..];
            }
        }
    }
    out.push_str(rest);
    let mut parts = out.split("\"msec\":\"");
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (epoch, after) = part.split_once('.').unwrap();
        whole.push_str(&format!("\"msec\":\"{}.{after}", epoch.parse::<i64>().unwrap() + seconds));
    }
    whole
}

#[test]
fn a_clock_that_is_off_changes_nothing() {
    let all: Vec<PathBuf> = FILES.iter().map(|f| fixture(f)).collect();
    let truth = said(&analyze(&all));
    assert!(truth.iter().any(|s| s.starts_with("orphaned/empty-success")), "{truth:?}");
    let folder = tempfile::tempdir().unwrap();
    for (n, file) in FILES.iter().enumerate() {
        for seconds in [3, -3, 3600, -3600, 19_800] {
            let path = folder.path().join(file);
            std::fs::write(&path, moved(&std::fs::read_to_string(fixture(file)).unwrap(), seconds)).unwrap();
            let mut files = all.clone();
            files[n] = path;
            assert_eq!(said(&analyze(&files)), truth, "{file} moved by {seconds} s");
        }
    }
}

/// The access log as nginx writes it by default: whole seconds, no session ids, no durations.
pub fn combined(json: &str) -> String {
    let line = |line: &str| {
        let v: serde_json::Value = serde_json::from_str(line).unwrap();
        let of = |name: &str| v[name].as_str().unwrap().to_owned();
        let at = NaiveDateTime::parse_from_str(&of("ts")[..19], "%Y-%m-%dT%H:%M:%S").unwrap();
        let stamp = at.format("%d/%b/%Y:%H:%M:%S +0000");
        let (peer, method, uri) = (of("remote_addr"), of("method"), of("uri"));
        let (status, bytes) = (of("status"), of("body_bytes_sent"));
        format!("{peer} - - [{stamp}] \"{method} {uri} HTTP/1.1\" {status} {bytes} \"-\" \"connector/1.4\"\n")
    };
    json.lines().map(line).collect()
}

#[test]
fn a_clock_that_is_off_changes_nothing_in_a_log_of_whole_seconds() {
    let folder = tempfile::tempdir().unwrap();
    let (access, moved_record) = (folder.path().join("access.log"), folder.path().join("client.jsonl"));
    std::fs::write(&access, combined(&std::fs::read_to_string(fixture(FILES[1])).unwrap())).unwrap();
    let sets = [vec![access.clone()], vec![fixture(FILES[2])], vec![access, fixture(FILES[2])]];
    for others in sets {
        let with = |record: PathBuf| analyze(&[vec![record], others.clone()].concat());
        let truth = with(fixture(FILES[0]));
        // Calls that the client has the answers of were sent, whichever lines are taken for theirs.
        let accused: Vec<_> = truth.findings.iter().filter(|f| f.rule.starts_with("orphaned/")).collect();
        assert!(accused.iter().all(|f| f.rule == "orphaned/empty-success"), "{accused:?}");
        for seconds in [3, -3, 3600, 19_800] {
            let record = std::fs::read_to_string(fixture(FILES[0])).unwrap();
            std::fs::write(&moved_record, moved(&record, seconds)).unwrap();
            let report = with(moved_record.clone());
            assert_eq!(said(&report), said(&truth), "{others:?}, the client moved by {seconds} s");
        }
    }
}

/// The access log with sessions and durations, and whole seconds.
pub fn coarse(json: &str) -> String {
    let line = |line: &str| {
        let v: serde_json::Value = serde_json::from_str(line).unwrap();
        let of = |name: &str| v[name].as_str().unwrap().to_owned();
        let session = Some(of("mcp_session_id")).filter(|s| !s.is_empty()).unwrap_or_else(|| "-".to_owned());
        let (at, method, status) = (of("ts"), of("method"), of("status"));
        let (bytes, took) = (of("body_bytes_sent"), of("request_time"));
        format!("{at} 127.0.0.1:47020 \"{method} /mcp HTTP/1.1\" {status} {bytes} sid={session} ut={took} {took}\n")
    };
    json.lines().map(line).collect()
}

/// Within a second the lines stand in the order in which their requests ended, however the clock is off.
#[test]
fn lines_of_whole_seconds_are_joined_in_their_order() {
    let window = fixture("../04-stale-404-window");
    let folder = tempfile::tempdir().unwrap();
    let (access, moved_record) = (folder.path().join("access.log"), folder.path().join("client.jsonl"));
    std::fs::write(&access, coarse(&std::fs::read_to_string(window.join("access.json.log")).unwrap())).unwrap();
    let record = std::fs::read_to_string(window.join("client.jsonl")).unwrap();
    for seconds in [0, 3, -3, 3600, 19_800] {
        std::fs::write(&moved_record, moved(&record, seconds)).unwrap();
        let report = analyze(&[moved_record.clone(), access.clone(), window.join("journal.json")]);
        let mut pairs: Vec<(u64, u64)> = vec![];
        for call in &report.calls {
            let line = |input| call.sightings.iter().find(|s| s.input == input).and_then(|s| s.line);
            pairs.extend(line(0).zip(line(1)));
        }
        pairs.sort_unstable();
        assert_eq!(pairs.len(), 15, "moved by {seconds} s: {pairs:?}");
        assert!(pairs.is_sorted_by(|a, b| a.1 < b.1), "moved by {seconds} s: {pairs:?}");
    }
}

#[test]
fn logs_that_fit_at_no_offset_are_joined_by_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (record, access) = (folder.path().join("client.jsonl"), folder.path().join("access.log"));
    let (mut calls, mut lines) = (String::new(), String::new());
    // One call every ten seconds, and as many lines an hour and some seconds off: any ten seconds fit as well.
    for n in 0..12 {
        let (minute, second) = (n / 6, n % 6 * 10);
        calls += &format!(
            "{{\"at\":\"2026-11-29T19:4{minute}:{second:02}.100Z\",\"ended\":\"2026-11-29T19:4{minute}:{second:02}.300Z\",\"tool\":\"search\",\"outcome\":\"timeout\"}}\n"
        );
        if n != 5 {
            lines += &format!(
                "10.0.0.7 - - [29/Nov/2026:20:4{minute}:{:02} +0000] \"POST /mcp HTTP/1.1\" 200 182 \"-\" \"x\"\n",
                second + 4
            );
        }
    }
    std::fs::write(&record, calls).unwrap();
    std::fs::write(&access, lines).unwrap();
    let report = analyze(&[record, access]);
    assert_eq!(report.inputs.iter().map(|i| i.clock.offset_ms).collect::<Vec<_>>(), [None, Some(0.0)]);
    assert_eq!(rules(&report), Vec::<&str>::new());
    assert!(report.calls.iter().all(|c| c.sightings.len() == 1), "{:?}", report.calls);
}

/// A refusal and a handshake of two logs whose clocks are not known against each other are no window.
#[test]
fn what_came_after_what_is_not_read_off_two_clocks() {
    let folder = tempfile::tempdir().unwrap();
    let (one, other) = (folder.path().join("one.log"), folder.path().join("other.log"));
    let line = |second: u32, status: u16| {
        format!("10.0.0.7 - - [29/Nov/2026:20:40:{second:02} +0000] \"POST /mcp HTTP/1.1\" {status} 90 \"-\" \"x\"\n")
    };
    std::fs::write(&one, [line(1, 404), line(3, 200), line(3, 202)].concat()).unwrap();
    assert_eq!(rules(&analyze(std::slice::from_ref(&one))), ["stale/404-window"]);
    std::fs::write(&one, line(1, 404)).unwrap();
    std::fs::write(&other, [line(3, 200), line(3, 202)].concat()).unwrap();
    let report = analyze(&[one, other]);
    assert_eq!(report.inputs.iter().map(|i| i.clock.offset_ms).collect::<Vec<_>>(), [Some(0.0), None]);
    assert_eq!(rules(&report), Vec::<&str>::new());
}

/// The client's record has nothing in common with an access log without sessions, and both have with the journal.
#[test]
fn clocks_are_told_through_a_third_source() {
    let killed =
        |name: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/06b-orphan-server-killed").join(name);
    let text = |name: &str| std::fs::read_to_string(killed(name)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (record, access) = (folder.path().join("client.jsonl"), folder.path().join("access.log"));
    let with = |of_client: i64, of_proxy: i64| {
        std::fs::write(&record, moved(&text("client.jsonl"), of_client)).unwrap();
        std::fs::write(&access, combined(&moved(&text("access.json.log"), of_proxy))).unwrap();
        analyze(&[record.clone(), access.clone(), killed("journal.json")])
    };
    let truth = with(0, 0);
    // The server was down, which is no reason to say that the client sent nothing; and the one call that came back
    // with an error is the one that was refused.
    assert_eq!(rules(&truth), ["orphaned/cut-off", "stale/404-window"]);
    let refused = truth.findings.iter().find(|f| f.rule == "orphaned/cut-off").unwrap();
    assert!(refused.summary.starts_with("fast_echo (id 6)"), "{}", refused.summary);
    let late = with(3600, 0);
    assert_eq!(said(&late), said(&truth));
    assert!(late.inputs[0].clock.offset_ms.is_some_and(|ms| (ms + 3_600_000.0).abs() < 1000.0));
    // Whole seconds of an hour before fit nothing: client and journal have each other still.
    let apart = with(0, -3600);
    assert!(apart.inputs[0].clock.offset_ms.is_some() && apart.inputs[2].clock.offset_ms.is_some());
    assert!(!rules(&apart).contains(&"orphaned/never-sent"), "{:?}", rules(&apart));
}

/// A little-endian pcap with every packet's time moved.
fn capture_moved(bytes: &[u8], seconds: i64) -> Vec<u8> {
    let mut out = bytes.to_vec();
    let word = |b: &[u8], at: usize| u32::from_le_bytes(b[at..at + 4].try_into().unwrap());
    let mut at = 24;
    while at < out.len() {
        let time = (i64::from(word(&out, at)) + seconds) as u32;
        out[at..at + 4].copy_from_slice(&time.to_le_bytes());
        at += 16 + word(&out, at + 8) as usize;
    }
    out
}

#[test]
fn two_captures_on_two_clocks_are_one_timeline() {
    let collision = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/02-crossed-id-collision");
    let (back, front) = (collision.join("backend.pcap"), collision.join("front.pcap"));
    let truth = said(&analyze(&[back.clone(), front.clone()]));
    assert!(truth.iter().any(|s| s.starts_with("crossed/id-collision")), "{truth:?}");
    let folder = tempfile::tempdir().unwrap();
    let moved = folder.path().join("front.pcap");
    for seconds in [3, -3, 3600, -3600] {
        std::fs::write(&moved, capture_moved(&std::fs::read(&front).unwrap(), seconds)).unwrap();
        let report = analyze(&[back.clone(), moved.clone()]);
        assert_eq!((said(&report), report.calls.len()), (truth.clone(), 12), "front moved by {seconds} s");
    }
}

/// The way through a proxy is shorter than what is known of the offset between the captures at its sides.
#[test]
fn sides_of_a_proxy_are_told_by_what_took_longer() {
    let collision = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/06b-orphan-server-killed");
    let (back, front) = (collision.join("backend.pcap"), collision.join("front.pcap"));
    let truth = analyze(&[back.clone(), front.clone()]);
    let folder = tempfile::tempdir().unwrap();
    let moved = folder.path().join("front.pcap");
    for seconds in [3, -3600] {
        std::fs::write(&moved, capture_moved(&std::fs::read(&front).unwrap(), seconds)).unwrap();
        let report = analyze(&[back.clone(), moved.clone()]);
        assert_eq!((said(&report), report.calls.len()), (said(&truth), truth.calls.len()), "moved by {seconds} s");
    }
}

/// What began a session can be told by a finer log than the refusal of the same second: it is no new beginning.
#[test]
fn a_session_that_is_refused_by_turns_did_not_begin_again() {
    let folder = tempfile::tempdir().unwrap();
    let (access, journal) = (folder.path().join("access.log"), folder.path().join("journal"));
    let (old, new) = ("11e3e3ac3d1c4c0fa53d4f0e2c6fb5d1", "0344c02a3d1c4c0fa53d4f0e2c6fb5d2");
    let line = |(second, status, session): &(u32, u16, &str)| {
        format!(
            "2026-11-29T21:11:{second}+00:00 127.0.0.1:4000 \"POST /mcp HTTP/1.1\" {status} 91 sid={session} ut=0.001 0.001\n"
        )
    };
    // The log begins behind the handshake; only one of two replicas has a journal.
    let lines = [
        (52, 404, old),
        (52, 202, old),
        (53, 200, old),
        (53, 404, old),
        (54, 200, old),
        (54, 404, old),
        (55, 200, "-"),
        (55, 202, new),
        (56, 200, new),
    ];
    std::fs::write(&access, lines.iter().map(line).collect::<String>()).unwrap();
    let created =
        |session| format!("INFO mcp.server.streamable_http_manager: Created new transport with session ID: {session}");
    let answered = |status: u16| format!("INFO:     127.0.0.1:1 - \"POST /mcp HTTP/1.1\" {status} OK");
    let entries = [
        ("52.700000", created(old)),
        ("52.701000", answered(200)),
        ("52.900000", answered(202)),
        ("53.200000", answered(200)),
        ("54.200000", answered(200)),
        ("55.100000", created(new)),
        ("55.101000", answered(200)),
        ("55.300000", answered(202)),
        ("56.100000", answered(200)),
    ];
    let entry = |(at, text): &(&str, String)| format!("2026-11-29T21:11:{at}+0000 web python[7]: {text}\n");
    std::fs::write(&journal, entries.iter().map(entry).collect::<String>()).unwrap();
    let found = rules(&analyze(&[access, journal]));
    assert!(found.contains(&"session/replica-split"), "{found:?}");
}

/// Of a session that replicas refuse by turns a log does not tell which refusal was the last.
#[test]
fn a_window_of_a_session_that_is_refused_by_turns_is_possible() {
    let folder = tempfile::tempdir().unwrap();
    let access = folder.path().join("access.log");
    let (old, new) = ("11e3e3ac3d1c4c0fa53d4f0e2c6fb5d1", "0344c02a3d1c4c0fa53d4f0e2c6fb5d2");
    let lines = [
        nginx(1, 200, "", old),
        nginx(2, 202, old, old),
        nginx(3, 404, old, ""),
        nginx(4, 200, old, old),
        nginx(5, 404, old, ""),
        nginx(6, 200, "", new),
        nginx(7, 202, new, new),
        nginx(8, 200, new, new),
    ];
    std::fs::write(&access, lines.join("\n") + "\n").unwrap();
    let report = analyze(&[access]);
    let windows: Vec<_> = report.findings.iter().filter(|f| f.rule == "stale/404-window").collect();
    assert!(windows.len() == 1 && windows[0].confidence == Confidence::Possible, "{:?}", report.findings);
}

/// Replicas refuse a session by turns. Where the client's clock fits no other's, what was answered after a refusal is
/// not known to be later, and the calls that look lost may have been answered.
#[test]
fn a_session_that_may_be_refused_by_turns_accuses_nobody_of_lost_calls() {
    let case = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/24-replica-split");
    let of = |name: &str| case.join(name);
    let files = [of("client.jsonl"), of("journal.short-iso-precise"), of("access.combined.log")];
    assert!(rules(&analyze(&files)).contains(&"session/replica-split"));
    let folder = tempfile::tempdir().unwrap();
    let client = folder.path().join("client.jsonl");
    for seconds in [3, -3, 3600, -3600, 19_800] {
        std::fs::write(&client, moved(&std::fs::read_to_string(&files[0]).unwrap(), seconds)).unwrap();
        let report = analyze(&[client.clone(), files[1].clone(), files[2].clone()]);
        let windows: Vec<_> = report.findings.iter().filter(|f| f.rule == "stale/404-window").collect();
        assert!(!windows.is_empty(), "{seconds} s: {:?}", rules(&report));
        for window in windows {
            assert_eq!((window.confidence, &window.fault[..]), (Confidence::Possible, &[][..]), "{seconds} s");
        }
    }
}
