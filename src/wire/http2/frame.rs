//! One direction's bytes to frames (RFC 9113 §4), over holes.

use crate::model::limits;

/// Frame types (RFC 9113 §6).
pub(super) mod kind {
    pub(in super::super) const DATA: u8 = 0;
    pub(in super::super) const HEADERS: u8 = 1;
    pub(in super::super) const PRIORITY: u8 = 2;
    pub(in super::super) const RST_STREAM: u8 = 3;
    pub(in super::super) const SETTINGS: u8 = 4;
    pub(in super::super) const PUSH_PROMISE: u8 = 5;
    pub(in super::super) const PING: u8 = 6;
    pub(in super::super) const GOAWAY: u8 = 7;
    pub(in super::super) const WINDOW_UPDATE: u8 = 8;
    pub(in super::super) const CONTINUATION: u8 = 9;
}

/// Flags of frames.
pub(super) mod flag {
    /// Of DATA and HEADERS.
    pub(in super::super) const END_STREAM: u8 = 0x1;
    /// Of SETTINGS and PING.
    pub(in super::super) const ACK: u8 = 0x1;
    pub(in super::super) const END_HEADERS: u8 = 0x4;
    pub(in super::super) const PADDED: u8 = 0x8;
    pub(in super::super) const PRIORITY: u8 = 0x20;
}

/// What a client sends first (RFC 9113 §3.4).
pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Length of a frame header, bytes.
pub(super) const HEADER_BYTES: usize = 9;

/// The longest payload that a sender may use before it is allowed more, bytes (RFC 9113 §4.2).
const FRAME_BYTES: usize = 16_384;

/// A frame header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) length: usize,
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) stream: u32,
}

impl Header {
    /// The header that `bytes` begin with.
    pub(super) fn parse(bytes: &[u8]) -> Option<Header> {
        let &[high, middle, low, kind, flags, a, b, c, d] = bytes.first_chunk::<HEADER_BYTES>()?;
        let length = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
        // The highest bit is reserved, and to be ignored.
        Some(Header { length, kind, flags, stream: u32::from_be_bytes([a, b, c, d]) & 0x7fff_ffff })
    }

    /// Is this flag set?
    pub(super) fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Does it keep the rules of its type on length and stream (RFC 9113 §6)?
    pub(super) fn is_legal(self) -> bool {
        let on_stream = self.stream != 0;
        match self.kind {
            kind::DATA | kind::HEADERS | kind::CONTINUATION => on_stream,
            kind::PUSH_PROMISE => on_stream && self.length >= 4,
            kind::PRIORITY => on_stream && self.length == 5,
            kind::RST_STREAM => on_stream && self.length == 4,
            kind::SETTINGS => !on_stream && self.length.is_multiple_of(6) && (self.length == 0 || !self.has(flag::ACK)),
            kind::PING => !on_stream && self.length == 8,
            kind::GOAWAY => !on_stream && self.length >= 8,
            kind::WINDOW_UPDATE => self.length == 4,
            _ => true,
        }
    }

    /// May a header like this be looked for among other bytes? Only one of a known type, with the flags
    /// of that type, no longer than allowed, on a stream at or below `last`.
    fn is_likely(self, last: u32, longest: usize, reserved: bool) -> bool {
        let flags = match self.kind {
            kind::DATA => flag::END_STREAM | flag::PADDED,
            kind::HEADERS => flag::END_STREAM | flag::END_HEADERS | flag::PADDED | flag::PRIORITY,
            kind::SETTINGS | kind::PING => flag::ACK,
            kind::PUSH_PROMISE => flag::END_HEADERS | flag::PADDED,
            kind::CONTINUATION => flag::END_HEADERS,
            kind::PRIORITY | kind::RST_STREAM | kind::GOAWAY | kind::WINDOW_UPDATE => 0,
            _ => return false,
        };
        !reserved && self.flags & !flags == 0 && self.length <= longest && self.stream <= last && self.is_legal()
    }
}

