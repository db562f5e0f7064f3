//! Real captures of TLS, with their key logs beside them or within.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod support;

use crosswire::input::capture::{CaptureInput, CaptureKind, Frame, FrameSink, read_all};
use crosswire::input::expand;
use crosswire::model::exchange::End;
use crosswire::model::place::InputId;
use crosswire::model::problem::{ProblemKind, Problems};
use crosswire::wire::packet::Decoder;
use crosswire::wire::tls::{TlsCount, TlsSetup};
use crosswire::wire::{Wire, WireOptions};
use std::sync::Arc;
use support::{Exchanges, Told};

struct Reading {
    wire: Wire,
    decoder: Decoder,
    setup: Arc<TlsSetup>,
    told: Exchanges,
    problems: Vec<Problems>,
}

impl FrameSink for Reading {
    fn frame(&mut self, frame: &Frame<'_>) {
        if let Some(segment) = self.decoder.segment(frame, &mut self.problems[0]) {
            self.wire.segment(segment, &mut self.told, &mut self.problems);
        }
    }
    fn secrets(&mut self, _: InputId, key_log: &[u8]) {
        self.setup.keys.read(key_log);
    }
}

fn fixture(name: &str) -> std::path::PathBuf {
    format!("{}/fixtures/{name}", env!("CARGO_MANIFEST_DIR")).into()
}

fn read(capture: &str, keylog: Option<&str>) -> (Vec<Told>, Problems, TlsCount) {
    let setup = Arc::new(TlsSetup::default());
    if let Some(keylog) = keylog {
        setup.keys.read(&std::fs::read(fixture(keylog)).unwrap());
    }
    let kind = CaptureKind::of(&std::fs::read(fixture(capture)).unwrap()).unwrap();
    let mut reading = Reading {
        wire: Wire::new(WireOptions { tls: setup.clone() }),
        decoder: Decoder::new(),
        setup,
        told: Exchanges::default(),
        problems: vec![Problems::default()],
    };
    let (source, _) = expand(&[fixture(capture).display().to_string()]);
    let input = CaptureInput { input: 0, kind, source: source.into_iter().next().unwrap(), open: None };
    read_all(vec![input], &mut reading);
    reading.wire.finish(&mut reading.told, &mut reading.problems);
    (reading.told.0.into_values().collect(), reading.problems.remove(0), reading.setup.count())
}

/// Eleven requests of the case, all of them read, and one call without an answer.
fn assert_case(told: &[Told], problems: &Problems) {
    assert_eq!(told.len(), 11);
    assert!(problems.is_empty(), "{problems:?}");
    assert!(
        told.iter()
            .all(|told| told.request.as_ref().unwrap().1 == "/mcp" && told.sent.len() == 1 && told.status.is_some())
    );
    let unanswered = told.iter().filter(|told| told.answered.is_empty() && told.status == Some(200));
    assert_eq!(
        unanswered
            .map(|told| told.sent[0].contains("\"id\": 77") || told.sent[0].contains("\"id\":77"))
            .collect::<Vec<_>>(),
        [true]
    );
    assert!(told.iter().filter(|told| !told.answered.is_empty()).all(|told| told.end == Some(End::Complete)));
}

#[test]
fn http1_and_http2_under_tls_13_read_with_the_key_log() {
    for (case, connections) in [("14a-tls13-http1", 5), ("14c-tls13-http2", 1)] {
        for (capture, keylog) in [("front.pcap", Some(format!("{case}/keylog.txt"))), ("front.dsb.pcapng", None)] {
            let (told, problems, count) = read(&format!("{case}/{capture}"), keylog.as_deref());
            assert_case(&told, &problems);
            assert_eq!(count, TlsCount { connections, readable: connections, ..TlsCount::default() });
        }
    }
}

#[test]
fn without_a_key_log_every_connection_is_counted() {
    for (case, connections) in [("14a-tls13-http1", 5), ("14c-tls13-http2", 1)] {
        let (told, problems, count) = read(&format!("{case}/front.pcap"), None);
        assert!(told.is_empty());
        assert_eq!(problems.count(ProblemKind::NoKeys), connections);
        assert_eq!(count, TlsCount { connections, no_keys: connections, ..TlsCount::default() });
    }
}

#[test]
fn a_partial_key_log_reads_what_it_can() {
    let (told, problems, count) = read("14a-tls13-http1/front.pcap", Some("14a-tls13-http1/keylog.partial.txt"));
    assert!(!told.is_empty() && told.len() < 11);
    assert_eq!(problems.count(ProblemKind::NoKeys), 1);
    assert_eq!((count.readable, count.no_keys), (count.connections - 1, 1));
}
