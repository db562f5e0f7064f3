//! A first look at one source, end to end: what it is, which time it covers, which sessions it names,
//! and whether it can be read to its end. Everything is planned from this.

use super::ids::Ids;
use crate::input::archive::tar::is_tar;
use crate::input::archive::zip::is_zip;
use crate::input::capture::{CaptureKind, CaptureReader};
use crate::input::log::{Format, Grade, LogContext, Reader, RecordSink};
use crate::input::packed::{Opener, Packed};
use crate::input::recorded::RecordedKind;
use crate::input::{Detected, OpenInput, Source, detect};
use crate::mcp::Tracker;
use crate::model::limits::{SCAN_MARKS, SCAN_RATIO, SCAN_RATIO_FREE_BYTES};
use crate::model::options::ReadOptions;
use crate::model::place::Place;
use crate::model::problem::{ProblemKind, Problems};
use crate::model::record::{Record, When};
use crate::wire::recorded;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes looked at for times at one place of a log.
pub const SAMPLE_BYTES: usize = 32 << 10;
/// Bytes read at a time.
pub const BLOCK_BYTES: usize = 256 << 10;
/// Least distance of marks, bytes; it doubles when there are too many.
pub const MARK_BYTES: u64 = 1 << 20;
/// Bytes at the beginning that tell whether one source may be a copy of another.
pub const HEAD_BYTES: usize = 4096;

/// What kind of input a source is, as far as a scan cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A packet capture.
    Capture,
    /// A log that is read line by line: its files can be joined, and it can be read in part.
    Lines,
    /// A binary journal or a recording, read as a whole.
    Whole,
    /// Nothing that is read.
    Unknown,
    /// Without a single byte.
    Empty,
}

/// A place in a log and the time there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// Plain bytes before it; a line begins there.
    pub at: u64,
    /// Lines before it.
    pub lines: u64,
    /// Time of the first record from there on, ns since the epoch; never less than at an earlier mark.
    pub ns: i64,
}

/// What was found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Survey {
    /// What it is.
    pub kind: Kind,
    /// Its format's name.
    pub format: Option<String>,
    /// Plain bytes that can be read.
    pub bytes: u64,
    /// Line ends among them.
    pub lines: u64,
    /// Does it end within a line?
    pub ends_open: bool,
    /// Does its first line look like the beginning of a record?
    pub begins_record: bool,
    /// Earliest and latest time in it, ns since the epoch, where it has any.
    pub span: Option<(i64, i64)>,
    /// SHA-256 of its plain bytes, the first half, in hexadecimal.
    pub hash: String,
    /// The same of its first [`HEAD_BYTES`]; none where it has fewer.
    pub head: Option<String>,
    /// Session ids, see [`Ids`].
    pub ids: Vec<u64>,
    /// Places and times, for [`Kind::Lines`].
    pub marks: Vec<Mark>,
    /// What it was compressed with, outermost first.
    pub compressions: Vec<String>,
    /// What keeps it from being read to its end.
    pub broken: Option<String>,
}

/// The plain bytes of a source, measured as they pass.
struct Meter<'a> {
    open: OpenInput,
    raw: Arc<AtomicU64>,
    bytes: u64,
    lines: u64,
    last: u8,
    digest: Sha256,
    head: Vec<u8>,
    ids: Ids,
    bomb: bool,
    stop: &'a dyn Fn() -> bool,
}

impl Read for Meter<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        if self.bomb || (self.stop)() {
            return Ok(0);
        }
        let n = self.open.read(out)?;
        let block = out.get(..n).unwrap_or_default();
        self.bytes += n as u64;
        self.lines += memchr::memchr_iter(b'\n', block).count() as u64;
        self.last = block.last().copied().unwrap_or(self.last);
        self.digest.update(block);
        let room = HEAD_BYTES.saturating_sub(self.head.len());
        self.head.extend_from_slice(block.get(..room.min(n)).unwrap_or_default());
        self.ids.feed(block);
        let raw = self.raw.load(Ordering::Relaxed).max(1);
        self.bomb = is_bomb(self.bytes, raw);
        Ok(n)
    }
}

/// Is so much from so little made to harm?
fn is_bomb(plain: u64, raw: u64) -> bool {
    plain > SCAN_RATIO_FREE_BYTES && plain / raw > SCAN_RATIO
}

/// The source's own count of the bytes that come from where it is stored.
#[derive(Debug)]
struct Counted {
    of: Arc<dyn Opener>,
    raw: Arc<AtomicU64>,
}

struct CountedRead(Box<dyn Read + Send>, Arc<AtomicU64>);

