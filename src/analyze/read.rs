//! Reading: captures as one timeline through the wire stage, recorded exchanges, logs one by one.

use super::along::Along;
use super::logs::{self, Log};
use super::parts::Joiner;
use crate::input::archive::tar::is_tar;
use crate::input::capture::CaptureInput;
use crate::input::log::{Format, Grade, LogContext, Reader, RecordSink, described};
use crate::input::recorded::RecordedKind;
use crate::input::{Detected, OpenInput, Source, detect, formats, same_file, without_mark};
use crate::join::lines::Lines;
use crate::join::retire::{Parts, Stays};
use crate::join::sources::vantage_of;
use crate::mcp::{Tracked, Tracker};
use crate::model::exchange::{Event, Exchange, ExchangeSink};
use crate::model::options::{AnalyzeOptions, ReadOptions};
use crate::model::place::{InputId, Place, Vantage};
use crate::model::problem::{ProblemKind, Problems};
use crate::model::record::{AccessRecord, BoxedRecords, Record, When};
use crate::model::report::InputInfo;
use crate::wire::tls::{KeyStore, TlsCount};
use crate::wire::{captures, recorded};

/// Everything that was read.
#[derive(Default)]
pub struct Gathered {
    /// One row an input.
    pub inputs: Vec<InputInfo>,
    /// What the exchanges left.
    pub tracked: Tracked,
    /// What the logs say.
    pub records: Vec<Record>,
    /// Inputs that could not be read at all.
    pub troubles: Vec<String>,
    /// Files found in directories that are of no known format.
    pub passed_over: Vec<String>,
    /// TLS connections met and read.
    pub tls: TlsCount,
    /// What was joined while reading.
    pub parts: Parts,
}

/// Reads all sources.
pub fn read(sources: Vec<Source>, options: &ReadOptions, keep: &AnalyzeOptions, out: &mut Gathered) {
    let mut captures = vec![];
    let mut recordings = vec![];
    let several = sources.len() > 1;
    let mut in_lines: Option<Parts> = None;
    let mut empty = vec![];
    // Does any log have lines of the format that the user gave for all?
    let mut fits = None;
    for source in sources {
        let input = out.inputs.len() as InputId;
        let mut open = match source.open() {
            Ok(open) => open,
            Err(e) => {
                out.troubles.push(e.to_string());
                continue;
            }
        };
        match detect(&source.name, open.head(), options) {
            Err(e) => out.troubles.push(e.to_string()),
            Ok(Detected::Empty) => {
                let mut info =
                    InputInfo { name: source.name.clone(), vantage: by_name(&source.name), ..InputInfo::default() };
                info.problems.add(ProblemKind::Empty, || "", || "the file has no bytes");
                info.problems.merge(&open.problems());
                empty.push(source.name.clone());
                out.inputs.push(info);
            }
            Ok(Detected::Unknown) if source.found => out.passed_over.push(source.name.clone()),
            Ok(Detected::Unknown) => out.troubles.push(unknown(&source.name, open.head())),
            Ok(Detected::Capture(kind)) => {
                if is_worth_a_thread(&source, &open, options) {
                    open.read_ahead();
                }
                out.inputs.push(InputInfo { name: source.name.clone(), ..InputInfo::default() });
                captures.push(CaptureInput { input, kind, source, open: Some(open) });
            }
            Ok(Detected::Recorded(kind)) => {
                out.inputs.push(InputInfo { name: source.name.clone(), ..InputInfo::default() });
                recordings.push((input, kind, open));
            }
            Ok(Detected::Log(format, _)) => {
                if options.log_format.is_some() && format.vantage != Vantage::Client {
                    fits = Some(fits == Some(true) || may_fit(format, open.head(), options));
                }
                // A line may be of any exchange that another input shows.
                let context = LogContext { input, name: &source.name, options, modified_ns: open.modified_ns };
                let alone =
                    !several && keep.cited_calls_only && !keep.exchanges && !is_mixed(&context, format, open.head());
                let lines = alone.then(|| Lines::new(options.endpoint.as_deref(), keep.part_visits));
                if is_worth_a_thread(&source, &open, options) {
                    open.read_ahead();
                }
                let log = Log { input, name: &source.name, format, lines: 0, options };
                let (info, parts) = std::thread::scope(|scope| {
                    let mut along = lines.map(|lines| Along::new(scope, lines, options));
                    let info = read_log(&log, &mut open, &mut along, &mut out.records);
                    (info, along.map(Along::finish))
                });
                out.inputs.push(info);
                in_lines = parts;
            }
        }
    }
    let mut tracker = Tracker::default();
    tracker.keep_heads = keep.details;
    let stays = if recordings.is_empty() { stays(captures.len(), &out.records, keep) } else { None };
    out.parts = std::thread::scope(|scope| {
        let joiner = Joiner::new(scope, stays, options, keep);
        read_captures(captures, options, joiner, &mut tracker, out).finish()
    });
    if let Some(parts) = in_lines {
        out.parts = parts;
    }
    read_recordings(recordings, &mut tracker, out);
    out.tracked = tracker.finish();
    for (input, problems) in out.tracked.problems.drain() {
        if let Some(info) = out.inputs.get_mut(input as usize) {
            info.problems.merge(&problems);
        }
    }
    // One empty file among others is a rotated log; one alone is no input at all.
    if !several || out.inputs.len() == empty.len() {
        out.troubles
            .extend(empty.iter().map(|name| format!("{name}: the file has no bytes; expected a capture or a log")));
    }
    if out.inputs.is_empty() && out.troubles.is_empty() {
        out.troubles.extend(match &std::mem::take(&mut out.passed_over)[..] {
            [] => None,
            [name] => Some(unknown(name, b"")),
            [name, more @ ..] => Some(unknown(&format!("{name} and {} more", more.len()), b"")),
        });
    }
    out.troubles.extend(out.inputs.iter().filter_map(|info| misread(info, options)));
    if options.log_format.is_some() && fits == Some(false) {
        out.troubles.push("--log-format fits no line of these logs: nothing was read by it".into());
    }
}

