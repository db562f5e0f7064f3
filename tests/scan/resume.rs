//! Interrupted scans, and scans after a scan.

use crate::kit::{DAY, Random, command, gz, log, put, scan, tar};
use std::fs;
use std::path::Path;
use std::process::Stdio;

/// Eight hosts of which each is work of its own, one of them in an archive that has to be unpacked.
fn archive(folder: &Path) {
    for host in 0..8u64 {
        let lines = log(host + 1, DAY + host as i64 * 4000, 1200, 6).concat();
        let name = format!("edge-{host}/gateway/access.log");
        match host % 3 {
            0 => put(folder, &name, lines),
            1 => put(folder, &format!("{name}.1.gz"), gz(lines.as_bytes())),
            _ => put(folder, &format!("edge-{host}/export.tar.gz"), gz(&tar(&[("access.log", lines.as_bytes())]))),
        }
    }
}

fn read(out: &Path) -> (String, String) {
    let text = |name: &str| fs::read_to_string(out.join(name)).unwrap();
    (text("findings.ndjson"), text("findings.csv"))
}

/// The summary says how much came from the checkpoint in text alone: what is in files is the same.
#[test]
fn killed_at_any_point_it_comes_to_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("in");
    archive(&input);
    // So that each host is a piece of work that is remembered by itself.
    let run = |out: &Path| {
        let mut c = command(&["scan", input.to_str().unwrap(), "--format", "ndjson", "--jobs", "2", "--out"]);
        c.arg(out).args(["--step", "1"]);
        c
    };
    let undisturbed = dir.path().join("undisturbed");
    let whole = run(&undisturbed).output().unwrap();
    assert_eq!(whole.status.code(), Some(1), "{}", String::from_utf8_lossy(&whole.stderr));
    let (wanted, wanted_csv) = read(&undisturbed);
    assert!(wanted.lines().count() > 60);
    assert!(!undisturbed.join("checkpoint.ndjson").exists(), "it is not needed any more");
    // How long the checkpoint becomes when it is kept.
    let kept = dir.path().join("kept");
    run(&kept).arg("--incremental").output().unwrap();
    let most = fs::metadata(kept.join("checkpoint.ndjson")).unwrap().len();
    let mut random = Random(77);
    let mut kills_with_work_done = 0;
    for round in 0..3 {
        let out = dir.path().join(format!("killed-{round}"));
        let checkpoint = out.join("checkpoint.ndjson");
        let length = || fs::metadata(&checkpoint).map_or(0, |m| m.len());
        for _ in 0..3 {
            // Killed when so many more bytes are noted than before, wherever that is.
            let until = length() + random.next() % (most / 2);
            let mut child = run(&out).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            while length() < until && child.try_wait().unwrap().is_none() {
                std::thread::yield_now();
            }
            child.kill().unwrap();
            child.wait().unwrap();
            let noted = fs::read_to_string(&checkpoint).unwrap_or_default();
            kills_with_work_done += usize::from(noted.contains("{\"unit\":"));
        }
        let last = run(&out).output().unwrap();
        assert_eq!(last.status.code(), Some(1));
        assert_eq!(read(&out), (wanted.clone(), wanted_csv.clone()), "round {round}");
        // Standard output is whole too: what was found before the interruption is told again.
        assert_eq!(last.stdout, whole.stdout);
    }
    assert!(kills_with_work_done > 2, "the kills came too early or too late to show anything");
}

#[test]
fn the_next_scan_reads_what_changed() {
    let dir = tempfile::tempdir().unwrap();
    let (input, out) = (dir.path().join("in"), dir.path().join("out"));
    archive(&input);
    let args = ["scan", input.to_str().unwrap(), "--out", out.to_str().unwrap(), "--incremental"];
    let run = || {
        let o = command(&args).args(["--step", "1"]).output().unwrap();
        (String::from_utf8(o.stdout).unwrap(), read(&out))
    };
    let (first, found) = run();
    assert!(!first.contains("From the checkpoint"), "{first}");
    let (second, again) = run();
    assert!(second.contains("8 files unchanged, 8 of 8 pieces of work done before"), "{second}");
    assert_eq!(again, found);
    // One host's log goes on, another host's is gone.
    let more = log(40, DAY + 90_000, 900, 6).concat();
    put(
        &input,
        "edge-0/gateway/access.log",
        fs::read_to_string(input.join("edge-0/gateway/access.log")).unwrap() + &more,
    );
    fs::remove_dir_all(input.join("edge-1")).unwrap();
    let (third, changed) = run();
    assert!(third.contains("6 files unchanged, 6 of 7 pieces of work done before"), "{third}");
    let fresh = scan(&[input.to_str().unwrap(), "--out", dir.path().join("fresh").to_str().unwrap()]);
    assert_eq!(
        fresh.claims(),
        crate::kit::Printed::of(&std::process::Output {
            status: std::process::ExitStatus::default(),
            stdout: changed.0.clone().into_bytes(),
            stderr: vec![],
        })
        .claims()
    );
}

#[test]
fn other_options_do_not_take_what_is_not_theirs() {
    let dir = tempfile::tempdir().unwrap();
    let (input, out) = (dir.path().join("in"), dir.path().join("out"));
    archive(&input);
    let (input, out) = (input.to_str().unwrap(), out.to_str().unwrap());
    let all = scan(&[input, "--out", out, "--incremental"]);
    let some = scan(&[input, "--out", out, "--incremental", "--rule", "stale/*"]);
    assert!(some.claims().len() < all.claims().len());
    assert!(some.all("finding").iter().all(|f| f["rule"].as_str().unwrap().starts_with("stale/")));
    let refused = scan(&[input, "--checkpoint", dir.path().join("in/edge-0/gateway/access.log").to_str().unwrap()]);
    assert_eq!(refused.status, 2);
    assert!(refused.error.contains("no checkpoint of a scan"), "{}", refused.error);
    let nowhere = scan(&[input, "--incremental"]);
    assert_eq!(nowhere.status, 2);
}
