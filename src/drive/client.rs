//! A client with one connection a handle: it sends the bytes it is told and says what came when.

use super::record::{Recorder, Tap, now_ns};
use super::stop::{Stop, TICK};
use super::target::Target;
use super::wire::{Ears, Heard};
use crate::model::exchange::{End, Peer};
use crate::wire::Close;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

/// Time to wait for a connection to be made.
const CONNECT: Duration = Duration::from_secs(10);

/// What all connections of a run have in common.
#[derive(Clone)]
pub struct Client {
    /// Where requests go.
    pub target: Target,
    /// Header fields that the user adds to every request.
    pub headers: Vec<(String, String)>,
    /// Where to record.
    pub recorder: Option<Recorder>,
    /// Ends every wait.
    pub stop: Stop,
}

/// One request, as it is to be sent.
#[derive(Clone, Debug, Default)]
pub struct Ask {
    /// `POST`, `GET` or `DELETE`.
    pub method: &'static str,
    /// Header fields beside `Host`, `Content-Length` and the user's.
    pub headers: Vec<(String, String)>,
    /// JSON-RPC message; empty for none.
    pub body: String,
}

impl Client {
    /// Opens a connection.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn connect(&self) -> io::Result<Line> {
        let mut last = io::Error::new(ErrorKind::NotFound, "the name has no address");
        for address in self.target.addresses()? {
            match TcpStream::connect_timeout(&address, CONNECT) {
                Ok(stream) => return self.line(stream),
                Err(e) => last = e,
            }
        }
        Err(last)
    }

    fn line(&self, stream: TcpStream) -> io::Result<Line> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(TICK))?;
        stream.set_write_timeout(Some(CONNECT))?;
        let (client, server) = (stream.local_addr()?, stream.peer_addr()?);
        let tap = self.recorder.as_ref().map(|r| r.open(client, server));
        Ok(Line { stream, tap, ears: Ears::new(client, server), stop: self.stop.clone(), closed: false })
    }

    /// Does the user give this header field?
    pub fn gives(&self, name: &str) -> bool {
        self.headers.iter().any(|(user, _)| user.eq_ignore_ascii_case(name))
    }

    /// The bytes of a request.
    fn bytes(&self, ask: &Ask) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\n", ask.method, self.target.path);
        let host = ("Host".to_owned(), self.target.authority.clone());
        // What the user gives stands in place of ours.
        let is_ours = |(n, _): &&(String, String)| !self.gives(n);
        let own = std::iter::once(&host).chain(&ask.headers).filter(is_ours);
        for (name, value) in own.chain(&self.headers) {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if ask.method == "POST" {
            head.push_str(&format!("Content-Length: {}\r\n", ask.body.len()));
        }
        head.push_str("\r\n");
        let mut bytes = head.into_bytes();
        bytes.extend(ask.body.as_bytes());
        bytes
    }

    /// Sends a request on a connection of its own and waits for the whole response.
    ///
    /// # Errors
    /// Those of the operating system; silence is none ([`Heard::end`] is then missing).
    pub fn once(&self, ask: &Ask, patience: Duration) -> io::Result<Heard> {
        let mut line = self.connect()?;
        line.send(self, ask)?;
        let heard = line.hear(Instant::now() + patience, |_| false);
        line.close();
        Ok(heard)
    }
}

/// One connection.
pub struct Line {
    stream: TcpStream,
    tap: Option<Tap>,
    ears: Ears,
    stop: Stop,
    closed: bool,
}

impl Line {
    /// Sends a request. What came on this connection before is forgotten.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn send(&mut self, client: &Client, ask: &Ask) -> io::Result<()> {
        self.ears.told.heard = Heard::default();
        let bytes = client.bytes(ask);
        let at = now_ns();
        if let Some(tap) = &self.tap {
            tap.data(Peer::Client, &bytes);
        }
        self.ears.data(Peer::Client, &bytes, at);
        self.ears.told.asked.clear();
        self.stream.write_all(&bytes)
    }

    /// Reads until the response ends, `until` has come, the run is stopped, or `enough` says so.
    /// The response so far is given each time; a later call goes on where this one stopped.
    pub fn hear(&mut self, until: Instant, mut enough: impl FnMut(&Heard) -> bool) -> Heard {
        let mut buffer = [0; 16 << 10];
        while self.ears.told.heard.end.is_none() && !enough(&self.ears.told.heard) {
            if Instant::now() >= until || self.stop.is_set() {
                break;
            }
            match self.stream.read(&mut buffer) {
                Ok(0) => self.ended(Close::Fin),
                Ok(n) => {
                    let bytes = buffer.get(..n).unwrap_or_default();
                    if let Some(tap) = &self.tap {
                        tap.data(Peer::Server, bytes);
                    }
                    self.ears.data(Peer::Server, bytes, now_ns());
                }
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted) => {}
                Err(_) => self.ended(Close::Reset),
            }
        }
        self.ears.told.heard.clone()
    }

    fn ended(&mut self, close: Close) {
        if let Some(tap) = self.tap.as_ref().filter(|_| !self.closed) {
            match close {
                Close::Reset => tap.reset(Peer::Server),
                _ => tap.fin(Peer::Server),
            }
        }
        self.closed = true;
        self.ears.close(Peer::Server, close, now_ns());
        // A parser that was between messages has nothing to end.
        let heard = &mut self.ears.told.heard;
        heard.end.get_or_insert(if close == Close::Reset { End::Reset } else { End::ServerClosed });
    }

    /// The port on this side.
    pub fn port(&self) -> u16 {
        self.stream.local_addr().map_or(0, |a| a.port())
    }

    /// Can another request be sent on it?
    pub fn is_open(&self) -> bool {
        !self.closed
    }

    /// Closes it, whatever is still on its way.
    pub fn close(mut self) {
        self.hang_up();
    }

    fn hang_up(&mut self) {
        if !std::mem::replace(&mut self.closed, true) {
            if let Some(tap) = &self.tap {
                tap.fin(Peer::Client);
            }
            let _ = self.stream.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.hang_up();
    }
}
