//! The lines of proxies among the messages of a journal, a container or an application.

use super::{COARSE_NS, Interpreter, Origin, head, is_known};
use crate::input::log::RecordSink;
use crate::input::log::layout::Parsed;
use crate::model::place::Vantage;
use crate::model::problem::ProblemKind;
use crate::model::record::{Record, When};

impl Interpreter {
    /// Counts and tells a line in the layout that `--log-format` gives; `false`: it is none.
    pub(super) fn described(&mut self, text: &str, origin: &Origin<'_>, out: &mut dyn RecordSink) -> bool {
        match self.proxies.described(text.as_bytes(), origin.place, out) {
            Some(Parsed::Access(access)) => {
                out.entry(origin.when.or(access.end).or(access.start));
                out.record(timed(Record::Access(access), origin));
                true
            }
            Some(Parsed::Quiet(when)) => {
                out.entry(origin.when.or(when));
                true
            }
            _ => false,
        }
    }

    /// Counts a message that should have been read: nothing is known that it could say.
    pub(super) fn unread(&mut self, text: &str, origin: &Origin<'_>, out: &mut dyn RecordSink) {
        if self.proxies.is_bound() && !text.trim().is_empty() && !is_known(text.as_bytes()) {
            let what = "a line that fits neither the format given by --log-format nor any known one";
            out.problem(ProblemKind::UnknownLine, origin.place, what);
        } else if is_request(text) {
            let what = "a request's line in no layout known here; --log-format STRING describes one";
            out.problem(ProblemKind::UnknownLine, origin.place, what);
        }
    }

    /// A line of the common log format where it is open who writes it; `false`: it is not.
    pub(super) fn common(&mut self, text: &str, origin: &Origin<'_>, out: &mut dyn RecordSink) -> bool {
        if !self.writers.is_asked(origin) {
            return false;
        }
        // Traefik's goes on behind the user agent.
        let is_traefiks = text.ends_with("ms");
        match self.writers.known(origin) {
            Some(Vantage::Server) if !is_traefiks => false,
            Some(_) => self.proxy(text, origin, out),
            None if is_traefiks => self.proxy(text, origin, out),
            None => match self.proxy_record(text, origin, out) {
                Some(Record::Access(line)) => {
                    self.writers.hold(origin, line, out);
                    true
                }
                _ => false,
            },
        }
    }

    /// A proxy's access or error line inside this log; `false` if it is none.
    pub(super) fn proxy(&mut self, text: &str, origin: &Origin<'_>, out: &mut dyn RecordSink) -> bool {
        let record = self.proxy_record(text, origin, out);
        record.map(|record| out.record(record)).is_some()
    }

    fn proxy_record(&mut self, text: &str, origin: &Origin<'_>, out: &mut dyn RecordSink) -> Option<Record> {
        let record = self.proxies.read(text.as_bytes(), origin.place, out)?;
        Some(timed(record, origin))
    }
}

/// Could a message that no application is known for be a proxy's?
pub(super) fn may_be(text: &str) -> bool {
    let has = |needle: &str| memchr::memmem::find(text.as_bytes(), needle.as_bytes()).is_some();
    has(" HTTP/") || has(" upstream")
}

/// Does a line hold a request as access logs write it? Behind a level an application tells of one of its own.
fn is_request(text: &str) -> bool {
    const METHODS: [&str; 6] = ["POST", "GET", "DELETE", "OPTIONS", "HEAD", "PUT"];
    let Some(at) = text.find(" HTTP/") else { return false };
    let (before, version) = text.split_at(at);
    let Some((before, target)) = before.rsplit_once(' ') else { return false };
    let method = METHODS.iter().find_map(|method| before.strip_suffix(method));
    let begins = |head: &str| head.chars().next_back().is_none_or(|c| !c.is_ascii_alphanumeric());
    let levels =
        |head: &str| head.split(|c: char| !c.is_ascii_alphabetic()).any(|w| head::level(w.as_bytes()).is_some());
    version.as_bytes().get(6).is_some_and(u8::is_ascii_digit)
        && target.starts_with('/')
        && method.is_some_and(|head| begins(head) && !levels(head))
}

/// A proxy's record with what the log around it knows better.
fn timed(mut record: Record, origin: &Origin<'_>) -> Record {
    match (&mut record, origin.when) {
        (Record::Access(access), Some(outer)) => {
            // where the proxy wrote whole seconds or no time, the container's time of its line is the better end
            let is_coarse = access.end.is_some_and(|end| end.error_ns >= COARSE_NS && outer.error_ns < COARSE_NS);
            if is_coarse || access.end.is_none() && access.start.is_none() {
                access.end = Some(outer);
                let start = access.duration_ns.map(|d| When { at: outer.at.plus_ns(-d), error_ns: outer.error_ns });
                access.start = if is_coarse { access.start.and(start).or(access.start) } else { start };
            }
        }
        (Record::Event(event), when) => {
            event.when = when.or(event.when);
            event.pid = event.pid.or(origin.pid);
        }
        _ => {}
    }
    record
}
