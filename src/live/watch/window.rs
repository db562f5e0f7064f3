//! What is kept of one input: its last lines or exchanges, up to a time and a size. Whatever is older
//! is let go, and the analysis is told that the input begins where the window does.

use crate::evidence::gather::{Caught, Kept};
use crate::evidence::slice::{Original, write_numbered};
use crate::input::Source;
use crate::input::packed::{Opener, Packed};
use crate::model::exchange::{Event, Exchange, ExchangeId, ExchangeSink};
use crate::model::time::Time;
use crate::wire::write::blocks::{self, Statistics};
use std::collections::{BTreeMap, VecDeque};
use std::io::{Cursor, Read};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What an exchange takes beside its messages, bytes.
const EXCHANGE_BYTES: usize = 2048;
/// What a line takes beside its text, bytes.
const LINE_BYTES: usize = 64;

/// How much is kept.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// At most this long.
    pub time: Duration,
    /// At most this much, bytes.
    pub bytes: usize,
}

/// The last of one input.
pub struct Window {
    /// As given on the command line.
    pub name: String,
    bounds: Bounds,
    /// Lines, when they came, and the number of the first of them, over all files of this name.
    lines: VecDeque<(Instant, Vec<u8>)>,
    first_line: u64,
    exchanges: BTreeMap<ExchangeId, Held>,
    /// Those that have ended, and when, in order of that.
    ended: VecDeque<(Instant, ExchangeId)>,
    bytes: usize,
    /// Numbers of records at which each file of this name began.
    files: VecDeque<u64>,
    /// Time of the last packet, and of the first that the window covers.
    last: Option<Time>,
    first: Option<Time>,
    /// Packets that were dropped, and when the last of them were.
    dropped: u64,
    dropped_at: Option<Instant>,
    /// Something was let go.
    pub is_cut: bool,
    /// Grows with each change.
    pub changes: u64,
    /// Records read.
    pub records: u64,
}

/// A record as its file numbers it: which file of the name, and its number there.
pub struct Numbered {
    /// 0 is the first file read.
    pub file: usize,
    /// From 1.
    pub number: u64,
}

/// How the numbers of a window's source are those of the input.
#[derive(Clone, Debug)]
pub enum Numbers {
    /// Lines count on from here.
    Lines(u64),
    /// Of each frame.
    Frames(Vec<u64>),
}

impl Numbers {
    /// The record, over all files of the name.
    pub fn of(&self, number: u64) -> Option<u64> {
        match self {
            Numbers::Lines(before) => Some(before + number),
            Numbers::Frames(all) => {
                let index = usize::try_from(number).ok()?.checked_sub(1)?;
                all.get(index).copied().filter(|n| *n > 0)
            }
        }
    }
}

#[derive(Debug)]
struct Bytes(Arc<[u8]>);

impl Opener for Bytes {
    fn open(&self) -> std::io::Result<Box<dyn Read + Send>> {
        Ok(Box::new(Cursor::new(self.0.clone())))
    }
}

impl Window {
    /// Nothing yet.
    pub fn new(name: &str, bounds: Bounds) -> Window {
        Window {
            name: name.to_owned(),
            bounds,
            lines: VecDeque::new(),
            first_line: 1,
            exchanges: BTreeMap::new(),
            ended: VecDeque::new(),
            bytes: 0,
            files: VecDeque::from([0]),
            last: None,
            first: None,
            dropped: 0,
            dropped_at: None,
            is_cut: false,
            changes: 0,
            records: 0,
        }
    }

    /// Bytes kept.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Another file has the name from here on.
    pub fn new_file(&mut self) {
        const FILES: usize = 4096;
        self.files.push_back(self.records);
        if self.files.len() > FILES {
            self.files.pop_front();
        }
    }

    /// A record as its file numbers it.
    pub fn numbered(&self, number: u64) -> Numbered {
        let file = self.files.iter().rposition(|began| *began < number).unwrap_or(0);
        Numbered { file, number: number - self.files.get(file).copied().unwrap_or(0).min(number) }
    }

