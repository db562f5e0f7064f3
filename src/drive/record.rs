//! A capture of what was said and heard on sockets: pcapng with the TCP that such bytes would have
//! had (handshake, sequence and acknowledgment numbers, checksums, FIN or RST).
//!
//! The times are those at which this program wrote or read; frames of other layers are made up.
//! Every packet is written at once, so that a run that is stopped leaves a readable file.

use crate::model::exchange::Peer;
use crate::wire::flags::{ACK, FIN, PSH, RST, SYN};
use crate::wire::write::blocks::{self, Host, Interface, LINK_ETHERNET};
use crate::wire::write::packets::{self, SEGMENT_BYTES, Tcp};
use std::fs::File;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// Writes one capture file; shared by the threads of a run.
#[derive(Clone)]
pub struct Recorder(Arc<Mutex<Output>>);

struct Output {
    out: Box<dyn Write + Send>,
    packets: u64,
    connections: u32,
    /// The first error; nothing is written after it.
    failed: Option<io::Error>,
}

impl Output {
    fn next_connection(&mut self) -> u32 {
        self.connections = self.connections.wrapping_add(1);
        self.connections
    }
}

impl Recorder {
    /// A capture in a new file.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn create(path: &Path, comment: &str) -> io::Result<Recorder> {
        Recorder::new(Box::new(File::create(path)?), comment)
    }

    /// A capture on `out`, which should not buffer.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn new(mut out: Box<dyn Write + Send>, comment: &str) -> io::Result<Recorder> {
        out.write_all(&preamble(comment))?;
        Ok(Recorder::onto(out))
    }

    /// Goes on with a capture on `out` that has its beginning. Each write is one whole block.
    pub(crate) fn onto(out: Box<dyn Write + Send>) -> Recorder {
        Recorder(Arc::new(Mutex::new(Output { out, packets: 0, connections: 0, failed: None })))
    }

    /// A new connection from `client` to `server`, with its handshake.
    pub fn open(&self, client: SocketAddr, server: SocketAddr) -> Tap {
        // Ports are used again: another start tells the connections apart.
        let n = self.0.lock().unwrap_or_else(PoisonError::into_inner).next_connection();
        let sent = Mutex::new([n.wrapping_mul(0x9E37_79B1), n.wrapping_mul(0x85EB_CA77)]);
        let tap = Tap { recorder: self.clone(), client, server, sent };
        tap.packet(Peer::Client, SYN, &[], 1);
        tap.packet(Peer::Server, SYN | ACK, &[], 1);
        tap.packet(Peer::Client, ACK, &[], 0);
        tap
    }

    /// How many packets were written, and the error that ended the writing.
    pub fn finish(&self) -> (u64, Option<io::Error>) {
        let mut output = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (output.packets, output.failed.take())
    }

    fn write(&self, frame: &[u8]) {
        let mut output = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if output.failed.is_some() {
            return;
        }
        // The time is taken under the lock, so that packets are in order of time.
        let block = blocks::packet(0, u64::try_from(now_ns()).unwrap_or(0), frame, frame.len() as u32, "");
        match output.out.write_all(&block) {
            Ok(()) => output.packets += 1,
            Err(e) => output.failed = Some(e),
        }
    }
}

/// Nanoseconds since 1970.
pub(crate) fn now_ns() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| i64::try_from(d.as_nanos()).unwrap_or(i64::MAX))
}

/// One connection of a recording.
pub struct Tap {
    recorder: Recorder,
    client: SocketAddr,
    server: SocketAddr,
    /// Next sequence number of client and server.
    sent: Mutex<[u32; 2]>,
}

impl Tap {
    /// `bytes` went from one end to the other.
    pub fn data(&self, from: Peer, bytes: &[u8]) {
        for piece in bytes.chunks(SEGMENT_BYTES) {
            self.packet(from, PSH | ACK, piece, 0);
        }
    }

    /// One end closed its side.
    pub fn fin(&self, from: Peer) {
        self.packet(from, FIN | ACK, &[], 1);
    }

    /// One end reset the connection.
    pub fn reset(&self, from: Peer) {
        self.packet(from, RST | ACK, &[], 0);
    }

    fn packet(&self, sender: Peer, flags: u8, payload: &[u8], more: u32) {
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        let [client, server] = *sent;
        let advance = (payload.len() as u32).wrapping_add(more);
        let (from, to, seq, ack) = match sender {
            Peer::Client => (self.client, self.server, client, server),
            Peer::Server => (self.server, self.client, server, client),
        };
        *sent = match sender {
            Peer::Client => [client.wrapping_add(advance), server],
            Peer::Server => [client, server.wrapping_add(advance)],
        };
        let ack = if flags & ACK == 0 { 0 } else { ack };
        self.recorder.write(&frame(&Tcp { from, to, seq, ack, flags, data: payload }));
    }
}

/// An Ethernet frame (addresses zero) with a TCP segment.
fn frame(segment: &Tcp<'_>) -> Vec<u8> {
    let mut out = vec![0; 12];
    out.extend(if segment.from.is_ipv4() && segment.to.is_ipv4() { [8, 0] } else { [0x86, 0xdd] });
    out.extend(packets::tcp(segment));
    out
}

/// Section header and interface description, times in nanoseconds.
pub(crate) fn preamble(comment: &str) -> Vec<u8> {
    let mut out = blocks::section(comment, &Host::default());
    out.extend(blocks::interface(&Interface {
        link: LINK_ETHERNET,
        digits: 9,
        name: "sockets",
        ..Interface::default()
    }));
    out
}
