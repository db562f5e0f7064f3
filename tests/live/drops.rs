//! Packets that the capturing host dropped: what may have been in them is not held against anybody.

use crate::run::report;
use crosswire::wire::flags::{ACK, FIN, PSH, RST, SYN};
use crosswire::wire::write::blocks::{self, Host, Interface, LINK_RAW, Statistics};
use crosswire::wire::write::packets::{Tcp, tcp};
use std::net::SocketAddr;

/// How the capture of the call without a reply goes on.
#[derive(Clone, Copy, PartialEq)]
enum Ends {
    /// Both sides close, and their numbers leave no room for more.
    Closed,
    /// The client resets, which says nothing of what it had received.
    Reset,
    /// Nothing more is seen of it.
    Open,
}

/// A capture of two calls; the second is never answered, and its client waits long.
fn capture(ends: Ends, dropped: Option<u64>) -> Vec<u8> {
    let mut out = blocks::section("", &Host::default());
    out.extend(blocks::interface(&Interface { link: LINK_RAW, digits: 9, ..Interface::default() }));
    let server: SocketAddr = "192.0.2.2:8000".parse().unwrap();
    let start = 1_795_981_315_000_000_000_u64;
    for (n, answered) in [(0_u64, true), (1, false)] {
        let client: SocketAddr = format!("192.0.2.1:{}", 40_000 + n).parse().unwrap();
        let mut seq = [1_u32, 1];
        let mut at = start + n * 1_000_000_000;
        let mut packet = |from_client: bool, flags: u8, data: &[u8], wait_ns: u64| {
            at += wait_ns;
            let [c, s] = seq;
            let (from, to, own, other) = if from_client { (client, server, c, s) } else { (server, client, s, c) };
            let bytes = tcp(&Tcp { from, to, seq: own, ack: other, flags, data });
            seq[usize::from(!from_client)] += data.len() as u32 + u32::from(flags & (SYN | FIN) != 0);
            out.extend(blocks::packet(0, at, &bytes, bytes.len() as u32, ""));
        };
        packet(true, SYN, b"", 0);
        packet(false, SYN | ACK, b"", 1000);
        packet(true, ACK, b"", 1000);
        let body = format!(r#"{{"jsonrpc":"2.0","id":{n},"method":"tools/call","params":{{"name":"t"}}}}"#);
        let length = body.len();
        let request = format!(
            "POST /mcp HTTP/1.1\r\nHost: x\r\nMcp-Session-Id: s\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        packet(true, PSH | ACK, request.as_bytes(), 1000);
        packet(false, PSH | ACK, b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n", 1000);
        if answered {
            let event = format!("data: {{\"jsonrpc\":\"2.0\",\"id\":{n},\"result\":{{}}}}\n\n");
            packet(false, PSH | ACK, event.as_bytes(), 1_000_000);
        }
        match if answered { Ends::Closed } else { ends } {
            Ends::Closed => {
                packet(true, FIN | ACK, b"", 60_000_000_000);
                packet(false, FIN | ACK, b"", 1000);
            }
            Ends::Reset => packet(true, RST, b"", 60_000_000_000),
            Ends::Open => {}
        }
    }
    out.extend(blocks::packet(0, start + 400_000_000_000, &syn_of_another(), 40, ""));
    if let Some(dropped) = dropped {
        let counts = Statistics { system_dropped: Some(dropped), ..Statistics::default() };
        out.extend(blocks::statistics(0, start, &counts));
    }
    out
}

/// The capture goes on after the call.
fn syn_of_another() -> Vec<u8> {
    let (from, to) = ("192.0.2.9:50000".parse().unwrap(), "192.0.2.2:8000".parse().unwrap());
    tcp(&Tcp { from, to, seq: 1, ack: 0, flags: SYN, data: b"" })
}

/// Rule and confidence of each finding, and the outcome of the call.
fn outcome(ends: Ends, dropped: Option<u64>) -> (Vec<(String, String)>, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("c.pcapng");
    std::fs::write(&file, capture(ends, dropped)).unwrap();
    let report = report("analyze", &file);
    let rules = report["findings"].as_array().unwrap().iter();
    let text = |v: &serde_json::Value| v.as_str().unwrap().to_owned();
    let rules = rules.map(|f| (text(&f["rule"]), text(&f["confidence"]))).collect();
    let call = report["calls"].as_array().unwrap().iter().find(|c| c["id"] == 1).unwrap();
    (rules, call["outcome"].as_str().unwrap().to_owned())
}

#[test]
fn a_call_without_a_reply_is_an_orphan_only_where_nothing_can_have_been_dropped() {
    let orphan = |confidence: &str| (vec![("orphaned/no-reply".to_owned(), confidence.to_owned())], "no-reply".into());
    let unknown = (vec![], "unobserved".to_owned());
    for dropped in [None, Some(0)] {
        assert_eq!(outcome(Ends::Closed, dropped), orphan("certain"), "{dropped:?}");
        assert_eq!(outcome(Ends::Reset, dropped), orphan("certain"), "{dropped:?}");
        assert_eq!(outcome(Ends::Open, dropped), orphan("probable"), "{dropped:?}");
    }
    // Every byte up to the end is accounted for: nothing dropped was of this stream.
    assert_eq!(outcome(Ends::Closed, Some(1)), orphan("probable"));
    assert_eq!(outcome(Ends::Reset, Some(1)), unknown);
    assert_eq!(outcome(Ends::Open, Some(1)), unknown);
    // With so many dropped, what cancelled the call may be among them.
    assert_eq!(outcome(Ends::Closed, Some(10)), unknown);
}
