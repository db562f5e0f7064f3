//! A long capture or log is joined in parts, and clean calls leave memory behind each. Whatever the parts are,
//! the findings, windows, sessions and counts are those of the whole.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crosswire::analyze::run;
use crosswire::model::options::{AnalyzeOptions, ReadOptions};
use crosswire::model::report::Report;
use std::path::{Path, PathBuf};

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

/// Everything that a report says which does not list its calls.
fn said(report: &Report) -> Vec<String> {
    let mut out = vec![serde_json::to_string(&report.summary).unwrap(), report.summary.unobserved.to_string()];
    out.extend(report.sessions.iter().map(|s| serde_json::to_string(s).unwrap()));
    out.extend(report.windows.iter().map(|w| serde_json::to_string(w).unwrap()));
    out.extend(report.findings.iter().map(|f| serde_json::to_string(f).unwrap()));
    out
}

#[test]
fn parts_of_any_size_say_what_the_whole_says() {
    let mut all = vec![];
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures"), |name| name.contains(".pcap"), &mut all);
    assert!(all.len() > 12, "{all:?}");
    for capture in all {
        let whole = said(&analyze(&capture, &AnalyzeOptions::default()));
        for part_visits in [1, 2, 7, 64] {
            let options = AnalyzeOptions { cited_calls_only: true, part_visits, ..AnalyzeOptions::default() };
            let parts = said(&analyze(&capture, &options));
            assert_eq!(parts, whole, "{} in parts of {part_visits}", capture.display());
        }
    }
}

#[test]
fn a_log_in_parts_says_what_the_whole_says() {
    let mut all = vec![];
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures"), |name| !name.contains(".pcap"), &mut all);
    let mut windows = 0;
    for log in all {
        let whole = said(&analyze(&log, &AnalyzeOptions::default()));
        windows += whole.iter().filter(|l| l.contains("stale/")).count();
        for part_visits in [64, 500, 8192] {
            let options = AnalyzeOptions { cited_calls_only: true, part_visits, ..AnalyzeOptions::default() };
            let parts = said(&analyze(&log, &options));
            assert_eq!(parts, whole, "{} in parts of {part_visits}", log.display());
        }
    }
    assert!(windows > 3, "{windows}");
}

#[test]
fn a_call_has_the_same_key_whether_it_is_listed_or_not() {
    let capture = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/16-large-concurrency/backend.pcap.xz");
    let whole = analyze(&capture, &AnalyzeOptions::default());
    let options = AnalyzeOptions { cited_calls_only: true, part_visits: 16, ..AnalyzeOptions::default() };
    let parts = analyze(&capture, &options);
    assert!(!parts.calls.is_empty() && parts.calls.len() < whole.calls.len());
    for call in &parts.calls {
        let same = whole.calls.iter().find(|c| c.key == call.key).unwrap();
        assert_eq!(serde_json::to_string(call).unwrap(), serde_json::to_string(same).unwrap());
    }
}
