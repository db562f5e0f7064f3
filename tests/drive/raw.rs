//! A client of a few lines: one request a connection.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStderr};
use std::time::Duration;

/// What came back.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub session: Option<String>,
    /// Results and errors in the body, JSON or events.
    pub replies: Vec<Value>,
}

/// Waits until the program listens; gives its address and the rest of what it says.
pub fn address(child: &mut Child) -> (String, BufReader<ChildStderr>) {
    let mut said = BufReader::new(child.stderr.take().unwrap());
    loop {
        let mut line = String::new();
        assert!(said.read_line(&mut line).unwrap() > 0, "it ended before it listened");
        if let Some((_, rest)) = line.split_once("http://") {
            return (rest.split('/').next().unwrap().trim().to_owned(), said);
        }
    }
}

pub struct Client {
    pub address: String,
    pub session: Option<String>,
    pub timeout: Duration,
}

impl Client {
    /// With the handshake.
    pub fn open(address: &str) -> Client {
        let mut client = Client { address: address.to_owned(), session: None, timeout: Duration::from_secs(10) };
        let answer =
            client.ask(0.into(), "initialize", json!({"protocolVersion": "2025-06-18", "capabilities": {}})).unwrap();
        client.session = answer.session;
        client.send("POST", &json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string());
        client
    }

    pub fn call(&self, id: i64, tool: &str, arguments: Value) -> Option<Answer> {
        self.ask(id.into(), "tools/call", json!({"name": tool, "arguments": arguments}))
    }

    pub fn ask(&self, id: Value, method: &str, params: Value) -> Option<Answer> {
        self.send("POST", &json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string())
    }

    /// None: the time was over before the end.
    pub fn send(&self, method: &str, body: &str) -> Option<Answer> {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(self.timeout)).unwrap();
        let session = self.session.as_ref().map(|s| format!("Mcp-Session-Id: {s}\r\n")).unwrap_or_default();
        let length = body.len();
        write!(stream, "{method} /mcp HTTP/1.1\r\nHost: x\r\n{session}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}").unwrap();
        let mut text = vec![];
        let mut buffer = [0; 4096];
        while !is_whole(&text) {
            match stream.read(&mut buffer) {
                Ok(0) => break,
                Ok(n) => text.extend(&buffer[..n]),
                Err(_) => return None,
            }
        }
        let text = String::from_utf8(text).unwrap();
        let field = |name: &str| {
            text.lines().find_map(|l| {
                l.split_once(": ").filter(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.to_owned())
            })
        };
        let body = text.split_once("\r\n\r\n").map_or("", |(_, b)| b);
        let pieces = body.lines().map(|l| l.strip_prefix("data: ").unwrap_or(l));
        let replies = pieces.filter_map(|p| serde_json::from_str(p).ok()).filter(Value::is_object).collect();
        Some(Answer { status: text.split(' ').nth(1)?.parse().ok()?, session: field("mcp-session-id"), replies })
    }
}

fn is_whole(text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(text);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    match head.lines().find_map(|l| l.strip_prefix("Content-Length: ")) {
        Some(length) => body.len() >= length.parse().unwrap(),
        None => body.ends_with("0\r\n\r\n"),
    }
}
