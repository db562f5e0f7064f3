//! Runs the program and stops it as Ctrl-C would.

use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Output, Stdio};

pub fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_crosswire"));
    command.args(args).env_remove("SSLKEYLOGFILE");
    command
}

/// A program that runs, ended with the test.
pub struct Running {
    pub child: Child,
    said: BufReader<ChildStderr>,
}

impl Running {
    pub fn start(args: &[&str]) -> Running {
        let mut child = command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let said = BufReader::new(child.stderr.take().unwrap());
        Running { child, said }
    }

    /// The next line on standard error with `word` in it.
    pub fn line_with(&mut self, word: &str) -> String {
        let mut all = String::new();
        loop {
            let mut line = String::new();
            assert!(self.said.read_line(&mut line).unwrap() > 0, "it ended before it said {word:?}: {all}");
            if line.contains(word) {
                return line;
            }
            all += &line;
        }
    }

    /// Stops it; gives its exit status and what else it said.
    pub fn stop(mut self) -> (i32, String) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
        let mut rest = String::new();
        self.said.read_to_string(&mut rest).unwrap();
        (self.child.wait().unwrap().code().unwrap(), rest)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| {
        let text = |b: &[u8]| String::from_utf8_lossy(b).into_owned();
        panic!("{e}: {} {}", text(&output.stdout), text(&output.stderr))
    })
}

/// The JSON report of a reading command on a recording.
pub fn report(command_name: &str, path: &Path) -> Value {
    json(&command(&[command_name, path.to_str().unwrap(), "--format", "json"]).output().unwrap())
}
