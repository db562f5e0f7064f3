//! What a body says: content codings undone, event streams split into events, and everything
//! else kept whole, with the frames of the first and the last byte.

pub(super) mod coding;

pub use coding::{CodingError, Decoder};

use super::sse::{RESERVED_BYTES, SseEvent, SseParser};
use crate::model::exchange::{BodyKind, Mark};
use crate::model::limits;

/// Why (part of) a body could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// Its coding.
    #[error(transparent)]
    Coding(#[from] CodingError),
    /// Its length.
    #[error("message-bytes: a message is too long to be looked at")]
    TooLong,
}

/// Reads one body, after transfer decoding.
#[derive(Default)]
pub struct BodyReader {
    kind: BodyKind,
    decoder: Option<Decoder>,
    shape: Shape,
    /// Its type is missing (or not known, in HTTP/2): it may be an event stream if it begins like one.
    may_be_events: bool,
    first: Option<Mark>,
    last: Option<Mark>,
}

/// How the body is kept.
#[derive(Default)]
enum Shape {
    /// Not at all.
    #[default]
    Skipped,
    /// Whole, if its first byte that is no space looks like JSON.
    Sniffed(Vec<u8>),
    /// Whole.
    Whole(Vec<u8>),
    /// One event after another.
    Events(Box<SseParser>),
}

/// A body that is whole.
#[derive(Clone, Copy, Debug)]
pub struct Whole<'a> {
    /// The decoded bytes.
    pub bytes: &'a [u8],
    /// Frame of the first byte.
    pub first: Mark,
    /// Frame of the last byte.
    pub last: Mark,
}

