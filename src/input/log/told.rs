//! Reading a log in tests, and looking at what came out.

use super::{Format, LogContext, Reader, RecordSink};
use crate::model::options::ReadOptions;
use crate::model::place::Place;
use crate::model::problem::{ProblemKind, Problems};
use crate::model::record::{AccessRecord, LogEvent, Record, When};

/// All that a reader told.
#[derive(Default, Debug)]
pub(crate) struct Told {
    /// The time of each entry.
    pub entries: Vec<Option<When>>,
    /// What they say.
    pub records: Vec<Record>,
    /// What could not be read.
    pub problems: Problems,
}

impl RecordSink for Told {
    fn entry(&mut self, when: Option<When>) {
        self.entries.push(when);
    }
    fn record(&mut self, record: Record) {
        self.records.push(record);
    }
    fn problem(&mut self, kind: ProblemKind, _: Place, text: &str) {
        self.problems.add(kind, || "", || text);
    }
}

impl Told {
    /// How often a problem was met.
    pub fn count(&self, kind: ProblemKind) -> u64 {
        self.problems.count(kind)
    }
    /// The events, in order of their places.
    pub fn events(&self) -> Vec<&LogEvent> {
        let mut all: Vec<&LogEvent> =
            self.records.iter().filter_map(|r| if let Record::Event(e) = r { Some(&**e) } else { None }).collect();
        all.sort_by_key(|e| e.place);
        all
    }
    /// The access records.
    pub fn accesses(&self) -> Vec<&AccessRecord> {
        self.records.iter().filter_map(|r| if let Record::Access(a) = r { Some(&**a) } else { None }).collect()
    }
}

/// Reads `bytes` as `format`.
pub(crate) fn read(format: &Format, bytes: impl AsRef<[u8]>) -> Told {
    read_with(format, bytes, &ReadOptions::default(), None)
}

/// Reads `bytes` as `format` with options and the file's modification time, ns.
pub(crate) fn read_with(
    format: &Format,
    bytes: impl AsRef<[u8]>,
    options: &ReadOptions,
    modified_ns: Option<i64>,
) -> Told {
    let context = LogContext { input: 0, name: "test", options, modified_ns };
    let mut told = Told::default();
    match &format.reader {
        Reader::Lines(new) => {
            let mut reader = new(&context);
            let bytes = bytes.as_ref();
            let whole = bytes.strip_suffix(b"\n").unwrap_or(bytes);
            for (i, line) in whole.split(|b| *b == b'\n').enumerate().filter(|_| !whole.is_empty()) {
                reader.line(line, i as u64 + 1, &mut told);
            }
            reader.finish(&mut told);
        }
        Reader::Bytes(read) => {
            if let Err(e) = read(&context, &mut bytes.as_ref(), &mut told) {
                told.problems.add(ProblemKind::Internal, || "", || e.to_string());
            }
        }
    }
    told
}

/// The entries' times as text.
pub(crate) fn whens(told: &Told) -> Vec<String> {
    told.entries.iter().map(|w| w.map_or_else(|| "-".to_owned(), |w| w.at.to_string())).collect()
}

/// The events as `Kind session id tool text`.
pub(crate) fn events(told: &Told) -> Vec<String> {
    let dash = |s: Option<String>| s.unwrap_or_else(|| "-".to_owned());
    told.events()
        .into_iter()
        .map(|e| {
            let session = dash(e.session.as_ref().map(|s| s.to_string()));
            let id = dash(e.rpc_id.as_ref().map(|s| s.to_string()));
            let tool = dash(e.tool.as_ref().or(e.method.as_ref()).map(|s| s.to_string()));
            format!("{:?} {session} {id} {tool} {}", e.kind, e.text)
        })
        .collect()
}

/// The access lines as `METHOD target status peer-port`.
pub(crate) fn accesses(told: &Told) -> Vec<String> {
    told.accesses()
        .into_iter()
        .map(|a| {
            format!(
                "{} {} {} {:?}",
                a.method.as_deref().unwrap_or("-"),
                a.target.as_deref().unwrap_or("-"),
                a.status.unwrap_or(0),
                a.client_port
            )
        })
        .collect()
}
