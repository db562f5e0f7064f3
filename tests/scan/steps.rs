//! The steps of a scan (`map`, `reduce`) say what `scan` says, however the work is cut, doubled or ordered.

use crate::kit::{DAY, Printed, command, gz, log, pieces, put, scan, zip, zst};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::{Output, Stdio};

pub fn feed(args: &[&str], input: &str) -> Output {
    let mut child = command(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut stdin, input) = (child.stdin.take().unwrap(), input.to_owned());
    let feeding = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let out = child.wait_with_output().unwrap();
    // One that refuses its input does not read all of it.
    let _ = feeding.join().unwrap();
    out
}

pub fn text(o: &Output) -> String {
    assert!(o.status.success(), "{}", String::from_utf8_lossy(&o.stderr));
    String::from_utf8(o.stdout.clone()).unwrap()
}

pub fn sorted(records: &str) -> String {
    let key = |l: &&str| {
        let mut parts = l.split('\t');
        (parts.next().unwrap().to_owned(), parts.next().unwrap().parse::<i64>().unwrap())
    };
    let mut lines: Vec<&str> = records.lines().collect();
    lines.sort_by_key(key);
    lines.iter().map(|l| format!("{l}\n")).collect()
}

/// Sessions of no log are dealt.
const SHARE: &str = "1TiB";

/// The steps one by one; `shuffle` is what happens to the records on their way.
pub struct Steps<'a> {
    pub options: &'a [&'a str],
    pub split: &'a str,
    /// Bytes of each share of the sessions of a log.
    pub share: &'a str,
}

impl Steps<'_> {
    fn run(&self, step: &[&str], input: &str) -> Output {
        feed(&[step, &["--split", self.split, "--share", self.share], self.options].concat(), input)
    }

    pub fn plan(&self, path: &str) -> String {
        let list = text(&self.run(&["map", path, "--step", "list"], ""));
        // Each look by itself, and in any order.
        let mut looks: Vec<String> = list.lines().map(str::to_owned).collect();
        looks.reverse();
        let looked = text(&self.run(&["map", "--step", "look"], &looks.join("\n")));
        let plan = text(&self.run(&["map", "--step", "plan"], &looked));
        if !plan.starts_with("{\"probe\"") {
            return plan;
        }
        let clocks = text(&self.run(&["map", "--step", "clocks"], &plan));
        text(&self.run(&["map", "--step", "plan"], &format!("{clocks}{looked}")))
    }

    pub fn sightings(&self, plan: &str) -> String {
        let tasks: Vec<&str> = plan.lines().filter(|l| l.starts_with("{\"tasks\"")).collect();
        text(&self.run(&["map"], &tasks.join("\n")))
    }

    pub fn fold(&self, plan: &str, records: &str) -> (String, Output) {
        let options = [&["reduce"], self.options].concat();
        let folded = text(&feed(&options, records));
        let total = feed(&[&options[..], &["--total", "--format", "ndjson"]].concat(), &format!("{plan}{folded}"));
        (folded, total)
    }

    fn all(&self, path: &str) -> Found {
        let plan = self.plan(path);
        let (folded, total) = self.fold(&plan, &sorted(&self.sightings(&plan)));
        Found::of(&folded, &total)
    }
}

/// What was found, with files by name.
pub struct Found {
    pub rows: Vec<String>,
    summary: Value,
    status: i32,
}

impl Found {
    pub fn of(folded: &str, total: &Output) -> Found {
        let objects = folded.lines().map(|l| serde_json::from_str(l).unwrap()).collect::<Vec<Value>>();
        let summary = serde_json::from_slice(&total.stdout).unwrap();
        Found::from(objects, summary, total.status.code().unwrap())
    }

    pub fn scanned(o: &Printed) -> Found {
        let objects = o.text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        Found::from(objects, o.summary().clone(), o.status)
    }

    /// Fails with the first things that differ.
    pub fn is(&self, other: &Found, when: &str) {
        let only = |a: &Found, b: &Found| -> Vec<String> {
            let rows = a.rows.iter().filter(|r| b.rows.binary_search(r).is_err()).take(2);
            rows.map(|r| r.chars().take(1500).collect()).collect()
        };
        let (mine, its) = (only(self, other), only(other, self));
        assert!(mine.is_empty() && its.is_empty(), "{when}: {mine:#?}, not {its:#?}");
        assert_eq!(self.rows.len(), other.rows.len(), "{when}");
        for (name, value) in other.summary.as_object().into_iter().flatten() {
            assert_eq!(&self.summary[name], value, "{when}: {name}");
        }
        assert_eq!(self.status, other.status, "{when}");
    }

