//! HTTP/2 connections written frame by frame, with header blocks of an independent encoder.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use crosswire::model::exchange::{End, Peer};
use crosswire::model::problem::{ProblemKind, Problems};
use crosswire::wire::http1::Http1;
use crosswire::wire::http2::Http2;
use proptest::prelude::*;
use support::{Recording, Step, Told, exchanges};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    out.extend([kind, flags]);
    out.extend(stream.to_be_bytes());
    out.extend(payload);
    out
}

/// Writes both directions.
struct Writer {
    recording: Recording,
    encoders: [loona_hpack::Encoder<'static>; 2],
}

impl Writer {
    fn new() -> Writer {
        let mut writer = Writer {
            recording: Recording::default(),
            encoders: [loona_hpack::Encoder::new(), loona_hpack::Encoder::new()],
        };
        writer.put(Peer::Client, &[PREFACE, &frame(4, 0, 0, &[0, 3, 0, 0, 0, 100])].concat());
        writer.put(Peer::Server, &[frame(4, 0, 0, &[]), frame(4, 1, 0, &[])].concat());
        writer.put(Peer::Client, &frame(4, 1, 0, &[]));
        writer
    }

    fn put(&mut self, from: Peer, bytes: &[u8]) -> &mut Writer {
        self.recording.push(from, bytes);
        self
    }

    fn block(&mut self, from: Peer, fields: &[(&str, &str)]) -> Vec<u8> {
        let encoder = &mut self.encoders[usize::from(from == Peer::Server)];
        encoder.encode(fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())))
    }

    fn headers(&mut self, from: Peer, stream: u32, fields: &[(&str, &str)], flags: u8) -> &mut Writer {
        let block = self.block(from, fields);
        self.put(from, &frame(1, END_HEADERS | flags, stream, &block))
    }

    fn post(&mut self, stream: u32, body: &str) -> &mut Writer {
        let fields = [
            (":method", "POST"),
            (":scheme", "https"),
            (":path", "/mcp"),
            (":authority", "host:8443"),
            ("content-type", "application/json"),
            ("mcp-session-id", "abc"),
        ];
        self.headers(Peer::Client, stream, &fields, 0);
        self.put(Peer::Client, &frame(0, END_STREAM, stream, body.as_bytes()))
    }

    fn answer(&mut self, stream: u32, kind: &str) -> &mut Writer {
        self.headers(Peer::Server, stream, &[(":status", "200"), ("content-type", kind)], 0)
    }

    fn data(&mut self, from: Peer, stream: u32, text: &str, flags: u8) -> &mut Writer {
        self.put(from, &frame(0, flags, stream, text.as_bytes()))
    }

    fn read(&self) -> (Vec<Told>, Problems) {
        exchanges(&mut Http2::default(), &self.recording)
    }
}

#[test]
fn interleaved_streams_keep_their_own() {
    let mut writer = Writer::new();
    writer.post(1, "{\"id\":1}").post(3, "{\"id\":2}");
    writer.answer(3, "text/event-stream").answer(1, "application/json");
    writer.data(Peer::Server, 3, "data: {\"id\"", 0).data(Peer::Server, 1, "{\"a\":", 0);
    writer.data(Peer::Server, 3, ":2}\n\ndata: x\n\n", 0).data(Peer::Server, 1, "1}", END_STREAM);
    writer.data(Peer::Server, 3, "", END_STREAM);
    let (told, problems) = writer.read();
    assert!(problems.is_empty(), "{problems:?}");
    assert_eq!(told.len(), 2);
    let (method, target, headers) = told[0].request.clone().unwrap();
    assert_eq!((method.as_str(), target.as_str()), ("POST", "/mcp"));
    assert_eq!(headers[0], ("host".to_owned(), "host:8443".to_owned()));
    assert_eq!(headers[2], ("mcp-session-id".to_owned(), "abc".to_owned()));
    assert_eq!(
        (told[0].stream, told[0].sent.clone(), told[0].answered.clone()),
        (Some(1), vec!["{\"id\":1}".to_owned()], vec!["{\"a\":1}".to_owned()])
    );
    assert_eq!((told[1].stream, told[1].answered.clone()), (Some(3), vec!["{\"id\":2}".to_owned(), "x".to_owned()]));
    assert!(told.iter().all(|told| told.end == Some(End::Complete) && told.status == Some(200)));
}

