//! What is fuzzed: one function a target, over public entry points. Used by the fuzz targets of
//! cargo-fuzz beside this file and by `tests/fuzz_smoke.rs`, which runs them on any toolchain.
//!
//! A target must take any bytes at all: a panic, an endless loop or memory out of proportion is a
//! fault. Beyond that each checks what must hold of any input.

use crosswire::drive::play::script::Script;
use crosswire::input::archive::tar::TarReader;
use crosswire::input::archive::{Blob, MemberOpener, MemoryBlob, zip};
use crosswire::input::capture::bpf::Program;
use crosswire::input::capture::{CaptureKind, CaptureReader};
use crosswire::input::container::Container;
use crosswire::input::log::{Format, LogContext, Reader, RecordSink};
use crosswire::input::packed::Opener;
use crosswire::input::recorded::RecordedKind;
use crosswire::input::tar_zst::Tar;
use crosswire::input::zip::leads_out;
use crosswire::input::{client, log};
use crosswire::mcp;
use crosswire::model::exchange::{Event, Exchange, ExchangeSink, Mark, Peer};
use crosswire::model::filter::Instruction;
use crosswire::model::options::ReadOptions;
use crosswire::model::place::Place;
use crosswire::model::problem::{ProblemKind, Problems};
use crosswire::model::record::{Record, When};
use crosswire::model::time::Time;
use crosswire::report::baseline::Baseline;
use crosswire::scan::sightings;
use crosswire::scan::steps::Line;
use crosswire::wire::sse::SseParser;
use crosswire::wire::tls::KeyStore;
use crosswire::wire::{Checksum, Segment, Wire, WireOptions, flags, hpack, http2, packet, recorded, tls};
use std::collections::BTreeSet;
use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

