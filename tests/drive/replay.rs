//! `crosswire replay` of recordings that probes made, against servers of other manners.

use crate::fake::{Fake, Manner};
use crate::kit::{analyze, crosswire, interrupt, json, start};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

const FIXTURE: &str = "fixtures/02-crossed-id-collision/backend.pcap";

/// A recording of a probe of a server that crosses colliding ids.
fn recording() -> PathBuf {
    static MADE: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    MADE.get_or_init(|| {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("probe.pcapng");
        record(&path);
        (dir, path)
    })
    .1
    .clone()
}

fn record(path: &Path) {
    let fake = Fake::start(Manner::OverwritesById);
    let more = ["--batch", "3", "--repetitions", "1", "--slow", "60ms", "--timeout", "1s", "--rate", "2000", "-w"];
    let output = crosswire(&[&["probe", &fake.url()][..], &more, &[path.to_str().unwrap()]].concat());
    assert_eq!(output.status.code(), Some(1));
}

fn count(report: &Value, verdict: &str) -> usize {
    report["calls"].as_array().unwrap().iter().filter(|c| c["verdict"] == verdict).count()
}

#[test]
fn the_same_calls_cross_on_one_server_and_not_on_another() {
    let dir = tempfile::tempdir().unwrap();
    let path = recording();
    let path = path.to_str().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let right = Fake::start(Manner::Right);
            let output = crosswire(&["replay", path, "--to", &right.url(), "--speed", "8", "--format", "json"]);
            let report = json(&output);
            assert_eq!((count(&report, "crossed"), count(&report, "orphaned")), (0, 0), "{report}");
            assert_eq!(output.status.code(), Some(0));
            assert!(count(&report, "same") > 50);
            // Those that were crossed when they were recorded are other now.
            assert!(count(&report, "differs") > 0);
        });
        scope.spawn(|| {
            let again = dir.path().join("again.pcapng");
            let bad = Fake::start(Manner::OverwritesById);
            let args = [
                "replay",
                path,
                "--to",
                &bad.url(),
                "--format",
                "json",
                "--timeout",
                "2s",
                "--speed",
                "2",
                "-w",
                again.to_str().unwrap(),
            ];
            let output = crosswire(&args);
            assert_eq!(output.status.code(), Some(1));
            let report = json(&output);
            assert!(count(&report, "crossed") > 0 && count(&report, "orphaned") > 0, "{report}");
            let rules = analyze(&again)["findings"].to_string();
            assert!(rules.contains("crossed/id-collision"));
            same_schedule(path, again.to_str().unwrap());
        });
    });
}

/// The schedules of two recordings are the same but for the times.
fn same_schedule(a: &str, b: &str) {
    let [a, b] = [a, b].map(|path| {
        let mut schedule = json(&crosswire(&["replay", path, "--dry-run", "--format", "json"]));
        let calls = schedule["calls"].as_array_mut().unwrap();
        assert!(calls.len() > 50);
        for call in calls {
            for times in ["at_ns", "recorded_ms", "left_ms", "connection"] {
                call.as_object_mut().unwrap().remove(times);
            }
        }
        // The server gave other session ids.
        (schedule["sessions"].as_array().unwrap().len(), schedule["calls"].take())
    });
    assert_eq!(a, b);
}

/// Which calls share a connection.
fn connections(path: &str) -> Vec<u64> {
    let schedule = json(&crosswire(&["replay", path, "--dry-run", "--format", "json"]));
    schedule["calls"].as_array().unwrap().iter().map(|c| c["connection"].as_u64().unwrap()).collect()
}

#[test]
fn a_replay_of_a_replay_is_the_same_schedule() {
    let dir = tempfile::tempdir().unwrap();
    let right = Fake::start(Manner::Right);
    let to = right.url();
    let again = |from: &str, name: &str, more: &[&str]| {
        let path = dir.path().join(name).to_str().unwrap().to_owned();
        let output = crosswire(&[&["replay", from, "--to", &to, "-w", &path][..], more].concat());
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        path
    };
    let path = recording();
    let first = path.to_str().unwrap();
    let second = again(first, "second.pcapng", &["--speed", "8"]);
    let third = again(&second, "third.pcapng", &["--speed", "2"]);
    same_schedule(first, &second);
    same_schedule(&second, &third);
    let one_by_one = again(&third, "asap.pcapng", &["--asap"]);
    same_schedule(&third, &one_by_one);
    let own = again(&third, "own.pcapng", &["--speed", "8", "--connections", "own"]);
    let lone = connections(&own);
    assert_eq!(lone, (0..lone.len() as u64).collect::<Vec<_>>());
    let pooled = again(&third, "pooled.pcapng", &["--speed", "2", "--connections", "pooled"]);
    assert!(connections(&pooled).iter().max() < connections(&third).iter().max());
}

