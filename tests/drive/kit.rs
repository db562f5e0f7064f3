//! Runs the program.

use serde_json::Value;
use std::process::{Child, Command, Output, Stdio};

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_crosswire"));
    command.args(args).env_remove("SSLKEYLOGFILE");
    command
}

pub fn crosswire(args: &[&str]) -> Output {
    command(args).output().unwrap()
}

/// Starts it and lets it run.
pub fn start(args: &[&str]) -> Child {
    command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

pub fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| {
        let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
        panic!("{e}: {} {}", text(&output.stdout), text(&output.stderr))
    })
}

/// Sends SIGINT, as Ctrl-C does.
pub fn interrupt(child: &Child) {
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
}

/// The report of `crosswire analyze` on a recording, which must be readable without a problem.
pub fn analyze(path: &std::path::Path) -> Value {
    let output = crosswire(&["analyze", path.to_str().unwrap(), "--format", "json"]);
    let report = json(&output);
    assert_eq!(report["inputs"][0]["problems"], serde_json::json!([]), "{report}");
    report
}
