//! Looks at stretches of large logs, and puts the looks together: the same as one look at the whole.
//!
//! A stretch begins at the first line that starts behind its first byte (the first one at the beginning of the
//! file), and ends with the line that goes over its end. What is counted by bytes adds up as it is; marks of time
//! stand on a grid of the whole file, so that no plan depends on how it was cut.

use super::ids::Ids;
use super::items::{Looked, Member};
use super::source::Way;
use super::survey::{BLOCK_BYTES, HEAD_BYTES, Kind, Lines, MARK_BYTES, SAMPLE_BYTES, Survey, half, thin};
use crate::input::archive::Blob;
use crate::input::log::{Format, LogContext};
use crate::input::{Detected, OpenInput, detect};
use crate::model::options::ReadOptions;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::io;
use std::sync::Arc;

/// Formats whose lines stand for themselves: any line may be the first that a reader sees. All others are one task.
pub const RANGES: &[&str] = &[
    "nginx-combined",
    "apache-combined",
    "json-access",
    "caddy",
    "traefik",
    "traefik-json",
    "envoy",
    "envoy-json",
    "aws-alb",
    "nginx-proxy-manager",
    "crosswire-client",
];
/// Files that are no longer have their hash from the look at their beginning, bytes.
const HASHED_BYTES: u64 = 8 << 20;

/// A look at one stretch.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Part {
    /// From this byte.
    pub start: u64,
    /// Up to this one.
    pub end: u64,
    /// Where its last line ends.
    pub to: u64,
    /// What was found; counts are of the bytes from `start` to `end`.
    pub survey: Survey,
}

/// Can the file be looked at in stretches? Its format, if so.
pub fn format_of(name: &str, blob: &Arc<dyn Blob>, options: &ReadOptions) -> Option<(&'static Format, Vec<u8>)> {
    let bytes = crate::input::archive::Range::new(blob.clone(), 0, u64::MAX);
    let open = OpenInput::new(name.to_owned(), Box::new(bytes), None);
    if !open.compressions.is_empty() {
        return None;
    }
    let head = open.head().to_vec();
    match detect(name, &head, options) {
        Ok(Detected::Log(format, _)) if RANGES.contains(&format.name) => Some((format, head)),
        _ => None,
    }
}