    fn from(objects: Vec<Value>, summary: Value, status: i32) -> Found {
        let mut names: BTreeMap<(Option<String>, u64), Value> = BTreeMap::new();
        let mut rows = vec![];
        for mut o in objects {
            let Some(kind) = o["type"].as_str().map(str::to_owned) else { continue };
            let lot = o.as_object_mut().unwrap().shift_remove("lot").and_then(|l| l.as_str().map(str::to_owned));
            match &*kind {
                "input" => drop(names.insert((lot, o["input"].as_u64().unwrap()), o["name"].clone())),
                "summary" => {}
                _ => {
                    for list in ["evidence", "sightings"] {
                        for e in o.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
                            if let Some(n) = e["input"].as_u64() {
                                e["input"] = names[&(lot.clone(), n)].clone();
                            }
                        }
                    }
                    rows.push(o.to_string());
                }
            }
        }
        rows.sort();
        Found { rows, summary, status }
    }
}

/// Rotated, compressed and torn files, an archive, sources of one incident in three places, a journal.
fn archive(dir: &Path) {
    let lines = log(1, DAY, 400, 12);
    let parts = pieces(&lines, 4);
    put(dir, "h1/nginx/access.log.3.gz", gz(parts[0].as_bytes()));
    put(dir, "h1/nginx/access.log.2", &parts[1]);
    put(dir, "h1/nginx/access.log.1.zst", zst(parts[2].as_bytes()));
    put(dir, "h1/nginx/access.log", &parts[3]);
    put(dir, "h2/export.zip", zip(&[("gateway/access.log", log(2, DAY + 200, 400, 5).concat().as_bytes())]));
    put(dir, "h2/old/access.log", log(2, DAY + 200, 400, 5).concat());
    let case = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/02-crossed-id-collision");
    let read = |name: &str| std::fs::read(case.join(name)).unwrap();
    put(dir, "edge/front.pcap.gz", gz(&read("front.pcap")));
    put(dir, "edge/access.json.log", read("access.json.log"));
    put(dir, "server/backend.pcap", read("backend.pcap"));
    put(dir, "server/journal.json", read("journal.json"));
    put(dir, "laptop/client.jsonl", read("client.jsonl"));
    put(dir, "notes.txt", "no log at all\n");
    put(dir, "cut.gz", &gz(parts[3].as_bytes())[..2000]);
}

#[test]
fn steps_find_what_a_scan_finds_however_it_is_cut() {
    let dir = tempfile::tempdir().unwrap();
    archive(dir.path());
    let path = dir.path().to_str().unwrap();
    for options in [&[][..], &["--memory", "2MiB", "--overlap", "1m"], &["--rule", "stale/*", "--together", "time"]] {
        let whole = Found::scanned(&scan(&[&[path], options].concat()));
        assert!(whole.rows.len() > 10, "{}", whole.rows.len());
        // In one piece, and cut within lines, behind them and before them.
        for (split, share) in [("64MiB", SHARE), ("20001", "30000")] {
            Steps { options, split, share }.all(path).is(&whole, &format!("{options:?} {split}"));
        }
    }
}

#[test]
fn a_slice_is_mapped_once_for_all_lots_that_it_is_part_of() {
    let dir = tempfile::tempdir().unwrap();
    let text = log(5, DAY, 4_000, 18).concat();
    put(dir.path(), "access.log", &text);
    let path = dir.path().to_str().unwrap();
    let options = ["--memory", "24MiB", "--overlap", "3m"];
    let whole = Found::scanned(&scan(&[&[path], &options[..]].concat()));
    let steps = Steps { options: &options, split: "400001", share: SHARE };
    let plan = steps.plan(path);
    let told: Value = serde_json::from_str(plan.lines().next().unwrap()).unwrap();
    assert!(told["plan"]["lots"].as_u64().unwrap() > 2, "{told}");
    let mapped: u64 = plan
        .lines()
        .skip(1)
        .map(|l| serde_json::from_str::<Value>(l).unwrap()["tasks"]["bytes"].as_u64().unwrap())
        .sum();
    assert_eq!(mapped, text.len() as u64);
    let (folded, total) = steps.fold(&plan, &sorted(&steps.sightings(&plan)));
    Found::of(&folded, &total).is(&whole, "");
}

