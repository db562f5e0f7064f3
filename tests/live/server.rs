//! A server that the test holds in its hand: it takes a connection, reads a head, and says what it is
//! told.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

/// Nothing here takes longer.
pub const LONG: Duration = Duration::from_secs(20);

pub struct Server(TcpListener);

/// One end of a connection.
pub struct Talk(pub TcpStream);

impl Server {
    pub fn new() -> Server {
        Server(TcpListener::bind("127.0.0.1:0").unwrap())
    }

    pub fn address(&self) -> String {
        self.0.local_addr().unwrap().to_string()
    }

    pub fn accept(&self) -> Talk {
        let (stream, _) = self.0.accept().unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        Talk(stream)
    }
}

impl Talk {
    pub fn to(address: &str) -> Talk {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        Talk(stream)
    }

    pub fn say(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).unwrap();
    }

    /// Reads until what came ends with `end`.
    pub fn hear(&mut self, end: &str) -> String {
        let mut all = vec![];
        let mut byte = [0];
        while !all.ends_with(end.as_bytes()) {
            let n = self.0.read(&mut byte).unwrap_or_else(|e| panic!("{e} after {:?}", String::from_utf8_lossy(&all)));
            assert_eq!(n, 1, "closed after {:?}, expected {end:?}", String::from_utf8_lossy(&all));
            all.push(byte[0]);
        }
        String::from_utf8(all).unwrap()
    }

    /// Reads to the end of the connection.
    pub fn rest(&mut self) -> String {
        let mut all = vec![];
        let mut buffer = [0; 4096];
        // A reset is an end too.
        while let Ok(n @ 1..) = self.0.read(&mut buffer) {
            all.extend(&buffer[..n]);
        }
        String::from_utf8(all).unwrap()
    }

    /// The head of a request or response, and its body by its length.
    pub fn message(&mut self) -> (String, String) {
        let head = self.hear("\r\n\r\n");
        let length = head.lines().find_map(|l| {
            l.split_once(": ").filter(|(n, _)| n.eq_ignore_ascii_case("content-length")).map(|(_, v)| v.to_owned())
        });
        let mut body = vec![0; length.map_or(0, |l| l.parse().unwrap())];
        self.0.read_exact(&mut body).unwrap();
        (head, String::from_utf8(body).unwrap())
    }
}

/// A request with a JSON-RPC body.
pub fn post(session: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "POST /mcp HTTP/1.1\r\nHost: x\r\nMcp-Session-Id: {session}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )
}

/// A response with a JSON body.
pub fn reply(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}
