//! Tests over the table of client formats, and over recorded logs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::FORMATS;
use crate::input::log::{self, Format, Grade, LogContext, Reader, RecordSink};
use crate::model::id::RpcId;
use crate::model::options::ReadOptions;
use crate::model::place::{Place, Vantage};
use crate::model::problem::{ProblemKind, Problems};
use crate::model::record::{ClientCall, ClientOutcome, LogEvent, LogEventKind, LoggedMessage, Record, When};
use proptest::prelude::*;

/// Keeps everything that a reader tells.
#[derive(Default)]
struct Kept {
    entries: usize,
    calls: Vec<ClientCall>,
    messages: Vec<LoggedMessage>,
    events: Vec<LogEvent>,
    problems: Problems,
}

impl RecordSink for Kept {
    fn entry(&mut self, _: Option<When>) {
        self.entries += 1;
    }
    fn record(&mut self, record: Record) {
        match record {
            Record::Client(c) => self.calls.push(*c),
            Record::Message(m) => self.messages.push(*m),
            Record::Event(e) => self.events.push(*e),
            Record::Access(_) => panic!("no client writes an access log"),
        }
    }
    fn problem(&mut self, kind: ProblemKind, place: Place, text: &str) {
        self.problems.add(kind, || format!("line {}", place.number), || text);
    }
}

fn read_as(format: &Format, name: &str, options: &ReadOptions, bytes: &[u8]) -> Kept {
    let context = LogContext { input: 0, name, options, modified_ns: None };
    let mut kept = Kept::default();
    match format.reader {
        Reader::Lines(open) => {
            let mut reader = open(&context);
            for (i, line) in bytes.split(|&b| b == b'\n').enumerate() {
                reader.line(line, i as u64 + 1, &mut kept);
            }
            reader.finish(&mut kept);
        }
        Reader::Bytes(read) => read(&context, &mut &*bytes, &mut kept).unwrap(),
    }
    kept
}

fn read(format: &str, name: &str, bytes: &[u8]) -> Kept {
    let format = FORMATS.iter().find(|f| f.name == format).unwrap();
    read_as(format, name, &ReadOptions::default(), bytes)
}

