//! What a scan of the whole says is what `analyze` says of the pieces.

use crate::kit::{DAY, analyze, bz2, crosswire, gz, log, pieces, put, scan, tar, xz, zip, zst};
use std::collections::BTreeSet;

/// One log in five files, each compressed otherwise, cut within a line: as the log in one file.
#[test]
fn a_rotated_set_is_one_log() {
    let dir = tempfile::tempdir().unwrap();
    let lines = log(1, DAY, 3000, 12);
    let parts = pieces(&lines, 5);
    put(dir.path(), "whole/access.log", lines.concat());
    put(dir.path(), "set/access.log.4.gz", gz(parts[0].as_bytes()));
    put(dir.path(), "set/access.log.3.zst", zst(parts[1].as_bytes()));
    put(dir.path(), "set/access.log.2.xz", xz(parts[2].as_bytes()));
    put(dir.path(), "set/access.log.1.bz2", bz2(parts[3].as_bytes()));
    put(dir.path(), "set/access.log", &parts[4]);
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let whole = analyze(&[&path("whole/access.log")]);
    let set = scan(&[&path("set")]);
    assert!(whole.claims().len() > 10, "{:?}", whole.claims());
    assert_eq!(set.claims(), whole.claims());
    assert_eq!((set.status, whole.status), (1, 1));
    assert_eq!(set.summary()["calls"], whole.summary()["calls"]);
    // Each piece of evidence is named by its own file and its line in it.
    let set_line = |file: &str, n: usize| -> String {
        let order = ["access.log.4.gz", "access.log.3.zst", "access.log.2.xz", "access.log.1.bz2", "access.log"];
        let part = order.iter().position(|o| file.ends_with(&format!("/{o}"))).unwrap();
        parts[part].lines().nth(n - 1).unwrap().to_owned()
    };
    let mut cited = BTreeSet::new();
    let names: Vec<&str> = set.all("input").iter().map(|i| i["name"].as_str().unwrap()).collect();
    for e in set.all("finding").iter().flat_map(|f| f["evidence"].as_array().unwrap()) {
        let file = names[e["input"].as_u64().unwrap() as usize];
        cited.insert(set_line(file, e["line"].as_u64().unwrap() as usize));
    }
    let mut wanted = BTreeSet::new();
    for e in whole.all("finding").iter().flat_map(|f| f["evidence"].as_array().unwrap()) {
        wanted.insert(lines[e["line"].as_u64().unwrap() as usize - 1].trim_end().to_owned());
    }
    // The one line that two files share is cited by its beginning.
    let shared = parts[0].lines().last().unwrap();
    let whole_of =
        |l: &String| if l == shared { format!("{l}{}", parts[1].lines().next().unwrap()) } else { l.clone() };
    assert_eq!(cited.iter().map(whole_of).collect::<BTreeSet<_>>(), wanted);
    assert!(names.len() > 3, "{names:?}");
}

/// The sources of one incident, in folders by host and in archives, are correlated as if given to `analyze`.
#[test]
fn sources_that_name_the_same_sessions_are_taken_together() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    for case in ["02-crossed-id-collision", "04-stale-404-window", "06b-orphan-server-killed"] {
        let dir = tempfile::tempdir().unwrap();
        let read = |name: &str| std::fs::read(root.join(case).join(name)).unwrap();
        put(dir.path(), "edge/captures/front.pcap.gz", gz(&read("front.pcap")));
        put(dir.path(), "edge/nginx/access.json.log", read("access.json.log"));
        let server =
            tar(&[("export/backend.pcap", &read("backend.pcap")), ("export/journal.json", &read("journal.json"))]);
        put(dir.path(), "server/export.tar.zst", zst(&server));
        put(dir.path(), "laptop.zip", zip(&[("Users/me/client.jsonl", &read("client.jsonl"))]));
        // A bystander of another time.
        put(dir.path(), "other/access.log", log(9, DAY, 600, 3).concat());
        let names = ["front.pcap", "access.json.log", "backend.pcap", "journal.json", "client.jsonl"];
        let inputs: Vec<String> = names.iter().map(|n| root.join(case).join(n).to_str().unwrap().to_owned()).collect();
        let together = analyze(&inputs.iter().map(String::as_str).collect::<Vec<_>>());
        let whole = scan(&[dir.path().to_str().unwrap(), "--until", "2027-01-01", "--since", "2026-11-01"]);
        let base = |name: &str| name.rsplit(['/', '!']).next().unwrap().trim_end_matches(".gz").to_owned();
        assert!(!together.claims().is_empty());
        assert_eq!(whole.claims(), together.claims(), "{case}");
        assert_eq!(whole.proofs(&base), together.proofs(&base), "{case}");
    }
}