/// What stays of captures that are joined in parts; none: they are joined as a whole.
fn stays(captures: usize, records: &[Record], keep: &AnalyzeOptions) -> Option<Stays> {
    let told = keep.bodies || keep.details;
    let are_alone = captures == 1 && records.is_empty() && keep.cited_calls_only;
    match captures {
        0 => None,
        _ if are_alone && told => Some(Stays::WantedWhole),
        _ if are_alone => Some(Stays::Wanted),
        // What else will be cited, and then shown whole, is not known yet.
        _ if told => None,
        _ => Some(Stays::All { values: records.iter().any(is_of_client) }),
    }
}

fn is_of_client(record: &Record) -> bool {
    matches!(record, Record::Client(_) | Record::Message(_))
}

/// An input that is read as `--input-format` says, and has nothing of that format.
fn misread(info: &InputInfo, options: &ReadOptions) -> Option<String> {
    let bound = options.input_formats.iter().any(|(_, path)| same_file(path, &info.name));
    let bad = info.problems.iter().filter(|p| p.kind != ProblemKind::Empty).map(|p| p.count).sum::<u64>();
    let format = info.format.as_deref()?;
    // A capture may well have a header and no more; a log of which no line is of its format is another.
    let has_none = info.records == 0 && formats().any(|f| f.name == format) && !info.problems.is_empty();
    let is_bad = bad >= info.records.max(1) || has_none;
    let is_misread = info.first.is_none() && is_bad && (bound || options.input_format.is_some());
    is_misread.then(|| {
        format!(
            "{}: read as {format}, and nothing of it is that; leave --input-format out, or see `crosswire formats`",
            info.name
        )
    })
}

/// Does a log have lines of the format that `--log-format` gives? What stands inside a journal or a container's log may.
fn may_fit(format: &Format, head: &[u8], options: &ReadOptions) -> bool {
    format.carries || described::holds(without_mark(head), Grade::No, options).unwrap_or(true)
}

