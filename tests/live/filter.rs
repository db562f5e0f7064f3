//! `--filter` on recorded files, with a helper that prints what libpcap would, and without one.

use crate::run::{command, json};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const CAPTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/02-crossed-id-collision/backend.pcap");

/// A helper in the place of crosswire-capture.
fn helper(folder: &Path, script: &str) -> String {
    let path = folder.join("helper");
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

/// Frames of at least `bytes`, on every link type that was asked for.
fn at_least(bytes: u32) -> String {
    format!(
        "shift 2; for l; do echo link $l; echo '128 0 0 0'; echo '53 0 1 {bytes}'; echo '6 0 0 1'; echo '6 0 0 0'; done"
    )
}

fn calls(script: &str) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let mut command = command(&["analyze", CAPTURE, "--format", "json", "--filter", "x"]);
    let output = command.env("CROSSWIRE_CAPTURE", helper(folder.path(), script)).output().unwrap();
    json(&output)["calls"].as_array().unwrap().len()
}

#[test]
fn only_frames_that_the_program_accepts_are_looked_at() {
    assert_eq!(calls(&at_least(0)), 12);
    assert_eq!(calls(&at_least(100_000)), 0);
}

#[test]
fn an_expression_that_is_none_is_told_in_libpcap_s_words() {
    let folder = tempfile::tempdir().unwrap();
    let script = "[ \"$1\" = compile ] || exit 3; echo link 1; echo \"error cannot parse $2\"";
    let mut command = command(&["analyze", CAPTURE, "--filter", "tcp prt 1"]);
    let output = command.env("CROSSWIRE_CAPTURE", helper(folder.path(), script)).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(said, "crosswire: --filter tcp prt 1: cannot parse tcp prt 1\n");
}

#[test]
fn without_the_helper_it_is_said_what_to_install() {
    for args in [&["analyze", CAPTURE, "--filter", "tcp"][..], &["capture", "--list"], &["capture", "-w", "/dev/null"]]
    {
        // A link has no helper beside it, wherever the tests were built; a copy could be busy, as long as a process
        // that another test has just started holds the file that it was written through.
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let own = folder.path().join("crosswire");
        std::fs::hard_link(env!("CARGO_BIN_EXE_crosswire"), &own).unwrap();
        let output = std::process::Command::new(&own).args(args).env("PATH", "").output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("--features capture") && said.contains("libpcap-dev"), "{said}");
    }
}

/// What the helper is told, and that its end is the command's.
#[test]
fn a_capture_is_the_helper_s() {
    let folder = tempfile::tempdir().unwrap();
    let told = folder.path().join("told");
    let script = format!("printf '%s' \"$2\" > {}; trap 'exit 0' INT; [ $1 = capture ] && exit 2", told.display());
    let mut command =
        command(&["capture", "-i", "lo", "-f", "tcp port 1", "-w", "c.pcapng", "--ring-size", "1MB", "-s", "96"]);
    let output = command.env("CROSSWIRE_CAPTURE", helper(folder.path(), &script)).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let settings: serde_json::Value = serde_json::from_slice(&std::fs::read(told).unwrap()).unwrap();
    assert_eq!(
        (&settings["interfaces"][0], &settings["filter"], &settings["snap_bytes"], &settings["ring"]["size_bytes"]),
        (&"lo".into(), &"tcp port 1".into(), &96.into(), &1_000_000.into())
    );
}

/// The client says that it made one call more than the capture shows, in the middle of the others.
fn never_sent(args: &[&str]) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let own = CAPTURE.replace("backend.pcap", "client.jsonl");
    let lines = std::fs::read_to_string(own).unwrap();
    let last = lines.lines().last().unwrap();
    let mut call: serde_json::Value = serde_json::from_str(last).unwrap();
    let first: serde_json::Value = serde_json::from_str(lines.lines().nth(3).unwrap()).unwrap();
    for (name, value) in [("at", &first["ended"]), ("ended", &first["ended"])] {
        call[name] = value.clone();
    }
    call["tool"] = "never_on_the_wire".into();
    call["method"] = "tools/call".into();
    call["outcome"] = "timeout".into();
    call["arguments"] = serde_json::json!({"word": "nowhere"});
    for unknown in ["id", "local_port", "result", "result_sha256"] {
        call.as_object_mut().unwrap().remove(unknown);
    }
    let client = folder.path().join("client.jsonl");
    std::fs::write(&client, format!("{lines}{call}\n")).unwrap();
    let all = [&["analyze", CAPTURE, client.to_str().unwrap(), "--format", "json"], args].concat();
    let mut command = command(&all);
    let output = command.env("CROSSWIRE_CAPTURE", helper(folder.path(), &at_least(0))).output().unwrap();
    let report = json(&output);
    report["findings"].as_array().unwrap().iter().filter(|f| f["rule"] == "orphaned/never-sent").count()
}

#[test]
fn what_a_filter_may_have_left_out_was_not_never_sent() {
    assert_eq!(never_sent(&[]), 1);
    assert_eq!(never_sent(&["--filter", "x"]), 0);
}