impl Read for CountedRead {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let n = self.0.read(out)?;
        self.1.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

impl Opener for Counted {
    fn open(&self) -> std::io::Result<Box<dyn Read + Send>> {
        Ok(Box::new(CountedRead(self.of.open()?, self.raw.clone())))
    }
}

/// Looks at the source called `name`. `stop` says that the result is not wanted any more.
pub fn survey(
    name: &str,
    modified_ns: Option<i64>,
    opener: &Arc<dyn Opener>,
    options: &ReadOptions,
    stop: &dyn Fn() -> bool,
) -> Survey {
    let raw = Arc::new(AtomicU64::new(0));
    let counted: Arc<dyn Opener> = Arc::new(Counted { of: opener.clone(), raw: raw.clone() });
    let packed = Packed { member: name.to_owned(), modified_ns, opener: counted };
    let source = Source { name: name.to_owned(), path: None, found: true, packed: Some(packed) };
    let open = match source.open() {
        Ok(open) => open,
        Err(e) => return unreadable(&e.to_string()),
    };
    let head = open.head().to_vec();
    let compressions = open.compressions.iter().map(|c| (*c).to_owned()).collect();
    if is_tar(&head) || is_zip(&head) {
        let why = "an archive inside an archive is not opened; unpack the outer one";
        return Survey { compressions, ..unreadable(why) };
    }
    let detected = match detect(name, &head, options) {
        Ok(detected) => detected,
        Err(e) => return Survey { compressions, ..unreadable(&e.to_string()) },
    };
    let digest = Sha256::new();
    let ids = Ids::default();
    let mut meter = Meter { open, raw, bytes: 0, lines: 0, last: b'\n', digest, head: vec![], ids, bomb: false, stop };
    let mut found = Found::default();
    match detected {
        Detected::Empty => found.kind = Some(Kind::Empty),
        Detected::Unknown => found.kind = Some(Kind::Unknown),
        Detected::Capture(kind) => found.capture(&mut meter, kind),
        Detected::Recorded(kind) => found.recording(&source, kind),
        Detected::Log(format, _) => {
            let context = LogContext { input: 0, name, options, modified_ns };
            found.log(&mut meter, format, &context, &head);
        }
    }
    // What is left when the format's end was reached, or what has no times.
    if found.kind != Some(Kind::Unknown) {
        let mut block = vec![0; BLOCK_BYTES];
        while matches!(meter.read(&mut block), Ok(n) if n > 0) {}
    }
    let problems = meter.open.problems();
    let mut broken: Vec<String> = problems.iter().filter_map(|p| p.text.clone()).collect();
    if meter.bomb {
        broken.push(format!(
            "it unpacks to more than {SCAN_RATIO} times its size; it was read for {} bytes and no further",
            meter.bytes
        ));
    }
    broken.extend(found.broken);
    Survey {
        kind: found.kind.unwrap_or(Kind::Unknown),
        format: found.format,
        bytes: meter.bytes,
        lines: meter.lines,
        ends_open: meter.bytes > 0 && meter.last != b'\n',
        begins_record: found.begins_record,
        span: found.span,
        hash: half(meter.digest.finalize().as_slice()),
        head: (meter.head.len() == HEAD_BYTES).then(|| half(Sha256::digest(&meter.head).as_slice())),
        ids: meter.ids.finish(),
        marks: found.marks,
        compressions,
        broken: (!broken.is_empty()).then(|| broken.join("; ")),
    }
}

pub fn half(hash: &[u8]) -> String {
    hash.iter().take(16).map(|b| format!("{b:02x}")).collect()
}

fn unreadable(why: &str) -> Survey {
    Survey {
        kind: Kind::Unknown,
        format: None,
        bytes: 0,
        lines: 0,
        ends_open: false,
        begins_record: false,
        span: None,
        hash: String::new(),
        head: None,
        ids: vec![],
        marks: vec![],
        compressions: vec![],
        broken: Some(why.to_owned()),
    }
}

#[derive(Default)]
struct Found {
    kind: Option<Kind>,
    format: Option<String>,
    span: Option<(i64, i64)>,
    begins_record: bool,
    marks: Vec<Mark>,
    broken: Option<String>,
}

impl Found {
    fn saw(&mut self, span: Option<(i64, i64)>) {
        if let Some((from, to)) = span {
            let (a, b) = self.span.unwrap_or((from, to));
            self.span = Some((a.min(from), b.max(to)));
        }
    }