/// A target: its name (also that of its folder in `fuzz/corpus`) and its body.
pub type Target = (&'static str, fn(&[u8]));

/// Every target.
#[allow(dead_code)] // each target of cargo-fuzz uses one alone
pub const TARGETS: &[Target] = &[
    ("archive", archive),
    ("baseline", baseline),
    ("bundle", bundle),
    ("bpf", bpf),
    ("capture", capture),
    ("client_logs", client_logs),
    ("hpack", hpack),
    ("http", http),
    ("http2", http2),
    ("journal", journal),
    ("jsonrpc", jsonrpc),
    ("keylog", keylog),
    ("log_lines", log_lines),
    ("recorded", recorded),
    ("script", script),
    ("sightings", sightings),
    ("sse", sse),
    ("steps", steps),
    ("tcp", tcp),
    ("tls", tls),
];

/// tar and zip archives.
pub fn archive(data: &[u8]) {
    let mut tar = TarReader::new(data);
    let mut total = 0;
    while let Ok(Some(entry)) = tar.next_entry() {
        assert!(entry.at <= data.len() as u64);
        total += std::io::copy(&mut tar, &mut std::io::sink()).expect("memory can be read");
    }
    assert!(total <= data.len() as u64);
    let blob: Arc<dyn Blob> = Arc::new(MemoryBlob(data.to_vec()));
    for member in zip::members(&blob).into_iter().flatten() {
        let Ok(spot) = member.spot else { continue };
        assert!(spot.at + spot.packed_bytes <= data.len() as u64);
        let bytes = MemberOpener { blob: blob.clone(), spot }.open().expect("memory can be read");
        let _ = std::io::copy(&mut bytes.take(1 << 20), &mut std::io::sink());
    }
}

/// Reports of earlier runs, whose findings are known.
pub fn baseline(data: &[u8]) {
    let _ = Baseline::read(data);
}

/// Key logs of TLS.
pub fn keylog(data: &[u8]) {
    KeyStore::new().read(data);
}

/// Scripts to be played. What is accepted is accepted again as it is written.
pub fn script(data: &[u8]) {
    let _ = Script::is_one(data);
    let Ok(script) = Script::parse(data) else { return };
    let written = serde_json::to_vec(&script).expect("a script can be written");
    assert!(Script::parse(&written).is_ok(), "a script that is refused once it was written");
}

/// Sightings: a line as it stands, and what would be packed in one.
pub fn sightings(data: &[u8]) {
    if let Some(block) = sightings::Block::read(data, 3) {
        assert!(block.records.len() <= data.len(), "more records than bytes");
    }
    if let Some(folded) = sightings::Folded::read(data) {
        assert!(folded.stays.len() + folded.left.sessions.len() <= data.len(), "more lines or sessions than bytes");
        let line = sightings::folded("00000000-a", 0, &folded);
        assert!(sightings::parse(&line).is_ok(), "what is left is refused once it was written");
    }
    for line in String::from_utf8_lossy(data).lines() {
        let _ = sightings::parse(line);
    }
}

/// What the steps of a scan hand on, a line each.
pub fn steps(data: &[u8]) {
    for line in String::from_utf8_lossy(data).lines() {
        let Ok(line) = serde_json::from_str::<Line>(line) else { continue };
        let written = serde_json::to_string(&line).expect("a line can be written");
        assert!(serde_json::from_str::<Line>(&written).is_ok(), "a line that is refused once it was written");
    }
}

/// Evidence bundles: the file as it is, and as what a compressed one would hold.
pub fn bundle(data: &[u8]) {
    let read = |container: Container| {
        for name in container.names() {
            assert!(!leads_out(name));
            let _ = container.read(name);
        }
    };
    let _ = Container::new(data.to_vec()).map(read);
    let _ = Tar::new(data.to_vec()).map(Container::Tar).map(read);
    let _ = crosswire::evidence::verify::verify(data.to_vec());
}

/// Capture filters: how many instructions (two bytes), these of eight bytes each, and a packet.
pub fn bpf(data: &[u8]) {
    let Some((length, rest)) = data.split_first_chunk::<2>() else { return };
    let length = usize::from(u16::from_le_bytes(*length)) % 512 * 8;
    let (program, packet) = rest.split_at(length.min(rest.len()));
    let instruction = |b: &[u8]| Instruction {
        code: u16::from_le_bytes([b[0], b[1]]),
        jt: b[2],
        jf: b[3],
        k: u32::from_le_bytes([b[4], b[5], b[6], b[7]]),
    };
    let Ok(program) = Program::new(program.chunks_exact(8).map(instruction).collect()) else { return };
    // It ends, and says the same of the same packet.
    assert_eq!(program.accepts(packet, data.len() as u32), program.accepts(packet, data.len() as u32));
}

/// pcap and pcapng files, and the packets in them up to HTTP exchanges.
pub fn capture(data: &[u8]) {
    for kind in CaptureKind::ALL {
        let mut reader = CaptureReader::new(data, kind, 0);
        let mut decoder = packet::Decoder::new();
        let mut problems = [Problems::default()];
        let mut wire = Wire::new(WireOptions::default());
        let mut sink = Paired::default();
        let mut frames = 0;
        while reader.advance() {
            let Some(frame) = reader.frame() else { continue };
            frames += 1;
            assert!(frame.data.len() <= data.len());
            if let Some(segment) = decoder.segment(&frame, &mut problems[0]) {
                assert!(segment.payload.len() <= segment.wire_len as usize);
                wire.segment(segment, &mut sink, &mut problems);
            }
        }
        decoder.finish(&mut problems[0]);
        wire.finish(&mut sink, &mut problems);
        sink.all_ended();
        assert!(frames <= data.len());
    }
}

/// HPACK header blocks, from the beginning of a connection and from its midst.
pub fn hpack(data: &[u8]) {
    hpack::fuzz(data);
}

/// Logs of clients, by every format.
pub fn client_logs(data: &[u8]) {
    client::FORMATS.iter().for_each(|format| read_log(format, data));
}

/// Logs of proxies, servers and containers, by every format but those of journals.
pub fn log_lines(data: &[u8]) {
    log::FORMATS.iter().filter(|f| !f.name.starts_with("journal")).for_each(|format| read_log(format, data));
}

/// Journal files, and every form in which journalctl prints them.
pub fn journal(data: &[u8]) {
    log::FORMATS.iter().filter(|f| f.name.starts_with("journal")).for_each(|format| read_log(format, data));
}

/// JSON-RPC payloads, and what is learnt from arguments and results.
pub fn jsonrpc(data: &[u8]) {
    let payload = mcp::jsonrpc::parse(data);
    if serde_json::from_slice::<serde_json::Value>(data).is_ok() {
        assert!(!matches!(payload, mcp::jsonrpc::Payload::Invalid), "JSON that is not taken for JSON");
    }
    let values = mcp::content::ArgumentValues::of(data);
    assert!(values.0.len() <= crosswire::model::limits::ARGUMENT_VALUES);
    let mut shapes = mcp::shape::Shapes::default();
    let shape = shapes.of(data);
    assert_eq!(shape, shapes.of(data));
    let _ = mcp::jsonrpc::id(data);
}

/// HTTP/2 connections.
pub fn http2(data: &[u8]) {
    http2::fuzz(data);
}

/// TLS records and handshakes.
pub fn tls(data: &[u8]) {
    tls::fuzz(data);
}

fn read_log(format: &Format, data: &[u8]) {
    let options = ReadOptions::default();
    let context = LogContext { input: 0, name: "fuzz", options: &options, modified_ns: Some(0) };
    let _ = (format.grade)(data);
    let mut counted = Counted::default();
    match format.reader {
        Reader::Lines(open) => {
            let mut reader = open(&context);
            for (i, line) in data.split(|&b| b == b'\n').enumerate() {
                reader.line(line, i as u64 + 1, &mut counted);
            }
            reader.finish(&mut counted);
        }
        Reader::Bytes(read) => {
            let mut bytes = data;
            let _ = read(&context, &mut bytes, &mut counted);
        }
    }
    assert!(counted.entries <= data.len() + 1, "{}: more entries than bytes", format.name);
}

#[derive(Default)]
struct Counted {
    entries: usize,
}

impl RecordSink for Counted {
    fn entry(&mut self, _: Option<When>) {
        self.entries += 1;
    }
    fn record(&mut self, _: Record) {}
    fn problem(&mut self, _: ProblemKind, _: Place, _: &str) {}
}

/// HAR and flow files.
pub fn recorded(data: &[u8]) {
    for kind in RecordedKind::ALL {
        let _ = kind.grade(data);
        let (mut sink, mut problems, mut next) = (Paired::default(), Problems::default(), 0);
        let counts = recorded::read(kind, 0, &mut &*data, &mut next, &mut sink, &mut problems);
        let counts = counts.unwrap_or_default();
        assert!(next <= counts.records, "{}: more exchanges than entries", kind.name());
        sink.all_ended();
    }
}

/// A mark for the `number`th thing.
fn mark(number: u64) -> Mark {
    Mark { place: Place::frame(0, number), at: Time::from_us(number as i64 * 1000) }
}

/// Event streams. However the bytes are cut, the events are the same.
pub fn sse(data: &[u8]) {
    let read = |piece: usize| {
        let mut parser = SseParser::default();
        let mut events = Vec::new();
        for piece in data.chunks(piece.max(1)) {
            parser.push(piece, mark(1), &mut |e| {
                events.push((e.data.to_vec(), e.event.map(str::to_owned), e.id.map(str::to_owned)));
            });
        }
        events
    };
    let whole = read(data.len());
    assert_eq!(whole, read(1));
    assert_eq!(whole, read(7));
}

/// Segments of one connection in any order and state: each is a header of four bytes (direction and
/// flags, distance from the next sequence number expected, payload length) and its payload.
pub fn tcp(data: &[u8]) {
    let mut wire = Wire::new(WireOptions::default());
    let (mut sink, mut problems) = (Paired::default(), [Problems::default()]);
    let mut next = [1000_u32, 5000];
    let mut rest = data;
    let mut number = 0;
    while let Some(([how, low, high, length], after)) = rest.split_first_chunk::<4>() {
        let side = usize::from(how & 1);
        let (payload, after) = after.split_at(usize::from(*length).min(after.len()));
        rest = after;
        number += 1;
        let distance = i16::from_le_bytes([*low, *high]);
        let seq = next[side].wrapping_add_signed(i32::from(distance));
        let mut all = segment(side, seq, next[1 - side], payload, number);
        all.flags = (how >> 1 & 0x1f) | flags::ACK;
        if how & 0x40 != 0 {
            all.wire_len += 100; // cut
        }
        wire.segment(all, &mut sink, &mut problems);
        if distance == 0 {
            next[side] = seq.wrapping_add(payload.len() as u32);
        }
    }
    wire.finish(&mut sink, &mut problems);
    sink.all_ended();
}

fn segment(side: usize, seq: u32, ack: u32, payload: &[u8], number: u64) -> Segment<'_> {
    let ends = [40_000, 9311].map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    Segment {
        mark: mark(number),
        src: ends[side],
        dst: ends[1 - side],
        scope: 0,
        seq,
        ack: Some(ack),
        flags: flags::ACK | flags::PSH,
        payload,
        wire_len: payload.len() as u32,
        checksum: Checksum::Good,
    }
}