#[test]
fn padding_priority_continuation_trailers_and_unknown_frames() {
    let mut writer = Writer::new();
    let block = writer.block(
        Peer::Client,
        &[(":method", "POST"), (":path", "/mcp"), ("content-type", "application/json"), ("x", "a long enough value")],
    );
    let (first, rest) = block.split_at(3);
    let (second, third) = rest.split_at(4);
    let padded = [&[5, 0, 0, 0, 0, 9][..], first, &[0; 5]].concat();
    writer.put(Peer::Client, &frame(1, 0x8 | 0x20, 1, &padded));
    writer.put(Peer::Client, &frame(9, 0, 1, second)).put(Peer::Client, &frame(9, END_HEADERS, 1, third));
    writer.put(Peer::Client, &frame(2, 0, 3, &[0; 5])).put(Peer::Client, &frame(0x10, 0, 0, b"u=1"));
    writer.put(Peer::Client, &frame(0, 0x8, 1, b"\x03{\"id\"\0\0\0")).put(Peer::Client, &frame(0, 0x8, 1, b"\x02\0\0"));
    writer.put(Peer::Client, &frame(0, 0, 1, b":1}"));
    writer.headers(Peer::Client, 1, &[("checksum", "1")], END_STREAM);
    writer.headers(Peer::Server, 1, &[(":status", "103"), ("link", "x")], 0).answer(1, "application/json");
    writer.put(Peer::Server, &frame(8, 0, 0, &[0, 0, 1, 0])).put(Peer::Server, &frame(6, 0, 0, &[0; 8]));
    writer.data(Peer::Server, 1, "{}", 0).headers(Peer::Server, 1, &[("grpc-status", "0")], END_STREAM);
    let (told, problems) = writer.read();
    assert!(problems.is_empty(), "{problems:?}");
    assert_eq!(
        (told.len(), told[0].sent.clone(), told[0].answered.clone()),
        (1, vec!["{\"id\":1}".to_owned()], vec!["{}".to_owned()])
    );
    assert_eq!((told[0].status, told[0].end), (Some(200), Some(End::Complete)));
    assert!(told[0].request.as_ref().unwrap().2.contains(&("x".to_owned(), "a long enough value".to_owned())));
}

#[test]
fn resets_and_go_away_end_streams() {
    let mut writer = Writer::new();
    for stream in [1, 3, 5, 7, 9] {
        writer.post(stream, "{}");
    }
    writer.answer(1, "text/event-stream").answer(5, "application/json").data(Peer::Server, 5, "{}", END_STREAM);
    writer.put(Peer::Client, &frame(3, 0, 1, &[0, 0, 0, 8])).put(Peer::Server, &frame(3, 0, 3, &[0, 0, 0, 7]));
    writer.put(Peer::Server, &frame(3, 0, 5, &[0; 4])).put(Peer::Server, &frame(7, 0, 0, &[0, 0, 0, 7, 0, 0, 0, 0]));
    // Late frames of a stream that the client gave up.
    writer.data(Peer::Server, 1, "data: late\n\n", END_STREAM);
    let (told, problems) = writer.read();
    assert!(problems.is_empty(), "{problems:?}");
    let ends: Vec<_> = told.iter().map(|told| (told.stream.unwrap(), told.end.unwrap(), told.ended_by)).collect();
    assert_eq!(
        ends,
        [
            (1, End::Reset, Some(Peer::Client)),
            (3, End::Reset, Some(Peer::Server)),
            (5, End::Complete, None),
            (7, End::InputEnded, None),
            (9, End::Reset, Some(Peer::Server)),
        ]
    );
    assert!(told[0].client_closed && !told[1].client_closed);
}

#[test]
fn a_promise_is_an_exchange_of_its_own() {
    let mut writer = Writer::new();
    writer.post(1, "{}");
    let promise = writer.block(Peer::Server, &[(":method", "GET"), (":path", "/pushed"), (":authority", "h")]);
    writer.put(Peer::Server, &frame(5, END_HEADERS, 1, &[&[0, 0, 0, 2][..], &promise].concat()));
    writer.answer(2, "application/json").data(Peer::Server, 2, "{\"pushed\":1}", END_STREAM);
    writer.answer(1, "application/json").data(Peer::Server, 1, "{}", END_STREAM);
    let (told, problems) = writer.read();
    assert!(problems.is_empty(), "{problems:?}");
    assert_eq!(told[1].request.as_ref().unwrap().1, "/pushed");
    assert_eq!(
        (told[1].stream, told[1].answered.clone(), told[1].end),
        (Some(2), vec!["{\"pushed\":1}".to_owned()], Some(End::Complete))
    );
}

#[test]
fn websocket_over_a_stream_is_named() {
    let mut writer = Writer::new();
    writer.headers(Peer::Client, 1, &[(":method", "CONNECT"), (":protocol", "websocket"), (":path", "/")], 0);
    writer.headers(Peer::Server, 1, &[(":status", "200")], 0).data(Peer::Server, 1, "\x01\x02", 0);
    writer.post(3, "{}");
    let (told, problems) = writer.read();
    assert_eq!(problems.count(ProblemKind::WebSocket), 1);
    assert_eq!((told.len(), told[0].stream), (1, Some(3)));
}

