//! Tests over recordings made here.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::Counts;
use crate::input::log::Grade;
use crate::input::recorded::RecordedKind::{self, Har, Mitmproxy};
use crate::model::exchange::{Event, Exchange, ExchangeSink, Peer};
use crate::model::problem::{ProblemKind, Problems};
use proptest::prelude::*;

/// Writes every event down as one line.
#[derive(Default)]
struct Told(Vec<String>);

impl ExchangeSink for Told {
    fn event(&mut self, x: &Exchange, event: Event<'_>) {
        let n = x.stream;
        self.0.push(match event {
            Event::Request => {
                let r = x.request.as_ref().unwrap();
                format!(
                    "{n} {} {} {} {}",
                    r.last.at.clock(),
                    r.method,
                    x.request_header("host").unwrap_or("-"),
                    r.target
                )
            }
            Event::Head => {
                let r = x.response.as_ref().unwrap();
                format!("{n} {} {} {:?}", r.first.at.clock(), r.status, r.kind)
            }
            Event::Message(m) => {
                let from = if m.from == Peer::Client { ">" } else { "<" };
                let event =
                    if m.is_event { format!(" event {:?} id {:?}", m.event, m.event_id) } else { String::new() };
                format!("{n} {} {from} {}{event}", m.last.at.clock(), String::from_utf8_lossy(m.data))
            }
            Event::ResponseGap => format!("{n} gap"),
            Event::ClientClosed => format!("{n} client closed"),
            Event::End => {
                assert!(x.ended.is_some());
                format!("{n} {} {:?}", x.ended.unwrap().at.clock(), x.end.unwrap())
            }
        });
    }
}

fn read(kind: RecordedKind, bytes: &[u8]) -> (Vec<String>, Counts, Problems) {
    let (mut told, mut problems, mut next) = (Told::default(), Problems::default(), 0);
    let counts = super::read(kind, 3, &mut &*bytes, &mut next, &mut told, &mut problems).unwrap();
    (told.0, counts, problems)
}

const POST: &str = r#"{"startedDateTime":"2026-11-29T19:00:00.000Z","time":5000,
 "request":{"method":"POST","url":"http://127.0.0.1:9311/mcp?x=1#f","headers":[{"name":"Content-Type","value":"application/json"}],
  "postData":{"mimeType":"application/json","text":"{\"id\":1}"},"bodySize":8},
 "response":{"status":200,"headers":[{"name":"Content-Type","value":"text/event-stream; charset=utf-8"}],
  "content":{"size":60,"mimeType":"text/event-stream","text":": ping\r\nid: 4\r\ndata: {\"id\":\r\ndata: 1}\r\n\r\nevent: x\ndata:two\n\ndata: cut"},"bodySize":60},
 "timings":{"blocked":-1,"send":1000,"wait":2000,"receive":2000}}"#;
const WITHIN: &str = r#"{"startedDateTime":"2026-11-29T19:00:02.000Z","time":1000,
 "request":{"method":"POST","url":"https://Parks.example/mcp","headers":[{"name":":authority","value":"parks.example"}],"bodySize":0},
 "response":{"status":200,"headers":[{"name":"content-type","value":"application/json"}],
  "content":{"size":8,"mimeType":"application/json","text":"eyJpZCI6Mn0=","encoding":"base64"}},
 "timings":{"send":0,"wait":1000,"receive":0},"serverIPAddress":"192.0.2.7"}"#;
const ABORTED: &str = r#"{"startedDateTime":"2026-11-29T19:00:09.000Z","time":0,
 "request":{"method":"GET","url":"http://[::1]:80","headers":[]},
 "response":{"status":0,"headers":[],"content":{},"_error":"net::ERR_ABORTED"}}"#;
const STREAM: &str = r#"{"startedDateTime":"2026-11-29T19:00:10.000Z","time":1,
 "request":{"method":"GET","url":"http://h/","headers":[]},
 "response":{"status":200,"headers":[{"name":"content-type","value":"text/event-stream"}],"content":{"size":0,"mimeType":"x-unknown"}}}"#;

