//! A server that writes no access lines, and says which sessions it began and refused.

use super::{Path, analyze, rules};
use crosswire::model::report::{Cause, Confidence, Report};

const REFUSED: &str = "b81d5c2e9f7a4e30956b1a2c3d4e5f60";
const OLD: &str = "4f0c1e6a8d0b4c55a1c6f2b9d0e37a11";
const NEW: &str = "0a9b8c7d6e5f4a3b2c1d0e9f8a7b6c5d";

fn journal() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/journal-without-access-lines.log");
    std::fs::read_to_string(path).unwrap()
}

fn analyzed(text: &str) -> Report {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.log");
    std::fs::write(&path, text).unwrap();
    analyze(&[path])
}

fn line(second: f64, said: &str) -> String {
    let at = format!("2026-11-29T19:{:02}:{:09.6}+0000", 40 + (second / 60.0) as u32, second % 60.0);
    format!("{at} mcp-1 trailhead[902]: INFO mcp.server.streamable_http_manager {said}\n")
}

/// A session that begins every two seconds, and one that is refused among them.
fn busy() -> String {
    let mut text = String::new();
    for n in 0..60u32 {
        text += &line(f64::from(n) * 2.0, &format!("Created new transport with session ID: {n:032x}"));
        if n == 30 {
            text += &line(61.0, &format!("Rejected request with unknown or expired session ID: {REFUSED}"));
        }
    }
    text
}

#[test]
fn what_it_refused_and_what_came_of_it() {
    let report = analyzed(&journal());
    assert_eq!(rules(&report), ["stale/404-window", "stale/stranded"]);
    assert!(report.findings.iter().all(|f| f.confidence == Confidence::Possible), "{:?}", report.findings);
    let [window] = report.windows.as_slice() else { panic!("{:?}", report.windows) };
    assert_eq!(window.stale_session.as_deref(), Some(OLD));
    assert_eq!(window.new_session.as_deref(), Some(NEW));
    assert_eq!(window.cause, Some(Cause::Restart));
}

#[test]
fn silent_where_it_refused_nothing() {
    let text: String = journal().lines().filter(|l| !l.contains("Rejected")).map(|l| format!("{l}\n")).collect();
    assert_eq!(rules(&analyzed(&text)), [""; 0]);
}

#[test]
fn who_began_anew_among_many_is_not_told() {
    let report = analyzed(&busy());
    assert_eq!(rules(&report), ["stale/404-window"]);
    assert!(report.windows.is_empty(), "{:?}", report.windows);
    let finding = &report.findings[0];
    assert_eq!((finding.confidence, finding.fault.len()), (Confidence::Possible, 0));
    assert_eq!(finding.session.as_deref(), Some(REFUSED));
    assert!(finding.summary.contains("5 sessions began within 10.0 s"), "{}", finding.summary);
}

/// With the access line that uvicorn writes behind what was said.
fn with_access_lines(journal: &str) -> String {
    let mut text = String::new();
    for line in journal.lines() {
        text += &format!("{line}\n");
        let Some((head, _)) = line.split_once("INFO ").or(line.split_once("WARNING ")) else { continue };
        let status = match line {
            l if l.contains("Rejected") => "404 Not Found",
            l if l.contains("Created") => "200 OK",
            _ => continue,
        };
        text += &format!("{head}INFO uvicorn.access 192.0.2.7:40312 - \"POST /mcp HTTP/1.1\" {status}\n");
    }
    text
}

#[test]
fn access_lines_say_it_better() {
    let report = analyzed(&with_access_lines(&journal()));
    let refused: Vec<_> =
        report.windows.iter().flat_map(|w| &w.sequence).filter(|l| l.note.contains("stale")).collect();
    assert!(!refused.is_empty() && refused.iter().all(|l| l.status == Some(404)), "{refused:?}");
    assert_eq!(report.summary.exchanges, 6);
}

#[test]
fn a_refused_session_s_name_does_not_show_that_others_were_not_used() {
    let report = analyzed(&with_access_lines(&busy()));
    assert!(!rules(&report).contains(&"stale/reinit-storm"), "{:?}", report.findings);
}

/// The client's clock is an hour ahead, and nothing says by how much: that its answers came later than the refusal on
/// the server's clock does not mean that the session lived on.
#[test]
fn what_a_client_of_another_clock_got_does_not_undo_a_refusal() {
    let folder = tempfile::tempdir().unwrap();
    let (journal_path, client_path) = (folder.path().join("journal.log"), folder.path().join("client.jsonl"));
    std::fs::write(&journal_path, with_access_lines(&journal())).unwrap();
    let call = |minute: u32, id: u32| {
        format!(
            "{{\"at\":\"2026-11-29T21:{minute:02}:11.000Z\",\"ended\":\"2026-11-29T21:{minute:02}:11.400Z\",\"tool\":\"search\",\
             \"id\":{id},\"session\":\"{OLD}\",\"outcome\":\"ok\",\"text\":\"found\"}}\n"
        )
    };
    std::fs::write(&client_path, [call(1, 1), call(9, 2)].concat()).unwrap();
    let both = analyze(&[client_path, journal_path]);
    assert!(both.inputs.iter().any(|i| i.clock.offset_ms.is_none()), "{:?}", both.inputs);
    assert!(rules(&both).contains(&"stale/404-window"), "{:?}", both.findings);
}