#[test]
fn an_upgrade_to_h2c_is_followed() {
    let mut writer = Writer::new();
    writer.answer(1, "application/json").data(Peer::Server, 1, "{\"id\":1}", END_STREAM);
    writer.post(3, "{\"id\":3}").answer(3, "application/json").data(Peer::Server, 3, "{\"id\":3}", END_STREAM);
    let mut recording = Recording::default();
    let request = "POST /mcp HTTP/1.1\r\nhost: h\r\nconnection: upgrade, http2-settings\r\nupgrade: h2c\r\n\
                   http2-settings: AAMAAABk\r\ncontent-type: application/json\r\ncontent-length: 8\r\n\r\n{\"id\":1}";
    recording.push(Peer::Client, request.as_bytes());
    let mut steps = writer.recording.steps.into_iter();
    let Some(Step::Data(Peer::Client, preface)) = steps.next() else { panic!() };
    let Some(Step::Data(Peer::Server, settings)) = steps.next() else { panic!() };
    let switch = b"HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: h2c\r\n\r\n";
    recording.push(Peer::Server, &[&switch[..], &settings].concat());
    recording.push(Peer::Client, &preface);
    recording.steps.extend(steps);
    for size in [1, 10_000] {
        let (told, problems) = exchanges(&mut Http1::default(), &recording.split(size));
        assert!(problems.is_empty(), "{problems:?}");
        let seen: Vec<_> =
            told.iter().map(|told| (told.stream, told.status, told.answered.clone(), told.end)).collect();
        let all = |stream: u32| (Some(stream), Some(200), vec![format!("{{\"id\":{stream}}}")], Some(End::Complete));
        assert_eq!(seen, [all(1), all(3)]);
        assert_eq!(told[0].sent, ["{\"id\":1}"]);
    }
}

/// Two calls before the capture begins, then one.
fn midstream() -> Recording {
    let mut writer = Writer::new();
    for stream in [1, 3] {
        writer.post(stream, "{\"id\":1}").answer(stream, "text/event-stream").data(
            Peer::Server,
            stream,
            "data: {}\n\n",
            END_STREAM,
        );
    }
    let before = writer.recording.steps.len();
    writer.post(5, "{\"id\":5}").answer(5, "text/event-stream").data(
        Peer::Server,
        5,
        "data: {\"id\":5}\n\n",
        END_STREAM,
    );
    let steps = writer.recording.steps.split_off(before);
    Recording { steps, keylog: Vec::new() }
}

#[test]
fn a_capture_that_starts_midstream_reads_what_is_not_from_before() {
    let (told, problems) = exchanges(&mut Http2::default(), &midstream());
    assert!(problems.count(ProblemKind::BadHttp2) > 0, "unknown fields are counted");
    assert_eq!(told.len(), 1);
    let (method, target, headers) = told[0].request.clone().unwrap();
    assert_eq!((method.as_str(), target.as_str()), ("POST", "/mcp"));
    assert!(headers.contains(&("?".to_owned(), "?".to_owned())));
    assert_eq!(told[0].sent, ["{\"id\":5}"]);
    assert_eq!((told[0].status, told[0].answered.clone()), (Some(200), vec!["{\"id\":5}".to_owned()]));
    assert_eq!(told[0].end, Some(End::Complete));
}

/// A long connection of small messages, and which byte of the server's begins the 25th answer.
fn long() -> (Writer, usize) {
    let mut writer = Writer::new();
    let mut middle = 0;
    for n in 0..50u32 {
        let stream = 2 * n + 1;
        writer.post(stream, &format!("{{\"id\":{n}}}"));
        if n == 25 {
            middle = writer.recording.bytes(Peer::Server);
        }
        writer.answer(stream, "application/json");
        let body = format!("{{\"id\":{n},\"result\":\"{}\"}}", "x".repeat(200));
        writer.data(Peer::Server, stream, &body, END_STREAM);
    }
    (writer, middle)
}

#[test]
fn a_hole_in_data_costs_one_message() {
    let (writer, middle) = long();
    let holed = writer.recording.with_hole(Peer::Server, middle + 60, middle + 120, true);
    let (told, _) = exchanges(&mut Http2::default(), &holed);
    let lost: Vec<_> = told.iter().filter(|told| told.answered.is_empty()).map(|told| told.stream.unwrap()).collect();
    assert_eq!((told.len(), lost), (50, vec![51]));
    assert!(told[25].response_gap && told[25].end == Some(End::Complete));
    assert!(told.iter().all(|told| told.response_headers.iter().all(|(name, _)| name != "?")));
}

