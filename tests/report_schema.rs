//! Every JSON output holds what its schema says and nothing else: the golden ones, and those of
//! every fixture.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use crosswire::report::schema::{DOCUMENTS, json_schema};
use crosswire::report::view::View;
use crosswire::report::{Calls, RenderOptions, find};
use jsonschema::Validator;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The schema of the document that a `schema` key names; one that refuses unknown fields.
fn closed(schema: &str) -> Value {
    let name = schema.strip_prefix("crosswire.").and_then(|s| s.strip_suffix("/1")).unwrap();
    json_schema(DOCUMENTS.iter().find(|d| d.name == name).unwrap(), true)
}

fn check(what: &str, validator: &Validator, value: &Value) {
    let errors: Vec<String> =
        validator.iter_errors(value).map(|e| format!("{}: {e}", e.instance_path)).take(5).collect();
    assert!(errors.is_empty(), "{what}: describe it in src/report/schema\n{}", errors.join("\n"));
}

fn check_document(what: &str, text: &str) {
    let value: Value = serde_json::from_str(text).unwrap_or_else(|e| panic!("{what}: {e}"));
    let schema = closed(value["schema"].as_str().unwrap());
    check(what, &jsonschema::validator_for(&schema).unwrap(), &value);
}

/// Each line is an object of the timeline's schema with a `type`; the last the summary.
fn check_lines(what: &str, text: &str) {
    let whole = closed("crosswire.timeline/1");
    for line in text.lines() {
        let mut value: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{what}: {e}"));
        let fields = value.as_object_mut().unwrap();
        let of = fields.remove("type").unwrap();
        if of == "summary" {
            assert!(fields.remove("schema").is_some() && fields.remove("crosswire").is_some());
            fields.remove("troubles");
        }
        let schema = json!({ "$ref": format!("#/$defs/{}", of.as_str().unwrap()), "$defs": whole["$defs"] });
        check(what, &jsonschema::validator_for(&schema).unwrap(), &value);
    }
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

#[test]
fn golden_outputs() {
    let mut seen = 0;
    for entry in std::fs::read_dir(folder("tests/snapshots")).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let (_, body) = text.split_once("\n---\n").unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        if name.contains("ndjson") {
            check_lines(name, body);
        } else if body.starts_with("{\n \"schema\"") {
            check_document(name, body);
        } else {
            continue;
        }
        seen += 1;
    }
    assert!(seen >= 4, "{seen}");
}

#[test]
fn reports_made_by_hand() {
    let options = RenderOptions { calls: Some(Calls::All), ..RenderOptions::default() };
    for report in [common::collision(), common::stale_window(), common::clean()] {
        let view = View::new(&report);
        let renders =
            [find("json").unwrap(), find("ndjson").unwrap()].map(|r| [r.report.unwrap(), r.timeline.unwrap()]);
        for (i, render) in renders.into_iter().flatten().enumerate() {
            let mut out = Vec::new();
            render(&view, &options, &mut out).unwrap();
            let text = String::from_utf8(out).unwrap();
            if i < 2 { check_document("by hand", &text) } else { check_lines("by hand", &text) }
        }
    }
}

fn crosswire(args: &[&str]) -> String {
    let o = Command::new(env!("CARGO_BIN_EXE_crosswire")).args(args).env_remove("SSLKEYLOGFILE").output().unwrap();
    String::from_utf8(o.stdout).unwrap()
}

#[test]
fn reports_of_every_fixture() {
    for entry in std::fs::read_dir(folder("fixtures")).unwrap() {
        let case = entry.unwrap().path();
        let case = case.to_str().unwrap();
        check_document(case, &crosswire(&["analyze", case, "--format", "json", "--bodies"]));
        check_document(case, &crosswire(&["timeline", case, "--format", "json"]));
        check_lines(case, &crosswire(&["timeline", case, "--format", "ndjson", "--calls", "all"]));
    }
    // What is nearly a finding is told where it is asked for, with the call.
    let case = folder("fixtures/04-stale-404-window/client.jsonl");
    let nearly = |args: &[&str]| crosswire(&[&["analyze", case.to_str().unwrap(), "--format"], args].concat());
    check_lines("near", &nearly(&["ndjson", "-v"]));
    check_document("near", &nearly(&["json", "-v"]));
    let near: Value = serde_json::from_str(&nearly(&["json", "-v"])).unwrap();
    let told = near["near"][0]["text"].as_str().unwrap();
    assert!(told.starts_with(&format!("{} ", near["near"][0]["call"].as_str().unwrap())), "{told}");
    assert!(nearly(&["ndjson", "-v"]).contains("\"type\": \"near\""));
    assert!(!nearly(&["json"]).contains("\"near\"") && !nearly(&["ndjson"]).contains("\"near\""));
    let case = folder("fixtures/02-crossed-id-collision");
    check_document("show", &crosswire(&["show", case.to_str().unwrap(), "--call", "c1", "--format", "json"]));
}

#[test]
fn what_is_not_described_is_seen() {
    let schema = closed("crosswire.report/1");
    let validator = jsonschema::validator_for(&schema).unwrap();
    let good: Value = serde_json::from_str(&crosswire(&[
        "analyze",
        folder("fixtures/01-clean").to_str().unwrap(),
        "--format",
        "json",
    ]))
    .unwrap();
    assert!(validator.is_valid(&good));
    for (at, value) in [
        ("/inputs/0/new", json!(1)),
        ("/calls/0/outcome", json!("lost")),
        ("/calls/0/key", json!("8")),
        ("/summary/calls", Value::Null),
        ("/calls/0/sent", json!("yesterday")),
    ] {
        let mut bad = good.clone();
        let (object, field) = at.rsplit_once('/').unwrap();
        bad.pointer_mut(object).unwrap().as_object_mut().unwrap().insert(field.into(), value);
        assert!(!validator.is_valid(&bad), "{at}");
    }
}
