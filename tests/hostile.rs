//! Inputs whose every text tries to act on what shows it, through every command that shows some.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "common/bundle.rs"]
mod unpack;

use crosswire::report::clean::is_unsafe;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output};

/// As JSON writes it; the sound of it is looked for in everything, so that a test that shows nothing fails.
const EVIL: &str = "\\u001b]0;owned\\u0007\\u001b[2J\\u001b[31mRED\\u009b2Jx\\u202etxt\\u2066\\u200b\\r\\n\\u0000</script><img src=x onerror=alert(1)>|`[a](javascript:alert(1))";
const NAME: &str = "in\u{1b}[2J\u{202e}owned<img src=x>.jsonl";

fn crosswire(folder: &Path, args: &[&str]) -> Output {
    let o = Command::new(env!("CARGO_BIN_EXE_crosswire"))
        .args(args)
        .current_dir(folder)
        .env("LC_ALL", "C.UTF-8")
        .env("COLUMNS", "100")
        .output()
        .unwrap();
    assert!(matches!(o.status.code(), Some(0 | 1)), "{args:?}: {}", String::from_utf8_lossy(&o.stderr));
    o
}

/// A capture of a server that answers with the wrong id, and the client's record of it.
fn write_inputs(folder: &Path, is_long: bool) {
    let long = if is_long { format!("{}{EVIL}", "A\\u001b[8m".repeat(1 << 17)) } else { String::new() };
    let mut log = std::fs::File::create(folder.join(NAME)).unwrap();
    let mut exchanges = vec![];
    for n in 1..=6 {
        let long = if n == 3 { long.as_str() } else { "" };
        let name = format!("t{EVIL}{n}");
        let request = format!(
            r#"{{"jsonrpc":"2.0","id":"i{EVIL}{n}","method":"tools/call","params":{{"name":"{name}","arguments":{{"{EVIL}":"{EVIL}{long}","n":{n}}}}}}}"#
        );
        // The fourth and fifth come back with each other's id.
        let id = match n {
            4 => 5,
            5 => 4,
            n => n,
        };
        let reply = format!(
            r#"{{"jsonrpc":"2.0","id":"i{EVIL}{id}","result":{{"content":[{{"type":"text","text":"{EVIL}{long}"}}]}}}}"#
        );
        exchanges.push((n, request, reply));
        writeln!(
            log,
            r#"{{"at":"2026-11-29T19:41:{n:02}Z","tool":"{name}","session":"s{EVIL}","id":"i{EVIL}{n}","outcome":"empty","server":"{EVIL}","arguments":{{"{EVIL}":"{EVIL}{long}"}},"text":"{EVIL}"}}"#
        )
        .unwrap();
    }
    let entries: Vec<serde_json::Value> = exchanges
        .iter()
        .map(|(n, request, reply)| {
            serde_json::json!({
                "startedDateTime": format!("2026-11-29T19:41:{n:02}.000Z"), "time": 1500,
                "request": {"method": "POST", "url": "http://127.0.0.1:8080/mcp?<img src=x onerror=alert(1)>", "httpVersion": "HTTP/1.1",
                    "headers": [{"name": "content-type", "value": "application/json"}, {"name": "x-evil", "value": "\u{1b}[2J</script>\u{202e}"}],
                    "postData": {"mimeType": "application/json", "text": request}},
                "response": {"status": 200, "statusText": "\u{1b}[31mOK", "httpVersion": "HTTP/1.1",
                    "headers": [{"name": "content-type", "value": "application/json"}, {"name": "x-\u{9b}2J", "value": "\u{202e}<script>alert(1)</script>"}],
                    "content": {"mimeType": "application/json", "text": reply}},
                "timings": {"send": 1, "wait": 1400, "receive": 99}
            })
        })
        .collect();
    let har = serde_json::json!({"log": {"version": "1.2", "creator": {"name": "\u{1b}[2J", "version": "1"}, "entries": entries}});
    std::fs::write(folder.join("evil.har"), har.to_string()).unwrap();
}

