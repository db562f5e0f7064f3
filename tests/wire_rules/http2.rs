//! HTTP/2 of which header fields are not known, as the capture began too late.

use crate::kit::packets::{ACK, FIN, PSH, Packet, Segment};
use crate::kit::*;
use std::net::SocketAddrV4;

const HEADERS: u8 = 1;
const DATA: u8 = 0;
const PING: u8 = 6;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    out.extend([kind, flags]);
    out.extend(stream.to_be_bytes());
    out.extend(payload);
    out
}

/// A field that enters no table (RFC 7541 §6.2.2).
fn literal(name: &str, value: &str) -> Vec<u8> {
    let mut out = vec![0, name.len() as u8];
    out.extend(name.bytes());
    out.push(value.len() as u8);
    out.extend(value.bytes());
    out
}

/// One call on a connection that was opened before, and `head` as its answer.
fn call(head: &[u8], body: Option<&str>) -> Vec<Packet> {
    let [client, server] = ["192.0.2.1:40000", "192.0.2.2:8000"].map(|a| a.parse::<SocketAddrV4>().unwrap());
    let fields = [(":method", "POST"), (":scheme", "http"), (":path", "/mcp"), (":authority", "mcp.example")];
    let more = [("content-type", "application/json"), ("mcp-session-id", "s-1111")];
    let block: Vec<u8> = fields.iter().chain(&more).flat_map(|(name, value)| literal(name, value)).collect();
    let message =
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"walk","arguments":{"tag":"walk-0017"}}}"#;
    let asked = [frame(HEADERS, END_HEADERS, 9, &block), frame(DATA, END_STREAM, 9, message.as_bytes())].concat();
    let ends = if body.is_some() { END_HEADERS } else { END_HEADERS | END_STREAM };
    let mut answered = [frame(PING, 1, 0, &[0; 8]), frame(HEADERS, ends, 9, head)].concat();
    answered.extend(body.map(|b| frame(DATA, END_STREAM, 9, b.as_bytes())).unwrap_or_default());
    let second = 1_000_000;
    let start = 1_795_981_315 * second;
    let segment = |from, to, seq, ack, flags, payload| Segment { from, to, seq, ack, flags, payload };
    let (sent, said) = (1000 + asked.len() as u32, 5000 + answered.len() as u32);
    vec![
        segment(client, server, 1000, 5000, PSH | ACK, &asked).packet(start),
        segment(server, client, 5000, sent, PSH | ACK, &answered).packet(start + second),
        segment(client, server, sent, said, FIN | ACK, &[]).packet(start + 400 * second),
        segment(server, client, said, sent + 1, FIN | ACK, &[]).packet(start + 400 * second),
    ]
}

/// The status stands in a table entry from before the capture: it may have been any.
const UNKNOWN: &[u8] = &[0xc0];

#[test]
fn an_answer_whose_status_is_not_known_is_no_silence() {
    let report = analyze(&call(UNKNOWN, None));
    same(&report, &[]);
    assert!(outcome(&report, "walk#7").starts_with("Unobserved"), "{report:?}");
    // With one that is known, the same is a call without a reply.
    let report = analyze(&call(&[0x88], None));
    assert!(outcome(&report, "walk#7").starts_with("NoReply"), "{report:?}");
}

#[test]
fn its_reply_is_read_all_the_same() {
    let reply = r#"{"jsonrpc":"2.0","id":7,"result":{"content":[]}}"#;
    let head = [UNKNOWN, &literal("content-type", "application/json")].concat();
    let report = analyze(&call(&head, Some(reply)));
    same(&report, &[]);
    assert!(outcome(&report, "walk#7").starts_with("Result"), "{report:?}");
}
