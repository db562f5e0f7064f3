//! The terminal browser, driven through a pseudo-terminal.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod keys;
mod terminal;

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use terminal::Terminal;

const ESCAPE: &str = "\x1b";
const CONTROL_Z: &str = "\x1a";
const CONTROL_C: &str = "\x03";

fn fixture(case: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(case)
}

const INPUTS: [&str; 4] = ["front.pcap", "backend.pcap", "access.json.log", "client.jsonl"];

fn collision(columns: u16, rows: u16) -> Terminal {
    let mut terminal = Terminal::run(&INPUTS, &fixture("02-crossed-id-collision"), columns, rows);
    terminal.wait_for("Enter calls");
    terminal
}

#[test]
fn from_sessions_to_calls_to_the_ladder_to_bodies_and_back() {
    let mut t = collision(80, 24);
    assert!(t.screen().contains("880af36c…"), "{}", t.screen());
    insta::assert_snapshot!("calls", t.press_for("\r", "entity_update"));
    // Down to the call that got another's reply.
    let ladder = t.press_for("jjjjjjj\r", "CROSSED");
    insta::assert_snapshot!("ladder", ladder);
    insta::assert_snapshot!("bodies", t.press_for("\r", "entity_update id 3 (c8)"));
    t.press_for("G", "c482a88d96");
    t.press_for(ESCAPE, "CROSSED");
    t.press_for(ESCAPE, "Enter ladder");
    t.press_for(ESCAPE, "Enter calls");
    t.press("q");
    assert!(t.end().success());
    assert!(t.is_given_back());
}

#[test]
fn findings_are_jumped_to_one_after_the_other_and_round() {
    let mut t = collision(80, 24);
    for n in [1, 2, 3, 4, 5, 1] {
        t.press_for("]", &format!("Finding {n} of 5"));
    }
    insta::assert_snapshot!("finding", t.press_for("]]", "Finding 3 of 5"));
    t.press_for("[[[", "Finding 5 of 5");
    // Jumping piles nothing up: one step leads out.
    t.press_for(ESCAPE, "Enter calls");
    insta::assert_snapshot!("findings", t.press_for("3", "crossed/id-collision"));
    t.press_for("jj\r", "Finding 3 of 5");
    // From the call that was hurt to the one whose reply it got.
    t.press_for("b", "entity_update id 3 (c8)");
    t.press_for("o", "journal_append id 3 (c7)");
    t.press_for("o", "entity_update id 3 (c8)");
}

#[test]
fn lists_are_filtered_and_searched() {
    let mut t = collision(80, 24);
    t.press_for("2", "slow_echo");
    let few = t.press_for("foutcome=no-reply\r", "2 of 12 fit");
    assert!(few.contains("slow_echo") && !few.contains("fast_echo"), "{few}");
    // Kept for the next list of calls, changed by typing on.
    t.press_for("1\r", "2 of 12 fit");
    t.press_for("f nothing-has-this\r", "no row fits the filter");
    t.press_for("f\x15tol=x\r", "no column tol");
    t.press_for("f\x15\r", "fast_echo");
    t.press_for("g/BLAKE2b\r", "not found: BLAKE2b");
    // The list of tools names it too, in its body.
    t.press_for("/journal_append\r", "> c2 ");
    t.press_for("n", "> c7 ");
    t.press_for("N", "> c2 ");
}

#[test]
fn text_that_only_bodies_hold_is_found() {
    let log = tempfile::tempdir().unwrap();
    let call = |n: usize, text: &str| {
        format!(
            "{{\"at\":\"2026-11-29T19:41:{n:02}Z\",\"tool\":\"t{n}\",\"outcome\":\"ok\",\"arguments\":{{\"q\":\"{text}\"}}}}\n"
        )
    };
    let text: String = (0..40).map(|n| call(n, if n == 33 { "Needle" } else { "hay" })).collect();
    std::fs::write(log.path().join("calls.jsonl"), text).unwrap();
    let mut t = Terminal::run(&["calls.jsonl"], log.path(), 80, 24);
    t.wait_for("Enter calls");
    t.press_for("2", "t20");
    let found = t.press_for("/needle\r", "> c34");
    assert!(found.contains("t33"), "{found}");
    let body = t.press_for("b/needle\r", "Needle");
    assert!(body.contains("c34"), "{body}");
}

