//! Journal files made by hand: every layout and compression, and what is broken in them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::FORMAT;
use crate::input::log::told::{events, read, whens};
use crate::model::problem::ProblemKind;
use std::io::Write;

/// Writes a journal file of entries that each have the fields given.
struct Writer {
    compact: bool,
    compression: u8,
    bytes: Vec<u8>,
}

impl Writer {
    fn file(compact: bool, compression: u8, entries: &[&[&[u8]]]) -> Vec<u8> {
        let mut w = Writer { compact, compression, bytes: vec![0; 272] };
        w.bytes[..8].copy_from_slice(b"LPKSHHRH");
        w.bytes[12] = (u8::from(compact) << 4) | 0x0f;
        w.bytes[72..88].fill(0xab);
        w.put(88, 272);
        w.put(152, entries.len() as u64);
        let offsets: Vec<u64> = entries.iter().enumerate().map(|(n, fields)| w.entry(n as u64 + 1, fields)).collect();
        // two arrays, the second with room to spare, as journald leaves it
        let (first, second) = offsets.split_at(offsets.len().div_ceil(2));
        let at = w.array(first, 0);
        let next = w.array(second, 4);
        w.put(at as usize + 16, next);
        w.put(176, at);
        w.bytes
    }

    fn put(&mut self, at: usize, value: u64) {
        self.bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }

    fn object(&mut self, kind: u8, flags: u8, body: &[u8]) -> u64 {
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
        let at = self.bytes.len() as u64;
        self.bytes.extend([kind, flags, 0, 0, 0, 0, 0, 0]);
        self.bytes.extend((body.len() as u64 + 16).to_le_bytes());
        self.bytes.extend(body);
        at
    }

    fn offset(&self, at: u64) -> Vec<u8> {
        if self.compact { (at as u32).to_le_bytes().to_vec() } else { at.to_le_bytes().to_vec() }
    }

    fn data(&mut self, payload: &[u8]) -> u64 {
        let mut body = vec![0; if self.compact { 56 } else { 48 }];
        match self.compression {
            1 => {
                let mut xz = liblzma::write::XzEncoder::new(&mut body, 1);
                xz.write_all(payload).unwrap();
                xz.finish().unwrap();
            }
            2 => {
                // one run of literals
                body.extend((payload.len() as u64).to_le_bytes());
                assert!((15..270).contains(&payload.len()));
                body.extend([0xf0, (payload.len() - 15) as u8]);
                body.extend(payload);
            }
            4 => body.extend(zstd::encode_all(payload, 1).unwrap()),
            _ => body.extend(payload),
        }
        self.object(1, self.compression, &body)
    }

    fn entry(&mut self, n: u64, fields: &[&[u8]]) -> u64 {
        let data: Vec<u64> = fields.iter().map(|f| self.data(f)).collect();
        let mut body = vec![];
        for number in [n, 1_795_981_839_604_364 + n, 9_000_000_000 + n] {
            body.extend(number.to_le_bytes());
        }
        body.extend([0xcd; 16]);
        body.extend(7u64.to_le_bytes());
        for at in data {
            body.extend(self.offset(at));
            if !self.compact {
                body.extend([0; 8]);
            }
        }
        self.object(3, 0, &body)
    }

    fn array(&mut self, items: &[u64], spare: usize) -> u64 {
        let mut body = vec![0; 8];
        for at in items.iter().copied().chain(std::iter::repeat_n(0, spare)) {
            body.extend(self.offset(at));
        }
        self.object(6, 0, &body)
    }
}

const ENTRIES: &[&[&[u8]]] = &[
    &[
        b"MESSAGE=Created new transport with session ID: cd7a104a5b834ed68551470ea407f525",
        b"_HOSTNAME=trail-prod-02",
        b"SYSLOG_IDENTIFIER=uvicorn",
    ],
    &[b"_HOSTNAME=trail-prod-02", b"MESSAGE=Terminating session: cd7a104a5b834ed68551470ea407f525"],
    &[b"MESSAGE=nothing of use in this"],
];

#[test]
fn every_layout_and_compression() {
    for compact in [false, true] {
        for compression in [0, 1, 2, 4] {
            let got = read(&FORMAT, Writer::file(compact, compression, ENTRIES));
            assert!(got.problems.is_empty(), "{compact} {compression}: {:?}", got.problems);
            assert_eq!(whens(&got)[0], "2026-11-29T19:50:39.604365Z");
            assert_eq!((got.entries.len(), events(&got).len()), (3, 2), "{compact} {compression}");
            let e = &got.events()[1];
            assert_eq!(
                (e.session.as_deref(), e.host.as_deref()),
                (Some("cd7a104a5b834ed68551470ea407f525"), Some("trail-prod-02"))
            );
            let cursor = "s=abababababababababababababababab;i=2;b=cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd;m=218711a02;t=6616f9b929a8e;x=7";
            assert_eq!(e.cursor.as_deref(), Some(cursor));
        }
    }
}

#[test]
fn broken_payloads_and_unknown_features_are_counted() {
    let mut bytes = Writer::file(false, 4, ENTRIES);
    let magic = bytes.windows(4).position(|w| w == [0x28, 0xb5, 0x2f, 0xfd]).unwrap();
    bytes[magic] = 0;
    let got = read(&FORMAT, &bytes);
    assert_eq!((got.entries.len(), got.count(ProblemKind::BadJournal)), (3, 1));
    let mut bytes = Writer::file(false, 0, ENTRIES);
    bytes[12] = 0xff;
    assert_eq!(read(&FORMAT, &bytes).count(ProblemKind::BadJournal), 1);
    let empty = Writer::file(true, 0, &[]);
    let got = read(&FORMAT, &empty);
    assert_eq!((got.entries.len(), got.count(ProblemKind::Empty)), (0, 1));
}

#[test]
fn an_index_that_goes_round_ends() {
    let mut bytes = Writer::file(false, 0, ENTRIES);
    let first = u64::from_le_bytes(bytes[176..184].try_into().unwrap()) as usize;
    let again = (first as u64).to_le_bytes();
    bytes[first + 16..first + 24].copy_from_slice(&again);
    let got = read(&FORMAT, &bytes);
    assert_eq!((got.entries.len(), got.count(ProblemKind::TruncatedRecord)), (3, 1));
}