#[test]
fn behind_a_hole_frames_are_found_again() {
    let (writer, middle) = long();
    for (start, length, told_length) in [(0, 40, true), (0, 40, false), (30, 600, true), (100, 2000, false)] {
        let holed = writer.recording.with_hole(Peer::Server, middle + start, middle + start + length, told_length);
        let (told, _) = exchanges(&mut Http2::default(), &holed);
        assert_eq!(told.len(), 50);
        let lost = told.iter().filter(|told| told.answered.is_empty()).count();
        assert!(lost <= length / 230 + 2, "lost {lost} for {length}");
        for told in &told {
            let n = (told.stream.unwrap() - 1) / 2;
            assert!(told.answered.iter().all(|text| text.starts_with(&format!("{{\"id\":{n},"))));
            // Who lost his answer did not simply get none.
            assert!(!told.answered.is_empty() || told.end == Some(End::Gap) || told.response_gap, "{told:?}");
        }
    }
}

#[test]
fn bombs_are_capped() {
    let mut writer = Writer::new();
    let block = writer.block(Peer::Client, &[(":method", "GET"), (":path", "/"), ("x", &"y".repeat(3000))]);
    writer.put(Peer::Client, &frame(1, END_HEADERS | END_STREAM, 1, &block));
    // The same large field thousands of times.
    writer.put(Peer::Client, &frame(1, END_HEADERS | END_STREAM, 3, &[&[0x82][..], &[0xbe; 10_000]].concat()));
    // CONTINUATION without end.
    writer.put(Peer::Client, &frame(1, END_STREAM, 5, &[0x82]));
    for _ in 0..40 {
        writer.put(Peer::Client, &frame(9, 0, 5, &[0x82; 16_000]));
    }
    writer.put(Peer::Client, &frame(9, END_HEADERS, 5, &[]));
    writer.post(7, "{}");
    let (told, problems) = writer.read();
    assert!(problems.count(ProblemKind::LimitHit) > 9000);
    let fields: usize = told.iter().filter_map(|told| told.request.as_ref()).map(|request| request.2.len()).sum();
    assert!(fields < 1000);
    assert_eq!((told.last().unwrap().stream, told.last().unwrap().sent.clone()), (Some(7), vec!["{}".to_owned()]));
}

#[test]
fn ends_of_the_connection() {
    use crosswire::wire::{Close, Context, StreamParser};
    for (from, close, end, by) in [
        (Peer::Server, Close::Fin, End::ServerClosed, Some(Peer::Server)),
        (Peer::Server, Close::Reset, End::Reset, Some(Peer::Server)),
        (Peer::Client, Close::Reset, End::Reset, Some(Peer::Client)),
    ] {
        let mut writer = Writer::new();
        writer.post(1, "{}").answer(1, "text/event-stream");
        let (mut sink, mut problems, mut next) = (support::Exchanges::default(), Problems::default(), 0);
        let mut context = Context { sink: &mut sink, problems: &mut problems, next_exchange: &mut next };
        let mut parser = Http2::default();
        for step in &writer.recording.steps {
            if let Step::Data(from, bytes) = step {
                parser.data(&support::connection(), *from, bytes, support::mark(1), &mut context);
            }
        }
        parser.close(&support::connection(), from, close, support::mark(2), &mut context);
        let told = &sink.0[&0];
        assert_eq!((told.end, told.ended_by), (Some(end), by));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(32) })]

    #[test]
    fn any_split_gives_the_same(size in 1usize..300) {
        let (writer, _) = long();
        let whole = writer.read();
        let split = exchanges(&mut Http2::default(), &writer.recording.split(size));
        prop_assert_eq!(whole.0, split.0);
        prop_assert!(split.1.is_empty());
    }

    /// Wherever a hole is, what is told belongs where it is told.
    #[test]
    fn a_hole_never_crosses_answers(start in 0.0f64..1.0, length in 1usize..1500, told_length: bool, server: bool, size in 40usize..2000) {
        let (writer, _) = long();
        let from = if server { Peer::Server } else { Peer::Client };
        let start = (start * writer.recording.bytes(from) as f64) as usize;
        let end = (start + length).min(writer.recording.bytes(from));
        let holed = writer.recording.split(size).with_hole(from, start, end, told_length);
        let (told, _) = exchanges(&mut Http2::default(), &holed);
        for told in told {
            let n = (told.stream.unwrap() - 1) / 2;
            let own = format!("{{\"id\":{n}");
            prop_assert!(told.sent.iter().all(|text| text.starts_with(&own)), "{:?}", told);
            prop_assert!(told.answered.iter().all(|text| text.starts_with(&own)), "{:?}", told);
            prop_assert!(server || !told.answered.is_empty() || told.request.is_none(), "{:?}", told);
        }
    }

    #[test]
    fn survives_anything(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        crosswire::wire::http2::fuzz(&bytes);
    }
}
