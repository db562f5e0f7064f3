//! What the server's log adds to findings: the line that rules the server out, and what it shows for
//! each call of a batch.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crosswire::analyze::run;
use crosswire::model::options::{AnalyzeOptions, ReadOptions};
use crosswire::model::place::Hop;
use crosswire::model::report::{Finding, Report};
use std::path::{Path, PathBuf};

fn fixture(case: &str, file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(case).join(file)
}

fn analyze(files: &[PathBuf]) -> Report {
    let names: Vec<String> = files.iter().map(|f| f.display().to_string()).collect();
    let report = run(&names, &ReadOptions::default(), &AnalyzeOptions::default()).unwrap();
    assert!(report.troubles.is_empty(), "{:?}", report.troubles);
    report
}

fn of<'r>(report: &'r Report, rule: &str) -> &'r Finding {
    report.findings.iter().find(|f| f.rule == rule).unwrap_or_else(|| panic!("no {rule}: {:?}", report.findings))
}

/// The sentences that rule the server out.
fn cleared(f: &Finding) -> Vec<&str> {
    f.evidence.iter().filter_map(|e| e.text.as_deref()?.strip_prefix("rules the server out: ")).collect()
}

#[test]
fn a_batch_says_what_the_log_shows_for_each_call() {
    let case = "02-crossed-id-collision";
    let files = ["backend.pcap", "journal.json"].map(|f| fixture(case, f));
    let report = analyze(&files);
    assert_eq!(
        of(&report, "crossed/id-collision").shown,
        "wrong on the wire; server log: journal_append id 3 done after 602 ms, entity_update id 3 done after 901 ms"
    );
    assert!(cleared(of(&report, "crossed/id-collision")).is_empty(), "the server is at fault");
    let alone = analyze(&files[..1]);
    assert_eq!(of(&alone, "crossed/id-collision").shown, "wrong on the wire");
}

#[test]
fn the_server_is_ruled_out_as_a_person_would() {
    let case = "05-stale-empty-success";
    let report = analyze(&["access.json.log", "journal.short-iso-precise", "client.jsonl"].map(|f| fixture(case, f)));
    let lost = of(&report, "orphaned/empty-success");
    assert_eq!(lost.cleared, [Hop::Proxy, Hop::Server]);
    assert_eq!(
        cleared(lost),
        ["up since 19:42:42 (python); no restart, crash or traceback around 19:42:46; 8 other calls around it were \
          answered after 4 ms to 10 ms"]
    );
}

/// A client that recorded another call's result, the capture that shows the right one, and a journal.
fn at_client(folder: &Path, journal: &str) -> [PathBuf; 2] {
    let record = folder.join("client.jsonl");
    let log = folder.join("journal.txt");
    let call = |second: u32, tool: &str, outcome: &str| {
        format!(
            "{{\"at\":\"2026-11-29T19:40:{second:02}.000Z\",\"ended\":\"2026-11-29T19:40:{second:02}.500Z\",\"tool\":\"{tool}\",\"outcome\":\"{outcome}\"}}\n"
        )
    };
    let calls: String = (0..30).map(|n| call(n * 2, "search", "ok")).collect();
    std::fs::write(&record, calls).unwrap();
    std::fs::write(&log, journal).unwrap();
    [record, log]
}

#[test]
fn a_log_with_a_restart_in_the_window_says_so_and_one_that_does_not_cover_it_says_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let access = folder.path().join("access.log");
    let line = |n: u32| {
        format!(
            "{{\"msec\":\"{}.500\",\"method\":\"POST\",\"uri\":\"/mcp\",\"status\":\"200\",\"request_time\":\"0.490\",\"mcp_session_id\":\"\"}}\n",
            1_795_981_200 + n * 2
        )
    };
    // The call at :20 is in neither log.
    let lines: String = (0..30).filter(|n| *n != 10).map(line).collect();
    std::fs::write(&access, lines).unwrap();
    let journal = |with: &str, to: u32| {
        let mut text =
            String::from("2026-11-29T19:39:00.000000+0000 host uvicorn[7]: INFO:     Application startup complete.\n");
        for n in (0..30).filter(|n| *n != 10 && *n <= to) {
            if n == 11 {
                text += with;
            }
            let second = n * 2;
            text += &format!(
                "2026-11-29T19:40:{second:02}.100000+0000 host uvicorn[7]: INFO:     10.0.0.1:0 - \"POST /mcp HTTP/1.1\" 200 OK\n"
            );
        }
        text
    };
    let said = |journal: &str| {
        let [record, log] = at_client(folder.path(), journal);
        let report = analyze(&[access.clone(), log, record]);
        let f = of(&report, "orphaned/never-sent");
        cleared(f).iter().map(|s| (*s).to_owned()).collect::<Vec<_>>()
    };
    let clean = said(&journal("", 29));
    assert!(clean.len() == 1 && clean[0].contains("up since 19:39:00") && clean[0].contains("no restart"), "{clean:?}");
    let stopped = "2026-11-29T19:40:21.000000+0000 host uvicorn[7]: INFO:     Shutting down\n";
    // A restart in the window rules nothing out, and is said.
    assert!(said(&journal(stopped, 29)).is_empty());
    let [record, log] = at_client(folder.path(), &journal(stopped, 29));
    let report = analyze(&[access.clone(), log, record]);
    let texts: Vec<_> = of(&report, "orphaned/never-sent").evidence.iter().filter_map(|e| e.text.as_deref()).collect();
    assert!(texts.iter().any(|t| t.contains("1 of stopping or restarting, the first in line 12")), "{texts:?}");
    assert_eq!(said(&journal("", 9)), Vec::<String>::new());
}
