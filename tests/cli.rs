//! The command line as a user meets it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::process::{Command, Output};

const BACKEND: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/02-crossed-id-collision/backend.pcap");

fn crosswire(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_crosswire"))
        .args(args)
        .env_remove("SSLKEYLOGFILE")
        .env_remove("NO_COLOR")
        .output()
        .unwrap()
}

fn out(o: &Output) -> String {
    String::from_utf8(o.stdout.clone()).unwrap()
}

fn err(o: &Output) -> String {
    String::from_utf8(o.stderr.clone()).unwrap()
}

#[test]
fn help_is_no_error_and_names_every_command() {
    let help = crosswire(&["--help"]);
    assert_eq!(help.status.code(), Some(0));
    for command in crosswire::commands::COMMANDS {
        assert!(out(&help).contains(command.name), "{}", command.name);
        assert_eq!(crosswire(&[command.name, "--help"]).status.code(), Some(0));
    }
}

#[test]
fn bad_usage_is_trouble_and_says_what_is_expected() {
    for (args, expected) in [
        (&["analyze"][..], "INPUT"),
        (&["analyse", "x"], "unrecognized"),
        (&["analyze", "x", "--format", "yaml"], "expected one of text, markdown, csv, json, ndjson, html"),
        (&["analyze", "x", "--client-timeout", "soon"], "300s"),
        (&["analyze", "x", "--since", "yesterday"], "2026-11-29T19:38:46Z"),
        (
            &["analyze", "x", "--since", "2026-11-29T20:00:00Z", "--until", "2026-11-29T19:59:59Z"],
            "lies before --since",
        ),
        (&["timeline", "x", "--rule", "crossed/id-colision"], "crosswire rules"),
        (&["analyze", "x", "--min-confidence", "sure"], "possible, probable or certain"),
        (&["analyze", "x", "--tz", "Mars/Olympus"], "Europe/Berlin"),
        (&["analyze", "x", "--memory", "lots"], "512MiB"),
        (&["analyze", "x", "--vantage", "x"], "NAME:PATH"),
        (&["analyze", "x", "--vantage", "moon:x"], "client, proxy, server or wire"),
        (&["analyze", "x", "--input-format", "no-such-format"], "crosswire formats"),
        (&["analyze", "x", "--table", "chairs"], "windows"),
        (&["analyze", "x", "--width", "wide"], "a whole number from 40 to 65535"),
        (&["analyze", BACKEND, "--vantage", "client:no-such.pcap"], "no-such.pcap is none of the inputs"),
        (&["timeline", BACKEND, "--input-format", "pcap:no-such.pcap"], "no-such.pcap is none of the inputs"),
        (&["timeline", BACKEND, "--around", "c99"], "5 findings, numbered from 1, and the call that one befell"),
        (&["map", "x"], "only --step list takes names"),
        (&["formats", "no-such-format"], "crosswire formats"),
        (&["rules", "no-such-rule"], "crosswire rules"),
        (&["man", "no-such-command"], "analyze"),
    ] {
        let o = crosswire(args);
        assert_eq!(o.status.code(), Some(2), "{args:?}");
        assert!(err(&o).contains(expected), "{args:?}: {}", err(&o));
        assert!(out(&o).is_empty(), "{args:?}");
    }
}

#[test]
fn a_missing_input_is_trouble_that_names_it() {
    let o = crosswire(&["analyze", "no/such/capture.pcap", "--format", "json"]);
    assert_eq!(o.status.code(), Some(2));
    assert!(err(&o).contains("no/such/capture.pcap"), "{}", err(&o));
    // What could be read (here nothing) is still reported.
    let report: serde_json::Value = serde_json::from_str(&out(&o)).unwrap();
    assert_eq!(report["schema"], "crosswire.report/1");
}

/// Where nothing was read, nothing found would look like a clean report.
#[test]
fn nothing_read_is_trouble_that_says_why() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    std::fs::create_dir(path("empty")).unwrap();
    std::fs::create_dir(path("notes")).unwrap();
    std::fs::write(path("notes/x.bin"), [0, 1, 2, 0xff, 0xfe]).unwrap();
    std::fs::write(path("rnd.bin"), [0xff; 64]).unwrap();
    let tar = |name: &str| {
        let made = Command::new("tar").args(["-cf", name, "-C"]).arg(dir.path()).arg("rnd.bin").status().unwrap();
        assert!(made.success());
    };
    tar(&path("a.tar"));
    for (args, said) in [
        (&["analyze", &path("empty")][..], "no files in it"),
        (&["scan", &path("empty"), "--format", "ndjson"], "no files in it"),
        (&["analyze", &path("notes")], "x.bin: no known format"),
        (&["analyze", &path("a.tar")], "a tar archive; `crosswire scan` reads"),
        (&["analyze", &path("rnd.bin"), "--input-format", "pcap"], "read as pcap, and nothing of it is that"),
        (&["analyze", BACKEND, "--input-format", "journal-json"], "read as journal-json"),
    ] {
        let o = crosswire(args);
        assert_eq!(o.status.code(), Some(2), "{args:?}");
        let all = format!("{}{}", out(&o), err(&o));
        assert!(all.contains(said), "{args:?}: {all}");
    }
}