    /// A line, without its end.
    pub fn line(&mut self, line: &[u8]) {
        self.records += 1;
        self.changes += 1;
        self.bytes += line.len() + LINE_BYTES;
        self.lines.push_back((Instant::now(), line.to_vec()));
        self.trim();
    }

    /// A packet was read, with this number over all files of the name.
    pub fn packet(&mut self, at: Time, number: u64) {
        self.records = number;
        self.first.get_or_insert(at);
        self.last = Some(self.last.map_or(at, |last| if last.ns() < at.ns() { at } else { last }));
    }

    /// The capture says that this many packets were dropped, over all.
    pub fn dropped(&mut self, dropped: u64) {
        if dropped > self.dropped {
            self.dropped = dropped;
            self.dropped_at = Some(Instant::now());
            self.changes += 1;
        }
    }

    /// Packets that the capture says were dropped, over all.
    pub fn dropped_packets(&self) -> u64 {
        self.dropped
    }

    /// The record from which on a window that was cut has the history of its calls: a part of it lies
    /// before.
    pub fn trusted_from(&self, part: u64) -> Option<u64> {
        let first = match self.exchanges.first_key_value() {
            Some((_, held)) => held.caught.exchange.request.as_ref().map_or(1, |r| r.first.place.number),
            None => self.first_line,
        };
        self.is_cut.then(|| first + self.records.saturating_sub(first) / part.max(1))
    }

    fn trim(&mut self) {
        while let Some((at, line)) = self.lines.front()
            && (self.bytes > self.bounds.bytes || at.elapsed() > self.bounds.time)
        {
            self.bytes -= line.len() + LINE_BYTES;
            self.first_line += 1;
            self.is_cut = true;
            self.lines.pop_front();
        }
        while let Some((at, id)) = self.ended.front()
            && (self.bytes > self.bounds.bytes || at.elapsed() > self.bounds.time)
        {
            if let Some(held) = self.exchanges.remove(id) {
                self.bytes -= held.bytes;
                let began = held.caught.exchange.request.as_ref().map(|r| r.first.at);
                self.first = self.first.max(began);
            }
            self.is_cut = true;
            self.ended.pop_front();
        }
        // What is left are streams that are open: of these the beginnings go.
        if self.bytes > self.bounds.bytes {
            self.trim_streams(|n, held| n < held.div_ceil(2));
        }
    }

    /// Lets messages go of open streams: the first ones, as long as `goes` says so of their number.
    fn trim_streams(&mut self, goes: impl Fn(usize, usize) -> bool) {
        for held in self.exchanges.values_mut().filter(|h| h.caught.exchange.end.is_none()) {
            let all = held.caught.messages.len();
            let n = (0..all).take_while(|n| goes(*n, all)).count();
            held.let_go(n, &mut self.bytes);
            self.is_cut |= n > 0;
        }
    }

    /// Lets go what open streams brought before the window.
    fn trim_old_messages(&mut self) {
        let Some(last) = self.last else { return };
        let time_ns = i64::try_from(self.bounds.time.as_nanos()).unwrap_or(i64::MAX);
        for held in self.exchanges.values_mut().filter(|h| h.caught.exchange.end.is_none()) {
            let old = held.caught.messages.iter().take_while(|m| last.since(m.last.at) > time_ns).count();
            held.let_go(old, &mut self.bytes);
            self.is_cut |= old > 0;
        }
    }

