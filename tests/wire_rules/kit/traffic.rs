//! Describes MCP traffic step by step and makes the packets of it.

use super::packets::{ACK, FIN, PSH, Packet, RST, SYN, Segment};
use std::net::{Ipv4Addr, SocketAddrV4};

/// 2026-11-29T20:00:00Z, µs.
const START_US: i64 = 1_795_982_400_000_000;
const MSS: usize = 1400;

/// One end of a connection.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum End {
    Client,
    Server,
}

struct Connection {
    client: SocketAddrV4,
    server: SocketAddrV4,
    /// Next sequence numbers of client and server.
    seq: [u32; 2],
    /// Their FINs were sent.
    closed: [bool; 2],
}

/// An exchange: one request and its response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct X(pub usize);

struct Exchange {
    connection: usize,
    id: String,
    opened: bool,
}

/// What a client sends with every request.
#[derive(Clone)]
pub struct Session {
    pub id: Option<String>,
    pub revision: &'static str,
    pub client: Ipv4Addr,
    pub agent: String,
}

/// Traffic in the making. Times are ms since the start.
pub struct Traffic {
    packets: Vec<Packet>,
    connections: Vec<Connection>,
    exchanges: Vec<Exchange>,
    now_us: i64,
    next_port: u16,
    reuse: Option<usize>,
    /// Replies as `application/json` instead of an event stream.
    pub json: bool,
    /// Requests carry the marks of a proxy.
    pub forwarded: bool,
    pub server: SocketAddrV4,
    pub path: String,
    /// Added to every request.
    pub headers: String,
}

impl Traffic {
    pub fn new() -> Traffic {
        Traffic {
            packets: vec![],
            connections: vec![],
            exchanges: vec![],
            now_us: START_US,
            next_port: 40_000,
            reuse: None,
            json: false,
            forwarded: false,
            server: SocketAddrV4::new(Ipv4Addr::new(10, 0, 0, 9), 8000),
            path: "/mcp".into(),
            headers: String::new(),
        }
    }

    /// Goes to a time.
    pub fn at(&mut self, ms: i64) -> &mut Traffic {
        self.now_us = START_US + ms * 1000;
        self
    }

    /// Lets time pass.
    pub fn wait(&mut self, ms: i64) -> &mut Traffic {
        self.now_us += ms * 1000;
        self
    }

    /// All packets by time.
    pub fn packets(&self) -> Vec<Packet> {
        let mut all = self.packets.clone();
        all.sort_by_key(|p| p.us);
        all
    }

    /// The next request goes over the connection of `x`.
    pub fn on(&mut self, x: X) -> &mut Traffic {
        self.reuse = Some(self.exchanges[x.0].connection);
        self
    }

    /// The next connection uses this client port.
    pub fn use_port(&mut self, port: u16) -> &mut Traffic {
        self.next_port = port - 1;
        self
    }

    /// The client port of an exchange.
    pub fn port(&self, x: X) -> u16 {
        self.connections[self.exchanges[x.0].connection].client.port()
    }

    // ---- TCP

    fn connect(&mut self, client: Ipv4Addr) -> usize {
        if let Some(c) = self.reuse.take() {
            return c;
        }
        let n = self.connections.len();
        self.next_port += 1;
        let start = [1000 + n as u32 * 77_777, 900_000 + n as u32 * 55_555];
        self.connections.push(Connection {
            client: SocketAddrV4::new(client, self.next_port),
            server: self.server,
            seq: start,
            closed: [false; 2],
        });
        self.segment(n, End::Client, SYN, &[]);
        self.segment(n, End::Server, SYN | ACK, &[]);
        self.segment(n, End::Client, ACK, &[]);
        n
    }

    fn segment(&mut self, c: usize, from: End, flags: u8, payload: &[u8]) {
        let k = &mut self.connections[c];
        let (a, b, me) = if from == End::Client { (k.client, k.server, 0) } else { (k.server, k.client, 1) };
        let ack = if flags & ACK == 0 { 0 } else { k.seq[1 - me] };
        let segment = Segment { from: a, to: b, seq: k.seq[me], ack, flags, payload };
        self.packets.push(segment.packet(self.now_us));
        let control = u32::from(flags & SYN != 0) + u32::from(flags & FIN != 0);
        k.seq[me] = k.seq[me].wrapping_add(payload.len() as u32 + control);
        self.now_us += 10;
    }

    fn send(&mut self, c: usize, from: End, data: &[u8]) {
        let other = if from == End::Client { End::Server } else { End::Client };
        for piece in data.chunks(MSS) {
            self.segment(c, from, PSH | ACK, piece);
            self.segment(c, other, ACK, &[]);
        }
    }