#[test]
fn what_is_marked_is_saved_as_a_bundle() {
    let folder = tempfile::tempdir().unwrap();
    for name in INPUTS {
        std::fs::copy(fixture("02-crossed-id-collision").join(name), folder.path().join(name)).unwrap();
    }
    let mut t = Terminal::run(&INPUTS[..2], folder.path(), 80, 24);
    t.wait_for("Enter calls");
    // The finding in which c8 got the reply of c7.
    t.press_for("3", "crossed/id-collision");
    t.press_for("jj ", "2 calls marked");
    t.press_for("s", "bundle of 2 calls to file: evidence.zip");
    t.press_for("\x15chosen.zip\r", "chosen.zip: ");
    let said = t.wait_for("bytes, redacted");
    assert!(said.contains("chosen.zip: 2 findings"), "{said}");
    t.press_for("s\x15chosen.zip\r", "is there already");
    t.press_for("us", "bundle of 2 calls to file");
    // Esc and a key that come together are not a key of their own.
    t.press("\x1bq");
    assert!(t.end().success());

    let crosswire = |args: &[&str]| {
        let o = Command::new(env!("CARGO_BIN_EXE_crosswire")).args(args).current_dir(folder.path()).output().unwrap();
        (o.status.code(), String::from_utf8(o.stdout).unwrap())
    };
    assert_eq!(crosswire(&["verify", "chosen.zip"]).0, Some(0));
    let (_, report) = crosswire(&["analyze", "chosen.zip", "--format", "json"]);
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    let tools: Vec<_> = report["calls"].as_array().unwrap().iter().filter_map(|c| c["tool"].as_str()).collect();
    assert_eq!(tools, ["journal_append", "entity_update"], "what was marked, and the handshake");
    let rules: Vec<_> = report["findings"].as_array().unwrap().iter().map(|f| f["rule"].as_str().unwrap()).collect();
    assert_eq!(rules, ["orphaned/no-reply", "crossed/id-collision"]);
    // The command line does the same; of logs the neighbours come along, with their packets.
    let calls = ["--call", "c9", "-o", "typed.zip"];
    let (status, said) = crosswire(&[&["bundle"], &INPUTS[..], &calls].concat());
    assert!(status == Some(0) && said.contains("the log lines beside theirs"), "{said}");
    assert_eq!(crosswire(&["verify", "typed.zip"]).0, Some(0));
    let (_, report) = crosswire(&["analyze", "typed.zip", "--rule", "orphaned/never-sent"]);
    assert!(report.contains("Nothing found"), "{report}");
    assert_eq!(crosswire(&["bundle", INPUTS[1], "--call", "c99", "-o", "none.zip"]).0, Some(2));
    assert!(!folder.path().join("none.zip").exists());
}

#[test]
fn any_size_is_borne() {
    let mut t = collision(80, 24);
    t.press_for("]]]", "Finding 3 of 5");
    for (columns, rows) in [(40, 10), (200, 60), (20, 3), (1, 1), (8, 2), (80, 24)] {
        t.resize(columns, rows);
        std::thread::sleep(Duration::from_millis(300));
        t.press("jk");
    }
    let screen = t.wait_for("Finding 3 of 5");
    assert!(screen.contains("Enter bodies") && screen.contains("CROSSED"), "{screen}");
    t.resize(120, 30);
    t.wait_until("a wide ladder", |s| s.lines().any(|l| l.chars().count() > 100));
    t.press("q");
    assert!(t.end().success());
    assert!(t.is_given_back());
}

