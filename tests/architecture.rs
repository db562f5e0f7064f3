//! ARCHITECTURE.md against the code: each dependency has its reason, and the places are there that the
//! recipes name. `tests/e2e/recipes.py` follows them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Names in the tables of a section of ARCHITECTURE.md (first column, separated by commas).
fn crates_with_a_reason() -> BTreeSet<String> {
    let text = read("ARCHITECTURE.md");
    let (_, section) = text.split_once("## Dependencies").unwrap();
    let rows = section.lines().filter_map(|l| l.strip_prefix("| ")?.split(" | ").next());
    let names = rows.flat_map(|row| row.split(", ")).map(|n| n.trim().to_owned());
    names.filter(|n| n != "crate").collect()
}

fn dependencies() -> BTreeSet<String> {
    let manifest = read("Cargo.toml");
    let mut names = BTreeSet::new();
    let mut inside = false;
    for line in manifest.lines() {
        if line.starts_with('[') {
            inside = line.contains("dependencies]");
        } else if let Some((name, _)) = line.split_once(" = ").filter(|_| inside && !line.starts_with('#')) {
            names.insert(name.trim().to_owned());
        }
    }
    assert!(names.contains("serde_json") && names.contains("tempfile"));
    names
}

#[test]
fn every_dependency_has_its_reason() {
    let (used, told) = (dependencies(), crates_with_a_reason());
    let silent: Vec<_> = used.difference(&told).collect();
    let gone: Vec<_> = told.difference(&used).collect();
    assert!(silent.is_empty(), "in Cargo.toml, and ARCHITECTURE.md does not say why: {silent:?}");
    assert!(gone.is_empty(), "in ARCHITECTURE.md, and not used: {gone:?}");
}

/// Every word between backticks.
fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// Files under a folder that hold `text`, as paths from the folder without `.rs`.
fn files_with(folder: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> = vec![root().join(folder)];
    while let Some(f) = folders.pop() {
        for entry in fs::read_dir(f).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if fs::read_to_string(&path).is_ok_and(|t| t.contains(text)) {
                let inside = path.strip_prefix(root().join(folder)).unwrap().to_string_lossy().into_owned();
                found.push(inside.trim_end_matches(".rs").to_owned());
            }
        }
    }
    found.sort();
    found
}

/// The lines between which a recipe puts its own stand there, once.
#[test]
fn recipes_say_where() {
    let text = read("ARCHITECTURE.md");
    let (_, recipes) = text.split_once("\n## Recipes\n").unwrap();
    let recipes = recipes.split("\n## ").next().unwrap();
    let mut places = 0;
    for block in recipes.split("   ```diff\n   --- ").skip(1) {
        let block = block.split("\n   ```").next().unwrap();
        let (path, hunks) = block.split_once('\n').unwrap();
        let file = format!("\n{}", read(path));
        for hunk in hunks.split("\n   @@\n") {
            let around = hunk.lines().filter_map(|l| l.strip_prefix("    ")).map(|l| format!("\n{l}"));
            let around = around.collect::<String>() + "\n";
            assert_eq!(file.matches(&around).count(), 1, "{path}: {around}");
            places += 1;
        }
    }
    assert!(places >= 9, "{places}");
}

#[test]
fn formats_stand_where_the_recipe_puts_them() {
    for folder in ["src/input/log", "src/input/client"] {
        let table = read(&format!("{folder}/mod.rs"));
        let listed: Vec<&str> =
            table.lines().filter_map(|l| l.trim().strip_prefix('&')?.strip_suffix("::FORMAT,")).collect();
        assert!(listed.len() > 5, "{folder}: {listed:?}");
        for name in listed {
            assert!(table.contains(&format!("mod {name};")), "{folder}/{name}");
            let files = [format!("{folder}/{name}.rs"), format!("{folder}/{name}/mod.rs")];
            let file = files.iter().find(|f| root().join(f).exists()).unwrap();
            assert!(read(file).contains(" FORMAT: "), "{file}");
        }
    }
}

#[test]
fn rules_stand_where_the_recipe_puts_them() {
    let table = read("src/rules/mod.rs");
    let rules = files_with("src/rules", "pub static RULE: Rule");
    assert_eq!(rules.len(), crosswire::rules::RULES.len());
    for rule in rules {
        let (family, name) = rule.split_once('/').unwrap();
        assert!(read(&format!("src/rules/{family}/mod.rs")).contains(&format!("pub mod {name};")), "{rule}");
        assert!(table.contains(&format!("&{family}::{name}::RULE,")), "{rule}");
        assert!(root().join("tests/wire_rules").join(format!("{family}.rs")).exists(), "{rule}");
    }
}

#[test]
fn outputs_stand_where_the_recipe_puts_them() {
    let table = read("src/report/mod.rs");
    let outputs = files_with("src/report", "pub static RENDERER: Renderer");
    assert_eq!(outputs.len(), crosswire::report::RENDERERS.len());
    for name in outputs.iter().map(|n| n.trim_end_matches("/mod")) {
        assert!(table.contains(&format!("mod {name};")) && table.contains(&format!("&{name}::RENDERER,")), "{name}");
    }
}

/// What the recipes and the other texts name in the tree is there.
#[test]
fn files_that_the_texts_name_exist() {
    for text in ["ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "README.md"] {
        let text_of = read(text);
        for path in quoted(&text_of.replace("```", "")) {
            let is_path =
                ["src/", "tests/", "docs/", "fuzz/", "model/", "report/", ".ci/"].iter().any(|p| path.starts_with(p));
            if !is_path || path.contains("NAME") || path.contains("FAMILY") || path.contains(' ') {
                continue;
            }
            assert!(root().join(path).exists() || root().join("src").join(path).exists(), "{text}: {path}");
        }
    }
}

/// Every format has a manual text and samples, every output a purpose.
#[test]
fn every_entry_of_a_table_is_documented() {
    for format in crosswire::input::log::FORMATS.iter().chain(crosswire::input::client::FORMATS) {
        assert!(format.doc.trim().len() > 40, "{}", format.name);
        // A binary format's samples are its fixtures.
        let is_binary = format.name == "journal-file";
        assert!(is_binary || !format.samples.is_empty(), "{}: no samples", format.name);
    }
    for rule in crosswire::rules::RULES {
        assert!(!rule.says.is_empty() && rule.doc.contains("What to do:"), "{}", rule.name);
    }
    for (name, value, meaning) in crosswire::model::limits::ALL {
        assert!(*value > 0 && !meaning.is_empty(), "{name}");
    }
}
