//! What the logs of container runtimes have in common: times, streams, and long lines that the
//! runtime split.

use super::app::{Interpreter, Origin};
use super::journal::{TRANSPORT_ERROR_NS, whole_lines};
use super::{Grade, RecordSink, reading};
use crate::model::limits;
use crate::model::place::Place;
use crate::model::problem::ProblemKind;
use crate::model::record::When;
use crate::model::time::Time;

/// A container runtime's RFC 3339 time, which always has a zone.
pub(super) fn when(text: &[u8]) -> Option<When> {
    let (r, _) = reading::iso(text)?;
    let reading::Date::Full(days) = r.date else { return None };
    let ns = days.checked_mul(reading::DAY_NS)? + r.day_ns - i64::from(r.offset_s?) * reading::SECOND_NS;
    Some(When { at: Time::from_ns(ns, r.digits), error_ns: TRANSPORT_ERROR_NS })
}

/// Numbers the streams by name.
pub(super) fn stream(name: &str) -> u8 {
    match name {
        "stdout" => 1,
        "stderr" => 2,
        _ => 0,
    }
}

/// Grades an input whose every line must be of one strict layout.
pub(super) fn grade(bytes: &[u8], is: impl Fn(&[u8]) -> bool) -> Grade {
    let (mut own, mut all) = (0u32, 0u32);
    for line in whole_lines(bytes).map(<[u8]>::trim_ascii).filter(|l| !l.is_empty()).take(200) {
        all += 1;
        own += u32::from(is(line));
    }
    match own {
        0 => Grade::No,
        _ if own * 10 >= all * 9 => Grade::Certain,
        _ if own * 2 >= all => Grade::Likely,
        _ => Grade::Unsure,
    }
}

/// Lines of which parts have come, one a writer.
#[derive(Debug, Default)]
pub(super) struct Partial {
    open: Vec<Part>,
}

#[derive(Debug)]
struct Part {
    key: u64,
    unit: Option<String>,
    stream: u8,
    place: Place,
    when: Option<When>,
    text: Vec<u8>,
    over_cap: bool,
}

impl Partial {
    /// A part that more follow.
    pub fn part(&mut self, text: &[u8], origin: &Origin<'_>, out: &mut dyn RecordSink) {
        let key = origin.key();
        if !self.open.iter().any(|p| p.key == key) {
            if self.open.len() >= limits::LOG_STREAMS {
                self.open.remove(0);
                out.entry(None);
                out.problem(ProblemKind::LimitHit, origin.place, "log-streams: a line in parts was given up");
            }
            self.open.push(Part {
                key,
                unit: origin.unit.map(str::to_owned),
                stream: origin.stream,
                place: origin.place,
                when: origin.when,
                text: Vec::new(),
                over_cap: false,
            });
        }
        if let Some(p) = self.open.iter_mut().find(|p| p.key == key) {
            p.add(text);
        }
    }

    /// The last part of a line, or a whole one.
    pub fn last(&mut self, text: &[u8], origin: &Origin<'_>, to: &mut Interpreter, out: &mut dyn RecordSink) {
        if self.open.is_empty() {
            return to.entry(text, origin, out);
        }
        let key = origin.key();
        match self.open.iter().position(|p| p.key == key) {
            Some(at) => {
                let mut part = self.open.remove(at);
                part.add(text);
                part.tell(to, out);
            }
            None => to.entry(text, origin, out),
        }
    }

    /// The log has ended; a line without its last part is read as it is, and counted.
    pub fn finish(&mut self, to: &mut Interpreter, out: &mut dyn RecordSink) {
        for part in std::mem::take(&mut self.open) {
            out.problem(ProblemKind::TruncatedRecord, part.place, "the log ends inside a line that came in parts");
            part.tell(to, out);
        }
    }
}

impl Part {
    fn add(&mut self, text: &[u8]) {
        let room = limits::FIELD_BYTES.saturating_sub(self.text.len());
        self.over_cap |= text.len() > room;
        self.text.extend_from_slice(text.get(..room.min(text.len())).unwrap_or_default());
    }

    fn tell(&self, to: &mut Interpreter, out: &mut dyn RecordSink) {
        if self.over_cap {
            out.problem(ProblemKind::LimitHit, self.place, "field-bytes: a line in parts was cut");
        }
        let origin =
            Origin { when: self.when, unit: self.unit.as_deref(), stream: self.stream, ..Origin::at(self.place) };
        to.entry(&self.text, &origin, out);
    }
}