/// What the framer has to tell.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    /// Some of the data of a stream; `ends`: the last of it.
    Data { stream: u32, bytes: &'a [u8], ends: bool },
    /// A whole frame of another type.
    Frame(Header, &'a [u8]),
    /// Bytes of the data of a stream are missing; `ends`: the frame was the last of it, and has ended.
    DataGap { stream: u32, ends: bool },
    /// A frame of another type of which bytes are missing, or which is too long to be read.
    Damaged(Header),
    /// The bytes from here on make no frame: the boundary is lost.
    NotHttp2,
}

enum State {
    /// Before or within a frame header.
    Header,
    /// Within the client's preface, so many bytes of which have been read.
    Preface(usize),
    /// Within DATA: so many bytes of data and of padding are left.
    Data { header: Header, data: usize, padding: usize },
    /// The length of the padding comes next.
    PadLength(Header),
    /// Within another frame, which is collected.
    Payload(Header),
    /// Within a frame that is not read, with so many bytes left.
    Skip(usize),
    /// The boundary is lost.
    Lost,
}

/// Cuts one direction of a connection into frames.
pub(super) struct Framer {
    state: State,
    buffer: Vec<u8>,
    /// `buffer` has been handed out.
    handed_out: bool,
    /// The highest stream met, which those met next are not far above.
    last_stream: u32,
    /// The longest payload met or allowed to all, bytes.
    longest: usize,
}

/// The first type that is not defined in RFC 9113; such frames are to be ignored (§5.5).
const UNKNOWN: u8 = kind::CONTINUATION + 1;

/// New streams that may have been opened unseen.
const STREAM_LEAP: u32 = 2000;

impl Framer {
    /// For a direction seen from its beginning, which is a preface if the client sends it.
    pub(super) fn new(preface: bool) -> Framer {
        let state = if preface { State::Preface(0) } else { State::Header };
        Framer { state, buffer: Vec::new(), handed_out: false, last_stream: 0, longest: FRAME_BYTES }
    }

    /// For a direction whose beginning was not seen.
    pub(super) fn midstream() -> Framer {
        Framer { state: State::Lost, ..Framer::new(false) }
    }

    /// Is the boundary lost?
    pub(super) fn is_lost(&self) -> bool {
        matches!(self.state, State::Lost)
    }

    /// The next piece of `input`; none: all of it was taken.
    pub(super) fn next<'a, 'i: 'a>(&'a mut self, input: &mut &'i [u8]) -> Option<Piece<'a>> {
        if std::mem::take(&mut self.handed_out) {
            self.buffer.clear();
        }
        loop {
            match self.state {
                State::Header => {
                    if !self.fill(input, HEADER_BYTES) {
                        return None;
                    }
                    let header = Header::parse(&self.buffer)?;
                    self.buffer.clear();
                    if let Some(piece) = self.begin(header) {
                        return Some(piece);
                    }
                }
                State::Preface(read) => {
                    let rest = PREFACE.get(read..).unwrap_or_default();
                    let same = rest.iter().zip(*input).take_while(|(a, b)| a == b).count();
                    if same < rest.len().min(input.len()) {
                        self.state = State::Lost;
                        return Some(Piece::NotHttp2);
                    }
                    *input = input.get(same..).unwrap_or_default();
                    self.state = if same == rest.len() { State::Header } else { State::Preface(read + same) };
                    if input.is_empty() {
                        return None;
                    }
                }
                State::PadLength(header) => {
                    let (&padding, rest) = input.split_first()?;
                    *input = rest;
                    let padding = usize::from(padding);
                    let Some(data) = (header.length - 1).checked_sub(padding) else {
                        self.state = State::Lost;
                        return Some(Piece::NotHttp2);
                    };
                    self.state = State::Data { header, data, padding };
                    if data + padding == 0 {
                        self.state = State::Header;
                        return Some(Piece::Data {
                            stream: header.stream,
                            bytes: &[],
                            ends: header.has(flag::END_STREAM),
                        });
                    }
                }
                State::Data { header, data, padding } => {
                    if input.is_empty() {
                        return None;
                    }
                    let (bytes, rest) = input.split_at(data.min(input.len()));
                    let padded = padding.min(rest.len());
                    *input = rest.get(padded..).unwrap_or_default();
                    let (data, padding) = (data - bytes.len(), padding - padded);
                    let over = data + padding == 0;
                    self.state = if over { State::Header } else { State::Data { header, data, padding } };
                    let ends = over && header.has(flag::END_STREAM);
                    if !bytes.is_empty() || ends {
                        return Some(Piece::Data { stream: header.stream, bytes, ends });
                    }
                }
                State::Payload(header) => {
                    // Most often the frame lies whole in the input.
                    if self.buffer.is_empty()
                        && let Some((payload, rest)) = input.split_at_checked(header.length)
                    {
                        *input = rest;
                        self.state = State::Header;
                        return Some(Piece::Frame(header, payload));
                    }
                    if !self.fill(input, header.length) {
                        return None;
                    }
                    self.state = State::Header;
                    self.handed_out = true;
                    return Some(Piece::Frame(header, &self.buffer));
                }
                State::Skip(left) => {
                    let skipped = left.min(input.len());
                    *input = input.get(skipped..).unwrap_or_default();
                    if skipped < left {
                        self.state = State::Skip(left - skipped);
                        return None;
                    }
                    self.state = State::Header;
                    if input.is_empty() {
                        return None;
                    }
                }
                State::Lost => {
                    let Some(at) = self.search(input) else {
                        *input = &[];
                        return None;
                    };
                    *input = input.get(at..).unwrap_or_default();
                    self.state = State::Header;
                }
            }
        }
    }

    /// A frame begins; a piece if nothing of it needs to be read.
    fn begin(&mut self, header: Header) -> Option<Piece<'static>> {
        if !header.is_legal() {
            self.state = State::Lost;
            return Some(Piece::NotHttp2);
        }
        self.last_stream = self.last_stream.max(header.stream);
        self.longest = self.longest.max(header.length);
        let (stream, ends) = (header.stream, header.has(flag::END_STREAM));
        self.state = match header.kind {
            kind::DATA if header.length == 0 => {
                self.state = State::Header;
                return Some(Piece::Data { stream, bytes: &[], ends });
            }
            kind::DATA if header.has(flag::PADDED) => State::PadLength(header),
            kind::DATA => State::Data { header, data: header.length, padding: 0 },
            // The table size that SETTINGS allow is also said by the header blocks that obey it.
            kind::PRIORITY | kind::PING | kind::WINDOW_UPDATE | kind::SETTINGS | UNKNOWN.. => {
                State::Skip(header.length)
            }
            _ if header.length > limits::HEADER_BLOCK_BYTES => {
                self.state = State::Skip(header.length);
                return Some(Piece::Damaged(header));
            }
            _ => State::Payload(header),
        };
        None
    }

    /// `bytes` bytes are missing (none: unknown how many). True if the frame boundary is lost with
    /// them. The piece tells what was hit.
    pub(super) fn gap(&mut self, bytes: Option<u64>) -> (Option<Piece<'static>>, bool) {
        if std::mem::take(&mut self.handed_out) {
            self.buffer.clear();
        }
        let missing = bytes.and_then(|bytes| usize::try_from(bytes).ok());
        let (piece, left) = match self.state {
            State::Data { header, data, padding } => {
                let left = data + padding;
                if let Some(missing) = missing.filter(|missing| *missing < left) {
                    let hit = missing.min(data);
                    self.state = State::Data { header, data: data - hit, padding: padding - (missing - hit) };
                    return (Some(Piece::DataGap { stream: header.stream, ends: false }), false);
                }
                (Piece::DataGap { stream: header.stream, ends: header.has(flag::END_STREAM) }, left)
            }
            // How much of it is padding is lost as well: all of it is.
            State::PadLength(header) => {
                (Piece::DataGap { stream: header.stream, ends: header.has(flag::END_STREAM) }, header.length)
            }
            State::Payload(header) => (Piece::Damaged(header), header.length - self.buffer.len()),
            State::Skip(left) => {
                self.state = match missing.and_then(|missing| left.checked_sub(missing)) {
                    Some(left) => State::Skip(left),
                    None => State::Lost,
                };
                return (None, self.is_lost());
            }
            State::Header | State::Preface(_) | State::Lost => {
                self.buffer.clear();
                self.state = State::Lost;
                return (None, true);
            }
        };
        self.buffer.clear();
        self.state = match missing.and_then(|missing| left.checked_sub(missing)) {
            Some(left) => State::Skip(left),
            None => State::Lost,
        };
        (Some(piece), self.is_lost())
    }

    /// Where in `bytes`, which begin where a sender began to write, a frame provably begins: its header is one that
    /// may stand there, and so is the next behind it, or it ends where the bytes end. At the very beginning a
    /// header of a stream that is known is enough.
    fn search(&self, bytes: &[u8]) -> Option<usize> {
        let last = if self.last_stream == 0 { 0x7fff_ffff } else { self.last_stream.saturating_add(STREAM_LEAP) };
        let likely = |at: usize| {
            let header = Header::parse(bytes.get(at..)?)?;
            let reserved = bytes.get(at + 5).is_some_and(|byte| byte & 0x80 != 0);
            header.is_likely(last, self.longest, reserved).then_some(header)
        };
        (0..bytes.len().saturating_sub(HEADER_BYTES - 1)).find(|&at| {
            let Some(header) = likely(at) else { return false };
            let next = at + HEADER_BYTES + header.length;
            let known = header.stream != 0 && header.stream <= self.last_stream;
            next == bytes.len() || likely(next).is_some() || (at == 0 && known && next > bytes.len())
        })
    }

    /// Takes from `input` until the buffer has `bytes` bytes; false if there are not enough.
    fn fill(&mut self, input: &mut &[u8], bytes: usize) -> bool {
        let wanted = bytes.saturating_sub(self.buffer.len()).min(input.len());
        let (taken, rest) = input.split_at_checked(wanted).unwrap_or((input, &[]));
        self.buffer.extend_from_slice(taken);
        *input = rest;
        self.buffer.len() >= bytes
    }
}

/// Do these bytes of an end that is seen from its beginning, or at a sender's write, make frames?
pub(super) fn begins_with_frames(bytes: &[u8]) -> bool {
    Framer::midstream().search(bytes) == Some(0)
}