/// Clocks are told once for all slices: by the time the inner proxy is the only one that saw anything, nothing tells any
/// more that it is seven seconds fast. What it alone shows then is of the right time all the same.
#[test]
fn clocks_are_those_of_the_whole() {
    let dir = tempfile::tempdir().unwrap();
    // Long enough for several marks of time, one a MiB.
    let edge = log(5, DAY, 6_000, 12);
    let seen = edge.len() * 4 / 10;
    put(dir.path(), "edge/access.log", edge[..seen].concat());
    put(dir.path(), "inner/access.log", log(5, DAY + 7, 6_000, 12).concat());
    let path = dir.path().to_str().unwrap();
    let printed = scan(&[path, "--memory", "64GiB"]);
    let whole = Found::scanned(&printed);
    let windows = |found: &Found| {
        let windows = found.rows.iter().filter(|r| r.contains("\"type\":\"window\""));
        windows.map(|w| serde_json::from_str::<Value>(w).unwrap()["opened"].to_string()).collect::<Vec<_>>()
    };
    assert!(windows(&whole).len() > 3);
    let options = ["--memory", "36MiB", "--overlap", "3m"];
    let cut = scan(&[&[path], &options[..]].concat());
    assert_eq!(cut.claims(), printed.claims());
    let cut = Found::scanned(&cut);
    assert_eq!(windows(&cut), windows(&whole));
    let steps = Steps { options: &options, split: "400001", share: SHARE };
    let plan = steps.plan(path);
    let told: Value = serde_json::from_str(plan.lines().next().unwrap()).unwrap();
    assert!(told["plan"]["lots"].as_u64().unwrap() > 2, "{told}");
    let (folded, total) = steps.fold(&plan, &sorted(&steps.sightings(&plan)));
    Found::of(&folded, &total).is(&cut, "");
}

/// Tasks that ran twice change nothing; what is missing is said, and is trouble.
#[test]
fn records_that_come_twice_or_not_at_all() {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), "access.log", log(3, DAY, 900, 9).concat());
    let path = dir.path().to_str().unwrap();
    let steps = Steps { options: &[], split: "100001", share: SHARE };
    let plan = steps.plan(path);
    let records = steps.sightings(&plan);
    let whole = Found::scanned(&scan(&[path]));
    let twice: String = records.lines().rev().chain(records.lines()).map(|l| format!("{l}\n")).collect();
    let (folded, total) = steps.fold(&plan, &sorted(&twice));
    Found::of(&folded, &total).is(&whole, "");
    let count = records.lines().count();
    assert!(count > 5);
    for gone in 1..count {
        let some: String =
            records.lines().enumerate().filter(|(n, _)| *n != gone).map(|(_, l)| format!("{l}\n")).collect();
        let (_, total) = steps.fold(&plan, &sorted(&some));
        assert_eq!(total.status.code(), Some(2), "without {gone}");
        let summary: Value = serde_json::from_slice(&total.stdout).unwrap();
        assert!(summary["troubles"][0].as_str().unwrap().contains("not all sightings"), "{summary}");
    }
    // A whole lot is missing.
    let (_, total) = steps.fold(&plan, "");
    assert_eq!(total.status.code(), Some(2));
    // Not together, of another version, no head, nonsense.
    let head = records.lines().next().unwrap();
    let other = head.replacen("00000000-", "00000001-", 1);
    let refused = |input: &str| {
        let o = feed(&["reduce"], input);
        assert_eq!(o.status.code(), Some(2), "{input}");
        String::from_utf8(o.stderr).unwrap()
    };
    assert!(refused(&format!("{head}\n{other}\n{head}\n")).contains("not together"));
    assert!(refused(&head.replacen("\t1h", "\t2h", 1)).contains("another version"));
    assert!(refused(records.lines().nth(2).unwrap()).contains("no record that says of what"));
    assert!(refused("nonsense").contains("no record"));
}

