//! The program on recorded traffic, from arguments to output and exit status. Golden output is
//! written anew by `INSTA_UPDATE=always cargo test --test cli_fixtures`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use serde_json::Value;
use std::fs::File;
use std::io::Read;
use std::process::{Command, Output, Stdio};

const COLLISION: &str = "fixtures/02-crossed-id-collision/backend.pcap";
const COLLISION_FRONT: &str = "fixtures/02-crossed-id-collision/front.pcap";
const STALE: &str = "fixtures/04-stale-404-window/front.pcap";
const KILLED: &str = "fixtures/06b-orphan-server-killed/front.pcap";

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_crosswire"));
    command.args(args).current_dir(env!("CARGO_MANIFEST_DIR")).env_remove("SSLKEYLOGFILE");
    command
}

fn crosswire(args: &[&str]) -> Output {
    command(args).output().unwrap()
}

fn printed(args: &[&str]) -> String {
    let o = crosswire(args);
    assert_ne!(o.status.code(), Some(2), "{}", String::from_utf8_lossy(&o.stderr));
    String::from_utf8(o.stdout).unwrap()
}

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&printed(args)).unwrap()
}

fn status(args: &[&str]) -> i32 {
    crosswire(args).status.code().unwrap()
}

#[test]
fn golden_reports() {
    insta::assert_snapshot!("collision-text", printed(&["analyze", COLLISION]));
    insta::assert_snapshot!("collision-markdown", printed(&["analyze", COLLISION, "--format", "markdown"]));
    insta::assert_snapshot!("collision-json", printed(&["analyze", COLLISION, "--format", "json"]));
    insta::assert_snapshot!("collision-ndjson", printed(&["analyze", COLLISION, "--format", "ndjson"]));
    insta::assert_snapshot!("collision-csv", printed(&["analyze", COLLISION, "--format", "csv"]));
    insta::assert_snapshot!("stale-text", printed(&["analyze", STALE]));
    insta::assert_snapshot!("killed-text", printed(&["analyze", KILLED]));
}

#[test]
fn golden_ladders() {
    insta::assert_snapshot!("collision-ladder", printed(&["timeline", COLLISION_FRONT, COLLISION]));
    insta::assert_snapshot!("stale-ladder", printed(&["timeline", STALE, "--width", "100"]));
}

#[test]
fn the_exit_status_says_what_was_found() {
    assert_eq!(status(&["analyze", COLLISION]), 1);
    assert_eq!(status(&["analyze", COLLISION, "--rule", "stale/*"]), 0);
    assert_eq!(status(&["analyze", COLLISION, "--rule", "session/shared"]), 0);
    assert_eq!(status(&["analyze", COLLISION, "--rule", "session/shared", "--strict"]), 1);
    assert_eq!(status(&["analyze", COLLISION, "--require-coverage", "50"]), 1);
    // Trouble wins, and what could be read is reported all the same.
    let o = crosswire(&["analyze", COLLISION, "no-such.pcap", "--format", "json"]);
    assert_eq!(o.status.code(), Some(2));
    let report: Value = serde_json::from_slice(&o.stdout).unwrap();
    assert!(report["summary"]["findings"].as_u64().unwrap() > 0);
}

#[test]
fn standard_input_reads_as_the_file_does() {
    let mut child = command(&["analyze", "-", "--format", "json"]);
    let o = child.stdin(File::open(COLLISION).unwrap()).output().unwrap();
    let mut from_stdin: Value = serde_json::from_slice(&o.stdout).unwrap();
    let mut from_file = json(&["analyze", COLLISION, "--format", "json"]);
    assert_eq!(from_stdin["inputs"][0]["name"], "-");
    from_stdin["inputs"][0]["name"] = Value::Null;
    from_file["inputs"][0]["name"] = Value::Null;
    assert_eq!(from_stdin, from_file);
}

