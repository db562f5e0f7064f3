//! A capture of what was said and heard on sockets: pcapng with the TCP that such bytes would have
//! had (handshake, sequence and acknowledgment numbers, checksums, FIN or RST).
//!
//! The times are those at which this program wrote or read; frames of other layers are made up.
//! Every packet is written at once, so that a run that is stopped leaves a readable file.

use crate::model::exchange::Peer;
use crate::wire::flags::{ACK, FIN, PSH, RST, SYN};
use std::fs::File;
use std::io::{self, Write};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// Payload bytes of one made packet.
const SEGMENT: usize = 16 << 10;

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
        Ok(Recorder(Arc::new(Mutex::new(Output { out, packets: 0, connections: 0, failed: None }))))
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
        match output.out.write_all(&packet_block(now_ns(), frame)) {
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
        for piece in bytes.chunks(SEGMENT) {
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

    fn packet(&self, from: Peer, flags: u8, payload: &[u8], more: u32) {
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        let [client, server] = *sent;
        let advance = (payload.len() as u32).wrapping_add(more);
        let (src, dst, seq, ack) = match from {
            Peer::Client => (self.client, self.server, client, server),
            Peer::Server => (self.server, self.client, server, client),
        };
        *sent = match from {
            Peer::Client => [client.wrapping_add(advance), server],
            Peer::Server => [client, server.wrapping_add(advance)],
        };
        let ack = if flags & ACK == 0 { 0 } else { ack };
        self.recorder.write(&frame(src, dst, &segment(src, dst, seq, ack, flags, payload)));
    }
}

/// A TCP segment with its checksum (RFC 9293 §3.1).
fn segment(src: SocketAddr, dst: SocketAddr, seq: u32, ack: u32, flags: u8, payload: &[u8]) -> Vec<u8> {
    let mut tcp = Vec::with_capacity(20 + payload.len());
    tcp.extend(src.port().to_be_bytes());
    tcp.extend(dst.port().to_be_bytes());
    tcp.extend(seq.to_be_bytes());
    tcp.extend(ack.to_be_bytes());
    tcp.extend([0x50, flags, 0xff, 0xff]);
    let before = tcp.len();
    tcp.extend([0, 0, 0, 0]);
    tcp.extend(payload);
    let mut pseudo = Vec::with_capacity(40);
    match (src.ip(), dst.ip()) {
        (IpAddr::V4(a), IpAddr::V4(b)) => {
            pseudo.extend(a.octets());
            pseudo.extend(b.octets());
        }
        (a, b) => {
            pseudo.extend(v6(a).octets());
            pseudo.extend(v6(b).octets());
        }
    }
    pseudo.extend((tcp.len() as u32).to_be_bytes());
    pseudo.extend([0, 0, 0, 6]);
    let sum = checksum(&[&pseudo, &tcp]);
    if let Some(field) = tcp.get_mut(before..before + 2) {
        field.copy_from_slice(&sum.to_be_bytes());
    }
    tcp
}

fn v6(ip: IpAddr) -> Ipv6Addr {
    match ip {
        IpAddr::V4(a) => a.to_ipv6_mapped(),
        IpAddr::V6(a) => a,
    }
}

/// Ethernet with IPv4 (RFC 791) or IPv6 (RFC 8200).
fn frame(src: SocketAddr, dst: SocketAddr, tcp: &[u8]) -> Vec<u8> {
    let mut out = vec![0; 12];
    match (src.ip(), dst.ip()) {
        (IpAddr::V4(a), IpAddr::V4(b)) => {
            out.extend([8, 0]);
            let mut ip = vec![0x45, 0];
            ip.extend(((20 + tcp.len()) as u16).to_be_bytes());
            ip.extend([0, 0, 0x40, 0, 64, 6]);
            let mut rest = a.octets().to_vec();
            rest.extend(b.octets());
            let sum = checksum(&[&ip, &rest]);
            out.extend(ip);
            out.extend(sum.to_be_bytes());
            out.extend(rest);
        }
        (a, b) => {
            out.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
            out.extend((tcp.len() as u16).to_be_bytes());
            out.extend([6, 64]);
            out.extend(v6(a).octets());
            out.extend(v6(b).octets());
        }
    }
    out.extend(tcp);
    out
}

/// The Internet checksum (RFC 1071) over parts; all but the last have an even length.
fn checksum(parts: &[&[u8]]) -> u16 {
    let mut sum: u32 = 0;
    for part in parts {
        for pair in part.chunks(2) {
            let word = [pair.first().copied().unwrap_or(0), pair.get(1).copied().unwrap_or(0)];
            sum += u32::from(u16::from_be_bytes(word));
            sum = (sum & 0xffff) + (sum >> 16);
        }
    }
    !(sum as u16)
}

/// Section header and interface description (pcapng §4.1, §4.2), times in nanoseconds.
fn preamble(comment: &str) -> Vec<u8> {
    let mut section = vec![];
    section.extend(0x1A2B_3C4Du32.to_le_bytes());
    section.extend([1, 0, 0, 0]);
    section.extend(u64::MAX.to_le_bytes());
    option(&mut section, 1, comment.as_bytes());
    option(&mut section, 4, concat!("crosswire ", env!("CARGO_PKG_VERSION")).as_bytes());
    option(&mut section, 0, &[]);
    let mut interface = vec![1, 0, 0, 0, 0, 0, 0, 0];
    option(&mut interface, 2, b"sockets");
    option(&mut interface, 9, &[9]);
    option(&mut interface, 0, &[]);
    let mut out = block(0x0A0D_0D0A, &section);
    out.extend(block(1, &interface));
    out
}

/// An enhanced packet block (pcapng §4.3).
fn packet_block(ns: i64, frame: &[u8]) -> Vec<u8> {
    let mut body = Vec::with_capacity(frame.len() + 24);
    body.extend([0; 4]);
    body.extend(((ns as u64 >> 32) as u32).to_le_bytes());
    body.extend((ns as u32).to_le_bytes());
    body.extend((frame.len() as u32).to_le_bytes());
    body.extend((frame.len() as u32).to_le_bytes());
    body.extend(frame);
    pad(&mut body);
    block(6, &body)
}

fn option(out: &mut Vec<u8>, code: u16, value: &[u8]) {
    let value = value.get(..value.len().min(usize::from(u16::MAX))).unwrap_or_default();
    out.extend(code.to_le_bytes());
    out.extend((value.len() as u16).to_le_bytes());
    out.extend(value);
    pad(out);
}

fn pad(out: &mut Vec<u8>) {
    out.resize(out.len().next_multiple_of(4), 0);
}

fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let length = (body.len() + 12) as u32;
    let mut out = Vec::with_capacity(body.len() + 12);
    out.extend(kind.to_le_bytes());
    out.extend(length.to_le_bytes());
    out.extend(body);
    out.extend(length.to_le_bytes());
    out
}
