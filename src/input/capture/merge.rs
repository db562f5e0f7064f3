//! Several captures as one timeline.

use super::{CaptureKind, CaptureReader, CaptureStats, Frame};
use crate::input::open::{OpenInput, Source};
use crate::model::place::InputId;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Captures kept open at once; of more, each is opened again when its time comes.
const OPEN_CAPTURES: usize = 64;

/// Receives the frames of all captures in one order.
pub trait FrameSink {
    /// A frame. Within one input frames come in file order, over several by time.
    fn frame(&mut self, frame: &Frame<'_>);
    /// TLS key log lines that the capture itself holds; before the frames that follow them in it.
    fn secrets(&mut self, _input: InputId, _key_log: &[u8]) {}
}

impl<F: FnMut(&Frame<'_>)> FrameSink for F {
    fn frame(&mut self, frame: &Frame<'_>) {
        self(frame);
    }
}

/// A capture to read.
pub struct CaptureInput {
    /// Its number in the report.
    pub input: InputId,
    /// Its format.
    pub kind: CaptureKind,
    /// How to open it, and open it again; standard input can be opened only once.
    pub source: Source,
    /// It, where it is open already. With very many captures leave them closed.
    pub open: Option<OpenInput>,
}

/// Reads `captures` to their ends and gives all frames to `sink`, as one timeline. Returns what
/// became known of each, in the order given, problems of their compression included.
pub fn read_all(captures: Vec<CaptureInput>, sink: &mut dyn FrameSink) -> Vec<CaptureStats> {
    let many = captures.len() > OPEN_CAPTURES;
    let mut slots: Vec<Slot> = captures.into_iter().map(|c| Slot::new(c, many, sink)).collect();
    // The next frame of each capture by time, then by the order in which they were given.
    let mut next: BinaryHeap<Reverse<(i64, usize)>> = BinaryHeap::new();
    for (index, slot) in slots.iter().enumerate() {
        next.extend(slot.next_ns.map(|ns| Reverse((ns, index))));
    }
    while let Some(Reverse((_, index))) = next.pop() {
        let other = next.peek().map(|Reverse(key)| *key);
        let Some(slot) = slots.get_mut(index) else { continue };
        slot.run_until(other, index, sink);
        next.extend(slot.next_ns.map(|ns| Reverse((ns, index))));
    }
    slots.into_iter().map(Slot::finish).collect()
}

/// One capture in the merge.
struct Slot {
    input: InputId,
    kind: CaptureKind,
    source: Source,
    reader: Option<CaptureReader<OpenInput>>,
    /// Time of its next frame, which the reader stands at.
    next_ns: Option<i64>,
    stats: Option<CaptureStats>,
}

impl Slot {
    /// Goes to the first frame of a capture; closes it again if there are many.
    fn new(capture: CaptureInput, many: bool, sink: &mut dyn FrameSink) -> Slot {
        let CaptureInput { input, kind, source, open } = capture;
        let mut slot = Slot { input, kind, source, reader: None, next_ns: None, stats: None };
        match open {
            Some(open) => slot.start(open),
            None => slot.reopen(),
        }
        slot.hand_over_secrets(sink);
        if slot.next_ns.is_none() {
            slot.close();
        } else if many && slot.source.path.is_some() {
            slot.reader = None;
        }
        slot
    }

    fn start(&mut self, open: OpenInput) {
        let mut reader = CaptureReader::new(open, self.kind, self.input);
        reader.advance();
        self.next_ns = reader.time().map(|t| t.ns());
        self.reader = Some(reader);
    }

    /// Opens a closed capture and goes to its first frame.
    fn reopen(&mut self) {
        match self.source.open() {
            Ok(open) => self.start(open),
            Err(e) => {
                self.next_ns = None;
                self.stats = Some(CaptureStats::unreadable(self.kind, &e.to_string()));
            }
        }
    }

    /// Gives frames to the sink as long as they come before `other`, at least one.
    fn run_until(&mut self, other: Option<(i64, usize)>, index: usize, sink: &mut dyn FrameSink) {
        if self.reader.is_none() {
            self.reopen();
            // Those before the first frame were handed over when it was first opened.
            self.reader.iter_mut().for_each(|r| drop(r.take_secrets()));
        }
        let Some(reader) = &mut self.reader else { return };
        loop {
            if let Some(frame) = reader.frame() {
                sink.frame(&frame);
            }
            let more = reader.advance();
            for log in reader.take_secrets() {
                sink.secrets(self.input, &log);
            }
            if !more {
                self.close();
                return;
            }
            self.next_ns = reader.time().map(|t| t.ns());
            if let (Some(mine), Some(other)) = (self.next_ns, other)
                && (mine, index) > other
            {
                return;
            }
        }
    }

    fn hand_over_secrets(&mut self, sink: &mut dyn FrameSink) {
        let Some(reader) = &mut self.reader else { return };
        for log in reader.take_secrets() {
            sink.secrets(self.input, &log);
        }
    }

    fn close(&mut self) {
        self.next_ns = None;
        let Some(mut reader) = self.reader.take() else { return };
        let mut stats = reader.stats();
        let problems = reader.source_mut().problems();
        stats.problems.merge(&problems);
        self.stats = Some(stats);
    }

    fn finish(mut self) -> CaptureStats {
        self.close();
        self.stats.unwrap_or_else(|| CaptureStats::unreadable(self.kind, "it was not read"))
    }
}
