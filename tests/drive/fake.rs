//! A small MCP server whose faults are chosen. Only std and JSON, so that nothing of what is tested
//! takes part in it.

use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What is wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// Nothing: each reply goes to its own connection.
    Right,
    /// Calls in flight are kept by session and bare id, and overwritten.
    OverwritesById,
    /// A second call with an id in flight is refused.
    RefusesDuplicates,
    /// No sessions at all.
    Stateless,
    /// One call after the other, whoever sends them.
    OneByOne,
    /// Every tenth call gets the content of the call before it.
    SwapsBodies,
    /// Every tenth call is answered with the id of the call before it.
    WrongIds,
    /// Every tenth call gets the content of the last call of another session.
    CrossesSessions,
    /// Every tenth connection is closed without a reply.
    Drops,
    /// Every tenth reply is sent on the GET stream as well.
    AlsoOnGet,
    /// Every tenth reply is sent twice.
    Twice,
    /// No tool says what it was given.
    Mute,
    /// No tool is marked read-only.
    Unmarked,
}

pub struct Fake {
    pub address: SocketAddr,
    state: Arc<State>,
}

#[derive(Default)]
struct Flights {
    by_id: HashMap<(String, String), Sender<Value>>,
    last: HashMap<String, Value>,
    gets: Vec<Sender<Value>>,
}

struct State {
    manner: Manner,
    sessions: AtomicUsize,
    calls: AtomicUsize,
    flights: Mutex<Flights>,
    turn: Mutex<()>,
    /// `method tool` of each request.
    log: Mutex<Vec<String>>,
    /// `Authorization` of each request.
    credentials: Mutex<Vec<Option<String>>>,
}

impl Fake {
    pub fn start(manner: Manner) -> Fake {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State {
            manner,
            sessions: AtomicUsize::new(0),
            calls: AtomicUsize::new(0),
            flights: Mutex::default(),
            turn: Mutex::default(),
            log: Mutex::default(),
            credentials: Mutex::default(),
        });
        let shared = state.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, state) = (stream.unwrap(), shared.clone());
                std::thread::spawn(move || state.connection(stream));
            }
        });
        Fake { address, state }
    }

    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    pub fn credentials(&self) -> Vec<Option<String>> {
        self.state.credentials.lock().unwrap().clone()
    }

    pub fn log(&self) -> Vec<String> {
        self.state.log.lock().unwrap().clone()
    }
}

struct Request {
    method: String,
    session: Option<String>,
    credentials: Option<String>,
    body: Value,
}

fn read(stream: &mut TcpStream) -> Option<Request> {
    let mut head = vec![];
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        if stream.read(&mut byte).ok()? == 0 {
            return None;
        }
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    let field = |name: &str| {
        head.lines()
            .find_map(|l| l.split_once(": ").filter(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.to_owned()))
    };
    let mut body = vec![0; field("content-length").map_or(0, |n| n.parse().unwrap())];
    stream.read_exact(&mut body).ok()?;
    Some(Request {
        method: head.split(' ').next().unwrap().to_owned(),
        session: field("mcp-session-id"),
        credentials: field("authorization"),
        body: serde_json::from_slice(&body).unwrap_or_default(),
    })
}

fn answer(stream: &mut TcpStream, status: u16, extra: &str, body: &str) {
    let kind = if body.is_empty() { "" } else { "Content-Type: application/json\r\n" };
    let length = body.len();
    let _ = write!(stream, "HTTP/1.1 {status} X\r\n{extra}{kind}Content-Length: {length}\r\n\r\n{body}");
}

