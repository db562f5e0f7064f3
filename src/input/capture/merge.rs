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
    /// It, where it is open already. Of very many captures leave closed those that can be opened
    /// again.
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
        } else if many && slot.source.can_reopen() {
            slot.reader = None;
        }
        slot
    }

    fn start(&mut self, open: OpenInput) {
        let mut reader = CaptureReader::of_input(open, self.kind, self.input);
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::build::{Made, block, pcap, put32, section};
    use super::super::bytes::Order;
    use super::{CaptureInput, OPEN_CAPTURES, read_all};
    use crate::input::capture::{CaptureKind, Frame, FrameSink};
    use crate::input::open::{OpenInput, Source};
    use crate::model::place::InputId;
    use crate::model::problem::ProblemKind;

    fn made(ms: u32) -> Made {
        Made { seconds: 1_795_981_315, ns: ms * 1_000_000, data: vec![1; 4], wire: 4 }
    }

    fn classic(times: &[u32]) -> Vec<u8> {
        let packets: Vec<Made> = times.iter().map(|t| made(*t)).collect();
        pcap(Order::Little, 0xa1b2_c3d4, 1, &packets)
    }

    fn input(number: usize, bytes: Vec<u8>) -> CaptureInput {
        let kind = CaptureKind::of(&bytes).unwrap();
        let open = OpenInput::new(number.to_string(), Box::new(std::io::Cursor::new(bytes)), None);
        let source = Source { name: number.to_string(), path: None, found: false, packed: None };
        CaptureInput { input: number as u32, kind, source, open: Some(open) }
    }

    fn order(captures: Vec<CaptureInput>) -> Vec<(u32, u64)> {
        let mut seen = Vec::new();
        read_all(captures, &mut |f: &Frame<'_>| seen.push((f.place.input, f.place.number)));
        seen
    }

    #[test]
    fn by_time_over_captures_and_in_file_order_within_one() {
        let captures = [&[10, 20, 30][..], &[5, 25, 24, 26], &[20, 40], &[]];
        let captures = captures.iter().enumerate().map(|(n, t)| input(n, classic(t)));
        assert_eq!(order(captures.collect()), [(1, 1), (0, 1), (0, 2), (2, 1), (1, 2), (1, 3), (1, 4), (0, 3), (2, 2)]);
    }

    #[test]
    fn more_captures_than_are_kept_open() {
        let dir = tempfile::tempdir().unwrap();
        let count = OPEN_CAPTURES + 20;
        let mut captures = Vec::new();
        for n in 0..count {
            let path = dir.path().join(n.to_string());
            // The last given is the oldest, as `ls -t` lists rotated files.
            let begin = (count - n) as u32 * 3;
            std::fs::write(&path, classic(&[begin, begin + 1, begin + 4])).unwrap();
            let source = Source { name: n.to_string(), path: Some(path), found: false, packed: None };
            captures.push(CaptureInput { input: n as u32, kind: CaptureKind::Pcap, source, open: None });
        }
        let mut times = Vec::new();
        let stats = read_all(captures, &mut |f: &Frame<'_>| times.push(f.at));
        assert_eq!(times.len(), count * 3);
        assert!(times.is_sorted());
        assert!(stats.iter().all(|s| s.records == 3 && s.problems.is_empty()));
    }

    #[test]
    fn secrets_come_before_the_frames_behind_them_and_damage_is_reported() {
        #[derive(Default)]
        struct Log(Vec<String>);
        impl FrameSink for Log {
            fn frame(&mut self, frame: &Frame<'_>) {
                self.0.push(format!("{}:{}", frame.place.input, frame.place.number));
            }
            fn secrets(&mut self, input: InputId, key_log: &[u8]) {
                self.0.push(format!("{input} {}", String::from_utf8_lossy(key_log)));
            }
        }
        let mut secrets = Vec::new();
        put32(Order::Big, &mut secrets, 0x544c_534b);
        put32(Order::Big, &mut secrets, 4);
        secrets.extend(b"keys");
        let mut bytes = section(Order::Big);
        bytes.extend(super::super::build::interface(Order::Big, 1, &[]));
        bytes.extend(block(Order::Big, 10, &secrets));
        bytes.extend(super::super::build::packet(Order::Big, 0, 1_795_981_315_000_000, &made(0), &[]));
        bytes.extend([0xff; 32]);
        let coded = zstd::stream::encode_all(&bytes[..], 1).unwrap();
        let mut cut = input(0, bytes);
        cut.open =
            Some(OpenInput::new("0".to_owned(), Box::new(std::io::Cursor::new([&coded[..], b"xyz"].concat())), None));
        let mut log = Log::default();
        let stats = read_all(vec![cut, input(1, classic(&[0]))], &mut log);
        assert_eq!(log.0, ["0 keys", "0:1", "1:1"]);
        let kinds: Vec<_> = stats[0].problems.iter().map(|p| p.kind).collect();
        assert_eq!(kinds, [ProblemKind::Garbage, ProblemKind::BadCompression]);
    }
}