/// Looks at the bytes from `start` to `end` of an uncompressed log.
///
/// # Errors
/// Those of reading.
pub fn look(
    name: &str,
    modified_ns: Option<i64>,
    blob: &dyn Blob,
    (format, head): (&'static Format, &[u8]),
    (start, end): (u64, u64),
    options: &ReadOptions,
) -> io::Result<Part> {
    let length = blob.length();
    let end = end.min(length);
    let context = LogContext { input: 0, name, options, modified_ns };
    let mut lines = Lines::new(format, &context);
    let (mut ids, mut newlines) = (Ids::default(), 0u64);
    let from = line_start(blob, start)?;
    let to = line_start(blob, end)?;
    let mut block = vec![0; BLOCK_BYTES];
    let mut at = start;
    let mut last = b'\n';
    while at < end {
        if at.is_multiple_of(MARK_BYTES) {
            let n = read(blob, at, &mut block)?;
            lines.mark(block.get(..n).unwrap_or_default(), (at, newlines));
        }
        // Up to the next place of the grid.
        let step = (at / BLOCK_BYTES as u64 + 1) * BLOCK_BYTES as u64;
        let room = usize::try_from(step.min(end) - at).unwrap_or(BLOCK_BYTES);
        let n = read(blob, at, block.get_mut(..room).unwrap_or_default())?;
        let bytes = block.get(..n).unwrap_or_default();
        if bytes.is_empty() {
            break;
        }
        let own = usize::try_from(from.saturating_sub(at)).unwrap_or(usize::MAX);
        ids.feed(bytes.get(own..).unwrap_or_default());
        newlines += memchr::memchr_iter(b'\n', bytes).count() as u64;
        last = bytes.last().copied().unwrap_or(last);
        at += n as u64;
    }
    // The rest of the line that goes over the end.
    let mut rest = end.max(from);
    while rest < to {
        let room = usize::try_from(to - rest).unwrap_or(BLOCK_BYTES).min(BLOCK_BYTES);
        let n = read(blob, rest, block.get_mut(..room).unwrap_or_default())?;
        if n == 0 {
            break;
        }
        ids.feed(block.get(..n).unwrap_or_default());
        rest += n as u64;
    }
    if end == length {
        let tail = length.saturating_sub(SAMPLE_BYTES as u64);
        let n = read(blob, tail, &mut block)?;
        lines.tail(block.get(..n).unwrap_or_default(), tail == 0);
    }
    let is_first = start == 0;
    let is_short = is_first && length <= HASHED_BYTES;
    let hash = if is_short { hash(blob)? } else { String::new() };
    let first = head.get(..HEAD_BYTES).filter(|_| is_first);
    let survey = Survey {
        kind: Kind::Lines,
        format: Some(format.name.to_owned()),
        bytes: end.saturating_sub(start),
        lines: newlines,
        ends_open: last != b'\n',
        begins_record: is_first && lines.begins(head),
        span: lines.span,
        hash,
        head: first.map(|head| half(Sha256::digest(head).as_slice())),
        ids: ids.finish(),
        marks: lines.marks,
        compressions: vec![],
        broken: None,
    };
    Ok(Part { start, end, to, survey })
}

/// Where the first line begins that starts behind `at`; 0 for the beginning, the length where there is none.
fn line_start(blob: &dyn Blob, at: u64) -> io::Result<u64> {
    if at == 0 {
        return Ok(0);
    }
    let (mut at, mut block) = (at, vec![0; 64 << 10]);
    loop {
        let n = blob.read_at(at, &mut block)?;
        if n == 0 {
            return Ok(blob.length());
        }
        if let Some(i) = memchr::memchr(b'\n', block.get(..n).unwrap_or_default()) {
            return Ok(at + i as u64 + 1);
        }
        at += n as u64;
    }
}

/// Fills `out` as far as there are bytes.
fn read(blob: &dyn Blob, at: u64, out: &mut [u8]) -> io::Result<usize> {
    let mut have = 0;
    while let Some(space) = out.get_mut(have..).filter(|s| !s.is_empty()) {
        let n = blob.read_at(at + have as u64, space)?;
        if n == 0 {
            break;
        }
        have += n;
    }
    Ok(have)
}

fn hash(blob: &dyn Blob) -> io::Result<String> {
    let (mut digest, mut at, mut block) = (Sha256::new(), 0, vec![0; BLOCK_BYTES]);
    loop {
        let n = blob.read_at(at, &mut block)?;
        if n == 0 {
            return Ok(half(digest.finalize().as_slice()));
        }
        digest.update(block.get(..n).unwrap_or_default());
        at += n as u64;
    }
}

/// A place where a log may be cut: a byte at which a line begins, and the lines before it.
pub type Cut = (u64, u64);

/// One look from the looks at all stretches of a file, and where these meet; none if some are missing.
pub fn merge(mut parts: Vec<Part>, modified_ns: Option<i64>, length: u64) -> Option<(Looked, Vec<Cut>)> {
    parts.sort_by_key(|p| (p.start, p.end));
    // A task that ran twice.
    parts.dedup_by_key(|p| (p.start, p.end));
    let mut all = parts.iter();
    let first = all.next().filter(|p| p.start == 0)?;
    let (mut s, mut end, mut to) = (first.survey.clone(), first.end, first.to);
    let (mut ids, mut cuts) = (Ids::of(&s.ids), vec![]);
    for p in all {
        if p.start != end {
            return None;
        }
        // A line begins there, unless it is the end.
        cuts.push((to, s.lines + 1));
        let latest = s.marks.last().map_or(i64::MIN, |m| m.ns);
        let moved = p.survey.marks.iter().map(|m| {
            let mut m = *m;
            m.lines += s.lines;
            m.ns = m.ns.max(latest);
            m
        });
        s.marks.extend(moved);
        s.bytes += p.survey.bytes;
        s.lines += p.survey.lines;
        s.ends_open = p.survey.ends_open;
        s.span = [s.span, p.survey.span].into_iter().flatten().reduce(|(a, b), (c, d)| (a.min(c), b.max(d)));
        p.survey.ids.iter().for_each(|id| ids.keep(*id));
        (end, to) = (p.end, p.to);
    }
    thin(&mut s.marks);
    s.ids = ids.finish();
    cuts.retain(|(at, _)| *at < length);
    cuts.dedup();
    let member = Member { name: None, way: Way::File, modified_ns, survey: s };
    (end >= length).then(|| (Looked { members: vec![member], broken: None }, cuts))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use super::{RANGES, format_of, look, merge};
    use crate::input::archive::{Blob, MemoryBlob};
    use crate::input::formats;
    use crate::input::log::{LogContext, Reader};
    use crate::input::packed::{Memory, Opener};
    use crate::model::options::ReadOptions;
    use crate::scan::survey::survey;
    use std::sync::Arc;

    fn text(lines: u64) -> Vec<u8> {
        let line = |n: u64| {
            let (h, m, s) = (n / 3600, n / 60 % 60, n % 60);
            format!(
                "10.0.0.{} - - [05/Oct/2026:{h:02}:{m:02}:{s:02} +0000] \"POST /mcp?session_id={:032x} HTTP/1.1\" 200 {n} \"-\" \"x\"\n",
                n % 7,
                (0x9E37_79B9_7F4A_7C15_u128 * u128::from(n / 3 + 1)) << 40
            )
        };
        (0..lines).map(line).collect::<String>().into_bytes()
    }

    /// Wherever it is cut, the looks at the pieces are the look at the whole, in all that a plan is made of.
    #[test]
    fn stretches_add_up_to_the_whole() {
        let options = ReadOptions::default();
        for (bytes, sizes) in
            [(text(40), vec![1, 7, 100, 101, 131, 1000]), (text(20_000), vec![300_001, 1 << 20, 99_999])]
        {
            let opener: Arc<dyn Opener> = Arc::new(Memory(bytes.clone()));
            let whole = survey("x", None, &opener, &options, &|| false);
            let blob: Arc<dyn Blob> = Arc::new(MemoryBlob(bytes.clone()));
            let (format, head) = format_of("x", &blob, &options).unwrap();
            for size in sizes {
                let starts = (0..bytes.len() as u64).step_by(size);
                let part = |s| look("x", None, &*blob, (format, &head), (s, s + size as u64), &options).unwrap();
                let parts: Vec<_> = starts.map(part).collect();
                for (start, at) in parts.iter().skip(1).map(|p| p.start).zip(parts.iter().map(|p| p.to)) {
                    assert!(at >= start);
                }
                let (looked, cuts) = merge(parts, None, bytes.len() as u64).unwrap();
                let s = &looked.members[0].survey;
                assert_eq!(format!("{s:?}"), format!("{whole:?}"), "{size}");
                for (at, lines) in cuts {
                    let before = &bytes[..at as usize];
                    assert!(before.ends_with(b"\n"));
                    assert_eq!(before.iter().filter(|b| **b == b'\n').count() as u64, lines);
                }
            }
        }
        // One is missing.
        let bytes = text(40);
        let blob: Arc<dyn Blob> = Arc::new(MemoryBlob(bytes.clone()));
        let (format, head) = format_of("x", &blob, &options).unwrap();
        let part = |s, e| look("x", None, &*blob, (format, &head), (s, e), &options).unwrap();
        let length = bytes.len() as u64;
        assert!(merge(vec![part(0, 100), part(200, length)], None, length).is_none());
        assert!(merge(vec![part(0, 100)], None, length).is_none());
        assert!(merge(vec![part(0, 100), part(100, length), part(100, length)], None, length).is_some());
    }

    /// What is read in pieces is read line by line: a reader that begins anew at each line says the same.
    #[test]
    fn lines_of_these_formats_stand_for_themselves() {
        let options = ReadOptions::default();
        let mut seen = 0;
        for format in formats().filter(|f| RANGES.contains(&f.name)) {
            let Reader::Lines(new) = format.reader else { panic!("{} is read as bytes", format.name) };
            let context = LogContext { input: 0, name: "x", options: &options, modified_ns: Some(0) };
            for sample in format.samples {
                let (mut whole, mut single) =
                    (crate::analyze::logs::Sighted::default(), crate::analyze::logs::Sighted::default());
                let mut reader = new(&context);
                for (line, n) in sample.lines().zip(1..) {
                    reader.line(line.as_bytes(), n, &mut whole);
                    let mut fresh = new(&context);
                    fresh.line(line.as_bytes(), n, &mut single);
                    fresh.finish(&mut single);
                }
                reader.finish(&mut whole);
                assert_eq!(format!("{whole:?}"), format!("{single:?}"), "{}", format.name);
            }
            seen += 1;
        }
        assert_eq!(seen, RANGES.len());
    }
}
