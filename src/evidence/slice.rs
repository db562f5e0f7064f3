//! Exchanges as packets: a capture written anew, with valid TCP and HTTP/1.1 in the clear and without
//! codings, the original times, and the original frame numbers in comments.
//!
//! What the slice keeps true: who talked to whom on which port, when each head and message came, how
//! each exchange ended and who ended it, where bytes were missing, and from when to when the capture
//! went. HTTP/2 streams become connections of their own, the first with the original client port.

use super::gather::Caught;
use super::packets::File;
use crate::model::exchange::{BodyKind, End, Exchange, Mark, Peer, Response};
use crate::model::time::Time;
use crate::wire::flags::{ACK, FIN, PSH, RST, SYN};
use crate::wire::write::packets::{self, SEGMENT_BYTES, Tcp};
use rustc_hash::FxHashSet;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Bytes that stand for those that the original misses.
const HOLE_BYTES: u32 = 1460;
/// The first of the ports that are made up.
const MADE_PORT: u16 = 49_152;

/// What a capture was.
pub struct Original<'a> {
    /// Its name, redacted.
    pub name: &'a str,
    /// Time of its first packet.
    pub first: Option<Time>,
    /// Time of its last packet.
    pub last: Option<Time>,
    /// Records are frames; else entries of a recording.
    pub has_frames: bool,
}

/// Something that one end does.
struct Act {
    at: Time,
    number: u64,
    from: Peer,
    flags: u8,
    data: Vec<u8>,
    /// Bytes that went missing before it.
    hole: u32,
    /// Bytes that went missing behind its data. They are written as cut from its last frame, so that
    /// readers show the message for what it is and do not wait for a rest that never comes.
    cut: u32,
}

/// The pcapng file of these exchanges, which are all of one input.
pub fn write(original: &Original<'_>, exchanges: &[Caught]) -> Vec<u8> {
    write_numbered(original, exchanges).0
}

/// As [`write`], with the number that each frame's record has in the original; 0: it is made up.
pub fn write_numbered(original: &Original<'_>, exchanges: &[Caught]) -> (Vec<u8>, Vec<u64>) {
    let comment = format!(
        "Written anew by crosswire from {}: HTTP/1.1 in the clear of the exchanges that the report cites, original times, original {} numbers in the comments.",
        original.name,
        original.word()
    );
    let mut file = File::new(&comment);
    let mut packets = vec![];
    let mut used = FxHashSet::default();
    for group in connections(exchanges) {
        connection(original, &group, &mut used, &mut packets);
    }
    packets.sort_by_key(|p: &Packet| (p.at.ns(), p.number));
    let mut numbers: Vec<u64> = original.first.map(|_| 0).into_iter().collect();
    numbers.extend(packets.iter().map(|p| p.number));
    numbers.extend(original.last.map(|_| 0));
    let bound = |file: &mut File, at: Option<Time>, what: &str| {
        if let Some(at) = at {
            let end = |n: u8| SocketAddr::new(Ipv4Addr::new(192, 0, 2, n).into(), 9);
            let text = format!("crosswire: the original capture {what} here");
            file.packet(at, &packets::udp(end(1), end(2), text.as_bytes()), 0, &text);
        }
    };
    bound(&mut file, original.first, "begins");
    for packet in &packets {
        file.packet(packet.at, &packet.bytes, packet.cut, &packet.comment);
    }
    bound(&mut file, original.last, "ends");
    (file.into_bytes(), numbers)
}

impl Original<'_> {
    fn word(&self) -> &'static str {
        if self.has_frames { "frame" } else { "entry" }
    }
}

/// A segment to be sent.
struct Sent<'a> {
    at: Time,
    number: u64,
    from: Peer,
    flags: u8,
    data: &'a [u8],
    cut: u32,
}

struct Packet {
    at: Time,
    number: u64,
    bytes: Vec<u8>,
    cut: u32,
    comment: String,
}

