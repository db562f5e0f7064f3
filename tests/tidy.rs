//! Rules of the house that the compiler does not know: module imports go one way, files stay
//! short and say what they are, panics stay out of code that reads foreign data.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::path::{Path, PathBuf};

/// Modules from left to right; a module may import what stands before it, and itself. Those in one
/// group stand side by side and may not import each other, unless `BESIDE` says so.
const LAYERS: &[&[&str]] = &[
    &["model"],
    &["input"],
    &["wire"],
    &["mcp"],
    &["join"],
    &["rules"],
    &["analyze"],
    &["report"],
    &["analyze"],
    &["evidence", "scan", "drive"],
    &["live", "browse"],
    &["commands"],
];

/// Files longer than this say why, in a line of their module doc that begins with `LONG`.
const LINES: usize = 500;
const LONG: &str = "//! Longer than 500 lines: ";

fn files(under: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join(under)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    assert!(!found.is_empty(), "no Rust files under {under}");
    found
}

fn named(path: &Path) -> String {
    path.strip_prefix(env!("CARGO_MANIFEST_DIR")).unwrap().display().to_string()
}

/// Fails with all that is wrong, one a line.
fn none(wrong: Vec<String>) {
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

/// Code without comments and strings' contents, line by line, so that words in them do not count.
fn code(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut in_block = 0;
    for line in text.lines() {
        let mut kept = String::new();
        let mut rest = line;
        while let Some(c) = rest.chars().next() {
            if in_block > 0 {
                if let Some(after) = rest.strip_prefix("*/") {
                    in_block -= 1;
                    rest = after;
                    continue;
                }
            } else if rest.starts_with("//") {
                break;
            } else if let Some(after) = rest.strip_prefix("/*") {
                in_block += 1;
                rest = after;
                continue;
            } else if c == '"' && !kept.ends_with('\'') {
                let mut escaped = false;
                let end = rest[1..].char_indices().find(|&(_, c)| {
                    let closes = c == '"' && !escaped;
                    escaped = c == '\\' && !escaped;
                    closes
                });
                kept.push_str("\"\"");
                match end {
                    Some((i, _)) => rest = &rest[i + 2..],
                    None => break,
                }
                continue;
            } else {
                kept.push(c);
            }
            rest = &rest[c.len_utf8()..];
        }
        lines.push(kept);
    }
    lines
}

/// The lines before the file's own tests, which stand last.
fn outside_tests(text: &str) -> Vec<String> {
    code(text).into_iter().take_while(|l| l.trim() != "#[cfg(test)]").collect()
}

fn is_test_file(path: &Path) -> bool {
    path.file_stem().is_some_and(|s| s == "tests" || s.to_string_lossy().ends_with("_tests"))
        || path.components().any(|c| c.as_os_str() == "tests")
}

fn layer(module: &str) -> Option<usize> {
    LAYERS.iter().position(|group| group.contains(&module))
}

/// Path of the module that a file of `src` holds: `src/wire/http1/mod.rs` is `[wire, http1]`.
fn module_of(path: &Path) -> Vec<String> {
    let inside = path.strip_prefix(Path::new(env!("CARGO_MANIFEST_DIR")).join("src")).unwrap();
    let mut parts: Vec<String> = inside.components().map(|c| c.as_os_str().to_string_lossy().into_owned()).collect();
    let last = parts.pop().unwrap();
    let stem = last.trim_end_matches(".rs");
    if stem != "mod" {
        parts.push(stem.to_owned());
    }
    parts
}

/// Top-level modules that a line names by `crate::`, or by enough `super::` to leave its own.
fn top_modules(code: &str, depth: usize) -> Vec<String> {
    let mut found = Vec::new();
    let ident = |s: &str| s.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        match rest.strip_prefix('{') {
            None => found.push(ident(rest)),
            Some(group) => {
                let mut level = 0;
                for part in group.split_inclusive(['{', '}', ',']) {
                    if level == 0 {
                        found.push(ident(part.trim()));
                    }
                    level += i32::from(part.ends_with('{')) - i32::from(part.ends_with('}'));
                    if level < 0 {
                        break;
                    }
                }
            }
        }
    }
    let chain = "super::".repeat(depth.max(1));
    for (at, _) in code.match_indices(&chain) {
        found.push(ident(&code[at + chain.len()..]));
    }
    found
}

#[test]
fn imports_go_one_way() {
    let mut wrong = Vec::new();
    for path in files("src") {
        let module = module_of(&path);
        let Some(own) = module.first().and_then(|m| layer(m)) else { continue };
        let text = fs::read_to_string(&path).unwrap();
        // A group of imports may span lines.
        let joined = code(&text).join("\n");
        for other in top_modules(&joined, module.len()) {
            let Some(theirs) = layer(&other) else { continue };
            if theirs > own || (theirs == own && other != module[0]) {
                wrong.push(format!("{}: {} may not import {other}", named(&path), module[0]));
            }
        }
    }
    wrong.dedup();
    none(wrong);
}

