//! Sessions of a busy log are folded in shares first, each anywhere, and nothing is found otherwise for it.

use crate::kit::{DAY, log, put, scan};
use crate::steps::{Found, Steps, feed, sorted, text};
use serde_json::Value;

/// Of a log as the kit makes it: one that does not say which session a response gave.
fn without_given(lines: &[String]) -> String {
    let given = "\"sent_http_mcp_session_id\":\"";
    let cut = |line: &String| {
        let (before, rest) = line.split_once(given).unwrap();
        let (_, behind) = rest.split_once('"').unwrap();
        format!("{before}{given}\"{behind}")
    };
    lines.iter().map(cut).collect()
}

fn is_share(record: &str) -> bool {
    record.split('\t').next().unwrap().contains('+')
}

/// Every share by itself, in a process of its own, and then the lots.
fn folded(steps: &Steps<'_>, records: &str) -> String {
    let (shares, mut others): (Vec<&str>, Vec<&str>) = records.lines().partition(|l| is_share(l));
    let mut keys: Vec<&str> = shares.iter().map(|l| l.split('\t').next().unwrap()).collect();
    keys.sort_unstable();
    keys.dedup();
    assert!(keys.len() > 1);
    let mut left = String::new();
    for key in keys.iter().rev() {
        let own = shares.iter().filter(|l| l.split('\t').next() == Some(*key));
        let own = sorted(&own.map(|l| format!("{l}\n")).collect::<String>());
        left += &text(&feed(&[&["reduce", "--shares"], steps.options].concat(), &own));
    }
    assert_eq!(left.lines().count(), keys.len());
    others.extend(left.lines());
    others.iter().map(|l| format!("{l}\n")).collect()
}

#[test]
fn what_is_found_does_not_depend_on_shares() {
    let dir = tempfile::tempdir().unwrap();
    let logs = [log(11, DAY, 800, 18).concat(), without_given(&log(14, DAY + 9000, 800, 18))];
    for (n, text) in logs.iter().enumerate() {
        put(dir.path(), &format!("h{n}/access.log"), text);
    }
    let path = dir.path().to_str().unwrap();
    for options in [&[][..], &["--memory", "8MiB", "--overlap", "2m"]] {
        let whole = Found::scanned(&scan(&[&[path], options].concat()));
        let count = |what: &str| whole.rows.iter().filter(|r| r.contains(what)).count();
        assert!(count("\"type\":\"window\"") > 10 && count("session/") + count("orphaned/") > 20);
        for share in ["30000", "120001", "1GiB"] {
            let steps = Steps { options, split: "150001", share };
            let plan = steps.plan(path);
            let records = steps.sightings(&plan);
            let is_dealt = records.lines().any(is_share);
            assert_eq!(is_dealt, share != "1GiB");
            let when = format!("{options:?} {share}");
            let (all, total) = steps.fold(&plan, &sorted(&records));
            Found::of(&all, &total).is(&whole, &when);
            if is_dealt {
                let (all, total) = steps.fold(&plan, &sorted(&folded(&steps, &records)));
                Found::of(&all, &total).is(&whole, &format!("{when}, each share by itself"));
            }
        }
    }
}

/// Most lines of a clean session go no further than their share.
#[test]
fn what_is_clean_stays_behind() {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), "access.log", log(12, DAY, 3000, 30).concat());
    let path = dir.path().to_str().unwrap();
    let steps = Steps { options: &[], split: "64MiB", share: "400000" };
    let records = steps.sightings(&steps.plan(path));
    let after = folded(&steps, &records);
    assert!(after.len() * 2 < records.len(), "{} of {}", after.len(), records.len());
}

#[test]
fn shares_that_come_twice_or_not_at_all() {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), "access.log", log(13, DAY, 900, 9).concat());
    let path = dir.path().to_str().unwrap();
    let steps = Steps { options: &[], split: "100001", share: "100000" };
    let plan = steps.plan(path);
    let whole = Found::scanned(&scan(&[path]));
    let records = steps.sightings(&plan);
    let twice = |text: &str| text.lines().chain(text.lines()).map(|l| format!("{l}\n")).collect::<String>();
    let once = folded(&steps, &records);
    for all in [twice(&records), twice(&once), once.clone() + &records, folded(&steps, &twice(&records))] {
        let (all, total) = steps.fold(&plan, &sorted(&all));
        Found::of(&all, &total).is(&whole, "");
    }
    // Each record of shares, with its fold made of what is left or not at all.
    let without = |text: &str, gone: usize| {
        let some = text.lines().enumerate().filter(|(n, _)| *n != gone).map(|(_, l)| format!("{l}\n"));
        some.collect::<String>()
    };
    let is_trouble = |some: &str, gone: usize| {
        let (_, total) = steps.fold(&plan, &sorted(some));
        assert_eq!(total.status.code(), Some(2), "without {gone}");
        let summary: Value = serde_json::from_slice(&total.stdout).unwrap();
        assert!(summary["troubles"][0].as_str().unwrap().contains("not all sightings"), "{summary}");
    };
    for gone in 1..records.lines().count() {
        let is_sighting = records.lines().nth(gone).unwrap().contains("\t1s");
        if is_sighting {
            let some = without(&records, gone);
            is_trouble(&some, gone);
            is_trouble(&folded(&steps, &some), gone);
        }
    }
    for gone in 0..once.lines().count() {
        if once.lines().nth(gone).unwrap().contains("\t1k") {
            is_trouble(&without(&once, gone), gone);
        }
    }
    let share = |n: usize| records.lines().filter(|l| is_share(l)).nth(n).unwrap();
    let apart = format!("{}\n{}\n{}\n", share(0), share(1), share(0));
    let o = feed(&["reduce", "--shares"], &apart);
    assert_eq!(o.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&o.stderr).contains("not together"));
}

/// What is refused in one share tells of the sessions of all others: that they lived on, and what a new one did first.
#[test]
fn few_sessions_in_many_shares() {
    let mut windows = 0;
    for seed in [20, 33, 41, 52] {
        let dir = tempfile::tempdir().unwrap();
        let mut lines = log(seed, DAY, 200, 9);
        // All that is left is clean, or tells of a session that ended.
        lines.retain(|l| !l.contains("\"status\":502"));
        put(dir.path(), "access.log", if seed % 2 == 0 { lines.concat() } else { without_given(&lines) });
        let path = dir.path().to_str().unwrap();
        let whole = Found::scanned(&scan(&[path]));
        windows += whole.rows.iter().filter(|r| r.contains("\"type\":\"window\"")).count();
        let steps = Steps { options: &[], split: "30001", share: "10000" };
        let plan = steps.plan(path);
        let (all, total) = steps.fold(&plan, &sorted(&folded(&steps, &steps.sightings(&plan))));
        Found::of(&all, &total).is(&whole, &seed.to_string());
    }
    assert!(windows > 7, "{windows}");
}
