//! Tests over the whole table of formats.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use super::testing::read;
use super::{FORMATS, Format, Grade, Reader};
use crate::model::options::ReadOptions;
use proptest::prelude::*;
use std::collections::BTreeSet;

#[test]
fn names_are_unique_and_every_format_says_what_it_is() {
    let mut names = BTreeSet::new();
    for format in FORMATS {
        assert!(names.insert(format.name), "two formats named {}", format.name);
        assert!(format.doc.len() > 60 && format.doc.ends_with('.'), "{} needs a manual text", format.name);
        let binary = format.name == "journal-file";
        assert!(!format.samples.is_empty() || binary, "{} needs samples", format.name);
    }
}

#[test]
fn every_sample_is_known_for_what_it_is() {
    for format in FORMATS {
        for sample in format.samples {
            let own = (format.grade)(sample.as_bytes());
            assert!(own >= Grade::Likely, "{} grades its own sample {own:?}:\n{sample}", format.name);
            for other in FORMATS.iter().take_while(|o| o.name != format.name) {
                let grade = (other.grade)(sample.as_bytes());
                assert!(
                    grade < own,
                    "{} takes ({grade:?}) a sample of {} ({own:?}):\n{sample}",
                    other.name,
                    format.name
                );
            }
            for other in FORMATS.iter().skip_while(|o| o.name != format.name).skip(1) {
                let grade = (other.grade)(sample.as_bytes());
                assert!(
                    grade <= own,
                    "{} takes ({grade:?}) a sample of {} ({own:?}):\n{sample}",
                    other.name,
                    format.name
                );
            }
        }
    }
}

#[test]
fn every_sample_reads_without_a_fault() {
    for format in FORMATS {
        for sample in format.samples {
            let out = read(format, sample.as_bytes(), &ReadOptions::default());
            assert!(!out.entries.is_empty(), "{} found nothing in\n{sample}", format.name);
            assert!(out.faults().is_empty(), "{}: {:?}\n{sample}", format.name, out.faults());
        }
    }
}

#[test]
fn a_line_end_of_windows_changes_nothing() {
    for format in line_formats() {
        for sample in format.samples {
            let unix = read(format, sample.as_bytes(), &ReadOptions::default());
            let windows = read(format, sample.replace('\n', "\r\n").as_bytes(), &ReadOptions::default());
            assert_eq!(format!("{:?}", unix.records), format!("{:?}", windows.records), "{}", format.name);
        }
    }
}

fn line_formats() -> impl Iterator<Item = &'static Format> {
    FORMATS.iter().copied().filter(|f| matches!(f.reader, Reader::Lines(_)))
}

#[test]
fn any_cut_line_is_a_record_or_a_counted_problem() {
    for format in line_formats() {
        for line in format.samples.iter().flat_map(|s| s.lines()).filter(|l| !l.trim().is_empty()) {
            for cut in (1..line.len()).step_by(3) {
                let text = &line.as_bytes()[..cut];
                let out = read(format, text, &ReadOptions::default());
                assert!(
                    out.entries.len() <= 1 && out.records.len() <= 1,
                    "{}: a line gave {} entries: {}",
                    format.name,
                    out.entries.len(),
                    String::from_utf8_lossy(text)
                );
                if out.records.is_empty() && !out.entries.is_empty() && out.entries[0].is_none() {
                    assert!(!out.problems.is_empty(), "{}: passed over {}", format.name, String::from_utf8_lossy(text));
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn no_changed_line_upsets_a_reader(
        which in any::<prop::sample::Index>(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let all: Vec<_> = line_formats().flat_map(|f| f.samples.iter().map(move |s| (f, s))).collect();
        let (format, sample) = all[which.index(all.len())];
        let mut bytes = sample.as_bytes().to_vec();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let _ = (format.grade)(&bytes);
        let out = read(format, &bytes, &ReadOptions::default());
        prop_assert!(out.records.len() <= bytes.len());
    }
}
