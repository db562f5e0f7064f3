//! The loops in which large inputs are spent: finding the end of JSON values, reading messages and event
//! streams, reading lines, and the whole job on a small capture and a small log.
//!
//! `cargo bench --bench hot`. Against other programs: `benches/compare`.

#![allow(missing_docs)]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use crosswire::mcp::content::{Needle, fingerprint};
use crosswire::mcp::shape::Shapes;
use crosswire::mcp::{jsonrpc, scan};
use crosswire::model::exchange::Mark;
use crosswire::model::options::{AnalyzeOptions, ReadOptions};
use crosswire::model::place::Place;
use crosswire::model::time::Time;
use crosswire::wire::sse::SseParser;
use std::hint::black_box;

/// A reply of about this many bytes, as a tool that lists things sends it.
fn reply(bytes: usize) -> Vec<u8> {
    let item = r#"{"id":"trail-0042","name":"Ridge \"North\"","km":12.5,"open":true,"stops":[1,2,3]}"#;
    let items = vec![item; bytes / item.len() + 1].join(",");
    format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{"structuredContent":{{"items":[{items}]}},"isError":false}}}}"#)
        .into_bytes()
}

fn json(c: &mut Criterion) {
    let message = reply(16 << 10);
    let mut group = c.benchmark_group("json");
    group.throughput(Throughput::Bytes(message.len() as u64));
    group.bench_function("pass a value", |b| b.iter(|| scan::Cursor::new(black_box(&message)).value().is_some()));
    group.bench_function("read a reply", |b| b.iter(|| jsonrpc::parse(black_box(&message))));
    group.bench_function("shape", |b| {
        let mut shapes = Shapes::default();
        b.iter(|| shapes.of(black_box(&message)))
    });
    group.bench_function("fingerprint", |b| b.iter(|| fingerprint(black_box(&message))));
    group.bench_function("look for a value", |b| {
        let needle = Needle::new(b"trail-0043");
        b.iter(|| needle.occurs(black_box(&message)))
    });
    group.finish();
}

fn events(c: &mut Criterion) {
    let event = [b"event: message\ndata: ".as_slice(), &reply(16 << 10), b"\n\n"].concat();
    let mark = Mark { place: Place::frame(0, 1), at: Time::from_us(0) };
    let mut group = c.benchmark_group("event stream");
    group.throughput(Throughput::Bytes(event.len() as u64));
    for (name, piece) in [("in one piece", event.len()), ("in segments", 1448)] {
        group.bench_function(name, |b| {
            b.iter(|| {
                let (mut parser, mut bytes) = (SseParser::default(), 0);
                for part in event.chunks(piece) {
                    parser.push(part, mark, &mut |e| bytes += e.data.len());
                }
                bytes
            })
        });
    }
    group.finish();
}

fn whole(c: &mut Criterion) {
    let run = |input: &str| {
        let report = crosswire::analyze::run(&[input.to_owned()], &ReadOptions::default(), &AnalyzeOptions::default());
        report.map_or(0, |r| r.findings.len())
    };
    let mut group = c.benchmark_group("analyze");
    group.bench_function("a capture of 30 KB", |b| b.iter(|| run("fixtures/02-crossed-id-collision/backend.pcap")));
    let folder = tempfile::tempdir();
    let line =
        "192.0.2.7 - - [29/Nov/2026:19:38:38 +0000] \"POST /mcp HTTP/1.1\" 200 362 \"-\" \"connector-egress/1.4\"\n";
    if let Ok(folder) = &folder {
        let log = folder.path().join("access.log");
        if std::fs::write(&log, line.repeat(100_000)).is_ok() {
            group.sample_size(10).throughput(Throughput::Elements(100_000));
            group.bench_function("lines of a combined log", |b| b.iter(|| run(&log.to_string_lossy())));
        }
    }
    group.finish();
}

criterion_group!(benches, json, events, whole);
criterion_main!(benches);