#[test]
fn what_is_selected_is_a_whole_report() {
    let report = json(&["analyze", COLLISION, "--format", "json", "--rule", "crossed/*"]);
    let findings = report["findings"].as_array().unwrap();
    assert_eq!(report["summary"]["findings"], findings.len());
    assert!(findings.iter().all(|f| f["rule"].as_str().unwrap().starts_with("crossed/")));
    let cited = json(&["analyze", COLLISION, "--format", "json", "--calls", "cited", "--tool", "entity_update"]);
    let keys: Vec<&Value> = cited["calls"].as_array().unwrap().iter().map(|c| &c["key"]).collect();
    for f in cited["findings"].as_array().unwrap() {
        assert!(f["calls"].as_array().unwrap().iter().all(|k| keys.contains(&k)));
    }
    let bodies = json(&["analyze", COLLISION, "--format", "json", "--bodies"]);
    assert!(bodies["calls"][0]["bodies"]["request"].as_str().unwrap().contains("jsonrpc"));
    assert!(report["calls"][0].get("bodies").is_none());
}

#[test]
fn known_findings_do_not_count() {
    let folder = tempfile::tempdir().unwrap();
    let baseline = folder.path().join("known.json");
    let file = baseline.to_str().unwrap();
    assert_eq!(status(&["analyze", COLLISION, "--format", "json", "-o", file]), 1);
    assert_eq!(status(&["analyze", COLLISION, "--baseline", file]), 0);
    let report = json(&["analyze", COLLISION, "--baseline", file, "--format", "json"]);
    assert_eq!(report["summary"]["findings"], 0);
    assert!(report["summary"]["known"].as_u64().unwrap() > 0);
    std::fs::write(&baseline, "{}").unwrap();
    assert_eq!(status(&["analyze", COLLISION, "--baseline", file]), 2);
}

#[test]
fn a_file_for_output_never_overwrites_an_input() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.pcap");
    std::fs::copy(COLLISION, &copy).unwrap();
    let before = std::fs::read(&copy).unwrap();
    let o = crosswire(&["analyze", copy.to_str().unwrap(), "-o", copy.to_str().unwrap()]);
    assert_eq!(o.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&o.stderr).contains("is one of the inputs"));
    assert_eq!(std::fs::read(&copy).unwrap(), before);
    let o = crosswire(&["analyze", COLLISION, "-o", "no/such/folder/report.txt"]);
    assert_eq!(o.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&o.stderr).contains("no/such/folder/report.txt"));
}

#[test]
fn a_closed_pipe_is_no_error() {
    let mut child = command(&["timeline", COLLISION, "--format", "json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut errors = String::new();
    child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    let status = child.wait().unwrap();
    assert_eq!(errors, "");
    assert_eq!(status.code(), Some(1));
}

#[test]
fn one_call_can_be_shown() {
    let report = json(&["analyze", COLLISION, "--format", "json", "--rule", "crossed/*"]);
    let victim = report["findings"][0]["victim"].as_str().unwrap();
    let text = printed(&["show", COLLISION, "--call", victim]);
    assert!(text.starts_with("entity_update id 3"), "{text}");
    assert!(text.contains("\"name\": \"entity_update\""), "{text}");
    assert!(text.contains("content-type: application/json") && text.contains("POST /mcp"), "{text}");
    let call = json(&["show", COLLISION, "--call", victim, "--format", "json"]);
    assert_eq!(call["calls"][0]["key"], victim);
    assert_eq!(status(&["show", COLLISION, "--call", "c999"]), 2);
}

#[test]
fn a_timeline_can_be_cut_to_a_finding() {
    let whole = printed(&["timeline", COLLISION]);
    let part = printed(&["timeline", COLLISION, "--around", "1"]);
    assert!(part.len() < whole.len());
    assert_eq!(status(&["timeline", COLLISION, "--around", "99"]), 2);
    assert!(printed(&["timeline", COLLISION, "--format", "svg"]).starts_with("<svg"));
    let timeline = json(&["timeline", COLLISION, "--format", "json"]);
    assert_eq!(timeline["schema"], "crosswire.timeline/1");
    assert_eq!(timeline["exchanges"].as_array().unwrap().len(), 13);
}

#[test]
fn colour_is_for_terminals_or_on_request() {
    assert!(!printed(&["analyze", COLLISION]).contains('\x1b'));
    assert!(printed(&["analyze", COLLISION, "--color", "always"]).contains('\x1b'));
}

#[test]
fn a_pattern_of_log_format_binds_only_where_it_is_named() {
    // The contract: NAME=STRING with NAME:PATH. An unknown name is bad usage.
    assert_eq!(status(&["analyze", COLLISION, "--input-format", "edge:access.log"]), 2);
}