#[test]
fn however_it_ends_the_terminal_is_given_back() {
    for how in ["q", CONTROL_C, "TERM", "HUP", "INT", "TERM within a key"] {
        let mut t = collision(80, 24);
        t.press_for("]", "Finding 1 of 5");
        match how {
            "q" | CONTROL_C => t.press(how),
            "TERM within a key" => {
                t.press("\x1b[");
                std::thread::sleep(Duration::from_millis(300));
                t.signal("-TERM");
            }
            signal => t.signal(&format!("-{signal}")),
        }
        let status = t.end();
        assert!(status.success(), "{how:?}: {status:?}");
        assert!(t.is_given_back(), "{how:?}");
    }
}

/// `script` (util-linux) holds the other end; killed, it leaves a terminal that is gone.
#[test]
fn a_terminal_that_is_closed_ends_it() {
    let folder = tempfile::tempdir().unwrap();
    let status = folder.path().join("status");
    let line = format!(
        "trap : HUP; '{}' browse backend.pcap; echo \"ended $?\" > '{}'",
        env!("CARGO_BIN_EXE_crosswire"),
        status.display()
    );
    let started = Command::new("script")
        .args(["-qfc", &line, "/dev/null"])
        .current_dir(fixture("02-crossed-id-collision"))
        .env("LC_ALL", "C.UTF-8")
        .env("SHELL", "/bin/sh")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut script) = started else { return eprintln!("skipped: script (util-linux) is not here") };
    let mut shown = vec![];
    let mut out = script.stdout.take().unwrap();
    let mut buffer = [0; 4096];
    while !String::from_utf8_lossy(&shown).contains("Enter calls") {
        let n = out.read(&mut buffer).unwrap();
        assert!(n > 0, "{}", String::from_utf8_lossy(&shown));
        shown.extend_from_slice(&buffer[..n]);
    }
    script.kill().unwrap();
    script.wait().unwrap();
    let end = Instant::now() + Duration::from_secs(60);
    while !std::fs::read_to_string(&status).is_ok_and(|s| s.ends_with('\n')) {
        assert!(Instant::now() < end, "it goes on without its terminal");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(std::fs::read_to_string(&status).unwrap(), "ended 0\n");
}

#[test]
fn the_shell_gets_its_terminal_back() {
    let script = format!("'{}' browse backend.pcap; echo \"status $?\"; stty -a", env!("CARGO_BIN_EXE_crosswire"));
    let mut t = Terminal::run_shell(&script, &fixture("02-crossed-id-collision"), 100, 24);
    t.wait_for("Enter calls");
    t.press("q");
    let screen = t.wait_for("status 0");
    let screen = if screen.contains("icanon") { screen } else { t.wait_for("icanon") };
    for setting in ["icanon", "echo", "isig", "opost"] {
        assert!(screen.split_whitespace().any(|word| word == setting), "{setting}: {screen}");
    }
}

/// Ctrl-Z gives the terminal to the shell as it was, and `fg` goes on where it stopped, in the size that
/// the terminal has by then.
#[test]
fn it_stops_and_goes_on_as_the_shell_wants() {
    let mut t = Terminal::run_shell("exec sh -m -i", &fixture("02-crossed-id-collision"), 80, 24);
    t.press(&format!("PS1='ready> '; '{}' browse backend.pcap\n", env!("CARGO_BIN_EXE_crosswire")));
    t.wait_for("Enter calls");
    t.press_for("]]", "Finding 2 of 5");
    t.press(CONTROL_Z);
    t.wait_until("the shell", |s| s.trim_end().ends_with("ready>"));
    assert!(t.is_given_back());
    t.press("stty -a\n");
    let screen = t.wait_for("icanon");
    for setting in ["icanon", "echo", "isig", "opost"] {
        assert!(screen.split_whitespace().any(|word| word == setting), "{setting}: {screen}");
    }
    t.resize(100, 30);
    t.press("fg\n");
    let screen = t.wait_for("Finding 2 of 5");
    assert!(screen.contains("Enter bodies") && !screen.contains("ready>"), "{screen}");
    assert!(t.emulator.screen().alternate_screen() && t.emulator.screen().hide_cursor());
    t.wait_until("all of the larger screen", |s| s.lines().count() == 30);
    // Keys reach it, and it stops a second time.
    t.press_for("]", "Finding 3 of 5");
    t.press(CONTROL_Z);
    t.wait_until("the shell", |s| s.trim_end().ends_with("ready>"));
    t.press("fg\n");
    t.wait_for("Finding 3 of 5");
    t.press("q");
    t.wait_until("the shell", |s| s.trim_end().ends_with("ready>"));
    assert!(t.is_given_back());
    t.press("exit\n");
    assert!(t.end().success());
}