/// A scan of an archive finds what `analyze` finds in each of its sources alone.
#[test]
fn the_whole_is_the_sum_of_unrelated_pieces() {
    let dir = tempfile::tempdir().unwrap();
    let mut alone = vec![];
    for host in 1..4 {
        let lines = log(host, DAY + host as i64 * 100, 1500, 6).concat();
        put(dir.path(), &format!("edge-{host}/gateway/access.log.1.gz"), gz(lines.as_bytes()));
        alone.extend(analyze(&[&format!("{}/edge-{host}/gateway/access.log.1.gz", dir.path().display())]).claims());
    }
    alone.sort();
    let whole = scan(&[dir.path().to_str().unwrap()]);
    assert_eq!(whole.claims(), alone);
    assert_eq!(whole.summary()["sources"], 3);
    // By day, service, rule and fault, all findings are in the table.
    let table = whole.summary()["table"].as_array().unwrap();
    let sum: u64 = table.iter().flat_map(|r| ["high", "medium", "low"].map(|l| r[l].as_u64().unwrap())).sum();
    assert_eq!(sum as usize, alone.len());
    assert!(table.iter().any(|r| r["service"].as_str().unwrap().ends_with("edge-2/gateway")));
    // Several threads give the same lines in the same order as one.
    let one = scan(&[dir.path().to_str().unwrap(), "--jobs", "1"]);
    let four = scan(&[dir.path().to_str().unwrap(), "--jobs", "4"]);
    assert_eq!(one.text, four.text);
}

/// A group too large for the memory is cut into slices of time: nothing twice, nothing lost.
#[test]
fn slices_find_what_the_whole_finds() {
    let dir = tempfile::tempdir().unwrap();
    // Long enough for several marks of time, one a MiB.
    let lines = log(5, DAY, 12_000, 18);
    let text = lines.concat();
    assert!(text.len() > 8 << 20, "{}", text.len());
    put(dir.path(), "access.log", &text);
    let path = dir.path().to_str().unwrap();
    let whole = scan(&[path, "--memory", "64GiB"]);
    let cut = scan(&[path, "--memory", "48MiB", "--overlap", "10m"]);
    assert!(whole.claims().len() > 50);
    assert_eq!(cut.claims(), whole.claims());
    let counts = |p: &crate::kit::Printed| (p.summary()["calls"].clone(), p.summary()["tool_calls"].clone());
    assert_eq!(counts(&cut), counts(&whole));
    let keys: BTreeSet<&str> = cut.all("call").iter().map(|c| c["key"].as_str().unwrap()).collect();
    let units: BTreeSet<&str> = keys.iter().filter_map(|k| k.split_once('-')).map(|(_, unit)| unit).collect();
    assert!(units.len() > 2, "it was not cut: {units:?}");
    for f in cut.all("finding") {
        for key in f["calls"].as_array().unwrap() {
            assert!(keys.contains(key.as_str().unwrap()), "{f}");
        }
    }
}

/// The text for people says the same.
#[test]
fn the_summary_says_what_was_found_and_what_was_not_read() {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), "edge/access.log", log(2, DAY, 900, 6).concat());
    put(dir.path(), "edge/photo.jpg", [0xff, 0xd8, 0xff, 0xe0, 0, 1, 2, 3]);
    let o = crosswire(&["scan", dir.path().to_str().unwrap()]);
    let text = String::from_utf8(o.stdout).unwrap();
    for part in
        ["calls in", "over 1 source", "Findings: ", "orphaned/cut-off", "2026-10-05", "1 file of no known format"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(o.status.code(), Some(1));
    // No terminal, no progress.
    assert_eq!(String::from_utf8(o.stderr).unwrap(), "");
}