/// The exchanges of each connection; HTTP/2 streams have one each.
fn connections(exchanges: &[Caught]) -> Vec<Vec<&Caught>> {
    let mut groups: BTreeMap<(u64, Option<u32>), Vec<&Caught>> = BTreeMap::new();
    for caught in exchanges {
        groups.entry((caught.exchange.stream, caught.exchange.h2_stream)).or_default().push(caught);
    }
    groups.into_values().collect()
}

fn connection(
    original: &Original<'_>,
    exchanges: &[&Caught],
    used: &mut FxHashSet<(SocketAddr, SocketAddr)>,
    out: &mut Vec<Packet>,
) {
    let Some(first) = exchanges.first().map(|c| &c.exchange) else { return };
    let (client, server) = ends(first, used);
    let mut acts = vec![];
    for caught in exchanges {
        exchange(caught, &mut acts);
    }
    // In the order of the original; stable, so that what one frame carried stays in order.
    acts.sort_by_key(|a: &Act| if original.has_frames { a.number as i64 } else { a.at.ns() });
    // Of a connection that was captured in one direction nothing is made up for the other.
    let silent = exchanges.iter().any(|c| c.exchange.one_direction).then(|| match acts.first().map(|a| a.from) {
        Some(Peer::Server) => Peer::Client,
        _ => Peer::Server,
    });
    let mut tcp = Connection { client, server, next: [1_000, 1_000_000], silent, original, out };
    if let (Some(at), Some(act)) = (first.connected, acts.first()) {
        let (at, number) = (at.plus_ns((act.at.ns() - at.ns()).min(0)), act.number);
        for (from, flags) in [(Peer::Client, SYN), (Peer::Server, SYN | ACK), (Peer::Client, ACK)] {
            tcp.send(&Sent { at, number, from, flags, data: b"", cut: 0 }, "handshake, before");
        }
    }
    for act in &acts {
        if act.hole > 0 {
            tcp.hole(act);
        }
        let mut parts: Vec<&[u8]> = act.data.chunks(SEGMENT_BYTES).collect();
        if parts.is_empty() && (act.flags != 0) {
            parts.push(b"");
        }
        let last = parts.len().saturating_sub(1);
        for (n, part) in parts.into_iter().enumerate() {
            let push = if part.is_empty() { 0 } else { PSH };
            let cut = if n == last { act.cut } else { 0 };
            let flags = ACK | push | act.flags;
            let sent = Sent { at: act.at, number: act.number, from: act.from, flags, data: part, cut };
            tcp.send(&sent, if cut > 0 { "bytes missing in the original, at the end:" } else { "" });
        }
        if act.cut > 0 {
            tcp.acknowledge(act);
        }
    }
}

/// The ends of a connection, told apart from those of others.
fn ends(x: &Exchange, used: &mut FxHashSet<(SocketAddr, SocketAddr)>) -> (SocketAddr, SocketAddr) {
    let known = |address: SocketAddr, other: SocketAddr, last: u8| match address.ip().is_unspecified() {
        false => address,
        true if other.is_ipv6() => {
            SocketAddr::new(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, last.into()).into(), address.port())
        }
        true => SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, last)), address.port()),
    };
    let mut client = known(x.client, x.server, 1);
    let mut server = known(x.server, x.client, 2);
    if server.port() == 0 {
        server.set_port(80);
    }
    let mut port = client.port();
    if port == 0 {
        port = MADE_PORT;
    }
    client.set_port(port);
    let is_stream = x.h2_stream.is_some() || x.client.port() == 0;
    while is_stream && used.contains(&(client, server)) {
        port = port.checked_add(1).unwrap_or(MADE_PORT);
        client.set_port(port);
    }
    used.insert((client, server));
    (client, server)
}

struct Connection<'a, 'o> {
    client: SocketAddr,
    server: SocketAddr,
    next: [u32; 2],
    silent: Option<Peer>,
    original: &'a Original<'o>,
    out: &'a mut Vec<Packet>,
}