/// Is there enough to read, or to decompress, for another thread to go ahead?
fn is_worth_a_thread(source: &Source, open: &OpenInput, options: &ReadOptions) -> bool {
    const LARGE_BYTES: u64 = 4 << 20;
    const PACKED_BYTES: u64 = 256 << 10;
    let least = if open.compressions.is_empty() { LARGE_BYTES } else { PACKED_BYTES };
    options.threads() > 1 && source.path.as_ref().and_then(|p| p.metadata().ok()).is_some_and(|m| m.len() >= least)
}

/// What an input without bytes would have been, by its name.
fn by_name(name: &str) -> Option<Vantage> {
    let file = name.rsplit('/').next().unwrap_or(name);
    let capture = file.split('.').any(|part| matches!(part, "pcap" | "pcapng" | "cap"));
    capture.then_some(Vantage::Wire)
}

fn unknown(name: &str, head: &[u8]) -> String {
    if is_tar(head) {
        return format!("{name}: a tar archive; `crosswire scan` reads what is in it");
    }
    format!(
        "{name}: no known format; `crosswire formats` lists what can be read, --input-format NAME or --log-format STRING says what it is"
    )
}

/// Tracks exchanges, and joins those that have ended while reading goes on.
struct Joining<'a, 's> {
    tracker: &'a mut Tracker,
    joiner: Joiner<'s>,
}

impl ExchangeSink for Joining<'_, '_> {
    fn event(&mut self, exchange: &Exchange, event: Event<'_>) {
        self.tracker.event(exchange, event);
        if matches!(event, Event::End) {
            self.joiner.take(self.tracker);
        }
    }
}

/// The secrets of the key logs that the user named.
fn key_store(options: &ReadOptions, out: &mut Gathered) -> KeyStore {
    let keys = KeyStore::new();
    for path in &options.keylogs {
        match std::fs::read(path) {
            Err(e) => out.troubles.push(format!("{}: the key log cannot be read: {e}", path.display())),
            Ok(log) => {
                let read = keys.read(&log);
                if read.secrets == 0 && read.bad_lines > 0 {
                    out.troubles.push(format!(
                        "{}: no TLS key log; expected lines such as `CLIENT_TRAFFIC_SECRET_0 RANDOM SECRET`",
                        path.display()
                    ));
                }
            }
        }
    }
    keys
}

fn read_captures<'s>(
    captures: Vec<CaptureInput>,
    options: &ReadOptions,
    joiner: Joiner<'s>,
    tracker: &mut Tracker,
    out: &mut Gathered,
) -> Joiner<'s> {
    let keys = key_store(options, out);
    if captures.is_empty() {
        return joiner;
    }
    let mut problems: Vec<Problems> = vec![Problems::default(); out.inputs.len()];
    let ids: Vec<InputId> = captures.iter().map(|c| c.input).collect();
    let mut joining = Joining { tracker, joiner };
    let (stats, tls) = captures::read(captures, keys, options.filter.as_deref(), &mut joining, &mut problems);
    out.tls = tls;
    for (input, stats) in ids.iter().zip(stats) {
        let Some(info) = out.inputs.get_mut(*input as usize) else { continue };
        let name = std::mem::take(&mut info.name);
        *info = stats.into_info(&name);
        if let Some(more) = problems.get(*input as usize) {
            info.problems.merge(more);
        }
    }
    joining.joiner
}

fn read_recordings(recordings: Vec<(InputId, RecordedKind, OpenInput)>, tracker: &mut Tracker, out: &mut Gathered) {
    let mut next_exchange = recorded::FIRST_EXCHANGE;
    for (input, kind, mut open) in recordings {
        let Some(info) = out.inputs.get_mut(input as usize) else { continue };
        info.format = Some(kind.name().to_owned());
        info.vantage = Some(Vantage::Wire);
        match recorded::read(kind, input, &mut open, &mut next_exchange, tracker, &mut info.problems) {
            Ok(counts) => {
                info.records = counts.records;
                info.first = counts.first;
                info.last = counts.last;
            }
            Err(e) => {
                let text = || format!("the recording could not be read on: {e}");
                info.problems.add(ProblemKind::ReadError, || "", text);
            }
        }
        info.problems.merge(&open.problems());
        if info.records == 0 {
            info.problems.add(ProblemKind::Empty, || "", || "no entry");
        }
    }
}