    fn capture(&mut self, meter: &mut Meter<'_>, kind: CaptureKind) {
        let mut reader = CaptureReader::new(meter, kind, 0);
        while reader.advance() {
            drop(reader.take_secrets());
        }
        let stats = reader.stats();
        self.kind = Some(Kind::Capture);
        self.format = Some(kind.name().to_owned());
        self.saw(stats.first.zip(stats.last).map(|(a, b)| (a.ns(), b.ns())));
        let bad = [ProblemKind::TruncatedRecord, ProblemKind::Garbage, ProblemKind::ReadError];
        self.broken = stats.problems.iter().find(|p| bad.contains(&p.kind)).map(|p| {
            let place = p.place.as_ref().map_or(String::new(), |place| format!("{place}: "));
            format!("{place}{}", p.text.as_deref().unwrap_or("damaged"))
        });
    }

    fn recording(&mut self, source: &Source, kind: RecordedKind) {
        self.kind = Some(Kind::Whole);
        self.format = Some(kind.name().to_owned());
        let Ok(mut open) = source.open() else { return };
        let (mut tracker, mut problems, mut next) = (Tracker::default(), Problems::default(), 0);
        if let Ok(counts) = recorded::read(kind, 0, &mut open, &mut next, &mut tracker, &mut problems) {
            self.saw(counts.first.zip(counts.last).map(|(a, b)| (a.ns(), b.ns())));
        }
    }

    fn log(&mut self, meter: &mut Meter<'_>, format: &'static Format, context: &LogContext<'_>, head: &[u8]) {
        self.format = Some(format.name.to_owned());
        if format.name == "journal-file" {
            self.kind = Some(Kind::Whole);
            // Header of a journal file (systemd, "Journal File Format"): head and tail realtime, µs.
            let us = |at: usize| Some(u64::from_le_bytes(head.get(at..at + 8)?.try_into().ok()?));
            let ns = |at: usize| us(at).and_then(|us| i64::try_from(us).ok()?.checked_mul(1000)).filter(|ns| *ns > 0);
            self.saw(ns(184).zip(ns(192)));
            return;
        }
        self.kind = Some(if matches!(format.reader, Reader::Lines(_)) { Kind::Lines } else { Kind::Whole });
        let mut lines = Lines::new(format, context);
        self.begins_record = lines.begins(head);
        let mut block = vec![0; BLOCK_BYTES];
        let mut tail: Vec<u8> = vec![];
        loop {
            let before = (meter.bytes, meter.lines);
            let have = fill(meter, &mut block);
            let bytes = block.get(..have).unwrap_or_default();
            if before.0.is_multiple_of(MARK_BYTES) && !bytes.is_empty() {
                lines.mark(bytes, before);
                thin(&mut lines.marks);
            }
            let keep = bytes.len().min(SAMPLE_BYTES);
            if keep == SAMPLE_BYTES {
                tail.clear();
            }
            tail.extend_from_slice(bytes.get(bytes.len() - keep..).unwrap_or_default());
            let excess = tail.len().saturating_sub(SAMPLE_BYTES);
            tail.drain(..excess);
            if have < BLOCK_BYTES {
                break;
            }
        }
        lines.tail(&tail, tail.len() as u64 >= meter.bytes);
        self.saw(lines.span);
        self.marks = lines.marks;
    }
}

/// The times in a log.
pub struct Lines<'a> {
    format: &'static Format,
    context: &'a LogContext<'a>,
    /// Earliest and latest.
    pub span: Option<(i64, i64)>,
    /// Marks, in order.
    pub marks: Vec<Mark>,
    /// The latest time at a mark, kept or not.
    latest: i64,
}

