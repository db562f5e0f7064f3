//! Every dependency has a licence that deny.toml allows and comes from crates.io.
//!
//! This is what `cargo deny check licenses sources` checks, without that tool and without the
//! network. Advisories are not checked here: their database is only on the network.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use serde_json::Value;
use std::collections::BTreeSet;
use std::process::Command;

/// An SPDX expression (SPDX 2.3, annex D) holds where the allowed licences suffice. `/` is the old
/// way of writing OR.
fn holds(expression: &str, allowed: &[String]) -> Option<bool> {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    let value = any(&words, &mut at, allowed)?;
    (at == words.len()).then_some(value)
}

fn any(words: &[&str], at: &mut usize, allowed: &[String]) -> Option<bool> {
    let mut value = all(words, at, allowed)?;
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        value |= all(words, at, allowed)?;
    }
    Some(value)
}

fn all(words: &[&str], at: &mut usize, allowed: &[String]) -> Option<bool> {
    let mut value = one(words, at, allowed)?;
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        value &= one(words, at, allowed)?;
    }
    Some(value)
}

fn one(words: &[&str], at: &mut usize, allowed: &[String]) -> Option<bool> {
    let word = *words.get(*at)?;
    *at += 1;
    if word == "(" {
        let value = any(words, at, allowed)?;
        (words.get(*at) == Some(&")")).then(|| *at += 1)?;
        return Some(value);
    }
    let mut name = word.to_owned();
    if words.get(*at) == Some(&"WITH") {
        name = format!("{word} WITH {}", words.get(*at + 1)?);
        *at += 2;
    }
    Some(allowed.contains(&name))
}

fn allowed() -> Vec<String> {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/deny.toml")).unwrap();
    let (_, list) = text.split_once("\nallow = [").unwrap();
    let (list, _) = list.split_once(']').unwrap();
    list.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

/// What cargo prints. It is let to the network: what only other features need is not there after a plain build.
fn cargo(args: &[&str]) -> Vec<u8> {
    let mut cargo = Command::new(env!("CARGO"));
    let out = cargo.args(args).arg("--locked").current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    out.stdout
}

#[test]
fn dependencies_are_allowed() {
    let version = Command::new(std::env::var("RUSTC").unwrap_or("rustc".to_owned())).arg("-vV").output().unwrap();
    let version = String::from_utf8(version.stdout).unwrap();
    let host = version.lines().find_map(|l| l.strip_prefix("host: ")).unwrap();
    // What is built, with every feature; the metadata below also has what features of other features could bring.
    let tree = cargo(&["tree", "--all-features", "--prefix", "none", "--format", "{p}", "--target", host]);
    let tree = String::from_utf8(tree).unwrap();
    let built: BTreeSet<String> = tree.lines().map(|l| l.split(' ').take(2).collect::<Vec<_>>().join(" ")).collect();
    assert!(["object_store v", "parquet v", "tokio v"].iter().all(|p| built.iter().any(|b| b.starts_with(p))));
    let metadata = cargo(&["metadata", "--all-features", "--format-version", "1", "--filter-platform", host]);
    let metadata: Value = serde_json::from_slice(&metadata).unwrap();
    let allowed = allowed();
    let mut wrong = Vec::new();
    for package in metadata["packages"].as_array().unwrap() {
        let name = format!("{} {}", package["name"].as_str().unwrap(), package["version"].as_str().unwrap());
        let Some(source) = package["source"].as_str() else { continue };
        if !built.contains(&name.replacen(' ', " v", 1)) {
            continue;
        }
        if source != "registry+https://github.com/rust-lang/crates.io-index" {
            wrong.push(format!("{name}: from {source}"));
        }
        match package["license"].as_str() {
            None => wrong.push(format!("{name}: no licence expression")),
            Some(l) if holds(l, &allowed) != Some(true) => wrong.push(format!("{name}: {l}")),
            Some(_) => {}
        }
    }
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

#[test]
fn expressions() {
    let allowed = ["MIT".to_owned(), "Apache-2.0 WITH LLVM-exception".to_owned(), "ISC".to_owned()];
    for (expression, value) in [
        ("MIT", Some(true)),
        ("GPL-3.0", Some(false)),
        ("GPL-3.0 OR MIT", Some(true)),
        ("GPL-3.0/MIT", Some(true)),
        ("GPL-3.0 AND MIT", Some(false)),
        ("(GPL-3.0 OR MIT) AND ISC", Some(true)),
        ("GPL-3.0 OR MIT AND ISC", Some(true)),
        ("Apache-2.0 WITH LLVM-exception", Some(true)),
        ("Apache-2.0", Some(false)),
        ("MIT OR", None),
        ("(MIT", None),
    ] {
        assert_eq!(holds(expression, &allowed), value, "{expression}");
    }
}
