//! Captures: pcap and pcapng files to frames, and several of them to one timeline.

pub mod bpf;
#[cfg(test)]
mod build;
mod bytes;
mod interface;
mod merge;
mod pcap;
mod pcapng;
mod resync;
mod tally;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests;
mod window;

pub use merge::{CaptureInput, FrameSink, read_all};

use crate::input::OpenInput;
use crate::model::place::{InputId, Place, Vantage};
use crate::model::problem::{ProblemKind, Problems};
use crate::model::report::InputInfo;
use crate::model::time::Time;
use std::io::Read;
use tally::Tally;
use window::Window;

/// The file formats of captures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaptureKind {
    /// Classic pcap in either byte order, with µs or ns.
    Pcap,
    /// pcapng.
    Pcapng,
}

impl CaptureKind {
    /// Both, with their names.
    pub const ALL: [CaptureKind; 2] = [CaptureKind::Pcap, CaptureKind::Pcapng];

    /// Its name for `--input-format` and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            CaptureKind::Pcap => "pcap",
            CaptureKind::Pcapng => "pcapng",
        }
    }

    /// The format of a file that begins with `head`; its magic number is proof.
    pub fn of(head: &[u8]) -> Option<CaptureKind> {
        match head {
            [0xd4, 0xc3, 0xb2, 0xa1, ..] | [0xa1, 0xb2, 0xc3, 0xd4, ..] => Some(CaptureKind::Pcap),
            [0x4d, 0x3c, 0xb2, 0xa1, ..] | [0xa1, 0xb2, 0x3c, 0x4d, ..] => Some(CaptureKind::Pcap),
            [0x34, 0xcd, 0xb2, 0xa1, ..] | [0xa1, 0xb2, 0xcd, 0x34, ..] => Some(CaptureKind::Pcap),
            [0x0a, 0x0d, 0x0d, 0x0a, ..] => Some(CaptureKind::Pcapng),
            _ => None,
        }
    }
}

/// One frame of a capture, borrowed from the reader's buffer.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// Which input, and its number there, from 1 as Wireshark counts.
    pub place: Place,
    /// When it was captured.
    pub at: Time,
    /// Link type of its interface (<https://www.tcpdump.org/linktypes.html>).
    pub link_type: u16,
    /// Interface, counted over all sections of the file from 0.
    pub interface: u32,
    /// Its bytes as far as captured.
    pub data: &'a [u8],
    /// Its length on the wire, bytes; more than `data.len()` if it was cut.
    pub wire_len: u32,
    /// Where its record or block begins in the (decompressed) file.
    pub offset: u64,
}

/// The record at the front of the window.
#[derive(Clone, Copy, Debug)]
struct Current {
    /// Where the packet's bytes begin in it.
    start: usize,
    /// Captured bytes.
    length: usize,
    /// Bytes of the record with its framing.
    whole: usize,
    wire_len: u32,
    at: Time,
    link: u16,
    interface: u32,
}

/// What is known about a capture once (or as far as) it was read.
#[derive(Clone, Debug)]
pub struct CaptureStats {
    /// Its file format.
    pub kind: CaptureKind,
    /// Packets, and other records that have a frame number.
    pub records: u64,
    /// The earliest packet.
    pub first: Option<Time>,
    /// The latest packet.
    pub last: Option<Time>,
    /// What could not be read.
    pub problems: Problems,
}

impl CaptureStats {
    /// A capture that could be opened once and not again.
    fn unreadable(kind: CaptureKind, why: &str) -> CaptureStats {
        let mut problems = Problems::default();
        problems.add(ProblemKind::ReadError, || "", || format!("the capture could not be read: {why}"));
        CaptureStats { kind, records: 0, first: None, last: None, problems }
    }

    /// As a row of the report, for an input called `name`.
    pub fn into_info(self, name: &str) -> InputInfo {
        InputInfo {
            name: name.to_owned(),
            format: Some(self.kind.name().to_owned()),
            vantage: Some(Vantage::Wire),
            records: self.records,
            first: self.first,
            last: self.last,
            problems: self.problems,
            ..InputInfo::default()
        }
    }
}

enum Format {
    Pcap(pcap::Pcap),
    Pcapng(pcapng::Pcapng),
    /// The header could not be read, or the end was reached.
    Ended,
}

/// Reads one capture frame by frame, in file order.
pub struct CaptureReader<R> {
    window: Window<R>,
    input: InputId,
    kind: CaptureKind,
    format: Format,
    current: Option<Current>,
    tally: Tally,
}

