//! What the README shows is what the program prints. `CROSSWIRE_UPDATE=1 cargo test --test readme`
//! writes the output anew.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;
use std::process::Command;

/// Runs a command of the README in the project's folder.
fn run(command: &str) -> String {
    let arguments = command.strip_prefix("cargo run --release -- ").or(command.strip_prefix("crosswire "));
    let arguments = arguments.unwrap_or_else(|| panic!("the README runs another program: {command}"));
    let out = Command::new(env!("CARGO_BIN_EXE_crosswire"))
        .args(arguments.split(' '))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env_remove("SSLKEYLOGFILE")
        .output()
        .unwrap();
    assert_ne!(out.status.code(), Some(2), "{command}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

#[test]
fn the_readme_shows_what_is_printed() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let readme = std::fs::read_to_string(&path).unwrap();
    let mut anew = String::new();
    let mut in_block = false;
    let mut commands = 0;
    for line in readme.lines() {
        match (in_block, line) {
            (false, "```console") => in_block = true,
            (true, "```") => in_block = false,
            (true, line) if !line.starts_with("$ ") => continue,
            _ => {}
        }
        anew.push_str(line);
        anew.push('\n');
        if let Some(command) = line.strip_prefix("$ ").filter(|_| in_block) {
            anew.push_str(&run(command));
            commands += 1;
        }
    }
    assert!(commands > 0);
    if std::env::var_os("CROSSWIRE_UPDATE").is_some() {
        std::fs::write(&path, &anew).unwrap();
    } else {
        assert!(readme == anew, "the README is out of date: CROSSWIRE_UPDATE=1 cargo test --test readme");
    }
}
