//! One exchange in the recording: HTTP/1.1 in the clear with the bodies as they passed, whatever the
//! versions on either side were. A body of unknown length is written in chunks, one for each piece
//! that came, so that the times of events stay true.

use super::ports::Port;
use super::strip;
use super::watcher::Watcher;
use crate::drive::record::Tap;
use crate::model::exchange::Peer;
use hyper::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderMap, TRANSFER_ENCODING};
use hyper::http::{request, response};
use hyper::{Method, StatusCode};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A recorded connection, with the port it holds.
pub(super) struct Wire {
    pub(super) tap: Option<Tap>,
    pub(super) _port: Port,
    client_left: AtomicBool,
}

impl Wire {
    pub(super) fn new(tap: Option<Tap>, port: Port) -> Wire {
        Wire { tap, _port: port, client_left: AtomicBool::new(false) }
    }

    /// The client closed the connection, and with it what the server was still to say.
    pub(super) fn client_left(&self, manner: &Manner, is_open: bool) {
        let is_news = !self.client_left.swap(true, Ordering::SeqCst);
        if is_news
            && !manner.stopping.load(Ordering::SeqCst)
            && let Some(tap) = &self.tap
        {
            tap.fin(Peer::Client);
            if is_open {
                tap.fin(Peer::Server);
            }
        }
    }
}

/// How exchanges are written.
#[derive(Clone, Default)]
pub(super) struct Manner {
    /// With credentials.
    pub(super) keep_credentials: bool,
    /// The proxy is being stopped: what ends now was ended by nobody.
    pub(super) stopping: Arc<AtomicBool>,
}