#[test]
fn a_format_that_no_line_has_is_trouble() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let line = |n: u32| {
        format!(
            "{{\"ts\":\"2026-11-29T10:00:{n:02}+00:00\",\"method\":\"POST\",\"uri\":\"/mcp\",\"status\":\"200\",\"body_bytes_sent\":\"36\",\"request_time\":\"0.020\"}}\n"
        )
    };
    let combined = |n: u32| {
        format!("10.0.0.5 - - [29/Nov/2026:10:00:{n:02} +0000] \"POST /mcp HTTP/1.1\" 200 36 \"-\" \"cli/1.0\"\n")
    };
    std::fs::write(path("json.log"), (0..20).map(line).collect::<String>()).unwrap();
    std::fs::write(path("combined.log"), (0..20).map(combined).collect::<String>()).unwrap();
    for format in crosswire::input::client::FORMATS {
        for log in ["json.log", "combined.log"] {
            let o = crosswire(&["analyze", &path(log), "--input-format", format.name]);
            assert_eq!(o.status.code(), Some(2), "{} on {log}: {}", format.name, out(&o));
            assert!(err(&o).contains("nothing of it is that"), "{} on {log}: {}", format.name, err(&o));
        }
        // Its own lines are.
        std::fs::write(path("own.log"), format.samples.join("\n")).unwrap();
        let o = crosswire(&["analyze", &path("own.log"), "--input-format", format.name]);
        assert_ne!(o.status.code(), Some(2), "{}: {}{}", format.name, out(&o), err(&o));
    }
    let with = |string: &str| crosswire(&["analyze", &path("combined.log"), "--log-format", string]);
    let none = with("$server_name $msec $status");
    assert_eq!(none.status.code(), Some(2));
    assert!(err(&none).contains("--log-format fits no line"), "{}", err(&none));
    let fits = with(
        "$remote_addr - $remote_user [$time_local] \"$request\" $status $body_bytes_sent \"$http_referer\" \"$http_user_agent\"",
    );
    assert_ne!(fits.status.code(), Some(2), "{}", err(&fits));
}

#[test]
fn recorded_exchanges_are_listed_and_may_be_named() {
    let list = out(&crosswire(&["formats"]));
    for name in ["pcap", "har", "mitmproxy"] {
        assert!(list.lines().any(|l| l.split(' ').next() == Some(name)), "{name}: {list}");
        assert_eq!(crosswire(&["formats", name]).status.code(), Some(0));
        let o = crosswire(&["analyze", BACKEND, "--input-format", name]);
        assert!(!err(&o).contains("no such format"), "{}", err(&o));
    }
}

#[test]
fn a_record_that_cannot_be_read_is_named_by_its_line() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_crosswire"))
        .arg("reduce")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"\n\nno record\n").unwrap();
    let o = child.wait_with_output().unwrap();
    assert_eq!(o.status.code(), Some(2));
    assert!(err(&o).contains("standard input, line 3: "), "{}", err(&o));
}

#[test]
fn what_is_passed_over_or_left_out_is_said() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::copy(BACKEND, dir.path().join("backend.pcap")).unwrap();
    std::fs::create_dir(dir.path().join("empty")).unwrap();
    let folder = dir.path().to_str().unwrap();
    assert_eq!(err(&crosswire(&["analyze", folder])), "");
    std::fs::write(dir.path().join("x.bin"), [0, 1, 2, 0xff, 0xfe]).unwrap();
    let said = crosswire(&["analyze", folder]);
    assert_eq!(said.status.code(), Some(1));
    assert!(err(&said).contains("1 file of no known format not read: ") && err(&said).contains("x.bin"));
    assert_eq!(err(&crosswire(&["analyze", folder, "--quiet"])), "");
    let typo = crosswire(&["analyze", BACKEND, "--tool", "entity_updat"]);
    assert_eq!(typo.status.code(), Some(0));
    assert!(err(&typo).contains("leave none of 12 calls"), "{}", err(&typo));
    assert_eq!(err(&crosswire(&["analyze", BACKEND, "--tool", "entity_update"])), "");
}

#[test]
fn formats_and_rules_have_manuals() {
    let list = out(&crosswire(&["formats"]));
    for line in list.lines() {
        let name = line.split_whitespace().next().unwrap();
        let manual = crosswire(&["formats", name]);
        assert_eq!(manual.status.code(), Some(0), "{name}");
        assert!(out(&manual).starts_with(name));
    }
    let rules = out(&crosswire(&["rules"]));
    for line in rules.lines() {
        let name = line.split_whitespace().next().unwrap();
        assert!(out(&crosswire(&["rules", name])).contains("Evidence:"), "{name}");
    }
    assert!(out(&crosswire(&["formats", "--limits"])).contains("message-bytes"));
}

#[test]
fn the_version_says_of_what_commit_and_features_it_is() {
    let long = out(&crosswire(&["--version"]));
    let lines: Vec<&str> = long.lines().collect();
    assert_eq!(lines[0], concat!("crosswire ", env!("CARGO_PKG_VERSION")));
    assert!(lines[1].starts_with("commit: ") && lines[1].len() > "commit: ".len(), "{long}");
    assert!(lines[2].starts_with("features: ") && lines[2].len() > "features: ".len(), "{long}");
    assert!(out(&crosswire(&["-V"])).starts_with(concat!("crosswire ", env!("CARGO_PKG_VERSION"), " (")));
}