/// Names, and ranges at every awkward place, without a plan of their own.
#[test]
fn names_and_ranges_alone() {
    let dir = tempfile::tempdir().unwrap();
    let lines = log(7, DAY, 600, 6);
    let whole = lines.concat();
    put(dir.path(), "h/access.log", &whole);
    put(dir.path(), "h/journal.json", std::fs::read("fixtures/02-crossed-id-collision/journal.json").unwrap());
    let name = |n: &str| dir.path().join("h").join(n).to_str().unwrap().to_owned();
    let (access, journal) = (name("access.log"), name("journal.json"));
    let fold = |input: &str| {
        let records = text(&feed(&["map", "--split", "1"], input));
        let folded = text(&feed(&["reduce"], &sorted(&records)));
        let objects = folded.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
        (Found::from(objects, Value::Null, 0), records.lines().count())
    };
    let (all, _) = fold(&format!("{access}\n{journal}\n"));
    assert!(all.rows.len() > 10);
    let scanned = Found::scanned(&scan(&[&access, &journal]));
    assert_eq!(all.rows, scanned.rows);
    let (first, last) = (lines[0].len(), whole.len());
    let mut ends: Vec<usize> = (0..6).map(|n| first - 3 + n).collect();
    ends.extend([1, 2, last / 3, last / 2, last - 1]);
    ends.sort_unstable();
    ends.dedup();
    let mut ranges = String::new();
    let mut from = 0;
    for to in ends.into_iter().chain([last]) {
        ranges.push_str(&format!("{access}\t{from}\t{to}\n"));
        from = to;
    }
    // A format that cannot be cut is read by whoever has its beginning.
    ranges.push_str(&format!("{journal}\t0\t5000\n{journal}\t5000\t\n"));
    let (cut, records) = fold(&ranges);
    cut.is(&all, "");
    assert!(records > 5);
    // One of them is missing.
    let o = feed(&["map"], &format!("{access}\t100\t{last}\n"));
    assert_eq!(o.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&o.stderr).contains("not all of it was looked at"));
    let o = feed(&["map"], "none.log\n");
    assert_eq!(o.status.code(), Some(2));
}

/// One session with many calls is one lot, and of its calls none stays in memory but those that are odd.
#[test]
#[cfg(target_os = "linux")]
fn a_session_of_many_calls_is_folded_in_the_memory_of_what_is_open() {
    let dir = tempfile::tempdir().unwrap();
    let session = "4f3583c7-9f2b-4dee-97a3-62c5b3853b1e";
    let line = |n: i64| {
        let (asked, given) = if n == 0 { ("", session) } else { (session, "") };
        let status = if n % 10_000 == 9_999 { 502 } else { 200 };
        format!(
            "{{\"msec\":{}.{:03},\"remote_addr\":\"10.1.2.3\",\"request_method\":\"POST\",\"request_uri\":\"/mcp\",\"status\":{status},\
             \"body_bytes_sent\":{},\"request_time\":0.050,\"http_mcp_session_id\":\"{asked}\",\"sent_http_mcp_session_id\":\"{given}\"}}\n",
            DAY + n / 20,
            n % 20 * 50,
            200 + n % 7
        )
    };
    put(dir.path(), "access.log", (0..150_000).map(line).collect::<String>());
    let path = dir.path().to_str().unwrap();
    let options = ["--memory", "64GiB"];
    let steps = Steps { options: &options, split: "8MiB", share: "8MiB" };
    let plan = steps.plan(path);
    let records = sorted(&steps.sightings(&plan));
    put(dir.path(), "records", &records);
    let bounded = |kib: u32| {
        let script = format!("ulimit -d {kib}; exec \"$0\" reduce --memory 64GiB < \"$1\"");
        let records = dir.path().join("records");
        let program = env!("CARGO_BIN_EXE_crosswire");
        std::process::Command::new("sh").args(["-c", &script, program]).arg(records).output().unwrap()
    };
    // All calls at once are more than three times that.
    let folded = text(&bounded(128 << 10));
    let of_lot: Value = serde_json::from_str(folded.lines().next_back().unwrap()).unwrap();
    assert_eq!(of_lot["lot"]["counts"]["calls"], 150_000, "{of_lot}");
    assert_eq!(of_lot["lot"]["counts"]["findings"], 15, "{of_lot}");
    assert!(!bounded(8 << 10).status.success(), "the bound is none");
}
