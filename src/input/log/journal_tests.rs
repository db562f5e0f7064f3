//! Every rendering of one real journal must say the same (fixtures/17-real-journald).

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::told::{Told, accesses, events, read_with, whens};
use super::{FORMATS, Format, Grade};
use crate::model::options::ReadOptions;
use crate::model::problem::ProblemKind;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/17-real-journald/");

fn bytes(name: &str) -> Vec<u8> {
    let bytes = std::fs::read(format!("{FOLDER}{name}")).unwrap();
    if name.ends_with(".zst") { zstd::decode_all(&bytes[..]).unwrap() } else { bytes }
}

/// The format that is surest of these bytes, the first of equals.
fn detect(bytes: &[u8]) -> (&'static Format, Grade) {
    let head = &bytes[..bytes.len().min(64 << 10)];
    let mut best = (FORMATS[0], Grade::No);
    for f in FORMATS {
        let g = (f.grade)(head);
        if g > best.1 {
            best = (f, g);
        }
    }
    best
}

fn told(name: &str) -> (Told, &'static str) {
    let bytes = bytes(name);
    let (format, grade) = detect(&bytes);
    assert!(grade >= Grade::Likely, "{name}: {} {grade:?}", format.name);
    (read_with(format, &bytes, &ReadOptions::default(), None), format.name)
}

#[test]
fn every_rendering_of_a_journal_says_the_same() {
    let (export, format) = told("journal.export");
    assert_eq!(format, "journal-export");
    assert_eq!(
        (export.entries.len(), events(&export).len(), accesses(&export).len()),
        (63, 36, 13),
        "{:#?}",
        events(&export)
    );
    assert!(export.problems.is_empty(), "{:?}", export.problems);
    for (name, format) in [
        ("journal.journal.zst", "journal-file"),
        ("journal.json", "journal-json"),
        ("journal.json-pretty", "journal-json"),
        ("journal.verbose", "journal-verbose"),
        ("journal.short", "journal-short"),
        ("journal.short-full", "journal-short"),
        ("journal.short-iso", "journal-short"),
        ("journal.short-iso-precise", "journal-short"),
        ("journal.short-monotonic", "journal-short"),
        ("journal.short-precise", "journal-short"),
        ("journal.short-unix", "journal-short"),
        ("journal.with-unit", "journal-short"),
        ("journal.cat", "python-logging"),
    ] {
        let (got, was) = told(name);
        assert_eq!(was, format, "{name}");
        assert_eq!(events(&got), events(&export), "{name}");
        assert_eq!(accesses(&got), accesses(&export), "{name}");
        // Rich's further lines are entries of a journal, and none of a bare file
        let entries = if name == "journal.cat" { 59 } else { 63 };
        assert_eq!(got.entries.len(), entries, "{name}");
        for (mine, theirs) in got.entries.iter().flatten().zip(export.entries.iter().flatten()) {
            let apart = mine.at.since(theirs.at).abs();
            if entries == 63 {
                assert!(apart <= mine.error_ns + theirs.error_ns, "{name}: {} {}", mine.at, theirs.at);
            }
        }
        let exact = [
            "journal.journal.zst",
            "journal.json",
            "journal.json-pretty",
            "journal.verbose",
            "journal.short-iso-precise",
            "journal.short-unix",
            "journal.short-precise",
        ];
        if exact.contains(&name) {
            assert_eq!(whens(&got), whens(&export), "{name}");
        }
        let local = ["journal.short", "journal.short-precise"].contains(&name);
        assert_eq!(
            got.count(ProblemKind::InferredTime) > 0,
            local || name.ends_with("monotonic") || name.ends_with("cat"),
            "{name}"
        );
        assert_eq!(got.count(ProblemKind::NoTime), 0, "{name}: {:?}", got.problems);
    }
}

