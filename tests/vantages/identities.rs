//! Whose handshake follows a refusal, in a log with session ids and many clients.

use super::{analyze, nginx, rules, rules_of};
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

/// A log that shows the session of requests alone shows a client's new one when it is first used.
#[test]
fn who_goes_on_under_another_id_is_not_stranded() {
    let (old, new) = ("11e3e3ac3d1c4c0fa53d4f0e2c6fb5d1", "0344c02a3d1c4c0fa53d4f0e2c6fb5d2");
    let refused = [
        nginx(1, 202, old, ""),
        nginx(2, 200, old, ""),
        nginx(5, 404, old, ""),
        nginx(6, 404, old, ""),
        nginx(7, 404, old, ""),
    ];
    let goes_on = [nginx(20, 202, new, ""), nginx(25, 200, new, ""), nginx(40, 200, new, "")];
    let other = goes_on.clone().map(|line| line.replace("10.11.211.197", "10.11.211.7"));
    assert!(!rules_of(&[&refused[..], &goes_on[..]].concat()).contains("stale/stranded"));
    assert!(rules_of(&[&refused[..], &other[..]].concat()).contains("stale/stranded"));
}

/// Somebody tries an id that was never given out, and somebody else begins: no more than possible. What was asked
/// for a log without bodies does not tell.
#[test]
fn an_id_that_nobody_was_given_is_hardly_another_s_old_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    let (old, new) = ("11e3e3ac3d1c4c0fa53d4f0e2c6fb5d1", "0344c02a3d1c4c0fa53d4f0e2c6fb5d2");
    let windows = |lines: &[String]| {
        std::fs::write(&path, lines.join("\n") + "\n").unwrap();
        let report = analyze(std::slice::from_ref(&path));
        assert!(report.windows.iter().all(|w| !w.shows_lost));
        let told = report.findings.iter().filter(|f| f.rule == "stale/404-window");
        told.map(|f| (f.confidence, f.summary.contains("the log does not tell"))).collect::<Vec<_>>()
    };
    let bot = |line: String| line.replace("10.11.211.197", "45.9.1.1").replace("agent/1", "zgrab");
    let begins = [nginx(7, 200, "", new), nginx(8, 202, new, ""), nginx(9, 200, new, ""), nginx(40, 200, new, "")];
    assert_eq!(windows(&[&[bot(nginx(5, 404, old, ""))], &begins[..]].concat()), [(Confidence::Possible, true)]);
    let known = [nginx(1, 200, "", old), nginx(2, 202, old, ""), nginx(5, 404, old, "")];
    assert_eq!(windows(&[&known[..], &begins[..]].concat()), [(Confidence::Certain, true)]);
}
