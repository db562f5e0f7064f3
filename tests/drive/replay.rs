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

/// Ids, tools and sessions in order; neighbours that were sent at once may have changed places.
fn same_schedule(a: &str, b: &str) {
    let calls = |path: &str| {
        let schedule = json(&crosswire(&["replay", path, "--dry-run", "--format", "json"]));
        let calls = schedule["calls"].as_array().unwrap().clone();
        let mut all: Vec<String> = calls
            .iter()
            .filter(|c| c["method"] == "tools/call")
            .map(|c| format!("{} {} {} {}", c["session"], c["id"], c["tool"], c["params"]))
            .collect();
        all.sort();
        all
    };
    let (a, b) = (calls(a), calls(b));
    assert!(a.len() > 50);
    let texts = |all: &[String]| {
        all.iter().map(|c| c.split_once(' ').unwrap().1.to_owned()).collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!((a.len(), texts(&a)), (b.len(), texts(&b)));
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