/// The record of one exchange.
pub(super) struct Transcript {
    wire: Arc<Wire>,
    manner: Manner,
    /// The exchange is all that is on the connection (an HTTP/2 stream).
    alone: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// How the bodies of request and response are delimited.
    bodies: [Framing; 2],
    /// Bodies are credentials.
    withhold: bool,
    is_head: bool,
    /// Nothing more is to be written.
    over: bool,
    watcher: Option<Watcher>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Framing {
    /// There is none, or it has ended.
    #[default]
    Over,
    Length,
    Chunked,
}

fn side(peer: Peer) -> usize {
    usize::from(peer == Peer::Server)
}

impl Transcript {
    pub(super) fn new(wire: Arc<Wire>, manner: Manner, alone: bool, watcher: Option<Watcher>) -> Transcript {
        Transcript { wire, manner, alone, state: Mutex::new(State { watcher, ..State::default() }) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The head of the request, as the server gets it.
    pub(super) fn request(&self, parts: &request::Parts, host: &str, is_empty: bool) {
        let mut state = self.lock();
        state.is_head = parts.method == Method::HEAD;
        state.withhold = !self.manner.keep_credentials && strip::is_form(&parts.headers);
        let path = parts.uri.path_and_query().map_or("/", |p| p.as_str());
        let path = if self.manner.keep_credentials { path.to_owned() } else { strip::target(path) };
        let mut out = format!("{} {path} HTTP/1.1\r\n", parts.method).into_bytes();
        if !parts.headers.contains_key(HOST) {
            out.extend(format!("host: {host}\r\n").bytes());
        }
        self.head(&mut state, Peer::Client, out, &parts.headers, is_empty);
    }

    /// The head of the response.
    pub(super) fn response(&self, parts: &response::Parts, is_empty: bool) {
        let mut state = self.lock();
        let reason = parts.status.canonical_reason().unwrap_or("-");
        let out = format!("HTTP/1.1 {} {reason}\r\n", parts.status.as_u16()).into_bytes();
        let bare = state.is_head || matches!(parts.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
        self.head(&mut state, Peer::Server, out, &parts.headers, is_empty || bare);
        if bare && let Some(framing) = state.bodies.get_mut(side(Peer::Server)) {
            *framing = Framing::Over;
        }
    }

    fn head(&self, state: &mut State, from: Peer, mut out: Vec<u8>, headers: &HeaderMap, is_empty: bool) {
        for (name, value) in headers {
            if *name == TRANSFER_ENCODING || *name == CONNECTION {
                continue;
            }
            let value = match name {
                _ if !self.manner.keep_credentials && strip::is_credential(name) => strip::STRIPPED.as_bytes(),
                // What was blotted out is of no type.
                name if state.withhold && *name == CONTENT_TYPE => b"application/octet-stream",
                _ => value.as_bytes(),
            };
            out.extend(name.as_str().bytes());
            out.extend(b": ");
            out.extend(value);
            out.extend(b"\r\n");
        }
        let framing = match (is_empty, headers.contains_key(CONTENT_LENGTH)) {
            (true, true) => Framing::Over,
            (true, false) => {
                // Else a response would end with the connection.
                if from == Peer::Server
                    && !state.is_head
                    && !out.starts_with(b"HTTP/1.1 204")
                    && !out.starts_with(b"HTTP/1.1 304")
                {
                    out.extend(b"content-length: 0\r\n");
                }
                Framing::Over
            }
            (false, true) => Framing::Length,
            (false, false) => {
                out.extend(b"transfer-encoding: chunked\r\n");
                Framing::Chunked
            }
        };
        if let Some(slot) = state.bodies.get_mut(side(from)) {
            *slot = framing;
        }
        out.extend(b"\r\n");
        self.say(state, from, &out);
    }

    /// A piece of a body.
    pub(super) fn data(&self, from: Peer, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let mut state = self.lock();
        let blot;
        let bytes = if state.withhold {
            blot = vec![b'*'; bytes.len()];
            &blot
        } else {
            bytes
        };
        match state.bodies.get(side(from)) {
            Some(Framing::Length) => self.say(&mut state, from, bytes),
            Some(Framing::Chunked) => {
                let mut out = format!("{:x}\r\n", bytes.len()).into_bytes();
                out.extend(bytes);
                out.extend(b"\r\n");
                self.say(&mut state, from, &out);
            }
            _ => {}
        }
    }

    /// A body has ended, with these trailers.
    pub(super) fn ended(&self, from: Peer, trailers: Option<&HeaderMap>) {
        let mut state = self.lock();
        let framing = state.bodies.get_mut(side(from)).map_or(Framing::Over, std::mem::take);
        if framing == Framing::Chunked {
            let mut out = b"0\r\n".to_vec();
            for (name, value) in trailers.into_iter().flatten() {
                out.extend(name.as_str().bytes());
                out.extend(b": ");
                out.extend(value.as_bytes());
                out.extend(b"\r\n");
            }
            out.extend(b"\r\n");
            self.say(&mut state, from, &out);
        }
        if from == Peer::Server && !state.over {
            state.over = true;
            if let Some(watcher) = &mut state.watcher {
                watcher.complete();
            }
            if self.alone {
                if let Some(tap) = &self.wire.tap {
                    tap.fin(Peer::Server);
                }
                self.wire.client_left(&self.manner, false);
            }
        }
    }

    /// The server ended the connection before the response was complete.
    pub(super) fn server_left(&self, is_reset: bool) {
        let mut state = self.lock();
        if std::mem::replace(&mut state.over, true) {
            return;
        }
        if let Some(tap) = &self.wire.tap {
            if is_reset {
                tap.reset(Peer::Server);
            } else {
                tap.fin(Peer::Server);
            }
        }
    }

    fn say(&self, state: &mut State, from: Peer, bytes: &[u8]) {
        if state.over {
            return;
        }
        if let Some(tap) = &self.wire.tap {
            tap.data(from, bytes);
        }
        if let Some(watcher) = &mut state.watcher {
            watcher.data(from, bytes);
        }
    }
}

impl Drop for Transcript {
    /// Nobody waits for the response any more although it is not complete: the client has gone.
    fn drop(&mut self) {
        if !self.lock().over {
            self.wire.client_left(&self.manner, true);
        }
    }
}
