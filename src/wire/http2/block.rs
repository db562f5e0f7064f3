//! Header blocks: put together from their frames (RFC 9113 §4.3), and what they say.

use super::frame::{Header, flag, kind};
use crate::model::exchange::Mark;
use crate::model::limits;
use crate::wire::hpack::{Decoder, HpackError};
use crate::wire::http1::Fields;
use std::sync::Arc;

/// Stands for what refers to a header block that was not seen.
pub(super) const UNKNOWN: &str = "?";

/// A header block that is whole.
#[derive(Debug)]
pub(super) struct Block {
    /// The stream that it came on.
    pub(super) stream: u32,
    /// The stream that it promises (PUSH_PROMISE).
    pub(super) promised: Option<u32>,
    pub(super) end_stream: bool,
    /// Frames of its first and its last byte.
    pub(super) first: Mark,
    pub(super) last: Mark,
    pub(super) fields: FieldList,
}

/// What a header block says.
#[derive(Debug, Default)]
pub(super) struct FieldList {
    pub(super) method: Option<Arc<str>>,
    pub(super) path: Option<Arc<str>>,
    pub(super) authority: Option<Arc<str>>,
    pub(super) status: Option<Arc<str>>,
    pub(super) protocol: Option<Arc<str>>,
    /// Fields that are no pseudo-header fields; parts that are not known are [`UNKNOWN`].
    pub(super) fields: Fields,
    /// Fields of which a part is not known.
    pub(super) unknown: u64,
    /// Fields beyond the caps.
    pub(super) dropped: u64,
    bytes: usize,
}

/// What becomes of a frame that carries a header block.
#[derive(Debug)]
pub(super) enum Step {
    /// More of it is to come.
    Unfinished,
    /// It is whole.
    Whole(Box<Block>),
    /// It does not decode: it is lost.
    Undecodable(u32, HpackError),
    /// It is longer than the cap: it is lost.
    TooLong(u32),
    /// The frames break the rules.
    Illegal,
}

struct Pending {
    stream: u32,
    promised: Option<u32>,
    end_stream: bool,
    first: Mark,
    bytes: Vec<u8>,
    too_long: bool,
}

/// Reads the header blocks of one direction.
pub(super) struct Blocks {
    decoder: Decoder,
    pending: Option<Pending>,
    /// CONTINUATION frames of a block whose beginning is lost may follow.
    headless: bool,
}

impl Blocks {
    pub(super) fn new(midstream: bool) -> Blocks {
        let decoder = if midstream { Decoder::midstream() } else { Decoder::new() };
        Blocks { decoder, pending: None, headless: midstream }
    }

    /// A header block may have been lost. Returns the stream of one that was begun.
    pub(super) fn lost(&mut self) -> Option<u32> {
        self.decoder.forget();
        self.headless = true;
        self.pending.take().map(|pending| pending.promised.unwrap_or(pending.stream))
    }

    /// Is a block under way? Nothing else may come between (RFC 9113 §4.3).
    pub(super) fn is_pending(&self) -> bool {
        self.pending.is_some()
    }

    /// Takes a HEADERS, PUSH_PROMISE or CONTINUATION frame.
    pub(super) fn frame(&mut self, header: Header, payload: &[u8], mark: Mark) -> Step {
        if header.kind == kind::CONTINUATION {
            return self.continuation(header, payload, mark);
        }
        self.headless = false;
        let Some((promised, fragment)) = strip(header, payload) else {
            self.decoder.forget();
            return Step::Illegal;
        };
        let end_stream = header.kind == kind::HEADERS && header.has(flag::END_STREAM);
        let (stream, first) = (header.stream, mark);
        if header.has(flag::END_HEADERS) {
            return decode(
                &mut self.decoder,
                fragment,
                |fields| Block { stream, promised, end_stream, first, last: mark, fields },
                promised.unwrap_or(stream),
            );
        }
        self.pending = Some(Pending { stream, promised, end_stream, first, bytes: fragment.to_vec(), too_long: false });
        Step::Unfinished
    }

    fn continuation(&mut self, header: Header, payload: &[u8], mark: Mark) -> Step {
        let Some(mut pending) = self.pending.take_if(|pending| pending.stream == header.stream) else {
            return if self.headless { Step::Unfinished } else { Step::Illegal };
        };
        if pending.bytes.len() + payload.len() > limits::HEADER_BLOCK_BYTES {
            pending.too_long = true;
            pending.bytes.clear();
        } else if !pending.too_long {
            pending.bytes.extend_from_slice(payload);
        }
        if !header.has(flag::END_HEADERS) {
            self.pending = Some(pending);
            return Step::Unfinished;
        }
        let Pending { stream, promised, end_stream, first, bytes, too_long } = pending;
        if too_long {
            self.decoder.forget();
            return Step::TooLong(promised.unwrap_or(stream));
        }
        let block = |fields| Block { stream, promised, end_stream, first, last: mark, fields };
        decode(&mut self.decoder, &bytes, block, promised.unwrap_or(stream))
    }
}

fn decode(decoder: &mut Decoder, bytes: &[u8], block: impl FnOnce(FieldList) -> Block, stream: u32) -> Step {
    let mut list = FieldList::default();
    match decoder.decode(bytes, &mut |field| list.add(field.name, field.value)) {
        Ok(()) => Step::Whole(Box::new(block(list))),
        Err(error) => Step::Undecodable(stream, error),
    }
}

/// The promised stream and the fragment of a header block in a frame, without padding and priority
/// (RFC 9113 §6.2, §6.6).
fn strip(header: Header, mut payload: &[u8]) -> Option<(Option<u32>, &[u8])> {
    if header.has(flag::PADDED) {
        let (&padding, rest) = payload.split_first()?;
        payload = rest.get(..rest.len().checked_sub(usize::from(padding))?)?;
    }
    if header.kind == kind::PUSH_PROMISE {
        let (promised, rest) = payload.split_first_chunk::<4>()?;
        return Some((Some(u32::from_be_bytes(*promised) & 0x7fff_ffff), rest));
    }
    if header.has(flag::PRIORITY) {
        payload = payload.get(5..)?;
    }
    Some((None, payload))
}

impl FieldList {
    /// What a field counts beyond its text, bytes (RFC 9113 §6.5.2, SETTINGS_MAX_HEADER_LIST_SIZE).
    const FIELD_OVERHEAD: usize = 32;

    fn add(&mut self, name: Option<Arc<str>>, value: Option<Arc<str>>) {
        let length = |text: &Option<Arc<str>>| text.as_ref().map_or(1, |text| text.len());
        self.bytes += length(&name) + length(&value) + Self::FIELD_OVERHEAD;
        if self.fields.len() >= limits::HEADER_FIELDS || self.bytes > limits::HEAD_BYTES {
            self.dropped += 1;
            return;
        }
        self.unknown += u64::from(name.is_none() || value.is_none());
        let (name, value) = (name.unwrap_or_else(|| UNKNOWN.into()), value.unwrap_or_else(|| UNKNOWN.into()));
        let slot = match &*name {
            ":method" => &mut self.method,
            ":path" => &mut self.path,
            ":authority" => &mut self.authority,
            ":status" => &mut self.status,
            ":protocol" => &mut self.protocol,
            _ => {
                if !name.starts_with(':') {
                    self.fields.push((name, value));
                }
                return;
            }
        };
        *slot = Some(value);
    }
}