fn events(stream: &mut TcpStream) {
    let _ = write!(stream, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n");
}

fn event(stream: &mut TcpStream, message: &Value) -> std::io::Result<()> {
    let text = format!("event: message\r\ndata: {message}\r\n\r\n");
    write!(stream, "{:x}\r\n{text}\r\n", text.len())
}

fn is_gone(stream: &TcpStream) -> bool {
    stream.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
    let gone = matches!(stream.peek(&mut [0]), Ok(0));
    stream.set_read_timeout(None).unwrap();
    gone
}

impl State {
    fn connection(&self, mut stream: TcpStream) {
        while let Some(request) = read(&mut stream) {
            let name = request.body["params"]["name"].as_str().unwrap_or_default();
            let method = request.body["method"].as_str().unwrap_or(&request.method);
            self.log.lock().unwrap().push(format!("{method} {name}").trim().to_owned());
            self.credentials.lock().unwrap().push(request.credentials.clone());
            let goes_on = match (request.method.as_str(), method) {
                ("GET", _) => self.listen(&mut stream),
                ("POST", "tools/call") => self.call(&mut stream, &request),
                ("POST", _) => self.other(&mut stream, &request),
                _ => {
                    answer(&mut stream, 200, "", "");
                    true
                }
            };
            if !goes_on {
                return;
            }
        }
    }

    fn other(&self, stream: &mut TcpStream, request: &Request) -> bool {
        let Some(id) = request.body.get("id") else {
            answer(stream, 202, "", "");
            return true;
        };
        let mut extra = String::new();
        let result = match request.body["method"].as_str().unwrap() {
            "initialize" => {
                if self.manner != Manner::Stateless {
                    extra = format!("Mcp-Session-Id: s{}\r\n", self.sessions.fetch_add(1, Ordering::SeqCst));
                }
                json!({"protocolVersion": "2025-06-18", "serverInfo": {"name": "fake", "version": "1"}, "capabilities": {}})
            }
            "tools/list" => json!({"tools": self.tools()}),
            _ => json!({}),
        };
        answer(stream, 200, &extra, &json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string());
        true
    }

    fn tools(&self) -> Vec<Value> {
        let text = json!({"type": "string"});
        let tool = |name: &str, properties: Value, is_marked: bool| {
            let hint = is_marked && self.manner != Manner::Unmarked;
            json!({"name": name, "annotations": {"readOnlyHint": hint},
                "inputSchema": {"type": "object", "required": ["text"], "properties": properties}})
        };
        vec![
            tool("echo", json!({"text": text}), true),
            tool("slow_echo", json!({"text": text, "delay_ms": {"type": "integer"}}), true),
            tool("write", json!({"text": text}), false),
        ]
    }

    fn listen(&self, stream: &mut TcpStream) -> bool {
        let (sender, replies) = channel();
        self.flights.lock().unwrap().gets.push(sender);
        events(stream);
        while !is_gone(stream) {
            match replies.recv_timeout(Duration::from_millis(10)) {
                Ok(reply) => event(stream, &reply).unwrap_or(()),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return false,
            }
        }
        false
    }

    fn call(&self, stream: &mut TcpStream, request: &Request) -> bool {
        let params = &request.body["params"];
        let delay = Duration::from_millis(params["arguments"]["delay_ms"].as_u64().unwrap_or(0));
        let text = params["arguments"]["text"].as_str().unwrap_or_default();
        let text = if self.manner == Manner::Mute { "done" } else { text };
        let mut reply = json!({"jsonrpc": "2.0", "id": request.body["id"],
            "result": {"content": [{"type": "text", "text": text}]}});
        let session = request.session.clone().unwrap_or_default();
        let id = request.body["id"].to_string().replace('"', "");
        let number = self.calls.fetch_add(1, Ordering::SeqCst);
        let is_tenth = number % 10 == 9;
        if self.manner == Manner::OverwritesById {
            return self.by_id(stream, (session, id), delay, reply);
        }
        if self.manner == Manner::RefusesDuplicates {
            let (sender, _keep) = channel();
            let before = self.flights.lock().unwrap().by_id.insert((session.clone(), id.clone()), sender);
            if before.is_some() {
                answer(stream, 400, "", "");
                return true;
            }
            std::thread::sleep(delay);
            self.flights.lock().unwrap().by_id.remove(&(session, id));
            answer(stream, 200, "", &reply.to_string());
            return true;
        }
        {
            let _turn = (self.manner == Manner::OneByOne).then(|| self.turn.lock().unwrap());
            std::thread::sleep(delay);
        }
        let own = reply.clone();
        let mut flights = self.flights.lock().unwrap();
        let before = flights.last.get(&session).cloned();
        let of_another = flights.last.iter().find(|(s, _)| **s != session).map(|(_, v)| v.clone());
        flights.last.insert(session, own);
        match (self.manner, before, of_another) {
            (Manner::SwapsBodies, Some(before), _) if is_tenth => reply["result"] = before["result"].clone(),
            (Manner::WrongIds, Some(before), _) if is_tenth => reply["id"] = before["id"].clone(),
            (Manner::CrossesSessions, _, Some(other)) if is_tenth => reply["result"] = other["result"].clone(),
            (Manner::Drops, ..) if is_tenth => return false,
            (Manner::AlsoOnGet, ..) => flights.gets.retain(|g| g.send(reply.clone()).is_ok()),
            (Manner::Twice, ..) if is_tenth => {
                events(stream);
                let _ = event(stream, &reply)
                    .and_then(|()| event(stream, &reply))
                    .and_then(|()| write!(stream, "0\r\n\r\n"));
                return true;
            }
            _ => {}
        }
        drop(flights);
        answer(stream, 200, "", &reply.to_string());
        true
    }

    /// As SDKs do that keep a table of calls in flight by id: the last caller gets the first reply.
    fn by_id(&self, stream: &mut TcpStream, key: (String, String), delay: Duration, reply: Value) -> bool {
        let (sender, mine): (_, Receiver<Value>) = channel();
        self.flights.lock().unwrap().by_id.insert(key.clone(), sender);
        events(stream);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(delay);
                let waiting = self.flights.lock().unwrap().by_id.remove(&key);
                if let Some(waiting) = waiting {
                    let _ = waiting.send(reply);
                }
            });
            match mine.recv() {
                Ok(reply) => {
                    let _ = event(stream, &reply).and_then(|()| write!(stream, "0\r\n\r\n"));
                }
                // Overwritten: it hangs until its caller has had enough.
                Err(_) => while !is_gone(stream) {},
            }
        });
        true
    }
}
