//! Whose handshake follows a refusal, in a log with session ids and many clients.

use super::{analyze, rules};
use crosswire::model::report::{Confidence, Report};

/// A request of an nginx log of JSON lines.
struct Line {
    second: u32,
    address: u8,
    agent: &'static str,
    path: &'static str,
    method: &'static str,
    status: u16,
    session: &'static str,
    given: &'static str,
}

const POST: Line =
    Line { second: 0, address: 7, agent: "agent/1", path: "/mcp", method: "POST", status: 200, session: "", given: "" };

impl Line {
    fn text(&self) -> String {
        let Line { second, address, agent, path, method, status, session, given } = self;
        let at = 1_791_201_600 + second;
        format!(
            r#"{{"msec":{at}.045,"remote_addr":"10.0.0.{address}","request_method":"{method}","request_uri":"{path}","status":{status},"body_bytes_sent":397,"request_time":0.019,"http_mcp_session_id":"{session}","sent_http_mcp_session_id":"{given}","http_user_agent":"{agent}"}}"#
        )
    }
}

fn analyzed(lines: &[Line]) -> Report {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    let text: String = lines.iter().map(|l| l.text() + "\n").collect();
    std::fs::write(&path, text).unwrap();
    analyze(&[path])
}

/// A session that is used and, at second 100, refused.
fn refused() -> Vec<Line> {
    vec![
        Line { given: "old", ..POST },
        Line { second: 1, status: 202, session: "old", ..POST },
        Line { second: 50, session: "old", ..POST },
        Line { second: 100, status: 404, session: "old", ..POST },
    ]
}

fn begins(second: u32, address: u8, session: &'static str) -> [Line; 3] {
    [
        Line { second, address, given: session, ..POST },
        Line { second: second + 1, address, status: 202, session, ..POST },
        Line { second: second + 5, address, session, ..POST },
    ]
}

/// New session and confidence of the only window.
fn window(lines: impl IntoIterator<Item = Line>) -> (Option<String>, Confidence) {
    let report = analyzed(&lines.into_iter().collect::<Vec<_>>());
    let [window] = report.windows.as_slice() else { panic!("{:?}", report.windows) };
    let finding = report.findings.iter().find(|f| f.rule == "stale/404-window").unwrap();
    (window.new_session.as_deref().map(str::to_owned), finding.confidence)
}

fn is(session: &str, confidence: Confidence) -> (Option<String>, Confidence) {
    (Some(session.to_owned()), confidence)
}

#[test]
fn a_slash_at_the_end_makes_no_other_endpoint() {
    let mut own = begins(101, 7, "new");
    own[0].path = "/mcp/";
    assert_eq!(
        window(refused().into_iter().chain(begins(101, 9, "theirs")).chain(own)),
        is("new", Confidence::Certain)
    );
}

#[test]
fn another_address_at_once_is_probable_and_never_certain() {
    assert_eq!(window(refused().into_iter().chain(begins(101, 9, "new"))), is("new", Confidence::Probable));
    // Of several it may be any.
    let several = refused().into_iter().chain(begins(101, 9, "new")).chain(begins(103, 8, "theirs"));
    assert_eq!(window(several), is("new", Confidence::Possible));
}

#[test]
fn the_same_client_however_late_is_likelier_than_another_that_came_before() {
    let lines = refused().into_iter().chain(begins(140, 9, "theirs")).chain(begins(4000, 7, "new"));
    assert_eq!(window(lines), is("new", Confidence::Possible));
}

#[test]
fn a_400_before_a_session_is_ended_or_the_log_is_no_refusal_of_it() {
    let used = || refused().into_iter().take(3);
    let bad = || Line { second: 60, status: 400, session: "old", ..POST };
    let ended = Line { second: 61, method: "DELETE", session: "old", ..POST };
    assert_eq!(rules(&analyzed(&used().chain([bad(), ended]).collect::<Vec<_>>())), [""; 0]);
    // That another client begins later says nothing of it.
    let report = analyzed(&used().chain([bad()]).chain(begins(200, 9, "theirs")).collect::<Vec<_>>());
    let found: Vec<_> = report.findings.iter().map(|f| (f.rule, f.confidence)).collect();
    assert_eq!(found, [("stale/wrong-status", Confidence::Possible)]);
}