#[test]
fn a_dry_run_prints_the_schedule_and_sends_nothing() {
    let output = crosswire(&["replay", FIXTURE, "--dry-run"]);
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("session 1  connection") && text.contains("entity_update id 3"), "{text}");
    assert!(!text.contains("initialize"));
    let none = crosswire(&["replay", FIXTURE, "--dry-run", "--tool", "no_such_tool"]);
    assert_eq!(none.status.code(), Some(2));
}

#[test]
fn what_cannot_be_read_is_said_and_no_input_is_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("cut.pcap");
    let whole = std::fs::read(FIXTURE).unwrap();
    std::fs::write(&path, &whole[..20_000]).unwrap();
    let path = path.to_str().unwrap();
    let cut = crosswire(&["replay", path, "--dry-run"]);
    assert_eq!(cut.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&cut.stderr).contains("truncated-record, once (frame 31)"), "{cut:?}");
    let sealed = crosswire(&["replay", "fixtures/14a-tls13-http1/front.pcap", "--dry-run"]);
    assert_eq!(sealed.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&sealed.stderr).contains("no-keys"), "{sealed:?}");
    for args in [
        &["replay", path, "--to", "http://127.0.0.1:9/mcp", "-w", path][..],
        &["replay", path, "--to", "http://127.0.0.1:9/mcp", "-o", path],
        &["serve", path, "--listen", "127.0.0.1:0", "-w", path],
        &["serve", path, "--listen", "127.0.0.1:0", "-o", path],
        &["serve", path, "--write-script", path],
    ] {
        let output = crosswire(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("would be overwritten"), "{args:?}: {output:?}");
        assert_eq!(std::fs::read(path).unwrap(), &whole[..20_000]);
    }
}

#[test]
fn recorded_credentials_are_sent_only_if_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("secret.pcapng");
    let path = path.to_str().unwrap();
    let fake = Fake::start(Manner::Right);
    let quick = ["--batch", "2", "--repetitions", "1", "--slow", "20ms", "--rate", "2000"];
    let probe = ["probe", &fake.url(), "-H", "Authorization: Bearer recorded", "-w", path];
    assert_eq!(crosswire(&[&probe[..], &quick].concat()).status.code(), Some(0));
    let sent = |more: &[&str]| {
        let fake = Fake::start(Manner::Right);
        let output = crosswire(&[&["replay", path, "--to", &fake.url(), "--asap"][..], more].concat());
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let mut all = fake.credentials();
        assert!(all.len() > 50);
        all.dedup();
        all
    };
    assert_eq!(sent(&[]), [None]);
    assert_eq!(sent(&["--recorded-header", "authorization"]), [Some("Bearer recorded".to_owned())]);
    let own = ["--recorded-header", "Authorization", "-H", "Authorization: Bearer own"];
    assert_eq!(sent(&own), [Some("Bearer own".to_owned())]);
    let refused = crosswire(&["replay", path, "--dry-run", "--recorded-header", "Mcp-Session-Id"]);
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn only_read_only_tools_are_called() {
    let path = recording();
    let path = path.to_str().unwrap();
    let unmarked = Fake::start(Manner::Unmarked);
    let report = json(&crosswire(&["replay", path, "--to", &unmarked.url(), "--asap", "--format", "json"]));
    assert_eq!(
        count(&report, "not-sent"),
        report["calls"].as_array().unwrap().iter().filter(|c| c["tool"].is_string()).count()
    );
    assert!(!unmarked.log().iter().any(|l| l.starts_with("tools/call")));
    // Nothing was called: that is not clean.
    assert!(report["troubles"].to_string().contains("nothing was tested"), "{report}");
    let to = unmarked.url();
    let args = [
        "replay",
        path,
        "--to",
        &to,
        "--asap",
        "--allow",
        "echo",
        "--renumber",
        "--times",
        "2",
        "--connections",
        "own",
    ];
    let report = json(&crosswire(&[&args[..], &["--jitter", "5ms", "--format", "json"]].concat()));
    assert!(count(&report, "not-sent") > 0 && count(&report, "same") > 0);
    assert!(report["calls"].as_array().unwrap().iter().any(|c| c["round"] == 2));
    assert!(unmarked.log().iter().all(|l| l != "tools/call slow_echo"));
}

#[test]
fn stopped_in_the_middle_it_reports_what_it_has() {
    let dir = tempfile::tempdir().unwrap();
    let path = recording();
    let recorded = dir.path().join("replay.pcapng");
    let fake = Fake::start(Manner::Right);
    let to = fake.url();
    let args = ["replay", path.to_str().unwrap(), "--to", &to, "--times", "50", "--format", "json", "-w"];
    let child = start(&[&args[..], &[recorded.to_str().unwrap()]].concat());
    while fake.log().iter().filter(|l| l.starts_with("tools/call")).count() < 20 {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    let report = json(&output);
    assert_eq!((output.status.code(), &report["stopped"]), (Some(2), &true.into()));
    assert_eq!((count(&report, "orphaned"), count(&report, "crossed")), (0, 0), "{report}");
    analyze(&recorded);
}
