//! What the README and `docs/` show is what the program prints, and every command in them can be
//! run. `CROSSWIRE_UPDATE=1 cargo test --test readme` writes the output anew.
//!
//! A `console` block is run where the project is, and its output compared. The commands of `sh` blocks
//! are run among files of the names that the texts use, where nothing may be trouble; those that need
//! more than files, in `elsewhere.rs`. What is not run because something is not installed is said.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod elsewhere;
#[allow(dead_code)]
#[path = "../drive/fake.rs"]
mod fake;

use crosswire::commands::{COMMANDS, definition};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every text with commands in it.
fn texts() -> Vec<PathBuf> {
    let top = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md"].map(|name| root().join(name));
    let docs = std::fs::read_dir(root().join("docs")).unwrap().map(|e| e.unwrap().path());
    let mut all: Vec<PathBuf> =
        top.into_iter().chain(docs.filter(|p| p.extension().is_some_and(|e| e == "md"))).collect();
    all.sort();
    all
}

/// Runs a line as a shell does, with the crosswire of this build.
fn shell(line: &str, folder: &Path) -> Output {
    let program = Path::new(env!("CARGO_BIN_EXE_crosswire")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    Command::new("bash")
        .args(["-o", "pipefail", "-c", line])
        .current_dir(folder)
        .env("PATH", path)
        .env("HOME", folder)
        .env_remove("SSLKEYLOGFILE")
        .output()
        .unwrap()
}

/// Runs a command of a text and gives what it prints. Findings are no failure, trouble is.
fn printed(line: &str, folder: &Path) -> String {
    let line = line.replace("cargo run --release -- ", "crosswire ");
    let o = shell(&line, folder);
    let said = String::from_utf8_lossy(&o.stderr);
    assert!(matches!(o.status.code(), Some(0 | 1)) && said.is_empty(), "{line}: {}: {said}", o.status);
    String::from_utf8(o.stdout).unwrap()
}

#[test]
fn the_texts_show_what_is_printed() {
    let mut commands = 0;
    for path in texts() {
        let kept = std::fs::read_to_string(&path).unwrap();
        let mut anew = String::new();
        let mut in_block = false;
        for line in kept.lines() {
            match (in_block, line) {
                (false, "```console") => in_block = true,
                (true, "```") => in_block = false,
                (true, line) if !line.starts_with("$ ") => continue,
                _ => {}
            }
            anew.push_str(line);
            anew.push('\n');
            if let Some(command) = line.strip_prefix("$ ").filter(|_| in_block) {
                anew.push_str(&printed(command, root()));
                commands += 1;
            }
        }
        if kept != anew && std::env::var_os("CROSSWIRE_UPDATE").is_some() {
            std::fs::write(&path, &anew).unwrap();
        } else {
            let name = path.strip_prefix(root()).unwrap().display();
            assert!(kept == anew, "{name} is out of date: CROSSWIRE_UPDATE=1 cargo test --test readme");
        }
    }
    assert!(commands > 8, "{commands}");
}

/// The blocks of a text: language and lines.
fn blocks(text: &str) -> Vec<(String, Vec<String>)> {
    let mut blocks: Vec<(String, Vec<String>)> = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        match line.trim().strip_prefix("```") {
            Some(language) => {
                inside = !inside;
                if inside {
                    blocks.push((language.to_owned(), Vec::new()));
                }
            }
            None if inside => blocks.last_mut().unwrap().1.push(line.to_owned()),
            None => {}
        }
    }
    assert!(!inside, "a block that does not end");
    blocks
}

