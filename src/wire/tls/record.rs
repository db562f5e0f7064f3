//! A byte stream to TLS records (RFC 8446 §5.1), over holes.

use crate::model::limits;
use std::ops::Range;

/// Record types.
pub(super) mod kind {
    pub(in super::super) const CHANGE_CIPHER_SPEC: u8 = 20;
    pub(in super::super) const ALERT: u8 = 21;
    pub(in super::super) const HANDSHAKE: u8 = 22;
    pub(in super::super) const APPLICATION_DATA: u8 = 23;
    pub(in super::super) const HEARTBEAT: u8 = 24;
}

/// Length of a record header, bytes.
pub(super) const HEADER_BYTES: usize = 5;

/// Longest protected record body (RFC 5246 §6.2.3), bytes.
const BODY_BYTES: u16 = (16 << 10) + (2 << 10);

/// Shortest protected record with its header (TLS 1.3 with a tag of 8 bytes), bytes.
pub(super) const SEALED_BYTES: usize = 14;

/// A record header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) kind: u8,
    pub(super) version: u16,
    pub(super) length: u16,
}

impl Header {
    /// The header that `bytes` begin with, if it can be one.
    pub(super) fn parse(bytes: &[u8]) -> Option<Header> {
        let &[kind, high, low, first, second] = bytes.first_chunk::<HEADER_BYTES>()?;
        let header =
            Header { kind, version: u16::from_be_bytes([high, low]), length: u16::from_be_bytes([first, second]) };
        let known = matches!(header.kind, kind::CHANGE_CIPHER_SPEC..=kind::HEARTBEAT);
        (known && matches!(header.version, 0x0300..=0x0304) && header.length <= BODY_BYTES).then_some(header)
    }

    /// As sent.
    pub(super) fn bytes(self) -> [u8; HEADER_BYTES] {
        let ([high, low], [first, second]) = (self.version.to_be_bytes(), self.length.to_be_bytes());
        [self.kind, high, low, first, second]
    }
}

/// One record, as far as it is there.
#[derive(Debug)]
pub(super) struct Record<'a> {
    pub(super) header: Header,
    /// The whole body, with zeros in the holes; empty if it was passed over.
    pub(super) body: &'a [u8],
    /// What of `body` is missing, in order.
    pub(super) holes: &'a [Range<usize>],
    /// Found by searching: it may be none. [`Framer::settle`] must be told.
    pub(super) found: bool,
    /// It was passed over unread, as [`Framer::pass_over`] asked.
    pub(super) passed_over: bool,
}

/// What the framer has to tell.
#[derive(Debug)]
pub(super) enum Step<'a> {
    /// A record.
    Record(Record<'a>),
    /// The bytes from here on are no record.
    NotTls,
}

/// How many records a hole may have taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lost {
    /// At most so many.
    AtMost(u64),
    /// Any number.
    Unknown,
}

enum State {
    /// The buffer begins with a record.
    InStep,
    /// So many bytes of a record that is passed over are still to come.
    PassingOver(usize),
    /// The boundary is lost: it may be at or behind this offset of the buffer.
    Searching(usize),
}

/// Cuts one direction of a connection into records.
pub(super) struct Framer {
    state: State,
    buffer: Vec<u8>,
    /// Where in `buffer` the record at hand begins.
    start: usize,
    holes: Vec<Range<usize>>,
    /// The record handed out last, header included, bytes of `buffer`.
    taken: usize,
    /// The boundary is lost behind the record at hand.
    then_search: bool,
    /// No application data can be read: do not even copy it.
    pub(super) pass_over: bool,
}

impl Framer {
    pub(super) fn new() -> Framer {
        Framer {
            state: State::InStep,
            buffer: Vec::new(),
            start: 0,
            holes: Vec::new(),
            taken: 0,
            then_search: false,
            pass_over: false,
        }
    }

    /// The next step; none: more `input` is needed, all of it was taken.
    pub(super) fn next<'a, 'i: 'a>(&'a mut self, input: &mut &'i [u8]) -> Option<Step<'a>> {
        self.drop_taken();
        match self.state {
            State::PassingOver(left) => {
                let passed = left.min(input.len());
                *input = input.get(passed..).unwrap_or_default();
                self.state = if passed < left { State::PassingOver(left - passed) } else { State::InStep };
                if passed < left { None } else { self.in_step(input) }
            }
            State::InStep => self.in_step(input),
            State::Searching(from) => self.search(from, input),
        }
    }

    /// Goes behind the record that was handed out last.
    fn drop_taken(&mut self) {
        if self.taken == 0 {
            return;
        }
        self.start += std::mem::take(&mut self.taken);
        self.holes.clear();
        if std::mem::take(&mut self.then_search) {
            self.state = State::Searching(0);
            self.start = self.buffer.len();
        }
        if self.start >= self.buffer.len() {
            self.buffer.clear();
            self.start = 0;
        }
    }