fn har(entries: &[&str]) -> String {
    format!(r#"{{"log":{{"version":"1.2","creator":{{"name":"t"}},"entries":[{}],"pages":[]}}}}"#, entries.join(","))
}

#[test]
fn har_is_told_in_order_of_time() {
    let (told, counts, problems) = read(Har, har(&[POST, WITHIN, ABORTED, STREAM]).as_bytes());
    // The stream's body was not saved.
    assert_eq!(problems.iter().map(|p| (p.kind, p.count)).collect::<Vec<_>>(), [(ProblemKind::ElidedMessage, 1)]);
    assert_eq!(counts.records, 4);
    assert_eq!(counts.first.unwrap().clock(), "19:00:00");
    assert_eq!(
        told,
        [
            "1 19:00:01 POST 127.0.0.1:9311 /mcp?x=1",
            r#"1 19:00:01 > {"id":1}"#,
            "2 19:00:02 POST parks.example /mcp",
            "1 19:00:03 200 EventStream",
            "2 19:00:03 200 Json",
            r#"2 19:00:03 < {"id":2}"#,
            "2 19:00:03 Complete",
            "1 19:00:05 < {\"id\":\n1} event None id Some(\"4\")",
            "1 19:00:05 < two event Some(\"x\") id Some(\"4\")",
            "1 19:00:05 Complete",
            "3 19:00:09 GET [::1]:80 /",
            "3 client closed",
            "3 19:00:09 ClientClosed",
            "4 19:00:10 GET h /",
            "4 19:00:10 200 EventStream",
            "4 gap",
            "4 19:00:10 Complete",
        ]
    );
}

#[test]
fn har_with_a_bad_entry_or_end_keeps_the_rest() {
    let (told, counts, problems) = read(Har, har(&[r#"{"startedDateTime":"now"}"#, "7", WITHIN]).as_bytes());
    assert_eq!((told.len(), counts.records, problems.count(ProblemKind::Garbage)), (4, 3, 2));
    let whole = har(&[WITHIN, POST]);
    let (told, counts, problems) = read(Har, &whole.as_bytes()[..whole.len() - 500]);
    assert_eq!((told.len(), counts.records, problems.count(ProblemKind::TruncatedRecord)), (4, 1, 1));
    let (told, _, problems) = read(Har, b"{\"log\":\n[\n1]\n\"request:\"}");
    assert_eq!((told.len(), problems.count(ProblemKind::Garbage)), (0, 1));
    let (_, _, problems) = read(Har, b"{\"log\":{}}");
    assert_eq!(problems.count(ProblemKind::Empty), 1);
}

#[test]
fn chromium_event_times_are_kept() {
    let entry = STREAM.replacen(
        '{',
        r#"{"_eventSourceMessages":[{"time":1795978811.5,"eventName":"message","eventId":"","data":"a"},{"time":1795978815,"eventName":"e","eventId":"9","data":"b"}],"#,
        1,
    );
    let (told, _, _) = read(Har, har(&[&entry]).as_bytes());
    assert_eq!(
        told[2..],
        ["1 19:00:11 < a event None id None", "1 19:00:15 < b event Some(\"e\") id Some(\"9\")", "1 19:00:15 Complete"]
    );
}

/// Makes tagged netstrings.
fn net(payload: impl AsRef<[u8]>, kind: char) -> Vec<u8> {
    let payload = payload.as_ref();
    let mut out = format!("{}:", payload.len()).into_bytes();
    out.extend_from_slice(payload);
    out.push(kind as u8);
    out
}

fn dict(members: &[(&str, Vec<u8>)]) -> Vec<u8> {
    net(members.iter().flat_map(|(n, v)| [net(n, ';'), v.clone()].concat()).collect::<Vec<_>>(), '}')
}

fn list(elements: &[Vec<u8>]) -> Vec<u8> {
    net(elements.concat(), ']')
}

fn field(name: &str, value: &str) -> Vec<u8> {
    list(&[net(name, ','), net(value, ',')])
}

fn flow(response: Vec<u8>, error: Vec<u8>) -> Vec<u8> {
    let request = dict(&[
        ("method", net("POST", ';')),
        ("path", net("/mcp", ';')),
        ("host", net("127.0.0.1", ';')),
        ("port", net("9311", '#')),
        ("headers", list(&[field("Mcp-Session-Id", "abc")])),
        ("content", net(r#"{"id":1}"#, ',')),
        ("timestamp_start", net("1795978800.0", '^')),
        ("timestamp_end", net("1795978801.25", '^')),
    ]);
    let peer = |port: &str| dict(&[("peername", list(&[net("127.0.0.1", ';'), net(port, '#')]))]);
    dict(&[
        ("request", request),
        ("response", response),
        ("error", error),
        ("client_conn", peer("5000")),
        ("server_conn", peer("9311")),
        ("type", net("http", ';')),
        ("version", net("21", '#')),
    ])
}

fn response(content: Vec<u8>, coding: &str, ended: Vec<u8>) -> Vec<u8> {
    dict(&[
        ("status_code", net("200", '#')),
        ("headers", list(&[field("content-type", "application/json"), field("content-encoding", coding)])),
        ("content", content),
        ("timestamp_start", net("1795978802.0", '^')),
        ("timestamp_end", ended),
    ])
}

fn null() -> Vec<u8> {
    net("", '~')
}

#[test]
fn flows() {
    use std::io::Write as _;
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(br#"{"id":1,"result":{}}"#).unwrap();
    let coded = net(gzip.finish().unwrap(), ',');
    let error = dict(&[("msg", net("Client disconnected.", ';')), ("timestamp", net("1795978809.0", '^'))]);
    let file = [
        flow(response(coded, "gzip", net("1795978803.0", '^')), null()),
        flow(response(null(), "identity", null()), null()),
        flow(null(), error),
        dict(&[("type", net("tcp", ';'))]),
        flow(response(net("no gzip", ','), "gzip", net("1795978803.0", '^')), null()),
    ]
    .concat();
    assert_eq!(Mitmproxy.grade(&file), Grade::Certain);
    let (told, counts, problems) = read(Mitmproxy, &file);
    assert_eq!(counts.records, 5);
    assert_eq!(problems.count(ProblemKind::UnreadProtocol), 1);
    assert_eq!(problems.count(ProblemKind::BadContentCoding), 1);
    let of = |n: &str| told.iter().filter(|l| l.starts_with(n)).map(|l| &l[2..]).collect::<Vec<_>>();
    let sent = ["19:00:01 POST 127.0.0.1:9311 /mcp", r#"19:00:01 > {"id":1}"#];
    let with = |rest: &[&'static str]| [&sent[..], rest].concat();
    assert_eq!(of("1 "), with(&["19:00:02 200 Json", r#"19:00:03 < {"id":1,"result":{}}"#, "19:00:03 Complete"]));
    assert_eq!(of("2 "), with(&["19:00:02 200 Json", "gap", "19:00:02 InputEnded"]));
    assert_eq!(of("3 "), with(&["client closed", "19:00:09 ClientClosed"]));
    assert_eq!(of("5 "), with(&["19:00:02 200 Json", "gap", "19:00:03 Complete"]));

    let (_, counts, problems) = read(Mitmproxy, &file[..file.len() - 1]);
    assert_eq!((counts.records, problems.count(ProblemKind::TruncatedRecord)), (5, 1));
}

#[test]
fn grades() {
    let whole = har(&[POST]);
    assert_eq!(Har.grade(whole.as_bytes()), Grade::Certain);
    assert_eq!(Har.grade(&whole.as_bytes()[..30]), Grade::Unsure);
    assert_eq!(Mitmproxy.grade(whole.as_bytes()), Grade::No);
    assert_eq!(Har.grade(br#"{"at":"2026-11-29T19:00:00Z","tool":"a"}"#), Grade::No);
    assert_eq!(Mitmproxy.grade(b"17:19:52  POST /mcp -> 404  stale session id"), Grade::No);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    /// Damage never panics, every exchange that was begun is ended, and something is said of it.
    #[test]
    fn damaged_recordings(
        cuts in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        end in any::<prop::sample::Index>(),
    ) {
        let of_har = har(&[POST, WITHIN, ABORTED, STREAM]).into_bytes();
        let of_flows = [flow(response(net("{}", ','), "identity", null()), null()), flow(null(), null())].concat();
        for (bytes, reader) in [(of_har, Har), (of_flows, Mitmproxy)] {
            let whole = bytes.clone();
            let mut bytes = bytes;
            for (at, b) in &cuts {
                let at = at.index(bytes.len());
                bytes[at] = *b;
            }
            bytes.truncate(end.index(bytes.len()) + 1);
            for kind in RecordedKind::ALL {
                let _ = kind.grade(&bytes);
            }
            let (told, counts, problems) = read(reader, &bytes);
            let begun = told.iter().filter(|l| l.contains("POST") || l.contains("GET")).count();
            prop_assert!(begun as u64 <= counts.records);
            prop_assert!(bytes.len() >= whole.len() - 1 || !problems.is_empty() || counts.records > 0);
        }
    }
}
