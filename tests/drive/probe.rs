//! `crosswire probe` against servers of every manner.

use crate::fake::{Fake, Manner};
use crate::kit::{analyze, crosswire, interrupt, json, start};
use serde_json::Value;

const QUICK: &[[&str; 2]] = &[
    ["--batch", "3"],
    ["--repetitions", "2"],
    ["--slow", "40ms"],
    ["--rate", "2000"],
    ["--format", "json"],
    ["--timeout", "1s"],
];

fn probe(manner: Manner, more: &[&str]) -> (Option<i32>, Value, Fake) {
    let fake = Fake::start(manner);
    let url = fake.url();
    let quick = QUICK.iter().filter(|[name, _]| !more.contains(name)).flatten();
    let args: Vec<&str> = ["probe", &url].iter().chain(quick).chain(more).copied().collect();
    let output = crosswire(&args);
    (output.status.code(), json(&output), fake)
}

fn count(report: &Value, what: &str) -> u64 {
    report["summary"][what].as_u64().unwrap()
}

/// Runs for all at once: most of the time is spent waiting.
fn each<T: Copy + Send>(all: &[T], run: impl Fn(T) + Sync) {
    std::thread::scope(|scope| {
        for one in all.iter().copied() {
            let run = &run;
            scope.spawn(move || run(one));
        }
    });
}

const FAULTS: [&str; 6] = ["wrong_ids", "wrong_bodies", "other_session", "wrong_stream", "duplicates", "lost"];

/// Which faults were counted.
fn faults(report: &Value) -> Vec<&'static str> {
    FAULTS.into_iter().filter(|f| count(report, f) > 0).collect()
}

/// The kinds of ids whose configurations are not clean.
fn red_kinds(report: &Value) -> Vec<&str> {
    let rows = report["configurations"].as_array().unwrap().iter();
    let red = rows.filter(|r| FAULTS.iter().any(|f| r[f].as_u64().unwrap() > 0));
    let mut kinds: Vec<&str> = red.map(|r| r["kind"].as_str().unwrap()).collect();
    kinds.dedup();
    kinds
}

#[test]
fn a_server_that_is_right_is_clean() {
    each(&[Manner::Right, Manner::Stateless], |manner| {
        let (status, report, fake) = probe(manner, &[]);
        assert_eq!(status, Some(0), "{manner:?} {report}");
        assert_eq!(faults(&report), [""; 0], "{manner:?}");
        assert_eq!(report["configurations"].as_array().unwrap().len() as u64, report["planned"].as_u64().unwrap());
        let left = count(&report, "calls") - count(&report, "abandoned");
        assert_eq!(count(&report, "verified"), left, "{manner:?}");
        assert_eq!(report["left_alone"], serde_json::json!(["write"]));
        assert!(!fake.log().iter().any(|l| l == "tools/call write"));
    });
}

#[test]
fn a_server_that_serves_one_by_one_loses_nothing() {
    let fake = Fake::start(Manner::OneByOne);
    let args = ["--batch", "3", "--repetitions", "5", "--slow", "150ms", "--rate", "2000", "--format", "json"];
    let output = crosswire(&[&["probe", &fake.url()][..], &args].concat());
    let report = json(&output);
    assert_eq!((output.status.code(), faults(&report)), (Some(0), vec![]), "{report}");
}

#[test]
fn batch_sizes_are_taken_once() {
    let (_, twice, _) = probe(Manner::Right, &["--batch", "3,3", "--repetitions", "1"]);
    let (_, once, _) = probe(Manner::Right, &["--batch", "3", "--repetitions", "1"]);
    assert_eq!(twice["planned"], once["planned"]);
}

#[test]
fn what_is_asked_wrongly_is_said_before_anything_is_sent() {
    let fake = Fake::start(Manner::Right);
    let url = fake.url();
    for (args, expected) in [
        (&["--tool", "ecko"][..], "the server lists no tool ecko; it lists: echo, slow_echo, write"),
        (&["--slow", "2s", "--timeout", "3s"], "give at least four times that"),
        (&["-o", "/nonexistent/report.txt"], "cannot be written"),
    ] {
        let output = crosswire(&[&["probe", &url][..], args].concat());
        assert_eq!(output.status.code(), Some(2));
        let said = [output.stdout, output.stderr].concat();
        assert!(String::from_utf8_lossy(&said).contains(expected), "{args:?}: {}", String::from_utf8_lossy(&said));
    }
    assert!(!fake.log().iter().any(|l| l.starts_with("tools/call")));
}

#[test]
fn the_default_sweep_is_whole() {
    let (_, report, _) = probe(Manner::Right, &["--batch", "3,12", "--repetitions", "1"]);
    assert!(report["planned"].as_u64().unwrap() >= 28);
    for seed in report["self_check"].as_array().unwrap() {
        assert_eq!(seed["passed"], true, "{seed}");
    }
    assert_eq!(report["self_check"].as_array().unwrap().len(), 5);
}