/// Turns of client and server on one connection without loss: each is a byte (direction, length)
/// and its bytes. However the turns are cut into segments, the messages are the same, unless there
/// is something wrong with the bytes: then reading goes on where a segment begins as a message.
pub fn http(data: &[u8]) {
    let (whole, is_sound) = messages(data, usize::MAX);
    if is_sound && data.len() <= 4096 {
        for piece in [1, 5] {
            assert_eq!(whole, messages(data, piece).0, "in pieces of {piece}");
        }
    }
}

fn messages(data: &[u8], piece: usize) -> (Vec<Told>, bool) {
    let mut wire = Wire::new(WireOptions::default());
    let (mut sink, mut problems) = (Paired::default(), [Problems::default()]);
    let mut next = [1_u32, 1];
    let mut number = 0;
    let mut rest = data;
    for side in [0, 1] {
        let mut syn = segment(side, 0, 0, b"", 0);
        (syn.flags, syn.ack) = if side == 0 { (flags::SYN, None) } else { (flags::SYN | flags::ACK, Some(1)) };
        wire.segment(syn, &mut sink, &mut problems);
    }
    while let Some((turn, after)) = rest.split_first() {
        let side = usize::from(turn >> 7);
        // Two bytes a unit, so that a head fits into a few turns.
        let (bytes, after) = after.split_at((usize::from(turn & 0x7f) * 2).min(after.len()));
        rest = after;
        for part in bytes.chunks(piece.max(1)) {
            number += 1;
            wire.segment(segment(side, next[side], next[1 - side], part, number), &mut sink, &mut problems);
            next[side] = next[side].wrapping_add(part.len() as u32);
        }
    }
    wire.finish(&mut sink, &mut problems);
    sink.all_ended();
    (sink.messages, problems[0].is_empty())
}

/// A message: its exchange, whether the client sent it, and its data.
type Told = (u64, bool, Vec<u8>);

/// Checks that exchanges begin and end once, and that nothing is said of one that is not open.
#[derive(Default)]
struct Paired {
    open: BTreeSet<u64>,
    begun: BTreeSet<u64>,
    messages: Vec<Told>,
}

impl ExchangeSink for Paired {
    fn event(&mut self, exchange: &Exchange, event: Event<'_>) {
        if self.begun.insert(exchange.id) {
            self.open.insert(exchange.id);
        }
        assert!(self.open.contains(&exchange.id), "{event:?} after the end of an exchange");
        if let Event::Message(m) = event {
            self.messages.push((exchange.id, m.from == Peer::Client, m.data.to_vec()));
        }
        if matches!(event, Event::End) {
            assert!(exchange.end.is_some());
            self.open.remove(&exchange.id);
        }
    }
}

impl Paired {
    fn all_ended(&self) {
        assert!(self.open.is_empty(), "exchanges were not ended");
    }
}