    fn in_step<'a, 'i: 'a>(&'a mut self, input: &mut &'i [u8]) -> Option<Step<'a>> {
        // Most often the record lies whole in the input.
        if self.buffer.is_empty()
            && let Some(header) = Header::parse(input)
        {
            let end = HEADER_BYTES + usize::from(header.length);
            if let Some((record, rest)) = input.split_at_checked(end) {
                *input = rest;
                let body = record.get(HEADER_BYTES..).unwrap_or_default();
                return Some(Step::Record(Record { header, body, holes: &[], found: false, passed_over: false }));
            }
            if self.pass_over && header.kind == kind::APPLICATION_DATA {
                self.state = State::PassingOver(end - input.len());
                *input = &[];
                return Some(Step::Record(Record { header, body: &[], holes: &[], found: false, passed_over: true }));
            }
        }
        self.fill(input, HEADER_BYTES);
        if self.pending().len() < HEADER_BYTES {
            return None;
        }
        let Some(header) = Header::parse(self.pending()) else {
            self.state = State::Searching(self.start + 1);
            return Some(Step::NotTls);
        };
        let end = HEADER_BYTES + usize::from(header.length);
        self.fill(input, end);
        let whole = self.pending().len() >= end;
        if !whole && self.pass_over && header.kind == kind::APPLICATION_DATA {
            self.state = State::PassingOver(end - self.pending().len());
            self.buffer.clear();
            self.start = 0;
            return Some(Step::Record(Record { header, body: &[], holes: &[], found: false, passed_over: true }));
        }
        whole.then(|| self.take(header, false))
    }

    fn take(&mut self, header: Header, found: bool) -> Step<'_> {
        self.taken = HEADER_BYTES + usize::from(header.length);
        let body = self.buffer.get(self.start + HEADER_BYTES..self.start + self.taken).unwrap_or_default();
        Step::Record(Record { header, body, holes: &self.holes, found, passed_over: false })
    }

    /// Looks for a record that lies whole in what came since the hole.
    fn search<'a, 'i: 'a>(&'a mut self, mut from: usize, input: &mut &'i [u8]) -> Option<Step<'a>> {
        if self.pass_over {
            *input = &[];
            self.buffer.clear();
            self.start = 0;
            self.state = State::Searching(0);
            return None;
        }
        self.buffer.extend_from_slice(input);
        *input = &[];
        loop {
            let rest = self.buffer.get(from..).unwrap_or_default();
            if rest.len() < HEADER_BYTES {
                self.state = State::Searching(from);
                self.trim(from);
                return None;
            }
            match Header::parse(rest) {
                Some(header) if header.length > 0 => {
                    if rest.len() < HEADER_BYTES + usize::from(header.length) {
                        self.state = State::Searching(from);
                        self.trim(from);
                        return None;
                    }
                    self.state = State::Searching(from);
                    self.start = from;
                    self.holes.clear();
                    let step = self.take(header, true);
                    return Some(step);
                }
                _ => from += 1,
            }
        }
    }

    /// Forgets what was searched in vain.
    fn trim(&mut self, from: usize) {
        if from > limits::RESYNC_BYTES / 4 {
            self.buffer.drain(..from.min(self.buffer.len()));
            self.state = State::Searching(0);
        }
        self.start = 0;
    }

    /// Says whether the record that was found is one: then the records go on behind it.
    pub(super) fn settle(&mut self, is_record: bool) {
        if let State::Searching(from) = self.state {
            if is_record {
                self.state = State::InStep;
            } else {
                self.taken = 0;
                self.start = 0;
                self.state = State::Searching(from + 1);
            }
        }
    }

    /// `bytes` bytes are missing (none: unknown how many). Returns how many records may have been lost
    /// beside the one at hand, or none if the hole lies inside that one. The caller must go on with
    /// [`Framer::next`], which may have a record with holes.
    pub(super) fn gap(&mut self, bytes: Option<u64>) -> Option<Lost> {
        self.drop_taken();
        let lost =
            |bytes: Option<u64>| bytes.map_or(Lost::Unknown, |bytes| Lost::AtMost(bytes / SEALED_BYTES as u64 + 1));
        match self.state {
            State::PassingOver(left) => match bytes.and_then(|bytes| usize::try_from(bytes).ok()) {
                Some(bytes) if bytes <= left => {
                    self.state = State::PassingOver(left - bytes);
                    None
                }
                _ => {
                    self.state = State::Searching(0);
                    Some(lost(bytes))
                }
            },
            State::Searching(_) => {
                self.buffer.clear();
                self.start = 0;
                self.state = State::Searching(0);
                Some(lost(bytes))
            }
            State::InStep => {
                let pending = self.pending().len();
                let Some(header) = Header::parse(self.pending()) else {
                    self.buffer.clear();
                    self.start = 0;
                    self.holes.clear();
                    self.state = State::Searching(0);
                    return Some(lost(bytes));
                };
                let left = (HEADER_BYTES + usize::from(header.length)).saturating_sub(pending);
                let inside = bytes.and_then(|bytes| usize::try_from(bytes).ok()).filter(|bytes| *bytes <= left);
                let body = pending - HEADER_BYTES;
                let hole = inside.unwrap_or(left);
                self.holes.push(body..body + hole);
                self.buffer.resize(self.buffer.len() + hole, 0);
                if inside.is_some() {
                    return None;
                }
                self.then_search = true;
                Some(lost(bytes.map(|bytes| bytes.saturating_sub(left as u64))))
            }
        }
    }

    /// Is the record boundary lost?
    pub(super) fn is_searching(&self) -> bool {
        matches!(self.state, State::Searching(_))
    }

    /// Has a record begun and not ended?
    pub(super) fn has_partial(&self) -> bool {
        matches!(self.state, State::InStep) && self.buffer.len() > self.start + self.taken
    }

    fn pending(&self) -> &[u8] {
        self.buffer.get(self.start..).unwrap_or_default()
    }

    /// Takes from `input` until the record at hand has `bytes` bytes.
    fn fill(&mut self, input: &mut &[u8], bytes: usize) {
        let wanted = bytes.saturating_sub(self.pending().len()).min(input.len());
        let (taken, rest) = input.split_at_checked(wanted).unwrap_or((input, &[]));
        self.buffer.extend_from_slice(taken);
        *input = rest;
    }
}
