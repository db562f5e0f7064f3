//! A server with a thread a connection: whoever answers says which bytes go out and when.

use super::record::{Recorder, Tap, now_ns};
use super::stop::{Stop, TICK};
use super::wire::{Asked, Ears};
use crate::model::exchange::Peer;
use crate::model::limits;
use crate::wire::Close;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// What goes on with a connection after an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The next request is read.
    Keep,
    /// It is closed.
    Close,
    /// It is reset.
    Reset,
}

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// The time is over.
    Elapsed,
    /// The client has closed its side meanwhile.
    ClientClosed,
    /// The server is to stop.
    Stopped,
}

/// Answers requests, from many threads at once.
pub trait Answer: Sync {
    /// Answers one request.
    ///
    /// # Errors
    /// Those of writing: the client has gone.
    fn answer(&self, asked: &Asked, talk: &mut Talk<'_>) -> io::Result<Next>;
    /// The client closed a connection.
    fn closed(&self, _peer: SocketAddr) {}
}

/// A listening server.
pub struct Server {
    listener: TcpListener,
    recorder: Option<Recorder>,
    stop: Stop,
}

impl Server {
    /// Listens on `address` (`host:port`; port 0 takes a free one).
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn bind(address: &str, recorder: Option<Recorder>, stop: Stop) -> io::Result<Server> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(Server { listener, recorder, stop })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until stopped.
    pub fn run(&self, answer: &dyn Answer) {
        let open = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            while !self.stop.is_set() {
                let Ok((stream, _)) = self.listener.accept() else {
                    std::thread::sleep(Duration::from_millis(2));
                    continue;
                };
                // One more than the limit is refused by closing it.
                if open.fetch_add(1, Ordering::SeqCst) >= limits::SERVED_CONNECTIONS {
                    open.fetch_sub(1, Ordering::SeqCst);
                    continue;
                }
                let open = &open;
                scope.spawn(move || {
                    if let Ok(mut connection) = self.connection(stream) {
                        connection.serve(answer);
                    }
                    open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
    }

    fn connection(&self, stream: TcpStream) -> io::Result<Connection<'_>> {
        stream.set_nonblocking(false)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(TICK))?;
        stream.set_write_timeout(Some(Duration::from_secs(30)))?;
        let (peer, local) = (stream.peer_addr()?, stream.local_addr()?);
        let tap = self.recorder.as_ref().map(|r| r.open(peer, local));
        Ok(Connection { stream, tap, ears: Ears::new(peer, local), peer, client_closed: false, stop: &self.stop })
    }
}

struct Connection<'s> {
    stream: TcpStream,
    tap: Option<Tap>,
    ears: Ears,
    peer: SocketAddr,
    client_closed: bool,
    stop: &'s Stop,
}

impl Connection<'_> {
    fn serve(&mut self, answer: &dyn Answer) {
        let mut resets = false;
        while let Some(asked) = self.next_request() {
            match answer.answer(&asked, &mut Talk { connection: self }) {
                Ok(Next::Keep) => {}
                Ok(Next::Close) | Err(_) => break,
                Ok(Next::Reset) => {
                    resets = true;
                    break;
                }
            }
        }
        if self.client_closed {
            answer.closed(self.peer);
        }
        // What is stopped ends with its recording: that it closes then is no act of the played server.
        if self.stop.is_set() {
            let _ = self.stream.shutdown(Shutdown::Both);
            return;
        }
        // A socket that does not linger resets its connection when it is closed (socket(7)).
        if resets && rustix::net::sockopt::set_socket_linger(&self.stream, Some(Duration::ZERO)).is_ok() {
            if let Some(tap) = &self.tap {
                tap.reset(Peer::Server);
            }
            return;
        }
        if let Some(tap) = &self.tap {
            tap.fin(Peer::Server);
        }
        let _ = self.stream.shutdown(Shutdown::Both);
    }

    fn next_request(&mut self) -> Option<Asked> {
        loop {
            if let Some(asked) = self.ears.told.asked.pop_front() {
                return Some(asked);
            }
            if self.client_closed || self.stop.is_set() {
                return None;
            }
            self.read();
        }
    }