/// Keeps the records of a log for the end, or joins them as they come.
struct Sink<'a, 's> {
    info: InputInfo,
    /// Where access lines go if they are joined in parts.
    lines: &'a mut Option<Along<'s>>,
    records: &'a mut Vec<Record>,
    seen: Vantages,
}

impl RecordSink for Sink<'_, '_> {
    fn entry(&mut self, when: Option<When>) {
        logs::note(&mut self.info, when);
    }
    fn record(&mut self, record: Record) {
        self.seen.add(&record);
        match (record, &mut *self.lines) {
            (Record::Access(record), Some(lines)) => lines.access(record),
            (Record::Event(event), Some(lines)) => self.records.extend(lines.event(event).map(Record::Event)),
            (record, _) => self.records.push(record),
        }
    }
    fn problem(&mut self, kind: ProblemKind, place: Place, text: &str) {
        logs::blame(&mut self.info, kind, place, text);
    }
    fn spent(&mut self) -> BoxedRecords {
        self.lines.as_ref().map_or(vec![], Along::spent)
    }
}

fn read_log(
    log: &Log<'_>,
    open: &mut OpenInput,
    lines: &mut Option<Along<'_>>,
    records: &mut Vec<Record>,
) -> InputInfo {
    let mut sink = Sink { info: logs::row(log), lines, records, seen: Vantages::default() };
    let problems = logs::sight(log, open, &mut sink);
    let (mut info, seen) = (sink.info, sink.seen);
    seen.tell(&mut info);
    info.problems.merge(&problems);
    logs::close(&mut info);
    info
}

/// Do both a proxy and a server write access lines in it? Then each exchange is in it twice, and must be joined.
fn is_mixed(context: &LogContext<'_>, format: &Format, mut head: &[u8]) -> bool {
    let mut seen = Vantages::default();
    match format.reader {
        // That the head breaks off somewhere is no error of the log.
        Reader::Bytes(read) => drop(read(context, &mut head, &mut seen)),
        Reader::Lines(new) => {
            let mut reader = new(context);
            let whole = head.get(..memchr::memrchr(b'\n', head).unwrap_or(head.len())).unwrap_or_default();
            for (number, line) in (1..).zip(whole.split(|b| *b == b'\n')) {
                reader.line(line.strip_suffix(b"\r").unwrap_or(line), number, &mut seen);
            }
            reader.finish(&mut seen);
        }
    }
    seen.proxy && seen.server
}

/// Who wrote access lines, and whether a server wrote anything else.
#[derive(Default, PartialEq, Eq)]
pub struct Vantages {
    proxy: bool,
    server: bool,
    events: bool,
}

impl Vantages {
    /// A container's log tells only by its lines what runs in it.
    pub fn tell(&self, info: &mut InputInfo) {
        if *self == (Vantages { proxy: true, ..Vantages::default() }) {
            info.vantage = Some(Vantage::Proxy);
        }
    }

    /// Takes a line of an access log.
    pub fn line(&mut self, line: &AccessRecord) {
        match vantage_of(line) {
            Vantage::Server => self.server = true,
            vantage => self.proxy |= vantage == Vantage::Proxy,
        }
    }

    /// Takes what a line says.
    pub fn add(&mut self, record: &Record) {
        match record {
            Record::Access(line) => self.line(line),
            Record::Event(event) => self.events |= event.vantage == Vantage::Server,
            Record::Client(_) | Record::Message(_) => {}
        }
    }
}

impl RecordSink for Vantages {
    fn entry(&mut self, _: Option<When>) {}
    fn record(&mut self, record: Record) {
        self.add(&record);
    }
    fn problem(&mut self, _: ProblemKind, _: Place, _: &str) {}
}