#[test]
fn without_a_terminal_it_says_what_to_use() {
    let o = Command::new(env!("CARGO_BIN_EXE_crosswire"))
        .args(["browse", "backend.pcap"])
        .current_dir(fixture("02-crossed-id-collision"))
        .output()
        .unwrap();
    assert_eq!(o.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&o.stderr).contains("crosswire timeline"), "{o:?}");
}

#[test]
fn a_capture_from_standard_input_leaves_the_keys_to_the_terminal() {
    let script = format!("'{}' browse - < backend.pcap", env!("CARGO_BIN_EXE_crosswire"));
    let mut t = Terminal::run_shell(&script, &fixture("02-crossed-id-collision"), 80, 24);
    t.wait_for("Enter calls");
    t.press_for("\r", "entity_update");
    // It cannot be read again.
    t.press_for("s\r", "cannot be read a second time");
    t.press("q");
    assert!(t.end().success());
}

/// Whatever names and bodies hold, no byte of it acts on the terminal.
#[test]
fn hostile_data_stays_data() {
    let folder = tempfile::tempdir().unwrap();
    let evil = "\\u001b]0;owned\\u0007\\u001b[2J\\u001b[31mRED\\u009b2Jx\\u202etxt\\u200b\\r\\n\\u0000</script>";
    let mut log = std::fs::File::create(folder.path().join("calls.jsonl")).unwrap();
    for n in 0..30 {
        let long = if n == 3 { "A\\u001b[8m".repeat(100_000) } else { String::new() };
        writeln!(
            log,
            "{{\"at\":\"2026-11-29T19:41:{n:02}Z\",\"tool\":\"t{evil}{n}\",\"session\":\"s{evil}\",\"outcome\":\"empty\",\"server\":\"{evil}\",\
             \"arguments\":{{\"{evil}\":\"{evil}{long}\"}},\"result\":{{\"x\":\"{evil}\"}},\"text\":\"{evil}\"}}"
        )
        .unwrap();
    }
    drop(log);
    let name = "in\x1b[2J\u{202e}put.jsonl";
    std::fs::rename(folder.path().join("calls.jsonl"), folder.path().join(name)).unwrap();
    let mut t = Terminal::run(&[name], folder.path(), 80, 24);
    t.wait_for("crosswire: sessions");
    for key in [
        "\r", "\r", "\r", "G", ESCAPE, ESCAPE, "jjj", "b", "G", "r", "G", "3", "\r", "b", "]", "/owned\r", "2",
        "/RED\r", "f\\x1b\r",
    ] {
        t.press(key);
        std::thread::sleep(Duration::from_millis(150));
        t.wait_until("a screen", |s| s.contains("crosswire: "));
    }
    t.press("f\x15\u{202e}\u{9b}ok\r");
    t.press("q");
    assert!(t.end().success());
    assert!(t.is_given_back());
    let said = String::from_utf8(t.bytes.clone()).unwrap();
    assert!(said.contains("owned"), "it was shown at all");
    for bad in ["\x1b]", "\x07", "\x1b[31mRED", "\x1b[8m", "\u{9b}", "\u{202e}", "\u{200b}", "\0"] {
        assert!(!said.contains(bad), "{bad:?}");
    }
    assert_eq!(said.matches("\x1b[2J").count(), 1, "the one with which the screen is first drawn");
}
