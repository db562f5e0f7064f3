//! Lines of several vantage points in one file, and what the table of inputs says of each.

use super::clocks::{coarse, combined};
use super::{FILES, analyze, fixture, said};
use crosswire::analyze::run;
use crosswire::model::options::{AnalyzeOptions, ReadOptions};
use crosswire::model::place::Hop;
use crosswire::model::place::Vantage;
use crosswire::model::report::{Confidence, Report};
use std::path::PathBuf;

fn text(file: &str) -> String {
    std::fs::read_to_string(fixture(file)).unwrap()
}

/// Analyses texts as files of these names.
fn files(texts: &[(&str, String)]) -> Report {
    let folder = tempfile::tempdir().unwrap();
    let write = |(name, text): &(&str, String)| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    analyze(&texts.iter().map(write).collect::<Vec<PathBuf>>())
}

/// The lines of two logs by turns, in about equal shares.
fn woven(a: &str, b: &str) -> String {
    let (a, b): (Vec<&str>, Vec<&str>) = (a.lines().collect(), b.lines().collect());
    let mut out: Vec<(usize, &str)> = a.iter().enumerate().map(|(n, l)| (n * b.len(), *l)).collect();
    out.extend(b.iter().enumerate().map(|(n, l)| (n * a.len(), *l)));
    out.sort_by_key(|(n, _)| *n);
    out.into_iter().map(|(_, l)| format!("{l}\n")).collect()
}

/// The messages of a journal, without its prefixes.
fn messages(journal: &str) -> String {
    journal.lines().filter_map(|l| Some(format!("{}\n", l.split_once("]: ")?.1))).collect()
}

#[test]
fn lines_of_proxy_and_server_in_one_file_are_two_vantage_points() {
    let [client, access, journal] = FILES.map(text);
    let apart =
        files(&[("client.jsonl", client.clone()), ("access.log", access.clone()), ("journal", journal.clone())]);
    let truth = said(&apart);
    assert!(truth.iter().any(|s| s.starts_with("orphaned/empty-success")), "{truth:?}");
    let one = [woven(&access, &journal), format!("{access}{journal}"), format!("{journal}{access}")];
    for mixed in one {
        let report = files(&[("client.jsonl", client.clone()), ("all.log", mixed)]);
        assert_eq!(said(&report), truth);
        assert_eq!(report.summary.calls, apart.summary.calls);
        assert!(report.inputs[1].problems.is_empty(), "{:?}", report.inputs[1].problems);
        assert!(report.inputs[1].shows.contains("proxy's: status, session"), "{}", report.inputs[1].shows);
        // Each who wrote in it has a row of its own, as its own file would.
        let rows = |report: &Report| -> Vec<String> {
            let parts = report.inputs.iter().flat_map(|i| &i.parts);
            parts.map(|p| format!("{:?} {:?} {} {}", p.vantage, p.clock.offset_ms, p.joined, p.shows)).collect()
        };
        let alone = |n: usize| {
            let i = &apart.inputs[n];
            format!("{:?} {:?} {} {}", i.vantage, i.clock.offset_ms, i.joined, i.shows)
        };
        assert_eq!(rows(&report), [alone(2), alone(1)]);
        let spans: Vec<_> = report.inputs[1].parts.iter().map(|p| p.first.zip(p.last)).collect();
        assert_eq!(spans, [2, 1].map(|n| apart.inputs[n].first.zip(apart.inputs[n].last)));
        // What one file lacks, both who wrote in it may have lost.
        let lost = report.findings.iter().filter(|f| f.rule == "orphaned/empty-success");
        assert!(lost.clone().count() == 1 && lost.clone().all(|f| f.confidence == Confidence::Possible));
    }
}

#[test]
fn one_mixed_file_alone_holds_each_exchange_once() {
    let [_, access, journal] = FILES.map(text);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("all.log");
    std::fs::write(&path, woven(&access, &journal)).unwrap();
    let name = [path.display().to_string()];
    let options = AnalyzeOptions { cited_calls_only: true, ..AnalyzeOptions::default() };
    let report = run(&name, &ReadOptions::default(), &options).unwrap();
    assert_eq!((report.summary.calls, report.windows.len()), (9, 1), "{:?}", report.summary);
}