impl BodyReader {
    /// For a body of this `Content-Type` and with these codings, in order of application.
    /// An unknown coding leaves a reader that skips all.
    pub fn new<'a>(
        content_type: Option<&str>,
        codings: impl Iterator<Item = &'a str>,
        may_be_events: bool,
    ) -> (BodyReader, Option<BodyError>) {
        let (kind, shape) = match media_type(content_type) {
            Media::Json => (BodyKind::Json, Shape::Whole(Vec::new())),
            Media::EventStream if may_be_events => (BodyKind::EventStream, Shape::Events(Box::default())),
            Media::Text | Media::EventStream => (BodyKind::Other, Shape::Whole(Vec::new())),
            Media::Unsure => (BodyKind::Other, Shape::Sniffed(Vec::new())),
            Media::Opaque => return (BodyReader::default(), None),
        };
        match Decoder::new(codings) {
            Ok(decoder) => {
                let may_be_events = may_be_events && content_type.is_none();
                (BodyReader { kind, decoder, shape, may_be_events, first: None, last: None }, None)
            }
            Err(error) => (BodyReader { kind, ..BodyReader::default() }, Some(error.into())),
        }
    }

    /// What the body is: JSON may be recognised only when its first byte comes.
    pub fn kind(&self) -> BodyKind {
        self.kind
    }

    /// Takes the next bytes; `emit` gets each event of an event stream.
    pub fn push(&mut self, bytes: &[u8], mark: Mark, emit: &mut dyn FnMut(SseEvent<'_>)) -> Result<(), BodyError> {
        if bytes.is_empty() || matches!(self.shape, Shape::Skipped) {
            return Ok(());
        }
        self.first.get_or_insert(mark);
        self.last = Some(mark);
        let decoded = match &mut self.decoder {
            None => bytes,
            Some(decoder) => match decoder.decode(bytes) {
                Ok(decoded) => decoded,
                Err(error) => {
                    self.shape = Shape::Skipped;
                    return Err(error.into());
                }
            },
        };
        if let Shape::Sniffed(before) = &mut self.shape {
            let before = std::mem::take(before);
            (self.kind, self.shape) = sniff(&before, decoded, self.may_be_events);
            match &mut self.shape {
                // Too few bytes for an event of their own.
                Shape::Events(parser) => drop(parser.push(&before, self.first.unwrap_or(mark), emit)),
                Shape::Sniffed(all) | Shape::Whole(all) => *all = before,
                Shape::Skipped => {}
            }
        }
        let within = match &mut self.shape {
            Shape::Skipped => true,
            Shape::Sniffed(all) => {
                all.extend_from_slice(decoded);
                all.len() <= limits::MESSAGE_BYTES
            }
            Shape::Events(parser) => parser.push(decoded, mark, emit),
            Shape::Whole(all) => {
                all.extend_from_slice(decoded);
                all.len() <= limits::MESSAGE_BYTES
            }
        };
        if within {
            return Ok(());
        }
        if !matches!(self.shape, Shape::Events(_)) {
            self.shape = Shape::Skipped;
        }
        Err(BodyError::TooLong)
    }

    /// Bytes are missing: a whole body is lost, an event stream goes on behind the next event.
    pub fn gap(&mut self) {
        match &mut self.shape {
            Shape::Events(parser) if self.decoder.is_none() => parser.gap(),
            _ => self.shape = Shape::Skipped,
        }
    }

    /// A chunk begins with `bytes`: servers write events as chunks, which helps after a gap.
    pub fn chunk(&mut self, bytes: &[u8]) {
        if let (Shape::Events(parser), None) = (&mut self.shape, &self.decoder) {
            parser.boundary(bytes);
        }
    }

    /// So many bytes more are announced than are at hand: room is made for them at once.
    pub fn reserve(&mut self, bytes: u64) {
        match (&mut self.shape, &self.decoder) {
            (Shape::Events(parser), None) => parser.reserve(bytes),
            (Shape::Whole(all), None) => all.reserve(bytes.min(RESERVED_BYTES) as usize),
            _ => {}
        }
    }

    /// Would a chunk that begins with `bytes` be believed to begin an event?
    pub fn begins_event(&self, bytes: &[u8]) -> bool {
        let fields: [&[u8]; 3] = [b"event:", b"data:", b"id:"];
        matches!(self.shape, Shape::Events(_)) && self.decoder.is_none() && fields.iter().any(|f| bytes.starts_with(f))
    }

    /// The body ends with `tail`, which is copied only if other bytes came before. Gives a body
    /// that is no event stream; `emit` gets the last events of one that is.
    pub fn finish<'a>(
        &'a mut self,
        tail: &'a [u8],
        mark: Mark,
        emit: &mut dyn FnMut(SseEvent<'_>),
    ) -> Result<Option<Whole<'a>>, BodyError> {
        let alone = self.first.is_none() && self.decoder.is_none() && !tail.is_empty();
        if alone && matches!(self.shape, Shape::Sniffed(_)) {
            (self.kind, self.shape) = sniff(b"", tail, self.may_be_events);
        }
        if alone && matches!(self.shape, Shape::Whole(_)) {
            return Ok(Some(Whole { bytes: tail, first: mark, last: mark }));
        }
        self.push(tail, mark, emit)?;
        let Shape::Whole(bytes) = &self.shape else { return Ok(None) };
        let Some((first, last)) = self.first.zip(self.last) else { return Ok(None) };
        Ok(Some(Whole { bytes, first, last }))
    }
}

/// What a `Content-Type` says (RFC 9110 §8.3).
enum Media {
    Json,
    EventStream,
    Text,
    Unsure,
    Opaque,
}

fn media_type(content_type: Option<&str>) -> Media {
    let Some(value) = content_type else { return Media::Unsure };
    let name = value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match name.split_once('/') {
        Some(("application" | "text", "json")) => Media::Json,
        Some((_, subtype)) if subtype.ends_with("+json") || subtype == "json-rpc" || subtype == "jsonrequest" => {
            Media::Json
        }
        Some(("text", "event-stream")) => Media::EventStream,
        Some(("text", "plain" | "html")) => Media::Text,
        Some(("image" | "audio" | "video" | "font", _)) => Media::Opaque,
        _ => Media::Unsure,
    }
}

