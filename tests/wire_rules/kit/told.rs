//! Runs the analysis and says its findings in one line each.

use super::packets::{Packet, write};
use super::traffic::Traffic;
use crosswire::model::id::SessionId;
use crosswire::model::options::{AnalyzeOptions, ReadOptions};
use crosswire::model::report::{Call, CallKey, Finding, Report};
use std::path::Path;

/// Analyses captures, given as packets.
pub fn analyze_all(captures: &[&[Packet]]) -> Report {
    analyze_with(captures, &AnalyzeOptions::default())
}

fn analyze_with(captures: &[&[Packet]], options: &AnalyzeOptions) -> Report {
    let files: Vec<Vec<u8>> = captures.iter().map(|c| write(c)).collect();
    let folder = tempfile::tempdir().unwrap();
    let paths: Vec<String> =
        (0..files.len()).map(|i| folder.path().join(format!("{i}.pcap")).display().to_string()).collect();
    for (path, file) in paths.iter().zip(files) {
        std::fs::write(path, file).unwrap();
    }
    crosswire::analyze::run(&paths, &ReadOptions::default(), options).unwrap()
}

/// Analyses one capture.
pub fn analyze(packets: &[Packet]) -> Report {
    analyze_all(&[packets])
}

/// A capture of the fixtures.
pub fn fixture(name: &str) -> Vec<Packet> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name);
    super::packets::read(&std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display())))
}

/// `tool#id` or `method#id`.
pub fn call_name(call: &Call) -> String {
    let name = call.tool.as_deref().or(call.method.as_deref()).unwrap_or("?");
    let id = call.id.as_ref().map(ToString::to_string).unwrap_or_default();
    format!("{name}#{id}")
}

fn named(report: &Report, key: CallKey) -> String {
    report.calls.iter().find(|c| c.key == key).map(call_name).unwrap_or_else(|| "?".into())
}

/// A finding in one line: `rule victim <- owner by faults, severity`; what is null is left out.
pub fn line(report: &Report, f: &Finding) -> String {
    let mut out = f.rule.to_owned();
    if let Some(v) = f.victim {
        out += &format!(" {}", named(report, v));
    }
    if let Some(o) = f.owner {
        out += &format!(" <- {}", named(report, o));
    }
    let faults: Vec<String> =
        f.fault.iter().map(|h| serde_json::to_value(h).unwrap().as_str().unwrap().to_owned()).collect();
    let severity = serde_json::to_value(f.severity).unwrap();
    let faults = if faults.is_empty() { "nobody".to_owned() } else { faults.join("+") };
    out + &format!(" by {faults}, {}", severity.as_str().unwrap())
}

/// All findings in one line each, sorted.
pub fn lines(report: &Report) -> Vec<String> {
    let mut out: Vec<String> = report.findings.iter().map(|f| line(report, f)).collect();
    out.sort();
    out
}

/// Everything but frame numbers: calls with outcomes, findings with confidence, windows.
pub fn essence(report: &Report) -> Vec<String> {
    let mut out: Vec<String> = report
        .calls
        .iter()
        .map(|c| format!("{} {} {:?} {:?}", session(&c.session), call_name(c), c.outcome, c.delivered))
        .collect();
    out.extend(
        report.findings.iter().map(|f| format!("{} {} {:?}", session(&f.session), line(report, f), f.confidence)),
    );
    out.extend(report.windows.iter().map(|w| {
        format!("window {} {} {:?} lost {}", session(&w.stale_session), session(&w.new_session), w.cause, w.lost.len())
    }));
    out.sort();
    out
}

fn session(s: &Option<SessionId>) -> &str {
    s.as_deref().unwrap_or("-")
}

/// Outcome and delivery of the call named `tool#id`.
pub fn outcome(report: &Report, name: &str) -> String {
    let found: Vec<String> = report
        .calls
        .iter()
        .filter(|c| call_name(c) == name)
        .map(|c| format!("{:?} {:?}", c.outcome, c.delivered))
        .collect();
    found.join(", ")
}

/// The traffic gives these findings, and no other.
#[track_caller]
pub fn finds(t: &Traffic, want: &[&str]) -> Report {
    let report = analyze(&t.packets());
    same(&report, want);
    same_in_parts(&report, &t.packets());
    report
}

/// Joined in parts, with clean calls gone after each, the capture says the same.
#[track_caller]
fn same_in_parts(whole: &Report, packets: &[Packet]) {
    let said = |r: &Report| {
        let windows = r.windows.iter().map(|w| serde_json::to_string(w).unwrap());
        r.findings.iter().map(|f| serde_json::to_string(f).unwrap()).chain(windows).collect::<Vec<_>>()
    };
    for part_visits in [1, 3] {
        let options = AnalyzeOptions { cited_calls_only: true, part_visits, ..AnalyzeOptions::default() };
        assert_eq!(said(&analyze_with(&[packets], &options)), said(whole), "in parts of {part_visits}");
    }
}

/// The report holds these findings, and no other.
#[track_caller]
pub fn same(report: &Report, want: &[&str]) {
    let mut want: Vec<String> = want.iter().map(|w| (*w).to_owned()).collect();
    want.sort();
    let got = lines(report);
    let why: Vec<&str> = report.findings.iter().map(|f| &*f.summary).collect();
    assert!(got == want, "\n got: {got:#?}\nwant: {want:#?}\n why: {why:#?}\n");
    assert!(report.troubles.is_empty(), "{:?}", report.troubles);
    checks_of_every_report(report);
}

/// The traffic gives no finding at all.
#[track_caller]
pub fn silent(t: &Traffic) -> Report {
    finds(t, &[])
}

/// What holds of every report: the victim first, one crossed and one orphaned finding a call, proof.
#[track_caller]
pub fn checks_of_every_report(report: &Report) {
    let mut seen = std::collections::BTreeSet::new();
    for f in &report.findings {
        assert!(!f.evidence.is_empty() && !f.summary.is_empty(), "{}", f.rule);
        if let Some(v) = f.victim {
            assert_eq!(f.calls.first(), Some(&v), "{}", f.rule);
            let family = f.rule.split('/').next().unwrap();
            let alone = !matches!(family, "crossed" | "orphaned") || seen.insert((family, v));
            assert!(alone, "two {family} findings about {}", named(report, v));
        }
        assert!(f.cleared.iter().all(|h| !f.fault.contains(h)), "{}", f.rule);
    }
}