fn fixture(name: &str) -> Vec<u8> {
    std::fs::read(format!("{}/fixtures/clients/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

#[test]
fn names_are_unique_and_documented() {
    for (i, f) in FORMATS.iter().enumerate() {
        assert!(FORMATS.iter().skip(i + 1).all(|g| g.name != f.name), "{}", f.name);
        assert!(f.doc.len() > 80 && f.doc.contains("ime"), "{}: say what it shows and whose clock it is", f.name);
        assert_eq!(f.vantage, Vantage::Client);
        assert!(!f.samples.is_empty());
    }
}

#[test]
fn samples_are_graded_best_by_their_own_format_and_say_something() {
    for format in FORMATS {
        for sample in format.samples {
            let own = (format.grade)(sample.as_bytes());
            assert!(own >= Grade::Likely, "{}: {own:?} for {sample}", format.name);
            for other in FORMATS.iter().chain(log::FORMATS).filter(|o| o.name != format.name) {
                let grade = (other.grade)(sample.as_bytes());
                assert!(grade < own, "{} grades a sample of {} as {grade:?}", other.name, format.name);
            }
            let kept = read_as(format, "sample", &ReadOptions::default(), sample.as_bytes());
            assert!(kept.entries > 0, "{}", format.name);
            assert_eq!(kept.problems.count(ProblemKind::BadLine), 0, "{}: {sample}", format.name);
            let said = kept.calls.len() + kept.messages.len() + kept.events.len();
            assert!(said > 0 || sample.contains("ListOfferings"), "{}: {sample}", format.name);
        }
    }
}

#[test]
fn fixtures_are_known() {
    for (file, format) in [
        ("crosswire-client.jsonl", "crosswire-client"),
        ("claude-code.jsonl", "claude-code"),
        ("claude-code-mcp.jsonl", "claude-code-mcp"),
        ("mcp-remote-debug.log", "mcp-remote"),
        ("mcp-remote-stderr.log", "mcp-remote"),
    ] {
        let bytes = fixture(file);
        let best = FORMATS.iter().rev().max_by_key(|f| (f.grade)(&bytes)).unwrap();
        assert_eq!(best.name, format, "{file}");
        assert_eq!((best.grade)(&bytes), Grade::Certain, "{file}");
    }
}

#[test]
fn a_first_line_longer_than_what_is_looked_at_is_known() {
    let long = "x".repeat(100_000);
    let neutral =
        format!(r#"{{"at":"2026-11-29T19:38:46Z","method":"tools/list","outcome":"ok","result":{{"t":"{long}"}}}}"#);
    let entry = format!(
        r#"{{"parentUuid":null,"type":"user","message":{{"role":"user","content":"{long}"}},"sessionId":"s"}}"#
    );
    for (line, format) in [(neutral, "crosswire-client"), (entry, "claude-code")] {
        let head = &line.as_bytes()[..64 << 10];
        let best = FORMATS.iter().rev().max_by_key(|f| (f.grade)(head)).unwrap();
        assert_eq!(best.name, format);
        assert!((best.grade)(head) >= Grade::Likely);
    }
}

#[test]
fn neutral_format_in_full() {
    let kept = read("crosswire-client", "client.jsonl", &fixture("crosswire-client.jsonl"));
    assert!(kept.problems.is_empty(), "{:?}", kept.problems);
    assert_eq!(kept.calls.len(), kept.entries);
    let empty: Vec<_> = kept.calls.iter().filter(|c| c.outcome == Some(ClientOutcome::Empty)).collect();
    assert_eq!(empty.len(), 1);
    let call = empty[0];
    assert_eq!(call.at.unwrap().at.to_string(), "2026-11-29T19:42:46.409128Z");
    assert_eq!(call.ended.unwrap().error_ns, 1000);
    assert_eq!(call.conversation.as_deref(), Some("rc-session-2"));
    assert_eq!((call.tool.as_deref(), &*call.method), (Some("list_directory"), "tools/call"));
    assert_eq!(call.arguments.as_deref(), Some(r#"{"path":"/shelf/in"}"#));
    assert_eq!((call.id.clone(), call.local_port), (Some(RpcId::Int(10)), None));
    assert_eq!(call.session.as_deref(), Some("2f6dd314e5b64ca5aefa6fcbd9f55bd2"));
}

#[test]
fn neutral_format_says_what_is_wrong() {
    let lines = concat!(
        "{\"at\":\"2026-11-29T19:42:46Z\",\"tool\":\"a\",\"id\":\"7\",\"local_port\":70000,\"outcome\":\"fine\"}\n",
        "\n",
        "{\"at\":\"yesterday\",\"tool\":\"a\"}\n",
        "{\"at\":\"2026-11-29T19:42:46Z\"}\n",
        "{\"tool\":\"a\"}\n",
        "{\"at\":\"2026-11-29T19:42:46Z\",\"method\":\"ping\"\n",
        "{\"at\":\"2026-11-29T19:42:46Z\",\"method\":\"ping\",\"id\":1e400}\n",
    );
    let kept = read("crosswire-client", "client.jsonl", lines.as_bytes());
    assert_eq!(kept.entries, 6);
    assert_eq!(kept.calls.len(), 2);
    assert_eq!(kept.problems.count(ProblemKind::BadLine), 6);
    assert_eq!(kept.calls[0].id, Some(RpcId::Str("7".into())));
    assert_eq!((kept.calls[0].local_port, kept.calls[0].outcome), (None, None));
    assert_eq!(kept.calls[1].id, Some(RpcId::Other("1e400".into())));
}

#[test]
fn transcript_pairs_uses_with_results() {
    let kept = read("claude-code", "s.jsonl", &fixture("claude-code.jsonl"));
    let [call] = &kept.calls[..] else { panic!("{:?}", kept.calls) };
    assert_eq!(call.tool_use_id.as_deref(), Some("toolu_01A"));
    assert_eq!((call.server.as_deref(), call.tool.as_deref()), (Some("parks"), Some("get_park")));
    assert_eq!(call.outcome, Some(ClientOutcome::Timeout));
    assert_eq!(call.arguments.as_deref(), Some(r#"{"code":"yell"}"#));
    assert_eq!(call.ended.unwrap().at.to_string(), "2026-09-04T00:43:01.480Z");
    assert_eq!(call.result, None);
}

/// A transcript with one call and the result block given.
fn transcript(result: &str) -> Kept {
    let used = r#"{"type":"assistant","message":{"content":[{"type":"tool_use","id":"t1","name":"mcp__a_b__x__y","input":{}}]},"timestamp":"2026-09-04T00:38:01.120Z","sessionId":"s","agentId":"g"}"#;
    let result = format!(
        r#"{{"type":"user","message":{{"content":[{{"type":"tool_result","tool_use_id":"t1",{result}}}]}},"timestamp":"2026-09-04T00:38:02.000Z","sessionId":"s"}}"#
    );
    let lines = [used, used, result.as_str(), result.as_str()].join("\n");
    read("claude-code", "s.jsonl", lines.as_bytes())
}

#[test]
fn transcript_outcomes() {
    let ok = transcript(r#""content":[{"type":"text","text":"seven"}]"#);
    assert_eq!(ok.calls.len(), 1);
    assert_eq!(ok.calls[0].outcome, Some(ClientOutcome::Ok));
    assert_eq!(ok.calls[0].result.as_deref(), Some(r#"{"content":[{"type":"text","text":"seven"}]}"#));
    assert_eq!((ok.calls[0].server.as_deref(), ok.calls[0].tool.as_deref()), (Some("a_b"), Some("x__y")));
    assert_eq!(ok.calls[0].conversation.as_deref(), Some("s/g"));

    let text = transcript(r#""content":"se\"ven""#);
    assert_eq!(text.calls[0].result.as_deref(), Some(r#"{"content":[{"type":"text","text":"se\"ven"}]}"#));

    for empty in [r#""content":"""#, r#""content":[]"#, r#""content":"(mcp__a_b__x__y completed with no output)""#] {
        assert_eq!(transcript(empty).calls[0].outcome, Some(ClientOutcome::Empty), "{empty}");
    }
    let image = transcript(r#""content":[{"type":"image","source":{}}]"#);
    assert_eq!(image.calls[0].outcome, Some(ClientOutcome::Ok));

    let tools_own = transcript(r#""is_error":true,"content":"Error: the weather service timed out""#);
    assert_eq!(tools_own.calls[0].outcome, Some(ClientOutcome::Error));
    assert!(tools_own.calls[0].result.is_some());

    let interrupted = transcript(r#""is_error":true,"content":"[Request interrupted by user for tool use]""#);
    assert_eq!(interrupted.calls[0].outcome, Some(ClientOutcome::Aborted));
    let background = transcript(
        r#""content":"MCP server \"a_b\" tool \"x__y\" is still running after 120s. It was moved to the background as task b1""#,
    );
    assert_eq!((background.calls[0].outcome, background.calls[0].ended), (None, None));
    let never = transcript(
        r#""is_error":true,"content":"<tool_use_error>Error: No such tool available: mcp__a_b__x__y</tool_use_error>""#,
    );
    assert!(never.calls.is_empty());
}

#[test]
fn mcp_log_splits_a_call_that_was_tried_again() {
    let kept = read("claude-code-mcp", "/l/mcp-logs-parks/2026-09-04.jsonl", &fixture("claude-code-mcp.jsonl"));
    let [refused, again] = &kept.calls[..] else { panic!("{:?}", kept.calls) };
    assert_eq!(refused.outcome, Some(ClientOutcome::Error));
    assert_eq!(refused.ended.unwrap().at.to_string(), "2026-09-04T00:39:02.000Z");
    assert_eq!(again.outcome, Some(ClientOutcome::Ok));
    assert_eq!(again.at.unwrap().at.to_string(), "2026-09-04T00:39:02.310Z");
    assert_eq!(again.server.as_deref(), Some("parks"));
    let kinds: Vec<_> = kept.events.iter().map(|e| e.kind).collect();
    assert_eq!(kinds, [LogEventKind::SessionRejected, LogEventKind::Error]);
}

#[test]
fn mcp_log_tells_calls_of_one_tool_apart_by_duration() {
    let line = |text: &str, s: u32| {
        format!(r#"{{"debug":"{text}","timestamp":"2026-09-04T00:38:{s:02}.000Z","sessionId":"s","cwd":"/"}}"#)
    };
    let lines = [
        line("Calling MCP tool: x", 1),
        line("Calling MCP tool: x", 5),
        line("Tool 'x' completed successfully in 2s", 7),
        line("Tool 'x' aborting: no response or progress notification for 30s (idle timeout 30s)", 31),
        line("Tool 'x' failed after 30s: aborted", 31),
        line("Tool 'x' completed successfully in 40s", 41),
    ];
    let kept = read("claude-code-mcp", "x", lines.join("\n").as_bytes());
    let told: Vec<_> = kept.calls.iter().map(|c| (c.at.unwrap().at.clock(), c.outcome.unwrap())).collect();
    assert_eq!(
        told,
        [
            ("00:38:05".to_owned(), ClientOutcome::Ok),
            ("00:38:01".to_owned(), ClientOutcome::Timeout),
            ("00:38:01".to_owned(), ClientOutcome::Ok)
        ]
    );
}

#[test]
fn mcp_remote_logs_agree() {
    let debug = read("mcp-remote", "x_debug.log", &fixture("mcp-remote-debug.log"));
    let stderr = read("mcp-remote", "stderr", &fixture("mcp-remote-stderr.log"));
    for kept in [&debug, &stderr] {
        assert!(kept.problems.is_empty(), "{:?}", kept.problems);
        let sent: Vec<_> = kept.messages.iter().filter(|m| m.from_client).map(|m| &*m.json).collect();
        assert_eq!(sent.len(), 6);
        assert_eq!(
            sent[3],
            r#"{"jsonrpc":"2.0","method":"tools/call","id":2,"params":{"name":"ok","arguments":{"q":"secret"}}}"#
        );
        assert_eq!(kept.messages.iter().filter(|m| !m.from_client && m.elided).count(), 4);
        let sessions: Vec<_> = kept.events.iter().filter_map(|e| e.session.as_deref()).collect();
        assert_eq!(sessions, ["82d65bac8e8b49c880606fd27550afa8", "23f9e045c7cf477a9214b52f9a61d711"]);
        let rejected: Vec<_> = kept.events.iter().filter(|e| e.kind == LogEventKind::SessionRejected).collect();
        let ids: Vec<_> = rejected.iter().map(|e| e.rpc_id.clone().unwrap()).collect();
        assert_eq!(ids, [RpcId::Int(3), RpcId::Int(4)]);
        assert_eq!(rejected[0].when.unwrap().at.to_string(), "2026-11-29T19:44:18.226Z");
    }
}

#[test]
fn desktop_reads_both_layouts_and_the_bridge_within() {
    let log = concat!(
        "2026-03-10T15:18:27.783Z [parks] [info] Message from client: {\"method\":\"tools/call\",\"id\":7} { metadata: undefined }\n",
        "[10658] Remote session expired, re-initializing\n",
        "[10658] Re-established session abc after server expiry\n",
        "Traceback of the server\n",
        "2025-06-05T18:45:41.233Z [info] [parks] Message from server: {\"id\":7,\"result\":{\"content\":[{\"type\":\"te\n",
        "2025-06-05T18:45:42.233Z [error] [parks] Server disconnected { metadata: undefined }\n",
    );
    let kept = read("claude-desktop", "/Logs/mcp-server-parks.log", log.as_bytes());
    assert_eq!(kept.messages.len(), 2);
    assert_eq!(&*kept.messages[0].json, r#"{"method":"tools/call","id":7}"#);
    assert_eq!(kept.messages[0].server.as_deref(), Some("parks"));
    assert!(kept.messages[1].elided && !kept.messages[1].from_client);
    let kinds: Vec<_> = kept.events.iter().map(|e| e.kind).collect();
    assert_eq!(kinds, [LogEventKind::SessionRejected, LogEventKind::SessionCreated, LogEventKind::Error]);
    assert_eq!(kept.events[1].session.as_deref(), Some("abc"));
}

#[test]
fn local_times_take_the_zone() {
    let log = b"2026-07-24 02:03:14.089 [debug] [editor -> server] {\"id\":1,\"method\":\"ping\"}";
    let format = FORMATS.iter().find(|f| f.name == "vscode-mcp").unwrap();
    let options = ReadOptions { tz: "America/New_York".parse().ok(), ..ReadOptions::default() };
    let kept = read_as(format, "x", &options, log);
    assert_eq!(kept.messages[0].when.unwrap().at.to_string(), "2026-07-24T06:03:14.089Z");
    assert!(kept.problems.is_empty());
    let kept = read_as(format, "x", &ReadOptions::default(), log);
    assert_eq!(kept.messages[0].when.unwrap().at.to_string(), "2026-07-24T02:03:14.089Z");
    assert_eq!(kept.problems.count(ProblemKind::InferredTime), 1);
}

#[test]
fn cursor_calls() {
    let log = concat!(
        "2025-02-25 01:21:18.277 [info] db10: Handling CallTool action for tool 'a'\n",
        "2025-02-25 01:21:18.278 [info] db10: Calling tool 'a'\n",
        "2025-02-25 01:21:18.300 [info] db10: Calling tool 'b'\n",
        "2025-02-25 01:21:18.354 [info] db10: Successfully called tool 'a'\n",
        "2025-02-25 01:21:19.354 [error] db10: Error calling tool 'b': MCP error -32001: Request timed out\n",
        "2025-02-25 01:21:20.354 [info] db10: Calling tool 'c' with toolCallId: 1\n",
    );
    let kept = read("cursor-mcp", "MCP.log", log.as_bytes());
    let told: Vec<_> = kept.calls.iter().map(|c| (c.tool.as_deref().unwrap(), c.outcome)).collect();
    assert_eq!(told, [("a", Some(ClientOutcome::Ok)), ("b", Some(ClientOutcome::Timeout)), ("c", None)]);
}

/// Every line that any fixture or sample has.
fn corpus() -> Vec<u8> {
    let mut all = Vec::new();
    for f in FORMATS {
        for s in f.samples {
            all.extend_from_slice(s.as_bytes());
            all.push(b'\n');
        }
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Changed and cut bytes never panic, and a line that is no entry of the format is counted.
    #[test]
    fn damaged_logs_are_read_as_far_as_they_go(
        cuts in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..20),
        end in any::<prop::sample::Index>(),
    ) {
        let mut bytes = corpus();
        for (at, b) in cuts {
            let at = at.index(bytes.len());
            bytes[at] = b;
        }
        bytes.truncate(end.index(bytes.len()));
        for f in FORMATS {
            let _ = (f.grade)(&bytes);
            let kept = read_as(f, "x", &ReadOptions::default(), &bytes);
            let lines = bytes.split(|&b| b == b'\n').filter(|l| !l.trim_ascii().is_empty()).count();
            prop_assert!(kept.entries <= lines);
            if f.name == "crosswire-client" {
                prop_assert_eq!(kept.entries, lines);
                prop_assert!(kept.calls.len() as u64 + kept.problems.count(ProblemKind::BadLine) >= lines as u64);
            }
        }
    }
}
