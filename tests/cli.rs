//! The command line as a user meets it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::process::{Command, Output};

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
