//! Whose the lines of the common log format are in a container's log: nginx and Apache write it, and so do gunicorn
//! and morgan, and a container's name may be anything. Who also says what only applications say is a server; who
//! writes nothing else is a proxy. Lines wait until it is known.

use super::Origin;
use crate::input::log::RecordSink;
use crate::model::limits;
use crate::model::place::Vantage;
use crate::model::record::{AccessRecord, Record};
use rustc_hash::FxHashMap;

/// Lines after which a writer that has said nothing else is a proxy.
const HELD: usize = 512;

/// Which writers are asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// All: containers.
    All,
    /// Those without a name: lines from elsewhere in a journal, where programs have theirs.
    Nameless,
    /// None: an application's own file.
    Nobody,
}

/// What is known of the writers of one log.
#[derive(Debug)]
pub(super) struct Writers {
    asked: Asked,
    known: FxHashMap<u64, Vantage>,
    held: Vec<(u64, Box<AccessRecord>)>,
}

impl Writers {
    pub fn new(asked: Asked) -> Writers {
        Writers { asked, known: FxHashMap::default(), held: vec![] }
    }

    /// Is it open who writes such lines here?
    pub fn is_asked(&self, origin: &Origin<'_>) -> bool {
        match self.asked {
            Asked::All => self.known.len() < limits::LOG_STREAMS,
            Asked::Nameless => origin.unit.is_none(),
            Asked::Nobody => false,
        }
    }

    /// What the writer of a line is, if that is known.
    pub fn known(&self, origin: &Origin<'_>) -> Option<Vantage> {
        self.known.get(&writer(origin)).copied()
    }

    /// The writer says something that only an application does.
    pub fn is_server(&mut self, origin: &Origin<'_>, out: &mut dyn RecordSink) {
        let writer = writer(origin);
        self.known.insert(writer, Vantage::Server);
        self.release(out, |w| (w == writer).then_some(Vantage::Server));
    }

    /// Keeps a line until its writer is known.
    pub fn hold(&mut self, origin: &Origin<'_>, line: Box<AccessRecord>, out: &mut dyn RecordSink) {
        self.held.push((writer(origin), line));
        if self.held.len() >= HELD {
            self.known.extend(self.held.iter().map(|(writer, _)| (*writer, Vantage::Proxy)));
            self.finish(out);
        }
    }

    /// Nothing follows: who is still not known writes nothing else.
    pub fn finish(&mut self, out: &mut dyn RecordSink) {
        self.release(out, |_| Some(Vantage::Proxy));
    }

    fn release(&mut self, out: &mut dyn RecordSink, decide: impl Fn(u64) -> Option<Vantage>) {
        for (writer, mut line) in std::mem::take(&mut self.held) {
            match decide(writer) {
                Some(vantage) => {
                    line.vantage = Some(vantage);
                    out.record(Record::Access(line));
                }
                None => self.held.push((writer, line)),
            }
        }
    }
}

/// Standard output and error are of one program: access lines come on the one, often, and errors on the other.
fn writer(origin: &Origin<'_>) -> u64 {
    Origin { stream: 0, ..*origin }.key()
}