    fn fin(&mut self, x: X, from: End) {
        let c = self.exchanges[x.0].connection;
        let me = usize::from(from == End::Server);
        if !self.connections[c].closed[me] {
            self.connections[c].closed[me] = true;
            self.segment(c, from, FIN | ACK, &[]);
            let other = if from == End::Client { End::Server } else { End::Client };
            self.segment(c, other, ACK, &[]);
        }
    }

    /// The client closes, and the server follows.
    pub fn close(&mut self, x: X) {
        self.fin(x, End::Client);
        self.fin(x, End::Server);
    }

    /// The client says that it sends no more.
    pub fn half_close(&mut self, x: X) {
        self.fin(x, End::Client);
    }

    /// The server closes, and the client follows.
    pub fn server_close(&mut self, x: X) {
        self.fin(x, End::Server);
        self.fin(x, End::Client);
    }

    pub fn reset(&mut self, x: X, by: End) {
        let c = self.exchanges[x.0].connection;
        self.segment(c, by, RST | ACK, &[]);
    }

    // ---- HTTP

    /// Any request.
    pub fn http(&mut self, s: &Session, method: &str, target: &str, extra: &str, body: &str) -> X {
        let c = self.connect(s.client);
        let mut head = format!("{method} {target} HTTP/1.1\r\nHost: {}\r\nUser-Agent: {}\r\n", self.server, s.agent);
        if let Some(id) = &s.id {
            head += &format!("Mcp-Session-Id: {id}\r\n");
        }
        if s.revision >= "2025-06-18" {
            head += &format!("MCP-Protocol-Version: {}\r\n", s.revision);
        }
        if self.forwarded {
            head += "X-Forwarded-For: 10.0.0.1\r\n";
        }
        head += extra;
        head += &self.headers.clone();
        if method == "POST" {
            head += "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";
            head += &format!("Content-Length: {}\r\n", body.len());
        }
        self.send(c, End::Client, format!("{head}\r\n{body}").as_bytes());
        self.exchanges.push(Exchange { connection: c, id: String::new(), opened: false });
        X(self.exchanges.len() - 1)
    }

    /// A POST of one or more messages as they stand.
    pub fn post(&mut self, s: &Session, body: &str) -> X {
        let path = self.path.clone();
        self.http(s, "POST", &path, "", body)
    }

    fn server_sends(&mut self, x: X, data: &str) {
        let c = self.exchanges[x.0].connection;
        self.send(c, End::Server, data.as_bytes());
    }