    /// Reads what is there, or waits a tick for it.
    fn read(&mut self) {
        let mut buffer = [0; 16 << 10];
        match self.stream.read(&mut buffer) {
            Ok(0) => self.ended(Close::Fin),
            Ok(n) => {
                let bytes = buffer.get(..n).unwrap_or_default();
                if let Some(tap) = &self.tap {
                    tap.data(Peer::Client, bytes);
                }
                self.ears.data(Peer::Client, bytes, now_ns());
            }
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted) => {}
            Err(_) => self.ended(Close::Reset),
        }
    }

    fn ended(&mut self, close: Close) {
        self.client_closed = true;
        if let Some(tap) = &self.tap {
            match close {
                Close::Reset => tap.reset(Peer::Client),
                _ => tap.fin(Peer::Client),
            }
        }
    }
}

/// The way to answer one request.
pub struct Talk<'c> {
    connection: &'c mut dyn Say,
}

/// What [`Talk`] needs of a connection, whatever it borrows.
trait Say {
    fn peer(&self) -> SocketAddr;
    fn say(&mut self, bytes: &[u8]) -> io::Result<()>;
    fn wait_until(&mut self, until: Instant) -> Waited;
}

impl Say for Connection<'_> {
    fn peer(&self) -> SocketAddr {
        self.peer
    }

    fn say(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)?;
        if let Some(tap) = &self.tap {
            tap.data(Peer::Server, bytes);
        }
        self.ears.data(Peer::Server, bytes, now_ns());
        self.ears.told.heard = super::wire::Heard::default();
        Ok(())
    }

    fn wait_until(&mut self, until: Instant) -> Waited {
        loop {
            if self.client_closed {
                return Waited::ClientClosed;
            }
            if self.stop.is_set() {
                return Waited::Stopped;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Waited::Elapsed;
            }
            if left < TICK {
                std::thread::sleep(left);
            } else {
                self.read();
            }
        }
    }
}

impl Talk<'_> {
    /// The client's address.
    pub fn peer(&self) -> SocketAddr {
        self.connection.peer()
    }

    /// Waits; what the client sends meanwhile is kept.
    pub fn wait(&mut self, time: Duration) -> Waited {
        self.connection.wait_until(Instant::now() + time)
    }

    /// Sends bytes as they are.
    ///
    /// # Errors
    /// Those of writing.
    pub fn raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.connection.say(bytes)
    }

    /// Sends a whole response.
    ///
    /// # Errors
    /// Those of writing.
    pub fn whole(&mut self, status: u16, headers: &[(String, String)], body: &[u8]) -> io::Result<()> {
        let mut out = head(status, headers);
        // A 202 or 204 may go without, all else has a length.
        out.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
        let mut bytes = out.into_bytes();
        bytes.extend(body);
        self.raw(&bytes)
    }

    /// Begins an event stream.
    ///
    /// # Errors
    /// Those of writing.
    pub fn begin_events(&mut self, status: u16, headers: &[(String, String)]) -> io::Result<()> {
        let mut out = head(status, headers);
        out.push_str(
            "Content-Type: text/event-stream\r\nCache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n\r\n",
        );
        self.raw(out.as_bytes())
    }

    /// Sends one event.
    ///
    /// # Errors
    /// Those of writing.
    pub fn event(&mut self, data: &[u8], id: Option<&str>) -> io::Result<()> {
        let mut event = b"event: message\n".to_vec();
        if let Some(id) = id {
            event.extend(format!("id: {id}\n").bytes());
        }
        for line in data.split(|b| *b == b'\n') {
            event.extend(b"data: ");
            event.extend(line);
            event.push(b'\n');
        }
        event.push(b'\n');
        self.chunk(&event)
    }

    /// Sends one chunk of a chunked body.
    ///
    /// # Errors
    /// Those of writing.
    pub fn chunk(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut out = format!("{:x}\r\n", bytes.len()).into_bytes();
        out.extend(bytes);
        out.extend(b"\r\n");
        self.raw(&out)
    }

    /// Ends a chunked body.
    ///
    /// # Errors
    /// Those of writing.
    pub fn end_chunks(&mut self) -> io::Result<()> {
        self.raw(b"0\r\n\r\n")
    }
}

fn head(status: u16, headers: &[(String, String)]) -> String {
    let mut out = format!("HTTP/1.1 {status} {}\r\n", reason(status));
    for (name, value) in headers {
        out.push_str(&format!("{name}: {value}\r\n"));
    }
    out
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        202 => "Accepted",
        204 => "No Content",
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
        _ => "Status",
    }
}