/// The files that the texts speak of, from fixtures.
fn sandbox() -> tempfile::TempDir {
    const FILES: &[(&str, &str)] = &[
        ("capture.pcap", "02-crossed-id-collision/backend.pcap"),
        ("backend.pcap", "02-crossed-id-collision/backend.pcap"),
        ("server.pcap", "02-crossed-id-collision/backend.pcap"),
        ("incident.pcap", "02-crossed-id-collision/backend.pcap"),
        ("backend.pcapng", "02-crossed-id-collision/backend.pcap"),
        ("traffic.pcapng", "02-crossed-id-collision/backend.pcap"),
        ("front.pcap", "02-crossed-id-collision/front.pcap"),
        ("access.json.log", "02-crossed-id-collision/access.json.log"),
        ("access.log", "02-crossed-id-collision/access.json.log"),
        ("journal.json", "02-crossed-id-collision/journal.json"),
        ("client.jsonl", "02-crossed-id-collision/client.jsonl"),
        ("stale.pcap", "04-stale-404-window/front.pcap"),
        ("stale-journal.json", "04-stale-404-window/journal.json"),
        ("stale-client.jsonl", "04-stale-404-window/client.jsonl"),
        ("tls.pcap", "14a-tls13-http1/front.pcap"),
        ("keys.txt", "14a-tls13-http1/keylog.txt"),
        ("archive/edge-1/access.log.1", "04-stale-404-window/access.json.log"),
        ("archive/edge-1/backend.pcap", "04-stale-404-window/backend.pcap"),
        ("server.log", "application-logs/docker-json-file.log"),
    ];
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("archive/edge-1")).unwrap();
    for (name, fixture) in FILES {
        std::fs::copy(root().join("fixtures").join(fixture), folder.path().join(name)).unwrap();
    }
    let packed = zstd::encode_all(&*std::fs::read(folder.path().join("backend.pcap")).unwrap(), 3).unwrap();
    std::fs::write(folder.path().join("backend.pcap.zst"), packed).unwrap();
    let custom = "192.0.2.7 [2026-11-29T19:38:46+00:00] \"POST /mcp HTTP/1.1\" 200 0.031\n";
    std::fs::write(folder.path().join("custom.log"), custom).unwrap();
    std::fs::create_dir_all(folder.path().join(".local/share/bash-completion/completions")).unwrap();
    printed("crosswire analyze capture.pcap --format json -o known.json", folder.path());
    folder
}

/// The commands of a block, a line that ends in `\` with its next.
fn commands(lines: &[String]) -> Vec<String> {
    let joined = lines.join("\n").replace("\\\n", " ");
    joined.lines().map(|l| l.trim().to_owned()).filter(|l| !l.is_empty() && !l.starts_with('#')).collect()
}

/// A line without what stands behind `#` (outside quotes there is no other in these texts).
fn without_comment(line: &str) -> &str {
    line.split_once(" #").map_or(line, |(command, _)| command).trim_end()
}

/// Commands whose only needs are files.
const OF_FILES: [&str; 13] = [
    "analyze",
    "timeline",
    "show",
    "rules",
    "formats",
    "bundle",
    "verify",
    "scan",
    "map",
    "reduce",
    "completions",
    "man",
    "--version",
];

#[test]
fn every_command_can_be_run() {
    let folder = sandbox();
    let elsewhere = elsewhere::Elsewhere::new(folder.path());
    let (mut run, mut beyond) = (0, 0);
    for path in texts() {
        let text = std::fs::read_to_string(&path).unwrap();
        let shells = blocks(&text).into_iter().filter(|(language, _)| language == "sh");
        for line in shells.flat_map(|(_, lines)| commands(&lines)) {
            let line = without_comment(&line);
            let subcommand = line.strip_prefix("crosswire ").and_then(|l| l.split(' ').next());
            let is_of_files = subcommand.is_some_and(|c| OF_FILES.contains(&c)) && !line.contains("://");
            if is_of_files && !line.contains("| jq") {
                printed(line, folder.path());
                run += 1;
            } else if let Some(script) = line.split(' ').find(|w| !w.contains('=')).filter(|w| w.contains('/')) {
                // A script of the project: .ci/run is what runs these.
                let mode = std::fs::metadata(root().join(script)).unwrap().permissions().mode();
                assert!(mode & 0o111 != 0, "{line}");
            } else {
                match elsewhere.run(line) {
                    Ok(()) => beyond += 1,
                    Err(lacking) => eprintln!("not run, for lack of {}: {line}", lacking.0),
                }
            }
        }
    }
    assert!(run > 30 && beyond > 30, "{run} {beyond}");
}