impl Connection<'_, '_> {
    fn send(&mut self, sent: &Sent<'_>, note: &str) {
        let &Sent { at, number, from, flags, data, cut } = sent;
        if self.silent == Some(from) {
            return;
        }
        let [client, server] = self.next;
        let (from_address, to, seq, ack) = match from {
            Peer::Client => (self.client, self.server, client, server),
            Peer::Server => (self.server, self.client, server, client),
        };
        let ack = if flags & ACK == 0 { 0 } else { ack };
        let mut whole = data.to_vec();
        whole.resize(data.len() + cut as usize, 0);
        let mut bytes = packets::tcp(&Tcp { from: from_address, to, seq, ack, flags, data: &whole });
        bytes.truncate(bytes.len().saturating_sub(cut as usize));
        self.skip(from, whole.len() as u32 + u32::from(flags & (SYN | FIN) != 0));
        let gap = if note.is_empty() { "" } else { " " };
        let comment = format!("{note}{gap}{} {number} of {}", self.original.word(), self.original.name);
        self.out.push(Packet { at, number, bytes, cut, comment });
    }

    fn skip(&mut self, from: Peer, bytes: u32) {
        let [client, server] = &mut self.next;
        let next = if from == Peer::Client { client } else { server };
        *next = next.wrapping_add(bytes);
    }

    /// Bytes that never came; the other end acknowledges them, so they are known to have been sent.
    fn hole(&mut self, act: &Act) {
        self.skip(act.from, act.hole);
        self.acknowledge(act);
    }

    fn acknowledge(&mut self, act: &Act) {
        let from = if act.from == Peer::Client { Peer::Server } else { Peer::Client };
        let sent = Sent { at: act.at, number: act.number, from, flags: ACK, data: b"", cut: 0 };
        self.send(&sent, "bytes missing in the original, before");
    }
}

fn act(mark: Mark, from: Peer, data: Vec<u8>) -> Act {
    Act { at: mark.at, number: mark.place.number, from, flags: 0, data, hole: 0, cut: 0 }
}

/// What the two ends do in one exchange, each end's acts in order.
fn exchange(caught: &Caught, acts: &mut Vec<Act>) {
    let x = &caught.exchange;
    if let Some(request) = &x.request {
        let body: Vec<u8> =
            caught.messages.iter().filter(|m| m.from == Peer::Client).flat_map(|m| m.data.iter().copied()).collect();
        let missing = if request.gap { HOLE_BYTES } else { 0 };
        let has_body = !body.is_empty() || missing > 0 || matches!(&*request.method, "POST" | "PUT" | "PATCH");
        let length = has_body.then(|| format!("content-length: {}\r\n", body.len() + missing as usize));
        let line = format!("{} {} HTTP/1.1\r\n", token(&request.method), token(&request.target));
        let head = head(&line, &request.headers, length.as_deref().unwrap_or(""));
        let (of_head, of_body) = if body.is_empty() { (missing, 0) } else { (0, missing) };
        acts.push(Act { cut: of_head, ..act(request.first, Peer::Client, head) });
        if !body.is_empty() {
            acts.push(Act { cut: of_body, ..act(request.last, Peer::Client, body) });
        }
    }
    if let Some(response) = &x.response {
        respond(caught, response, acts);
    }
    end(x, acts);
}