fn assert_tame(what: &str, bytes: &[u8]) {
    let text = std::str::from_utf8(bytes).unwrap_or_else(|e| panic!("{what}: {e}"));
    let bad = text.char_indices().find(|(_, c)| is_unsafe(*c) && !matches!(c, '\n' | '\r' | '\t'));
    assert!(
        bad.is_none(),
        "{what}: {bad:?} in {:?}",
        bad.map(|(i, _)| text[i.saturating_sub(40)..].chars().take(80).collect::<String>())
    );
    // In a fenced block of Markdown nothing is HTML.
    let is_markdown = what.contains("markdown") || what.ends_with(".md");
    let outside: String = if is_markdown { text.split("```").step_by(2).collect() } else { text.to_owned() };
    if is_markdown || what.ends_with("html") || what.ends_with("svg") {
        for element in ["<img", "<script>alert", "</script><"] {
            assert!(!outside.contains(element), "{what}: {element}");
        }
    }
    if is_markdown {
        let escaped = outside.replace("\\](javascript:", "");
        assert!(!escaped.contains("](javascript:"), "{what}: a link");
    }
}

/// Runs commands on the inputs in a folder and looks at what they say.
struct Looking<'a> {
    folder: &'a Path,
    seen: String,
}

impl Looking<'_> {
    fn at(&mut self, args: &[&str]) -> Vec<u8> {
        let o = crosswire(self.folder, &[&args[..1], &["evil.har", NAME], &args[1..]].concat());
        let what = args.join(" ");
        assert_tame(&format!("errors of {what}"), &o.stderr);
        assert!(o.stdout.len() > 100, "{what} shows nothing");
        assert_tame(&what, &o.stdout);
        self.seen.push_str(&String::from_utf8_lossy(&o.stdout));
        o.stdout
    }
}

#[test]
fn hostile_inputs_act_nowhere() {
    let dir = tempfile::tempdir().unwrap();
    write_inputs(dir.path(), false);
    let mut look = Looking { folder: dir.path(), seen: String::new() };
    let calls = look.at(&["analyze", "--calls", "all", "--format", "json"]);
    let report: serde_json::Value = serde_json::from_slice(&calls).unwrap();
    assert!(report["calls"].as_array().unwrap().len() >= 6 && !report["findings"].as_array().unwrap().is_empty());
    for format in ["text", "markdown", "csv", "ndjson", "html"] {
        look.at(&["analyze", "--bodies", "--calls", "all", "-v", "--format", format]);
    }
    for format in ["text", "markdown", "svg", "json", "html"] {
        look.at(&["timeline", "--format", format]);
    }
    look.at(&["timeline", "--ascii"]);
    look.at(&["timeline", "--mermaid", "--format", "markdown"]);
    for key in ["c1", "c4"] {
        look.at(&["show", "--call", key]);
        look.at(&["show", "--raw", "--call", key]);
        look.at(&["show", "--format", "json", "--call", key]);
    }
    let seen = look.seen;
    assert!(seen.contains("onerror=alert(1)") && seen.contains("\\x1b]0;owned") && seen.contains("\\u{202e}"));
    for kind in ["zip", "tar.zst"] {
        bundled(dir.path(), kind, &[]);
        bundled(dir.path(), kind, &["--no-redact"]);
    }
}

#[test]
fn hostile_megabytes_act_nowhere() {
    let dir = tempfile::tempdir().unwrap();
    write_inputs(dir.path(), true);
    let mut look = Looking { folder: dir.path(), seen: String::new() };
    for format in ["markdown", "html"] {
        let page = look.at(&["analyze", "--bodies", "--format", format]);
        assert!(page.len() < 1 << 20, "{format}: {} bytes", page.len());
    }
    look.at(&["show", "--raw", "--call", "c3"]);
    let ladder = look.at(&["timeline", "--format", "svg"]);
    assert!(ladder.len() < 1 << 18, "{} bytes", ladder.len());
    bundled(dir.path(), "tar.zst", &["--no-redact"]);
}

/// A bundle, its reports, what is said of it, and of a damaged one under a name that acts.
fn bundled(folder: &Path, kind: &str, options: &[&str]) {
    let file = format!("evidence.{kind}");
    let o = crosswire(folder, &[&["bundle", "-o", &file, "evil.har", NAME], options].concat());
    assert_tame("bundle", &[o.stdout, o.stderr].concat());
    assert_tame("verify", &crosswire(folder, &["verify", &file]).stdout);
    let members = unpack::unpacked(folder.join(&file).to_str().unwrap());
    for (name, bytes) in members.iter().filter(|(name, _)| !name.starts_with("evidence/")) {
        assert!(!name.chars().any(is_unsafe));
        assert_tame(name, bytes);
    }
    let evil = format!("\u{1b}[2J\u{202e}.{kind}");
    let mut bytes = std::fs::read(folder.join(&file)).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(folder.join(&evil), bytes).unwrap();
    let o = crosswire(folder, &["verify", &evil]);
    assert_eq!(o.status.code(), Some(1));
    assert_tame("verify of a damaged one", &[o.stdout, o.stderr].concat());
}