#[test]
fn colliding_ids_are_found_where_they_cross_and_nowhere_else() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("probe.pcapng");
    // Long enough that the calls are in flight together on a busy machine too.
    let more = ["--slow", "300ms", "--timeout", "2s", "-w", path.to_str().unwrap()];
    let (status, report, _) = probe(Manner::OverwritesById, &more);
    assert_eq!(status, Some(1), "{report}");
    for kind in red_kinds(&report) {
        assert!(kind.starts_with("collide") || kind == "abandon-reuse", "{kind}");
    }
    let rows = report["configurations"].as_array().unwrap();
    let of = |kind: &str| rows.iter().find(|r| r["kind"] == kind).unwrap();
    let first = of("collide-first-ends-first");
    assert_eq!((&first["wrong_bodies"], &first["lost"], &first["collided"]), (&2.into(), &2.into(), &2.into()));
    let second = of("collide-second-ends-first");
    assert_eq!((&second["wrong_bodies"], &second["lost"]), (&0.into(), &2.into()));
    assert!(of("collide-types")["wrong_ids"].as_u64().unwrap() > 0);
    assert!(of("abandon-reuse")["wrong_bodies"].as_u64().unwrap() > 0);
    // Its own recording tells the same, read as any other capture.
    let analysed = analyze(&path);
    let crossed =
        analysed["findings"].as_array().unwrap().iter().filter(|f| f["rule"] == "crossed/id-collision").count();
    assert!(crossed > 0);
}

#[test]
fn refused_duplicates_are_no_finding() {
    let (status, report, _) = probe(Manner::RefusesDuplicates, &[]);
    assert_eq!(status, Some(0), "{report}");
    assert!(count(&report, "refused") > 0);
}

#[test]
fn every_other_fault_is_told_apart() {
    let all = [
        (Manner::SwapsBodies, "wrong_bodies"),
        (Manner::WrongIds, "wrong_ids"),
        (Manner::CrossesSessions, "other_session"),
        (Manner::Drops, "lost"),
        (Manner::AlsoOnGet, "wrong_stream"),
        (Manner::Twice, "duplicates"),
    ];
    each(&all, |(manner, fault)| {
        let (_, report, _) = probe(manner, &["--repetitions", "1"]);
        assert!(faults(&report).contains(&fault), "{manner:?}: {:?}", faults(&report));
        assert!(report["findings"].as_array().unwrap().iter().all(|f| f["summary"].as_str().unwrap().len() > 20));
    });
}

#[test]
fn what_cannot_be_seen_is_trouble() {
    let (status, report, _) = probe(Manner::Mute, &[]);
    assert_eq!(status, Some(2));
    assert!(report["troubles"][0].as_str().unwrap().contains("--ids-only"), "{report}");
    let (status, report, _) = probe(Manner::Mute, &["--ids-only", "--repetitions", "1"]);
    assert_eq!((status, count(&report, "verified")), (Some(0), 0));
    assert!(report["notes"].to_string().contains("only ids"));
}

#[test]
fn tools_that_are_not_read_only_need_leave() {
    let (status, report, fake) = probe(Manner::Unmarked, &[]);
    assert_eq!(status, Some(2));
    assert!(report["troubles"][0].as_str().unwrap().contains("--allow"), "{report}");
    assert!(!fake.log().iter().any(|l| l.starts_with("tools/call")));
    let (status, report, fake) = probe(Manner::Unmarked, &["--allow", "*echo", "--repetitions", "1"]);
    assert_eq!(status, Some(0), "{report}");
    assert!(!fake.log().iter().any(|l| l == "tools/call write"));
}

#[test]
fn tool_and_arguments_can_be_chosen() {
    let args = r#"{"text": "say {tag}", "delay_ms": "{milliseconds}"}"#;
    let (status, report, fake) = probe(Manner::Right, &["--tool", "slow_echo", "--args", args, "--repetitions", "1"]);
    assert_eq!(status, Some(0), "{report}");
    let calls = fake.log().into_iter().filter(|l| l.starts_with("tools/call"));
    assert!(calls.into_iter().all(|l| l == "tools/call slow_echo"));
    assert_eq!(report["tools"][0]["delays"], true);
}

#[test]
fn a_server_that_is_not_there_is_trouble() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let output = crosswire(&["probe", &format!("http://127.0.0.1:{port}/mcp")]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stdout).contains("refused"));
    let tls = crosswire(&["probe", "https://127.0.0.1/mcp"]);
    assert_eq!(tls.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&tls.stderr).contains("https is not spoken"));
}

#[test]
fn stopped_in_the_middle_it_reports_what_it_has() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("probe.pcapng");
    let fake = Fake::start(Manner::Right);
    let child = start(&["probe", &fake.url(), "--format", "json", "--repetitions", "50", "-w", path.to_str().unwrap()]);
    while fake.log().iter().filter(|l| l.starts_with("tools/call")).count() < 60 {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    let report = json(&output);
    assert_eq!((output.status.code(), &report["stopped"]), (Some(2), &true.into()));
    assert_eq!(faults(&report), [""; 0], "{report}");
    assert!(report["troubles"].to_string().contains("stopped"));
    analyze(&path);
}