fn respond(caught: &Caught, response: &Response, acts: &mut Vec<Act>) {
    let x = &caught.exchange;
    let messages: Vec<_> = caught.messages.iter().filter(|m| m.from == Peer::Server).collect();
    let line = format!("HTTP/1.1 {:03} {}\r\n", response.status, reason(response.status));
    let bare = matches!(response.status, 204 | 304) || x.request.as_ref().is_some_and(|r| &*r.method == "HEAD");
    let push = |acts: &mut Vec<Act>, mark: Mark, data: Vec<u8>| acts.push(act(mark, Peer::Server, data));
    let last = response.last.unwrap_or(response.first);
    if bare {
        return push(acts, response.first, head(&line, &response.headers, ""));
    }
    if response.kind != BodyKind::EventStream {
        let body: Vec<u8> = messages.iter().flat_map(|m| m.data.iter().copied()).collect();
        let is_whole = x.end == Some(End::Complete) && !response.gap || !messages.is_empty();
        let came =
            if messages.is_empty() && !is_whole { vec![b' '; response.body_bytes.min(1 << 20) as usize] } else { body };
        let length = came.len() + if is_whole { 0 } else { HOLE_BYTES as usize };
        push(acts, response.first, head(&line, &response.headers, &format!("content-length: {length}\r\n")));
        let mark = messages.last().map_or(last, |m| m.last);
        if !came.is_empty() {
            push(acts, mark, came);
        }
        if response.gap && !is_whole {
            acts.push(Act { hole: HOLE_BYTES, ..act(last, Peer::Server, vec![]) });
        }
        return;
    }
    push(acts, response.first, head(&line, &response.headers, "transfer-encoding: chunked\r\n"));
    let (mut id, mut hole, mut told) = (None, caught.hole_after.filter(|_| response.gap), 0);
    for (n, m) in messages.iter().enumerate() {
        let is_behind = hole.is_some_and(|after| after <= n);
        let mut text = vec![];
        if m.event_id != id {
            text.extend(format!("id: {}\n", m.event_id.as_deref().unwrap_or("")).bytes());
            id.clone_from(&m.event_id);
        }
        if let Some(event) = &m.event {
            text.extend(format!("event: {event}\n").bytes());
        }
        for line in m.data.split(|b| *b == b'\n') {
            text.extend(b"data: ");
            text.extend(line);
            text.push(b'\n');
        }
        text.push(b'\n');
        told = m.body_bytes;
        let hole = if is_behind { hole.take().map_or(0, |_| HOLE_BYTES) } else { 0 };
        acts.push(Act { hole, ..act(m.last, Peer::Server, chunk(&text)) });
    }
    // Comments keep a stream alive; their text is no message and is not kept, their time is.
    if response.body_bytes > told && messages.last().is_none_or(|m| m.last.place < last.place) {
        push(acts, last, chunk(b": keep-alive\n\n"));
    }
    if hole.is_some() {
        acts.push(Act { hole: HOLE_BYTES, ..act(x.ended.unwrap_or(last), Peer::Server, vec![]) });
    }
    if x.end == Some(End::Complete) {
        push(acts, x.ended.unwrap_or(last), b"0\r\n\r\n".to_vec());
    }
}

fn end(x: &Exchange, acts: &mut Vec<Act>) {
    let mut close = |mark: Option<Mark>, from: Peer, flags: u8| {
        if let Some(mark) = mark {
            acts.push(Act { flags, ..act(mark, from, vec![]) });
        }
    };
    let is_reset = x.end == Some(End::Reset);
    let by_client = x.ended_by == Some(Peer::Client);
    if !(is_reset && by_client) && (x.client_closed.is_some() || x.end == Some(End::ClientClosed)) {
        close(x.client_closed.or(x.ended), Peer::Client, FIN);
    }
    match x.end {
        // The client's FIN alone leaves the response open: the server closed as well.
        Some(End::ServerClosed | End::ClientClosed) => close(x.ended, Peer::Server, FIN),
        Some(End::Reset) => close(x.ended, x.ended_by.unwrap_or(Peer::Server), RST),
        _ => {}
    }
}

fn chunk(text: &[u8]) -> Vec<u8> {
    [format!("{:x}\r\n", text.len()).as_bytes(), text, b"\r\n"].concat()
}

/// A head without what frames or codes the body, which is said anew.
fn head(line: &str, fields: &[(std::sync::Arc<str>, std::sync::Arc<str>)], framing: &str) -> Vec<u8> {
    let mut out = line.as_bytes().to_vec();
    for (name, value) in fields {
        if name.starts_with(':')
            || matches!(&**name, "content-length" | "transfer-encoding" | "content-encoding" | "trailer")
        {
            continue;
        }
        out.extend(format!("{}: {}\r\n", token(name), value.replace(['\r', '\n', '\0'], " ")).bytes());
    }
    out.extend(framing.bytes());
    out.extend(b"\r\n");
    out
}

/// Without what would end a request line or field name.
fn token(text: &str) -> String {
    let text: String = text.chars().filter(|c| !c.is_control() && *c != ' ').collect();
    if text.is_empty() { "-".to_owned() } else { text }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        202 => "Accepted",
        204 => "No Content",
        307 => "Temporary Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        409 => "Conflict",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "-",
    }
}