impl CaptureReader<OpenInput> {
    /// As [`CaptureReader::new`], without copying what was read ahead.
    pub fn of_input(open: OpenInput, kind: CaptureKind, input: InputId) -> CaptureReader<OpenInput> {
        CaptureReader::over(Window::in_blocks(open, OpenInput::next_block), kind, input)
    }
}

impl<R: Read> CaptureReader<R> {
    /// A reader of `source`, which is input number `input` and of the format `kind`.
    pub fn new(source: R, kind: CaptureKind, input: InputId) -> CaptureReader<R> {
        CaptureReader::over(Window::new(source), kind, input)
    }

    fn over(window: Window<R>, kind: CaptureKind, input: InputId) -> CaptureReader<R> {
        let mut reader =
            CaptureReader { window, input, kind, format: Format::Ended, current: None, tally: Tally::default() };
        match kind {
            CaptureKind::Pcapng => reader.format = Format::Pcapng(pcapng::Pcapng::new()),
            CaptureKind::Pcap => reader.open_pcap(),
        }
        reader
    }

    fn open_pcap(&mut self) {
        if !self.window.fill(pcap::FILE_HEADER) {
            let have = self.window.data().len();
            self.tally.problems.add(
                ProblemKind::TruncatedRecord,
                || format!("byte {have}"),
                || format!("a pcap file header has {} bytes, this file ends after {have}", pcap::FILE_HEADER),
            );
            return self.end();
        }
        match pcap::Pcap::parse_header(self.window.data()) {
            Some(header) => {
                self.window.consume(pcap::FILE_HEADER);
                self.format = Format::Pcap(header);
            }
            None => {
                self.tally.problems.add(ProblemKind::Garbage, || "byte 0", || "this is no pcap file header");
                self.end();
            }
        }
    }

    /// Goes to the next frame; false at the end of what can be read.
    #[inline]
    pub fn advance(&mut self) -> bool {
        if let Some(done) = self.current.take() {
            self.window.consume(done.whole);
        }
        self.current = match &mut self.format {
            Format::Pcap(pcap) => pcap.next(&mut self.window, &mut self.tally),
            Format::Pcapng(pcapng) => pcapng.next(&mut self.window, &mut self.tally),
            Format::Ended => None,
        };
        if self.current.is_none() && !matches!(self.format, Format::Ended) {
            self.end();
        }
        self.current.is_some()
    }

    /// The frame that [`advance`](Self::advance) went to.
    #[inline]
    pub fn frame(&self) -> Option<Frame<'_>> {
        let current = self.current?;
        Some(Frame {
            place: Place::frame(self.input, self.tally.records),
            at: current.at,
            link_type: current.link,
            interface: current.interface,
            data: self.window.slice(current.start, current.length)?,
            wire_len: current.wire_len,
            offset: self.window.offset(),
        })
    }

    /// Time of the frame that [`advance`](Self::advance) went to.
    #[inline]
    pub fn time(&self) -> Option<Time> {
        self.current.map(|c| c.at)
    }

    /// TLS key log lines that came in the capture itself since the last call.
    pub fn take_secrets(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.tally.secrets)
    }

    /// The source being read.
    pub fn source_mut(&mut self) -> &mut R {
        self.window.source_mut()
    }

    /// Packets that the capture itself says were dropped, so far.
    pub fn dropped(&self) -> u64 {
        match &self.format {
            Format::Pcapng(pcapng) => pcapng.dropped(),
            Format::Pcap(_) | Format::Ended => 0,
        }
    }

    /// What is known so far.
    pub fn stats(&self) -> CaptureStats {
        CaptureStats {
            kind: self.kind,
            records: self.tally.records,
            first: self.tally.first,
            last: self.tally.last,
            problems: self.tally.problems.clone(),
        }
    }

    /// Nothing more will come: what can only be said at the end.
    fn end(&mut self) {
        if let Format::Pcapng(pcapng) = &self.format {
            let dropped = pcapng.dropped();
            if dropped > 0 {
                self.tally.problems.add_many(
                    ProblemKind::DroppedPackets,
                    dropped,
                    || "",
                    || "packets that the capturing host dropped, by the capture's own statistics; what they carried cannot be told",
                );
            }
        }
        if let Some(error) = self.window.take_error() {
            self.tally.problem_next(ProblemKind::ReadError, || format!("the input could not be read on: {error}"));
        }
        if self.tally.records == 0 && self.tally.problems.is_empty() {
            self.tally.problems.add(ProblemKind::Empty, || "", || "a capture without a single packet");
        }
        self.format = Format::Ended;
    }
}