    /// A whole response with a body of any type.
    pub fn respond(&mut self, x: X, status: u16, headers: &str, body: &str) {
        let text = format!("HTTP/1.1 {status} X\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len());
        self.server_sends(x, &text);
    }

    /// A status with a JSON body, or with none.
    pub fn status(&mut self, x: X, status: u16, body: &str) {
        let kind = if body.is_empty() { "" } else { "Content-Type: application/json\r\n" };
        self.respond(x, status, kind, body);
    }

    /// The head of an event stream.
    pub fn open(&mut self, x: X) {
        self.open_with(x, "");
    }

    fn open_with(&mut self, x: X, headers: &str) {
        self.exchanges[x.0].opened = true;
        let head = format!(
            "HTTP/1.1 200 OK\r\n{headers}Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        );
        self.server_sends(x, &head);
    }

    /// Bytes of an event stream as they stand.
    pub fn chunk(&mut self, x: X, data: &str) {
        self.server_sends(x, &format!("{:x}\r\n{data}\r\n", data.len()));
    }

    /// An event that carries a message.
    pub fn event(&mut self, x: X, message: &str) {
        self.chunk(x, &format!("event: message\r\ndata: {message}\r\n\r\n"));
    }

    /// An event with an id to resume from.
    pub fn event_with_id(&mut self, x: X, id: &str, message: &str) {
        self.chunk(x, &format!("id: {id}\r\nevent: message\r\ndata: {message}\r\n\r\n"));
    }

    /// The proper end of an event stream.
    pub fn end(&mut self, x: X) {
        self.server_sends(x, "0\r\n\r\n");
    }

    // ---- MCP

    /// A handshake that gives session `id`.
    pub fn session(&mut self, id: &str) -> Session {
        self.session_of(id, "2025-06-18")
    }

    pub fn session_of(&mut self, id: &str, revision: &'static str) -> Session {
        let who = client(revision);
        self.handshake(&who, Some(id))
    }

    /// `initialize` and what follows it.
    pub fn handshake(&mut self, who: &Session, id: Option<&str>) -> Session {
        let fresh = Session { id: None, revision: "", ..who.clone() };
        let params = format!(
            r#"{{"protocolVersion":"{}","capabilities":{{}},"clientInfo":{{"name":"connector","version":"2.1"}}}}"#,
            who.revision
        );
        let x = self.ask(&fresh, 0, "initialize", &params);
        self.wait(5);
        let given = id.map(|i| format!("Mcp-Session-Id: {i}\r\n")).unwrap_or_default();
        self.open_with(x, &given);
        let result = format!(
            r#"{{"protocolVersion":"{}","capabilities":{{}},"serverInfo":{{"name":"trailhead","version":"3"}}}}"#,
            who.revision
        );
        self.answer(x, &result);
        let session = Session { id: id.map(str::to_owned), ..who.clone() };
        self.wait(5);
        self.notify(&session, "notifications/initialized", "{}");
        self.wait(5);
        session
    }

    /// A request.
    pub fn ask(&mut self, s: &Session, id: impl ToString, method: &str, params: &str) -> X {
        let x = self.post(s, &request(&id.to_string(), method, params));
        self.exchanges[x.0].id = id.to_string();
        x
    }

    /// A tool call.
    pub fn tool(&mut self, s: &Session, id: impl ToString, tool: &str, arguments: &str) -> X {
        self.ask(s, id, "tools/call", &format!(r#"{{"name":"{tool}","arguments":{arguments}}}"#))
    }

    /// A notification, answered 202.
    pub fn notify(&mut self, s: &Session, method: &str, params: &str) -> X {
        let x = self.post(s, &format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#));
        self.wait(1);
        self.status(x, 202, "");
        x
    }

    /// The client's word that it wants no reply any more.
    pub fn cancel(&mut self, s: &Session, id: impl ToString) {
        self.notify(s, "notifications/cancelled", &format!(r#"{{"requestId":{},"reason":"user"}}"#, id.to_string()));
    }

    /// A GET stream, opened.
    pub fn get(&mut self, s: &Session, last_event_id: Option<&str>) -> X {
        let x = self.get_request(s, last_event_id);
        self.wait(2);
        self.open(x);
        x
    }

    pub fn get_request(&mut self, s: &Session, last_event_id: Option<&str>) -> X {
        let path = self.path.clone();
        let last = last_event_id.map(|i| format!("Last-Event-ID: {i}\r\n")).unwrap_or_default();
        self.http(s, "GET", &path, &format!("Accept: text/event-stream\r\n{last}"), "")
    }

    pub fn delete(&mut self, s: &Session, status: u16) -> X {
        let path = self.path.clone();
        let x = self.http(s, "DELETE", &path, "", "");
        self.wait(2);
        self.status(x, status, "");
        x
    }

    /// A message as the reply, then the end of the response.
    pub fn reply(&mut self, x: X, message: &str) {
        if self.json && !self.exchanges[x.0].opened {
            return self.status(x, 200, message);
        }
        if !self.exchanges[x.0].opened {
            self.open(x);
        }
        self.event(x, message);
        self.end(x);
    }

    /// The call's own reply.
    pub fn answer(&mut self, x: X, result: &str) {
        let message = result_of(&self.exchanges[x.0].id, result);
        self.reply(x, &message);
    }

    /// Someone else asks for a health check, so that the capture goes on until `ms`.
    pub fn until(&mut self, ms: i64) -> &mut Traffic {
        self.at(ms);
        let who = Session { agent: "kube-probe/1.30".into(), client: Ipv4Addr::new(10, 0, 0, 77), ..client("") };
        let x = self.http(&who, "GET", "/healthz", "", "");
        self.respond(x, 200, "Content-Type: text/plain\r\n", "ok");
        self
    }
}

/// A client without a session id.
pub fn client(revision: &'static str) -> Session {
    Session { id: None, revision, client: Ipv4Addr::new(10, 0, 0, 21), agent: "connector/2.1".into() }
}

/// A request message.
pub fn request(id: &str, method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
}

/// A result message.
pub fn result_of(id: &str, result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
}

/// An error message.
pub fn error_of(id: &str, code: i64, text: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":"{text}"}}}}"#)
}

/// A tool's result as a document, with its text copy.
pub fn document(json: &str) -> String {
    let text = serde_json::to_string(json).unwrap();
    format!(r#"{{"content":[{{"type":"text","text":{text}}}],"structuredContent":{json}}}"#)
}

/// A tool's result as plain text.
pub fn plain(text: &str) -> String {
    format!(r#"{{"content":[{{"type":"text","text":{}}}]}}"#, serde_json::to_string(text).unwrap())
}