/// What runs in a container is told by its lines, not by its name.
#[test]
fn a_container_that_writes_access_lines_alone_is_a_proxy() {
    let [client, access, journal] = FILES.map(text);
    let log = |name: &str, text: &str| text.lines().map(|l| format!("{name}  | {l}\n")).collect::<String>();
    let vantages = |report: &Report| -> Vec<Option<Vantage>> {
        let mut all: Vec<_> = report.calls.iter().flat_map(|c| c.sightings.iter().map(|s| s.vantage)).collect();
        all.sort_unstable();
        all.dedup();
        all
    };
    let front = log("web-1", &combined(&access));
    let report = files(&[("compose.log", front.clone())]);
    assert_eq!((vantages(&report), report.inputs[0].vantage), (vec![Some(Vantage::Proxy)], Some(Vantage::Proxy)));
    // gunicorn and morgan have the same format, and say other things too, before or after.
    let app = "web-1  | [2026-11-29 19:42:50 +0000] [120] [INFO] Booting worker with pid: 123\n";
    for server in [format!("{front}{app}"), format!("{app}{front}")] {
        assert_eq!(vantages(&files(&[("compose.log", server)])), [Some(Vantage::Server)]);
    }
    let both = woven(&front, &log("mcp-1", &messages(&journal)));
    let report = files(&[("client.jsonl", client), ("compose.log", both)]);
    assert_eq!(
        vantages(&report),
        [Some(Vantage::Client), Some(Vantage::Proxy), Some(Vantage::Server)].map(Some).map(Option::flatten)
    );
}

/// uvicorn's lines have no times; those of the proxy before it do, and come in the same order.
#[test]
fn lines_without_times_take_those_of_the_log_whose_order_they_have() {
    let [client, access, journal] = FILES.map(text);
    let truth =
        said(&files(&[("client.jsonl", client.clone()), ("access.log", access.clone()), ("journal", journal.clone())]));
    assert!(truth.iter().any(|s| s.contains("Restart")), "{truth:?}");
    let log = |name: &str, text: &str| text.lines().map(|l| format!("{name}  | {l}\n")).collect::<String>();
    let both = log("web-1", &access) + &log("mcp-1", &messages(&journal));
    let apart = [("access.log", access.clone()), ("stdout.log", messages(&journal))].to_vec();
    for others in [vec![("compose.log", both)], apart] {
        let report = files(&[vec![("client.jsonl", client.clone())], others].concat());
        assert_eq!(said(&report), truth);
        assert_eq!(report.summary.calls, 10);
        let shows: String = report.inputs.iter().map(|i| i.shows.as_str()).collect();
        assert!(shows.contains("times by its order"), "{shows}");
    }
    // One line less, and where it was lost is not known.
    let (head, _) = journal.rsplit_once("\"POST /mcp HTTP/1.1\" 200 OK").unwrap();
    let cut = head.replacen("\"POST /mcp HTTP/1.1\" 202 Accepted", "no request", 1);
    let others = [("access.log", access), ("stdout.log", messages(&cut))];
    let report = files(&[vec![("client.jsonl", client)], others.to_vec()].concat());
    assert!(report.inputs.iter().all(|i| !i.shows.contains("times by its order")));
    assert!(said(&report).iter().all(|s| s.contains("Unknown") || truth.contains(s)), "{:?}", said(&report));
}

