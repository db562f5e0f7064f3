//! What is fuzzed: one function a target, over public entry points. Used by the fuzz targets of
//! cargo-fuzz beside this file and by `tests/fuzz_smoke.rs`, which runs them on any toolchain.
//!
//! A target must take any bytes at all: a panic, an endless loop or memory out of proportion is a
//! fault. Beyond that each checks what must hold of any input.

use crosswire::input::capture::{CaptureKind, CaptureReader};
use crosswire::input::log::{Format, LogContext, Reader, RecordSink};
use crosswire::input::{client, log};
use crosswire::model::exchange::{Event, Exchange, ExchangeSink};
use crosswire::model::options::ReadOptions;
use crosswire::model::place::Place;
use crosswire::model::problem::{ProblemKind, Problems};
use crosswire::model::record::{Record, When};
use crosswire::wire::{hpack, packet, recorded};
use std::collections::BTreeSet;

/// A target: its name (also that of its folder in `fuzz/corpus`) and its body.
pub type Target = (&'static str, fn(&[u8]));

/// Every target.
#[allow(dead_code)] // each target of cargo-fuzz uses one alone
pub const TARGETS: &[Target] = &[
    ("capture", capture),
    ("client_logs", client_logs),
    ("hpack", hpack),
    ("log_lines", log_lines),
    ("recorded", recorded),
];

/// pcap and pcapng files, and the packets in them down to TCP segments.
pub fn capture(data: &[u8]) {
    for kind in CaptureKind::ALL {
        let mut reader = CaptureReader::new(data, kind, 0);
        let mut decoder = packet::Decoder::new();
        let mut problems = Problems::default();
        let mut frames = 0;
        while reader.advance() {
            let Some(frame) = reader.frame() else { continue };
            frames += 1;
            assert!(frame.data.len() <= data.len());
            if let Some(segment) = decoder.segment(&frame, &mut problems) {
                assert!(segment.payload.len() <= segment.wire_len as usize);
            }
        }
        decoder.finish(&mut problems);
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

/// Logs of proxies, servers, journals and containers, by every format.
pub fn log_lines(data: &[u8]) {
    log::FORMATS.iter().for_each(|format| read_log(format, data));
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
    for format in recorded::FORMATS {
        let _ = (format.grade)(data);
        let (mut sink, mut problems, mut next) = (Paired::default(), Problems::default(), 0);
        let counts = (format.read)(0, &mut &*data, &mut next, &mut sink, &mut problems);
        let counts = counts.unwrap_or_default();
        assert!(next <= counts.records, "{}: more exchanges than entries", format.name);
        sink.all_ended();
    }
}

/// Checks that exchanges begin and end once, and that nothing is said of one that is not open.
#[derive(Default)]
struct Paired {
    open: BTreeSet<u64>,
    begun: BTreeSet<u64>,
}

impl ExchangeSink for Paired {
    fn event(&mut self, exchange: &Exchange, event: Event<'_>) {
        if self.begun.insert(exchange.id) {
            self.open.insert(exchange.id);
        }
        assert!(self.open.contains(&exchange.id), "{event:?} after the end of an exchange");
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