#[test]
fn cursors_are_the_journals() {
    let cursors = |name: &str| {
        let events = told(name).0;
        events
            .events()
            .iter()
            .map(|e| (e.cursor.as_deref().unwrap().to_owned(), e.pid.unwrap(), e.host.clone().unwrap()))
            .collect::<Vec<_>>()
    };
    let export = cursors("journal.export");
    for name in ["journal.json", "journal.verbose"] {
        assert_eq!(cursors(name), export, "{name}");
    }
    // the file was written anew from the export: sequence numbers and hashes are its own
    let lasting =
        |c: &str| c.split(';').filter(|p| p.starts_with(['b', 'm', 't'])).map(str::to_owned).collect::<Vec<_>>();
    for (file, export) in cursors("journal.journal.zst").iter().zip(&export) {
        assert_eq!((lasting(&file.0), file.1), (lasting(&export.0), export.1));
        assert!(file.0.starts_with("s=") && file.0.contains(";x="));
    }
}

#[test]
fn the_table_is_whole() {
    let mut names: Vec<_> = FORMATS.iter().map(|f| f.name).collect();
    names.sort_unstable();
    assert!(names.windows(2).all(|w| w[0] != w[1]));
    for f in FORMATS {
        assert!(f.doc.len() > 40, "{}", f.name);
        for sample in f.samples {
            let (found, grade) = detect(sample.as_bytes());
            assert!(
                (f.grade)(sample.as_bytes()) == grade && grade > Grade::No,
                "{}: {} is surer ({grade:?}) of {sample}",
                f.name,
                found.name
            );
            let got = read_with(f, sample, &ReadOptions { year: Some(2026), ..ReadOptions::default() }, None);
            assert!(!got.entries.is_empty(), "{}: {sample}", f.name);
            assert!(
                got.count(ProblemKind::UnknownLine)
                    + got.count(ProblemKind::BadLine)
                    + got.count(ProblemKind::BadJournal)
                    == 0,
                "{}: {sample}",
                f.name
            );
        }
    }
}

#[test]
fn a_proxys_lines_inside_another_log_are_the_proxys() {
    let text = "Nov 29 19:38:38.362000 edge nginx[7]: 127.0.0.1 - - [29/Nov/2026:19:38:38 +0000] \"POST /mcp HTTP/1.1\" 404 62 \"-\" \"x\"\n\
                Nov 29 19:38:39.362000 edge app[8]: 127.0.0.1 - - [29/Nov/2026:19:38:39 +0000] \"POST /mcp HTTP/1.1\" 404 62 \"-\" \"x\"\n\
                Nov 29 19:38:40.362000 edge caddy[9]: {\"level\":\"info\",\"ts\":1795981120.3,\"logger\":\"http.log.access\",\"msg\":\"handled request\",\"request\":{\"remote_ip\":\"127.0.0.1\",\"remote_port\":\"5\",\"proto\":\"HTTP/1.1\",\"method\":\"POST\",\"host\":\"h\",\"uri\":\"/mcp\",\"headers\":{}},\"duration\":0.5,\"size\":3,\"status\":200,\"resp_headers\":{}}\n";
    let format = FORMATS.iter().find(|f| f.name == "journal-short").unwrap();
    let got = read_with(
        format,
        text,
        &ReadOptions { year: Some(2026), tz: "UTC".parse().ok(), ..ReadOptions::default() },
        None,
    );
    let seen: Vec<_> = got
        .accesses()
        .iter()
        .map(|a| (a.vantage.unwrap(), a.status.unwrap(), a.end.unwrap().at.to_string(), a.start.is_some()))
        .collect();
    use crate::model::place::Vantage::{Proxy, Server};
    assert_eq!(
        seen,
        [
            (Proxy, 404, "2026-11-29T19:38:38.362000Z".to_owned(), false),
            (Server, 404, "2026-11-29T19:38:39.362000Z".to_owned(), false),
            (Proxy, 200, "2026-11-29T19:38:40.3Z".to_owned(), true),
        ]
    );
}