    /// What an analysis reads in the place of the input, with the numbers of its records; none where
    /// there is nothing. `until` is a time up to which nothing more has come, where that is known.
    pub fn source(&mut self, is_wire: bool, until: Option<Time>) -> Option<(Source, Numbers)> {
        self.trim();
        let (bytes, numbers) = if is_wire {
            self.trim_old_messages();
            let last = self.last.max(until);
            let original = Original { name: &self.name, first: self.first, last, has_frames: true };
            let caught: Vec<Caught> = self.exchanges.values().map(|held| held.caught.clone()).collect();
            self.last?;
            let (mut bytes, numbers) = write_numbered(&original, &caught);
            if self.dropped_at.is_some_and(|at| at.elapsed() <= self.bounds.time) {
                let counts = Statistics { system_dropped: Some(self.dropped), ..Statistics::default() };
                bytes.extend(blocks::statistics(0, 0, &counts));
            }
            (bytes, Numbers::Frames(numbers))
        } else {
            if self.lines.is_empty() {
                return None;
            }
            let mut bytes = Vec::with_capacity(self.bytes);
            for (_, line) in &self.lines {
                bytes.extend_from_slice(line);
                bytes.push(b'\n');
            }
            (bytes, Numbers::Lines(self.first_line - 1))
        };
        let opener = Arc::new(Bytes(bytes.into()));
        let packed = Packed { member: self.name.clone(), modified_ns: Some(crate::drive::record::now_ns()), opener };
        Some((Source { name: self.name.clone(), path: None, found: false, packed: Some(packed) }, numbers))
    }
}

/// An exchange that is kept.
struct Held {
    caught: Caught,
    bytes: usize,
    /// Messages were let go.
    is_cut: bool,
}

impl Held {
    /// Lets the first `n` messages go; a reply may have been among them.
    fn let_go(&mut self, n: usize, total: &mut usize) {
        if n == 0 {
            return;
        }
        let gone: usize = self.caught.messages.drain(..n).map(|m| m.data.len() + LINE_BYTES).sum();
        self.bytes -= gone;
        *total -= gone;
        self.is_cut = true;
        self.mark();
    }

    fn mark(&mut self) {
        if self.is_cut {
            self.caught.hole_after = Some(0);
            if let Some(response) = &mut self.caught.exchange.response {
                response.gap = true;
            }
        }
    }
}

impl ExchangeSink for Window {
    fn event(&mut self, exchange: &Exchange, event: Event<'_>) {
        self.changes += 1;
        let total = &mut self.bytes;
        let held = self.exchanges.entry(exchange.id).or_insert_with(|| {
            *total += EXCHANGE_BYTES;
            let caught = Caught { exchange: exchange.clone(), messages: vec![], hole_after: None };
            Held { caught, bytes: EXCHANGE_BYTES, is_cut: false }
        });
        held.caught.exchange = exchange.clone();
        match event {
            Event::Message(m) => {
                let more = m.data.len() + LINE_BYTES;
                held.bytes += more;
                *total += more;
                held.caught.messages.push(Kept {
                    from: m.from,
                    data: m.data.to_vec(),
                    last: m.last,
                    event: m.event.map(str::to_owned),
                    event_id: m.event_id.map(str::to_owned),
                    body_bytes: exchange.response.as_ref().map_or(0, |r| r.body_bytes),
                });
            }
            Event::ResponseGap => {
                let caught = &mut held.caught;
                caught.hole_after = caught.hole_after.or(Some(caught.messages.len()));
            }
            Event::End => self.ended.push_back((Instant::now(), exchange.id)),
            _ => {}
        }
        held.mark();
        self.trim();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn lines_go_by_size_and_keep_their_numbers() {
        let mut window = Window::new("log", Bounds { time: Duration::from_secs(60), bytes: 10 * (LINE_BYTES + 10) });
        for n in 0..25 {
            if n == 20 {
                window.new_file();
            }
            window.line(format!("line {n:05}").as_bytes());
        }
        assert!(window.bytes() <= 10 * (LINE_BYTES + 10) && window.is_cut);
        let (source, numbers) = window.source(false, None).unwrap();
        let mut text = String::new();
        source.packed.unwrap().opener.open().unwrap().read_to_string(&mut text).unwrap();
        assert_eq!((text.lines().count(), text.lines().next()), (10, Some("line 00015")));
        assert_eq!(numbers.of(1), Some(16));
        let (before, after) = (window.numbered(16), window.numbered(22));
        assert_eq!((before.file, before.number, after.file, after.number), (0, 16, 1, 2));
    }

    #[test]
    fn lines_go_by_time() {
        let mut window = Window::new("log", Bounds { time: Duration::ZERO, bytes: 1 << 20 });
        window.line(b"a");
        assert!(window.source(false, None).is_none() && window.bytes() == 0);
    }
}