/// A body without a telling type is JSON, or an event stream, if it begins so. `before` came
/// earlier and did not decide.
fn sniff(before: &[u8], bytes: &[u8], may_be_events: bool) -> (BodyKind, Shape) {
    const FIELDS: [&[u8]; 5] = [b"event:", b"data:", b"id:", b"retry:", b": "];
    let mut all = before.iter().chain(bytes);
    if may_be_events {
        let begins = |field: &&[u8]| all.clone().zip(*field).all(|(byte, wanted)| byte == wanted);
        match FIELDS.iter().filter(|field| begins(field)).map(|field| field.len()).min() {
            Some(length) if before.len() + bytes.len() >= length => {
                return (BodyKind::EventStream, Shape::Events(Box::default()));
            }
            Some(_) => return (BodyKind::Other, Shape::Sniffed(Vec::new())),
            None => {}
        }
    }
    match all.find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'{' | b'[') => (BodyKind::Json, Shape::Whole(Vec::new())),
        Some(_) => (BodyKind::Other, Shape::Skipped),
        None => (BodyKind::Other, Shape::Sniffed(Vec::new())),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::{BodyError, BodyReader};
    use crate::model::exchange::{BodyKind, Mark};
    use crate::model::place::Place;
    use crate::model::time::Time;

    fn mark(frame: u64) -> Mark {
        Mark { place: Place::frame(0, frame), at: Time::from_us(0) }
    }

    fn whole(content_type: Option<&str>, pieces: &[&[u8]]) -> (BodyKind, Option<(String, u64, u64)>) {
        let (mut reader, problem) = BodyReader::new(content_type, [].into_iter(), true);
        assert_eq!(problem, None);
        let (last, before) = pieces.split_last().unwrap();
        for (n, piece) in before.iter().enumerate() {
            reader.push(piece, mark(n as u64 + 1), &mut |_| {}).unwrap();
        }
        let body = reader.finish(last, mark(pieces.len() as u64), &mut |_| {}).unwrap();
        let body =
            body.map(|b| (String::from_utf8_lossy(b.bytes).into_owned(), b.first.place.number, b.last.place.number));
        (reader.kind(), body)
    }

    #[test]
    fn kinds() {
        for json in ["application/json", "Application/JSON; charset=utf-8", "application/problem+json", "text/json"] {
            assert_eq!(whole(Some(json), &[b"x"]).0, BodyKind::Json, "{json}");
        }
        assert_eq!(whole(None, &[b"", b" [1]"]), (BodyKind::Json, Some((" [1]".into(), 2, 2))));
        assert_eq!(whole(None, &[b"  ", b"{}"]).0, BodyKind::Json);
        assert_eq!(whole(None, &[b"data: {}\n\n"]), (BodyKind::EventStream, None));
        assert_eq!(whole(None, &[b"d", b"at", b"a: {}\n\n"]), (BodyKind::EventStream, None));
        assert_eq!(whole(None, &[b"d", b"at", b"e: {}\n\n"]), (BodyKind::Other, None));
        assert_eq!(whole(Some("application/octet-stream"), &[b"data: {}\n\n"]), (BodyKind::Other, None));
        assert_eq!(whole(Some("application/octet-stream"), &[b"PK"]), (BodyKind::Other, None));
        assert_eq!(whole(Some("image/png"), &[b"{}"]), (BodyKind::Other, None));
        assert_eq!(whole(Some("text/plain"), &[b"no", b"pe"]), (BodyKind::Other, Some(("nope".into(), 1, 2))));
    }

    #[test]
    fn a_coded_body_that_cannot_be_read_is_told_once() {
        let (mut reader, _) = BodyReader::new(Some("application/json"), ["gzip"].into_iter(), true);
        assert!(matches!(reader.push(b"no gzip", mark(1), &mut |_| {}), Err(BodyError::Coding(_))));
        assert!(reader.push(b"no gzip", mark(1), &mut |_| {}).is_ok());
        let (reader, problem) = BodyReader::new(Some("application/json"), ["lzw"].into_iter(), true);
        assert!(problem.is_some());
        assert_eq!(reader.kind(), BodyKind::Json);
    }
}