#[test]
fn the_table_says_what_a_log_shows_by_itself() {
    let [client, access, _] = FILES.map(text);
    let shows = |texts: &[(&str, String)]| files(texts).inputs.into_iter().map(|i| i.shows).collect::<Vec<_>>();
    // Joined or not, a log without sessions in its lines shows none.
    let plain = combined(&access);
    let all = [("client.jsonl", client), ("plain.log", plain.clone()), ("access.log", access.clone())];
    let expected = ["the client's calls, results", "status; no session, no bodies", "status, session; no bodies"];
    assert_eq!(shows(&all), expected);
    assert_eq!(shows(&[("plain.log", plain)]), expected[1..2]);
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}"#;
    let line = format!(
        r#"{{"time":"2026-11-29T19:42:40Z","method":"POST","uri":"/mcp","status":200,"request_body":{body:?}}}"#
    );
    assert_eq!(shows(&[("access.log", line + "\n")]), ["status, requests; no session, no replies"]);
    // A server's events without requests are no calls, and not nothing either.
    let line = |s: u32, text: &str| {
        format!(
            "2026-11-29T19:42:{s:02}.100000+0000 h python[7]: 2026-11-29 19:42:{s:02},100 INFO mcp.server.streamable_http_manager: {text}\n"
        )
    };
    let refused = "Rejected request with unknown or expired session ID: 0e0fe9df6d3543c7a47dbf28ab9cbd1c";
    let created = "Created new transport with session ID: 1e0fe9df6d3543c7a47dbf28ab9cbd1c";
    let events = [line(1, refused), line(2, refused), line(3, created)].concat();
    let told = shows(&[("journal", events)]).concat();
    assert_eq!(told, "no requests; events: unknown session refused ×2, session created ×1");
}

/// Rule and fault of each finding that names anybody.
fn accused(report: &Report) -> Vec<(&'static str, Vec<Hop>)> {
    let blamed = report.findings.iter().filter(|f| !f.fault.is_empty());
    blamed.map(|f| (f.rule, f.fault.clone())).collect()
}

/// What a log would have shown had it gone on is nobody's fault.
#[test]
fn a_log_that_ends_early_accuses_nobody_of_more() {
    let [client, access, journal] = FILES.map(text);
    for access in [combined(&access), access] {
        let whole = [("client.jsonl", client.clone()), ("access.log", access), ("journal", journal.clone())];
        let truth = accused(&files(&whole));
        for n in 0..whole.len() {
            let lines: Vec<&str> = whole[n].1.lines().collect();
            for kept in (1..lines.len()).step_by(1 + lines.len() / 24) {
                let mut cut = whole.clone();
                cut[n].1 = lines[..kept].join("\n") + "\n";
                // With less to see one more may be at fault beside the one that is.
                let known = |(rule, fault): &(&str, Vec<Hop>)| {
                    truth.iter().any(|(r, f)| r == rule && f.iter().all(|hop| fault.contains(hop)))
                };
                let new: Vec<_> = accused(&files(&cut)).into_iter().filter(|a| !known(a)).collect();
                assert!(new.is_empty(), "{} cut behind line {kept}: {new:?}", cut[n].0);
            }
        }
    }
}

/// Neither is what it would have shown had it begun before.
#[test]
fn a_log_that_begins_late_accuses_nobody_of_more() {
    let of = |file: &str| text(&format!("../02-crossed-id-collision/{file}"));
    let (client, access, journal) = (of("client.jsonl"), of("access.json.log"), of("journal.json"));
    for access in [combined(&access), coarse(&access), access] {
        for logs in [vec![("access.log", access.clone())], vec![("access.log", access), ("journal", journal.clone())]] {
            let truth = accused(&files(&[&[("client.jsonl", client.clone())], &logs[..]].concat()));
            for n in 0..logs.len() {
                let lines: Vec<&str> = logs[n].1.lines().collect();
                for from in (1..lines.len()).step_by(1 + lines.len() / 24) {
                    let mut cut = logs.clone();
                    cut[n].1 = lines[from..].join("\n") + "\n";
                    let report = files(&[&[("client.jsonl", client.clone())], &cut[..]].concat());
                    let new: Vec<_> = accused(&report).into_iter().filter(|a| !truth.contains(a)).collect();
                    assert!(new.is_empty(), "{} from line {from} on: {new:?}", cut[n].0);
                }
            }
        }
    }
}
