//! Tells the program from which commit it was built, for `crosswire --version`.
//!
//! Only release builds say it: a development build would have to be made anew after every commit,
//! and is of no commit anyway. Nothing here can fail the build: a source package has no `.git`.

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let commit = match std::env::var("PROFILE").as_deref() {
        Ok("release") => described().or_else(packaged).unwrap_or_else(|| "unknown".into()),
        _ => "development build".into(),
    };
    println!("cargo:rustc-env=CROSSWIRE_COMMIT={commit}");
    println!("cargo:rustc-env=CROSSWIRE_FEATURES={}", features());
}

/// `git describe` of this folder's own repository; none if it has none (a package unpacked inside
/// somebody else's repository is not of their commit).
fn described() -> Option<String> {
    let top = git(&["rev-parse", "--show-toplevel"])?;
    let own = std::fs::canonicalize(std::env::var_os("CARGO_MANIFEST_DIR")?).ok()?;
    if std::fs::canonicalize(top).ok()? != own {
        return None;
    }
    // HEAD changes with the branch, its log with every commit.
    for file in ["HEAD", "logs/HEAD"] {
        let path = git(&["rev-parse", "--git-path", file])?;
        if std::path::Path::new(&path).exists() {
            println!("cargo:rerun-if-changed={path}");
        }
    }
    // Whether the tree is clean can change with every source; these make the rest anew anyway.
    for source in ["src", "Cargo.toml", "Cargo.lock"] {
        println!("cargo:rerun-if-changed={source}");
    }
    let commit = git(&["describe", "--tags", "--always", "--abbrev=10"])?;
    let changed = git(&["status", "--porcelain", "--untracked-files=no", "--", "src", "Cargo.toml", "Cargo.lock"])?;
    Some(if changed.is_empty() { commit } else { format!("{commit}, changed") })
}

/// The commit that `cargo package` left in the package.
fn packaged() -> Option<String> {
    let folder = std::path::PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR")?);
    let text = std::fs::read_to_string(folder.join(".cargo_vcs_info.json")).ok()?;
    let (_, rest) = text.split_once("\"sha1\"")?;
    let commit = rest.split('"').nth(1)?;
    commit.bytes().all(|b| b.is_ascii_hexdigit()).then(|| commit.chars().take(10).collect())
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).current_dir(std::env::var_os("CARGO_MANIFEST_DIR")?).output();
    let output = output.ok().filter(|o| o.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}

/// The features that are on, in order of name.
fn features() -> String {
    let on = std::env::vars().filter_map(|(name, _)| name.strip_prefix("CARGO_FEATURE_").map(str::to_lowercase));
    let mut on: Vec<String> = on.filter(|name| name != "default").map(|name| name.replace('_', "-")).collect();
    on.sort();
    if on.is_empty() { "none".into() } else { on.join(", ") }
}