/// Every `crosswire …` in a block of any kind is a command that exists, with options that exist.
#[test]
fn every_command_is_understood() {
    for path in texts() {
        let text = std::fs::read_to_string(&path).unwrap();
        let text = blocks(&text).into_iter().filter(|(language, _)| matches!(&**language, "sh" | "yaml" | "console"));
        for line in text.flat_map(|(_, lines)| commands(&lines)) {
            for (at, _) in line.match_indices("crosswire ") {
                let rest = &line[at..];
                let is_command = at == 0 || matches!(line[..at].trim_end().chars().last(), Some('|' | '$' | ':'));
                if is_command {
                    understood(without_comment(rest));
                }
            }
        }
    }
}

fn understood(line: &str) {
    // The shell splits; what it would pass to the program is what counts.
    let end = line.find(" | ").or(line.find(" > ")).unwrap_or(line.len());
    let script = format!("crosswire() {{ printf '%s\\0' crosswire \"$@\"; }}; {}", &line[..end]);
    let words = shell(&script, root()).stdout;
    let words = String::from_utf8(words).unwrap();
    let words: Vec<&str> = words.split_terminator('\0').collect();
    match definition().try_get_matches_from(&words) {
        Ok(_) => {}
        Err(e) => assert_eq!(e.exit_code(), 0, "{line}: {e}"),
    }
}

#[test]
fn links_lead_to_files() {
    for path in texts() {
        let text = std::fs::read_to_string(&path).unwrap();
        for (at, _) in text.match_indices("](") {
            let target = text[at + 2..].split(')').next().unwrap().split('#').next().unwrap();
            if !target.is_empty() && !target.contains("://") {
                assert!(path.parent().unwrap().join(target).exists(), "{}: {target}", path.display());
            }
        }
    }
}

#[test]
fn the_library_s_example_is_the_one_that_is_compiled() {
    let path = root().join("docs/library.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let example = std::fs::read_to_string(root().join("examples/crossed.rs")).unwrap();
    let (head, rest) = text.split_once("```rust\n").unwrap();
    let (_, tail) = rest.split_once("```\n").unwrap();
    let anew = format!("{head}```rust\n{example}```\n{tail}");
    if std::env::var_os("CROSSWIRE_UPDATE").is_some() {
        std::fs::write(&path, anew).unwrap();
    } else {
        assert!(text == anew, "docs/library.md is out of date: CROSSWIRE_UPDATE=1 cargo test --test readme");
    }
}

/// The log_format of the texts is the one that the fixtures were written with.
#[test]
fn the_log_format_is_read_as_it_is_written() {
    let text = std::fs::read_to_string(root().join("docs/capture.md")).unwrap();
    let block = blocks(&text).into_iter().find(|(language, _)| language == "nginx").unwrap().1.join("\n");
    let log = std::fs::read_to_string(root().join("fixtures/02-crossed-id-collision/access.json.log")).unwrap();
    let line: serde_json::Map<String, serde_json::Value> = serde_json::from_str(log.lines().next().unwrap()).unwrap();
    let keys = block.split('"').skip(1).step_by(4);
    let keys: Vec<&str> = keys.take(line.len()).collect();
    assert_eq!(keys, line.keys().collect::<Vec<_>>());
}

#[test]
fn the_readme_names_every_command_that_a_user_meets() {
    let all: String = texts().iter().map(|p| std::fs::read_to_string(p).unwrap()).collect();
    for command in COMMANDS {
        let name = format!("crosswire {}", command.name);
        let named = all.match_indices(&name);
        let is_whole = |end: usize| !all[end..].starts_with(|c: char| c.is_ascii_alphanumeric());
        let mut ends = named.map(|(at, found)| at + found.len());
        assert!(ends.any(is_whole), "{}", command.name);
    }
}