#[test]
fn every_module_has_a_place() {
    let known = |m: &str| layer(m).is_some() || matches!(m, "main" | "lib" | "bin");
    let wrong = files("src").into_iter().map(|p| module_of(&p)).filter(|m| !m.first().is_some_and(|m| known(m)));
    none(wrong.map(|m| format!("src/{}: not in LAYERS", m.join("/"))).collect());
}

#[test]
fn every_file_says_what_it_is() {
    let mut wrong = Vec::new();
    for path in files("src").iter().chain(&files("tests")) {
        let text = fs::read_to_string(path).unwrap();
        let first = text.lines().find(|l| !l.trim().is_empty()).unwrap_or_default();
        let is_main = path.ends_with("src/main.rs") && text.lines().count() < 5;
        if !first.starts_with("//! ") && !is_main {
            wrong.push(format!("{}: begins without a `//!` doc", named(path)));
        }
    }
    none(wrong);
}

#[test]
fn files_are_short_or_say_why_not() {
    let mut wrong = Vec::new();
    for path in files("src") {
        let text = fs::read_to_string(&path).unwrap();
        let lines = text.lines().count();
        if lines > LINES && !text.lines().any(|l| l.starts_with(LONG)) {
            wrong.push(format!("{}: {lines} lines, and no line \"{LONG}…\"", named(&path)));
        }
    }
    none(wrong);
}

/// The one module that may hold `unsafe`, each with the comment that proves it right before it.
const UNSAFE: &str = "src/mcp/skip.rs";

#[test]
fn nothing_panics_outside_tests() {
    const WORDS: [&str; 8] =
        [".unwrap()", ".expect(", "panic!(", "todo!(", "unimplemented!(", "unreachable!(", "dbg!(", "unsafe "];
    const ALLOWED: [&str; 3] = ["clippy::unwrap_used", "clippy::expect_used", "clippy::panic"];
    let mut wrong = Vec::new();
    for path in files("src").into_iter().filter(|p| !is_test_file(p)) {
        let text = fs::read_to_string(&path).unwrap();
        for (i, line) in outside_tests(&text).iter().enumerate() {
            let proved =
                named(&path) == UNSAFE && i > 0 && text.lines().nth(i - 1).is_some_and(|l| l.contains("// SAFETY: "));
            for word in WORDS.iter().chain(&ALLOWED).filter(|w| line.contains(*w) && !(proved && **w == "unsafe ")) {
                wrong.push(format!("{}:{}: {word}", named(&path), i + 1));
            }
        }
    }
    none(wrong);
}

#[test]
fn every_limit_is_listed() {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/model/limits.rs")).unwrap();
    let (_, table) = text.split_once("pub const ALL").unwrap();
    let names = text.lines().filter_map(|l| l.strip_prefix("pub const ")?.split_once(": usize").map(|(n, _)| n));
    none(names.filter(|n| !table.contains(*n)).map(|n| format!("limits::{n} is not in ALL")).collect());
}

#[test]
fn every_fixture_says_how_it_was_made() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let folders = fs::read_dir(fixtures).unwrap().map(|e| e.unwrap().path()).filter(|p| p.is_dir());
    none(folders.filter(|p| !p.join("README.md").exists()).map(|p| format!("{}: no README.md", named(&p))).collect());
}

#[test]
fn no_merge_is_left_undone() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let top = fs::read_dir(root).unwrap().chain(fs::read_dir(root.join("docs")).unwrap());
    let texts = top.map(|e| e.unwrap().path()).filter(|p| p.extension().is_some_and(|e| e == "md"));
    let is_mark = |l: &str| l.starts_with("<<<<<<< ") || l.starts_with(">>>>>>> ");
    none(texts.filter(|p| fs::read_to_string(p).unwrap().lines().any(is_mark)).map(|p| named(&p)).collect());
}

#[test]
fn the_checks_see_what_they_look_for() {
    assert_eq!(top_modules("use crate::{wire::tcp, model::{a, b}, join};", 2), ["wire", "model", "", "join"]);
    assert_eq!(top_modules("super::super::report::x()", 2), ["report"]);
    assert_eq!(top_modules("super::report::x()", 2), [""; 0]);
    let text = "a(\"x.unwrap() // \\\" y\"); // .unwrap()\n/* panic!( */ b();\n'\"'; c.unwrap()";
    assert_eq!(code(text), ["a(\"\"); ", " b();", "'\"'; c.unwrap()"]);
    assert_eq!(module_of(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/wire/tcp/mod.rs")), ["wire", "tcp"]);
}