impl<'a> Lines<'a> {
    /// No time yet.
    pub fn new(format: &'static Format, context: &'a LogContext<'a>) -> Lines<'a> {
        Lines { format, context, span: None, marks: vec![], latest: i64::MIN }
    }

    /// Does the first line begin a record?
    pub fn begins(&self, head: &[u8]) -> bool {
        let first = head.get(..=memchr::memchr(b'\n', head).unwrap_or(head.len().saturating_sub(1)));
        first.is_some_and(|line| (self.format.grade)(line) >= Grade::Likely)
    }

    /// Notes the time at the first line that begins in a block; before it are as many bytes and lines.
    pub fn mark(&mut self, bytes: &[u8], before: (u64, u64)) {
        let (at, lines) = before;
        let begin = if at == 0 { 0 } else { memchr::memchr(b'\n', bytes).map_or(bytes.len(), |i| i + 1) };
        let sample = bytes.get(begin..bytes.len().min(begin + SAMPLE_BYTES)).unwrap_or_default();
        // Not the last line, which may be cut.
        let sample = sample.get(..memchr::memrchr(b'\n', sample).map_or(sample.len(), |i| i + 1)).unwrap_or_default();
        let span = times(self.format, self.context, sample);
        self.saw(span);
        if let Some((ns, _)) = span {
            self.latest = self.latest.max(ns);
            self.marks.push(Mark { at: at + begin as u64, lines: lines + u64::from(at > 0), ns: self.latest });
        }
    }

    /// Looks at the last bytes, which may be all (`is_whole`).
    pub fn tail(&mut self, tail: &[u8], is_whole: bool) {
        let begin = if is_whole { 0 } else { memchr::memchr(b'\n', tail).map_or(0, |i| i + 1) };
        self.saw(times(self.format, self.context, tail.get(begin..).unwrap_or_default()));
    }

    fn saw(&mut self, span: Option<(i64, i64)>) {
        self.span = [self.span, span].into_iter().flatten().reduce(|(a, b), (c, d)| (a.min(c), b.max(d)));
    }
}

/// Leaves every second mark, as often as there are too many; which ones depends on where they stand alone.
pub fn thin(marks: &mut Vec<Mark>) {
    let place = |m: &Mark| m.at.saturating_sub(1) / MARK_BYTES;
    let mut step = 1;
    while marks.len() >= SCAN_MARKS && step < 1 << 40 {
        step *= 2;
        marks.retain(|m| place(m).is_multiple_of(step));
    }
}

/// Fills the block as far as the source goes.
fn fill(from: &mut dyn Read, block: &mut [u8]) -> usize {
    let mut have = 0;
    while let Some(space) = block.get_mut(have..).filter(|s| !s.is_empty()) {
        match from.read(space) {
            Ok(0) | Err(_) => break,
            Ok(n) => have += n,
        }
    }
    have
}

#[derive(Default)]
struct Times(Option<(i64, i64)>);

impl RecordSink for Times {
    fn entry(&mut self, when: Option<When>) {
        if let Some(w) = when {
            let ns = w.at.ns();
            self.0 = Some(self.0.map_or((ns, ns), |(a, b)| (a.min(ns), b.max(ns))));
        }
    }
    fn record(&mut self, _: Record) {}
    fn problem(&mut self, _: ProblemKind, _: Place, _: &str) {}
}

/// Earliest and latest time in some lines of a log.
fn times(format: &'static Format, context: &LogContext<'_>, lines: &[u8]) -> Option<(i64, i64)> {
    let mut sink = Times::default();
    match format.reader {
        Reader::Lines(open) => {
            let mut reader = open(context);
            for (i, line) in lines.split(|b| *b == b'\n').filter(|l| !l.is_empty()).enumerate() {
                reader.line(line.strip_suffix(b"\r").unwrap_or(line), i as u64 + 1, &mut sink);
            }
            reader.finish(&mut sink);
        }
        Reader::Bytes(read) => {
            let mut bytes = lines;
            let _ = read(context, &mut bytes, &mut sink);
        }
    }
    sink.0
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::{Kind, Mark, is_bomb, survey};
    use crate::input::packed::{Memory, Opener};
    use crate::model::limits::{SCAN_RATIO, SCAN_RATIO_FREE_BYTES};
    use crate::model::options::ReadOptions;
    use std::sync::Arc;

    #[test]
    fn what_swells_is_a_bomb_only_beyond_what_is_free() {
        assert!(!is_bomb(SCAN_RATIO_FREE_BYTES, 1));
        assert!(!is_bomb(SCAN_RATIO_FREE_BYTES + 1, SCAN_RATIO_FREE_BYTES / SCAN_RATIO));
        assert!(is_bomb(SCAN_RATIO_FREE_BYTES + 1, 1));
    }

    /// Places are those of lines, and their times those of the lines there.
    #[test]
    fn marks_are_lines_and_their_times() {
        let line = |s: u64| {
            let (h, m) = (s / 3600, s / 60 % 60);
            let s = s % 60;
            format!(
                "10.0.0.1 - - [05/Oct/2026:{h:02}:{m:02}:{s:02} +0000] \"POST /mcp HTTP/1.1\" 200 {s} \"-\" \"x\"\n"
            )
        };
        let text: String = (0..50_000).map(line).collect();
        let opener: Arc<dyn Opener> = Arc::new(Memory(text.clone().into_bytes()));
        let found = survey("x", None, &opener, &ReadOptions::default(), &|| false);
        assert_eq!((found.kind, found.bytes, found.lines), (Kind::Lines, text.len() as u64, 50_000));
        let midnight = 1_791_158_400;
        let seconds = found.span.map(|(a, b)| (a / 1_000_000_000, b / 1_000_000_000));
        assert_eq!(seconds, Some((midnight, midnight + 49_999)));
        assert!(found.marks.len() > 2);
        for Mark { at, lines, ns } in found.marks {
            let n = (ns / 1_000_000_000 - midnight) as u64;
            assert!(text[at as usize..].starts_with(&line(n)));
            assert_eq!(lines, n);
        }
    }
}
