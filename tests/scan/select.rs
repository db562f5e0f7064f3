//! What `--since`, `--until` and the other selections leave.

use crate::kit::{DAY, gz, log, put, scan};

#[test]
fn files_outside_of_the_time_are_skipped_and_counted() {
    let dir = tempfile::tempdir().unwrap();
    for day in 0..9i64 {
        let lines = log(day as u64 + 1, DAY + day * 86_400, 1200, 6).concat();
        put(dir.path(), &format!("edge/gateway/access.log-202610{:02}.gz", 5 + day), gz(lines.as_bytes()));
        put(
            dir.path(),
            &format!("edge-{day}/plain/access.log"),
            log(day as u64 + 20, DAY + day * 86_400, 900, 6).concat(),
        );
    }
    let path = dir.path().to_str().unwrap();
    let all = scan(&[path]);
    let some = scan(&[path, "--since", "2026-10-09", "--until", "2026-10-09T23:59:59Z"]);
    let within = |f: &&serde_json::Value| f["at"].as_str().unwrap().starts_with("2026-10-09");
    let wanted: Vec<String> =
        all.all("finding").iter().filter(within).map(|f| format!("{} {}", f["rule"], f["at"])).collect();
    let mut got: Vec<String> = some.all("finding").iter().map(|f| format!("{} {}", f["rule"], f["at"])).collect();
    let mut wanted = wanted;
    wanted.sort();
    got.sort();
    assert!(wanted.len() > 3);
    assert_eq!(got, wanted);
    let skipped = some.summary()["skipped"].as_array().unwrap();
    assert_eq!(skipped.len(), 14, "{skipped:?}");
    assert!(some.error.contains("14 files hold nothing of the time asked for"), "{}", some.error);
    // By name alone only those of the dated set that are farther away than a day.
    let by_name = skipped.iter().filter(|s| s["why"].as_str().unwrap().contains("set")).count();
    assert!(by_name == 3, "{skipped:?}");
    let clock = scan(&[path, "--since", "19:00:00"]);
    assert_eq!(clock.status, 2);
    assert!(clock.error.contains("need a date"), "{}", clock.error);
}

#[test]
fn a_baseline_and_a_session_leave_the_rest() {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), "a/access.log", log(1, DAY, 1200, 6).concat());
    let path = dir.path().join("a/access.log");
    let report = crate::kit::crosswire(&["analyze", path.to_str().unwrap(), "--format", "json"]);
    put(dir.path(), "known.json", &report.stdout);
    let baseline = dir.path().join("known.json");
    let all = scan(&[dir.path().join("a").to_str().unwrap()]);
    let none = scan(&[dir.path().join("a").to_str().unwrap(), "--baseline", baseline.to_str().unwrap()]);
    assert_eq!((none.status, none.claims().len()), (0, 0));
    assert_eq!(none.summary()["known"], all.claims().len());
    let session = all.all("finding")[0]["session"].as_str().unwrap();
    let one = scan(&[dir.path().join("a").to_str().unwrap(), "--session", session]);
    assert!(!one.claims().is_empty() && one.claims().iter().all(|c| c.contains(session)));
}

/// In builds without objects; with them tests/objects has the rest.
#[cfg(not(feature = "objects"))]
#[test]
fn a_url_is_refused_with_what_to_do() {
    let plain = scan(&["s3://bucket/logs"]);
    assert!(
        plain.status == 2 && plain.error.contains("s3://bucket/logs: this build reads files only"),
        "{}",
        plain.error
    );
    let url = "https://me:c2VjcmV0@bucket.example/access.log?X-Amz-Signature=c2VjcmV0";
    for refused in [scan(&[url]), crate::kit::analyze(&[url])] {
        assert_eq!(refused.status, 2);
        assert!(
            refused.error.contains("https://bucket.example/access.log: this build reads files only"),
            "{}",
            refused.error
        );
        assert!(
            refused.error.contains("--features objects") && !refused.error.contains("c2VjcmV0"),
            "{}",
            refused.error
        );
    }
}
