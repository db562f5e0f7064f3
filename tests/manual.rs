//! What is made from the definitions of commands and from the tables, and kept in the repository:
//! manual pages and JSON Schemas. `CROSSWIRE_UPDATE=1 cargo test --test manual` writes them anew.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crosswire::commands::man::pages;
use crosswire::report::schema::{DOCUMENTS, OBJECTS, PROBLEMS, json_schema, json_schema_id};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// Are these the files of the folder, and no others?
fn kept(name: &str, made: &BTreeMap<String, String>) {
    let folder = folder(name);
    if std::env::var_os("CROSSWIRE_UPDATE").is_some() {
        std::fs::create_dir_all(&folder).unwrap();
        for (file, text) in made {
            std::fs::write(folder.join(file), text).unwrap();
        }
    }
    for (file, text) in made {
        let kept = std::fs::read_to_string(folder.join(file)).unwrap_or_default();
        assert!(kept == *text, "{name}/{file} is out of date: CROSSWIRE_UPDATE=1 cargo test --test manual");
    }
    for entry in std::fs::read_dir(&folder).unwrap() {
        let file = entry.unwrap().file_name().into_string().unwrap();
        assert!(made.contains_key(&file), "{name}/{file} is made from nothing any more");
    }
}

#[test]
fn manual_pages_are_those_of_the_definitions() {
    kept("man", &pages().into_iter().map(|p| (p.file(), p.text)).collect());
}

#[test]
fn schemas_are_those_of_the_tables() {
    let schemas = DOCUMENTS.iter().map(|d| {
        let text = serde_json::to_string_pretty(&json_schema(d, false)).unwrap();
        (json_schema_id(d), text + "\n")
    });
    kept("docs/schema", &schemas.collect());
}

#[test]
fn every_rule_format_and_field_has_its_place_in_the_manual() {
    let page = |name: &str| pages().into_iter().find(|p| p.file() == name).unwrap().text;
    let escaped = |s: &str| s.replace('-', "\\-");
    let rules = page("crosswire-rules.7");
    for rule in crosswire::rules::RULES {
        assert!(rules.contains(&format!(".SS \"{}\"", escaped(rule.name))), "{}", rule.name);
    }
    let formats = page("crosswire-formats.7");
    for format in crosswire::input::log::FORMATS.iter().chain(crosswire::input::client::FORMATS) {
        assert!(formats.contains(&format!(".SS \"{} (", escaped(format.name))), "{}", format.name);
    }
    let report = page("crosswire-report.7");
    for object in DOCUMENTS.iter().chain(OBJECTS) {
        assert!(report.contains(&format!(".SS \"{}\"", escaped(object.name))), "{}", object.name);
        for field in object.fields {
            assert!(report.contains(&format!(".TP\n\\fB{}\\fR", escaped(field.name))), "{}", field.name);
        }
    }
    assert!(PROBLEMS.iter().all(|(name, _)| report.contains(&escaped(name))));
}

/// Is the program there? The check is left out where it is not.
fn have(program: &str) -> bool {
    let found =
        Command::new("sh").args(["-c", &format!("command -v {program}")]).output().is_ok_and(|o| o.status.success());
    if !found {
        eprintln!("{program} is not installed: not checked with it");
    }
    found
}

#[test]
fn manual_pages_are_clean_roff() {
    // The `man` of man-db, which alone has the option.
    let has_warnings =
        Command::new("man").arg("--help").output().is_ok_and(|o| o.stdout.windows(10).any(|w| w == b"--warnings"));
    let (mandoc, groff) = (have("mandoc"), have("groff"));
    for page in pages() {
        let path = folder("man").join(page.file());
        if has_warnings {
            let o = Command::new("man")
                .args(["--warnings", "-E", "UTF-8", "-Tutf8", "-Z", "-l"])
                .arg(&path)
                .output()
                .unwrap();
            assert!(o.status.success() && o.stderr.is_empty(), "{}", String::from_utf8_lossy(&o.stderr));
        }
        if mandoc {
            let o = Command::new("mandoc").args(["-T", "lint", "-W", "warning"]).arg(&path).output().unwrap();
            assert!(
                o.stdout.is_empty() && o.stderr.is_empty(),
                "{}",
                String::from_utf8_lossy(&[o.stdout, o.stderr].concat())
            );
        }
        if groff {
            let o = Command::new("groff").args(["-man", "-Tutf8", "-Kutf8", "-ww", "-z"]).arg(&path).output().unwrap();
            // A word longer than the line is no fault of the page.
            let said = String::from_utf8_lossy(&o.stderr).into_owned();
            let wrong: Vec<&str> = said.lines().filter(|l| !l.contains("cannot") || !l.contains("line")).collect();
            assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        }
    }
}
