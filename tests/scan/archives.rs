//! Broken, hostile and doubled members.

use crate::kit::{DAY, analyze, gz, log, put, scan, tar, zip, zst};
use std::path::Path;

fn names(list: &serde_json::Value) -> Vec<String> {
    let name = |v: &serde_json::Value| v["name"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
    list.as_array().unwrap().iter().map(name).collect()
}

#[test]
fn broken_members_are_named_and_passed_over_and_make_it_trouble() {
    let dir = tempfile::tempdir().unwrap();
    let log = |n: u64| log(n, DAY + n as i64 * 10_000, 1200, 6).concat().into_bytes();
    put(dir.path(), "good/access.log", log(1));
    let cut = gz(&log(2));
    put(dir.path(), "cut/a.log.gz", &cut[..cut.len() * 6 / 10]);
    let mut changed = zst(&log(3));
    let middle = changed.len() / 2;
    changed[middle..middle + 16].iter_mut().for_each(|b| *b ^= 0x5a);
    put(dir.path(), "changed/b.log.zst", changed);
    let (one, two) = (log(4), log(5));
    let whole = tar(&[("c.log", &one), ("d.log", &two)]);
    put(dir.path(), "tar/e.tar", &whole[..whole.len() - two.len() / 2 - 1024]);
    put(dir.path(), "targz/f.tar.gz", gz(&whole[..whole.len() - two.len() / 2 - 1024]));
    let z = zip(&[("g.log", &log(6))]);
    put(dir.path(), "zip/h.zip", &z[..z.len() - 30]);
    put(dir.path(), "named/i.log.gz", log(7));
    put(dir.path(), "nested/j.tar", tar(&[("k.tar", &tar(&[("l.log", &log(8))]))]));
    let out = scan(&[dir.path().to_str().unwrap()]);
    assert_eq!(out.status, 2, "{}", out.error);
    let mut broken = names(&out.summary()["broken"]);
    broken.sort();
    // The tar.gz holds copies of what the tar holds, and is broken itself.
    let wanted = [
        "a.log.gz",
        "b.log.zst",
        "e.tar",
        "e.tar!d.log",
        "f.tar.gz",
        "f.tar.gz!d.log",
        "h.zip",
        "i.log.gz",
        "j.tar!k.tar",
    ];
    assert_eq!(broken, wanted);
    assert_eq!(names(&out.summary()["copies"]), ["f.tar.gz!c.log", "f.tar.gz!d.log"]);
    for name in wanted {
        assert!(out.error.contains(name), "{name} is not said on standard error: {}", out.error);
    }
    // What can be read of them was read.
    for file in ["good/access.log", "cut/a.log.gz", "tar/e.tar!c.log", "tar/e.tar!d.log", "named/i.log.gz"] {
        let read = out.all("input").iter().any(|i| i["name"].as_str().unwrap().ends_with(file));
        assert!(read, "nothing found in {file}");
    }
    let kept = scan(&[dir.path().to_str().unwrap(), "--keep-going"]);
    assert_eq!(kept.status, 1);
    assert_eq!(kept.claims(), out.claims());
    let missing = scan(&[dir.path().join("none").to_str().unwrap(), "--keep-going"]);
    assert_eq!(missing.status, 2);
}

#[test]
fn copies_are_read_once_and_named() {
    let dir = tempfile::tempdir().unwrap();
    let text = log(1, DAY, 1500, 6).concat();
    put(dir.path(), "edge/access.log", &text);
    put(dir.path(), "backup/edge/access.log.gz", gz(text.as_bytes()));
    put(dir.path(), "part/access.log", &text[..text.len() / 2]);
    let mut other = text.clone().into_bytes();
    let middle = other.len() / 2;
    other[middle..middle + 300].fill(0);
    put(dir.path(), "damaged/access.log", other);
    let alone = analyze(&[dir.path().join("edge/access.log").to_str().unwrap()]);
    let out = scan(&[dir.path().to_str().unwrap()]);
    let s = out.summary();
    assert_eq!(names(&s["copies"]).len(), 2, "{s}");
    assert_eq!(s["variants"].as_array().unwrap().len(), 1);
    // The copy that differs is a source of its own, and no second witness of the first.
    let of = |part: &str| {
        let mine = |f: &&serde_json::Value| f["service"].as_str().unwrap().ends_with(part);
        out.all("finding").iter().filter(mine).count()
    };
    assert_eq!(of("/edge"), alone.claims().len());
    assert!(of("/damaged") <= alone.claims().len() + 2 && of("/damaged") > 0);
}

/// Every file below a folder.
fn tree(folder: &Path) -> Vec<String> {
    let mut all = vec![];
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        match entry.file_type().unwrap().is_dir() {
            true => all.extend(tree(&entry.path())),
            false => all.push(entry.path().display().to_string()),
        }
    }
    all.sort();
    all
}

#[test]
fn names_of_members_never_reach_the_file_system() {
    let dir = tempfile::tempdir().unwrap();
    let lines = |n: u64| log(n, DAY, 600, 6).concat().into_bytes();
    let members: Vec<(&str, Vec<u8>)> = vec![
        ("../../../escaped.log", lines(1)),
        ("/tmp/crosswire-escaped.log", lines(2)),
        ("day=2026-01-01/\u{1b}[31m.log", lines(3)),
        ("a/../../b.log", lines(4)),
    ];
    let borrowed: Vec<(&str, &[u8])> = members.iter().map(|(n, b)| (*n, b.as_slice())).collect();
    put(dir.path(), "in/x.tar.gz", gz(&tar(&borrowed)));
    put(dir.path(), "in/y.zip", zip(&borrowed));
    let before = tree(&dir.path().join("in"));
    let (input, output) = (dir.path().join("in"), dir.path().join("out"));
    let out = scan(&[input.to_str().unwrap(), "--out", output.to_str().unwrap()]);
    assert!(!out.claims().is_empty());
    assert!(!out.text.contains('\u{1b}'));
    assert_eq!(tree(&input), before);
    assert!(!Path::new("/tmp/crosswire-escaped.log").exists());
    for file in tree(dir.path()) {
        assert!(!file.contains("escaped") && !file.contains("2026-01-01"), "{file}");
    }
    let csv = std::fs::read_to_string(output.join("findings.csv")).unwrap();
    assert!(csv.contains("!../../../escaped.log") && !csv.contains('\u{1b}'));
}

/// A hundred thousand empty members, and one whose header claims more than there is: soon over, and said.
#[test]
fn archives_made_to_harm_end_soon() {
    let dir = tempfile::tempdir().unwrap();
    let many: Vec<(String, &[u8])> = (0..20_000).map(|n| (format!("m{n}"), &b""[..])).collect();
    let many: Vec<(&str, &[u8])> = many.iter().map(|(n, b)| (n.as_str(), *b)).collect();
    put(dir.path(), "many.tar.gz", gz(&tar(&many)));
    let mut claims = tar(&[("large.log", b"x")]);
    claims[124..135].copy_from_slice(b"77777777777");
    let sum: u32 =
        claims[..512].iter().enumerate().map(|(i, b)| if (148..156).contains(&i) { 32 } else { u32::from(*b) }).sum();
    claims[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    put(dir.path(), "claims.tar", claims);
    let out = scan(&[dir.path().to_str().unwrap()]);
    assert_eq!(out.status, 2);
    assert_eq!(out.summary()["empty"], 20_000);
    assert_eq!(names(&out.summary()["broken"]), ["claims.tar", "claims.tar!large.log"]);
}
