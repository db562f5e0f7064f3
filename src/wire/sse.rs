//! Server-sent events (WHATWG HTML §9.2.5–9.2.6), with the frames that carried each event's data.

use crate::model::exchange::Mark;
use crate::model::limits;
use memchr::{memchr, memchr2};

/// Room made at once for bytes that are announced, at most: what is announced need not come.
pub(super) const RESERVED_BYTES: u64 = 32 << 10;

/// One event as dispatched. Events without a `data` field are not dispatched (§9.2.6); one whose data is
/// empty is, as the priming event of MCP 2025-11-25, which makes a stream resumable.
#[derive(Clone, Copy, Debug)]
pub struct SseEvent<'a> {
    /// The data lines joined with `\n`.
    pub data: &'a [u8],
    /// Frame of the first data byte.
    pub first: Mark,
    /// Frame of the last data byte.
    pub last: Mark,
    /// The `event` field, unless empty.
    pub event: Option<&'a str>,
    /// The last event id in force.
    pub id: Option<&'a str>,
}

/// Parses one event stream, fed in any pieces.
#[derive(Debug, Default)]
pub struct SseParser {
    line: Line,
    data: Vec<u8>,
    /// Where in `data` the value begins: a long line is taken over with its name.
    from: usize,
    has_data: bool,
    first: Option<Mark>,
    last: Option<Mark>,
    event: String,
    id: Option<String>,
    after_cr: bool,
    past_first_line: bool,
    lost: Lost,
}

/// Whether the parser is in step with the stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Lost {
    /// In step.
    #[default]
    No,
    /// Bytes are missing, and it is not known whether a line begins here.
    InLine,
    /// A line begins here; an event begins behind the next empty one.
    AtLine,
}

/// A line that began in an earlier piece.
#[derive(Debug, Default)]
struct Line {
    bytes: Vec<u8>,
    /// Where each piece of it begins, and its frame.
    pieces: Vec<(usize, Mark)>,
}

impl Line {
    fn push(&mut self, bytes: &[u8], mark: Mark) {
        if !bytes.is_empty() {
            self.pieces.push((self.bytes.len(), mark));
            self.bytes.extend_from_slice(bytes);
        }
    }
    fn clear(&mut self) {
        self.bytes.clear();
        self.pieces.clear();
    }
    /// The frame of the byte at `offset`.
    fn mark(&self, offset: usize, otherwise: Mark) -> Mark {
        self.pieces.iter().rev().find(|(start, _)| *start <= offset).map_or(otherwise, |(_, mark)| *mark)
    }
}

/// A data value that lies in the piece at hand and was not copied.
type Lying<'a> = Option<(&'a [u8], Mark)>;

impl SseParser {
    /// Takes the next bytes; `emit` gets each event as its empty line comes. False if an event
    /// was too long and was passed over.
    pub fn push(&mut self, bytes: &[u8], mark: Mark, emit: &mut dyn FnMut(SseEvent<'_>)) -> bool {
        let mut within = true;
        let mut rest = bytes;
        let mut lying: Lying<'_> = None;
        while !rest.is_empty() {
            if std::mem::take(&mut self.after_cr)
                && let Some(next) = rest.strip_prefix(b"\n")
            {
                rest = next;
                continue;
            }
            let Some(end) = memchr2(b'\r', b'\n', rest) else {
                if self.lost != Lost::InLine {
                    self.line.push(rest, mark);
                }
                within &= self.check_length();
                break;
            };
            let (line, next) = rest.split_at(end);
            self.after_cr = next.first() == Some(&b'\r');
            rest = next.get(1..).unwrap_or_default();
            if self.lost != Lost::No {
                self.skip_line(line);
            } else if self.line.bytes.is_empty() {
                self.whole_line(line, mark, &mut lying, emit);
            } else {
                self.line.push(line, mark);
                let mut assembled = std::mem::take(&mut self.line);
                self.assembled_line(&mut assembled, mark, &mut lying, emit);
                self.line = assembled;
                self.line.clear();
            }
        }
        self.keep(&mut lying);
        within & self.check_length()
    }

    /// Bytes are missing here: the event at hand is lost, and so is all up to the next empty line.
    pub fn gap(&mut self) {
        self.lose(Lost::InLine);
    }

    /// So many bytes more are announced.
    pub fn reserve(&mut self, bytes: u64) {
        if self.line.bytes.is_empty() {
            self.line.bytes.reserve(bytes.min(RESERVED_BYTES) as usize);
        }
    }

    /// A piece begins here that a server writes at once (a chunk). If bytes were missing before,
    /// and it begins as an event does, it is taken for one.
    pub fn boundary(&mut self, bytes: &[u8]) {
        let fields: [&[u8]; 5] = [b"event:", b"data:", b"id:", b"retry:", b":"];
        if self.lost != Lost::No && fields.iter().any(|field| bytes.starts_with(field)) {
            self.lose(Lost::No);
        }
    }

    fn lose(&mut self, lost: Lost) {
        self.line.clear();
        self.reset();
        self.after_cr = false;
        self.past_first_line = true;
        self.lost = lost;
    }

    fn check_length(&mut self) -> bool {
        let within = self.line.bytes.len() + self.data.len() <= limits::MESSAGE_BYTES;
        if !within {
            self.lose(Lost::InLine);
            self.data = Vec::new();
        }
        within
    }

    fn skip_line(&mut self, line: &[u8]) {
        let is_empty = line.is_empty() && self.line.bytes.is_empty();
        self.line.clear();
        self.lost = if self.lost == Lost::AtLine && is_empty { Lost::No } else { Lost::AtLine };
    }

    fn whole_line<'a>(
        &mut self,
        line: &'a [u8],
        mark: Mark,
        lying: &mut Lying<'a>,
        emit: &mut dyn FnMut(SseEvent<'_>),
    ) {
        let line = self.without_bom(line);
        if line.is_empty() {
            self.dispatch(lying.take(), emit);
            return;
        }
        match field(line) {
            (b"data", value) => {
                if self.has_data || lying.is_some() {
                    self.keep(lying);
                    self.add_data(value, mark, mark);
                } else {
                    *lying = Some((value, mark));
                }
            }
            (name, value) => self.set(name, value),
        }
    }

    fn assembled_line(
        &mut self,
        line: &mut Line,
        mark: Mark,
        lying: &mut Lying<'_>,
        emit: &mut dyn FnMut(SseEvent<'_>),
    ) {
        let bytes = self.without_bom(&line.bytes);
        if bytes.is_empty() {
            self.dispatch(lying.take(), emit);
            return;
        }
        match field(bytes) {
            (b"data", value) => {
                self.keep(lying);
                let start = line.bytes.len() - value.len();
                let first = line.mark(start.min(line.bytes.len().saturating_sub(1)), mark);
                let last = line.mark(line.bytes.len().saturating_sub(1), mark);
                if self.has_data {
                    self.add_data(value, first, last);
                } else {
                    self.has_data = true;
                    (self.first, self.last, self.from) = (Some(first), Some(last), start);
                    std::mem::swap(&mut self.data, &mut line.bytes);
                }
            }
            (name, value) => self.set(name, value),
        }
    }

    /// One byte order mark at the start is not part of the stream (§9.2.5).
    fn without_bom<'a>(&mut self, line: &'a [u8]) -> &'a [u8] {
        if std::mem::replace(&mut self.past_first_line, true) {
            return line;
        }
        line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line)
    }

    fn set(&mut self, name: &[u8], value: &[u8]) {
        match name {
            b"event" => {
                self.event.clear();
                self.event.push_str(&String::from_utf8_lossy(value));
            }
            b"id" if memchr(0, value).is_none() => self.id = Some(String::from_utf8_lossy(value).into_owned()),
            // `retry` tells the client alone; others are ignored, as are comments.
            _ => {}
        }
    }

    fn add_data(&mut self, value: &[u8], first: Mark, last: Mark) {
        if self.has_data {
            self.data.push(b'\n');
        }
        self.has_data = true;
        self.first.get_or_insert(first);
        self.last = Some(last);
        self.data.extend_from_slice(value);
    }

    /// Copies a value that lay in the piece at hand.
    fn keep(&mut self, lying: &mut Lying<'_>) {
        if let Some((value, mark)) = lying.take() {
            self.add_data(value, mark, mark);
        }
    }

    fn dispatch(&mut self, lying: Lying<'_>, emit: &mut dyn FnMut(SseEvent<'_>)) {
        let (data, marks) = match lying {
            Some((value, mark)) => (value, Some((mark, mark))),
            None => (self.data.get(self.from..).unwrap_or_default(), self.first.zip(self.last)),
        };
        if let Some((first, last)) = marks {
            let event = Some(&*self.event).filter(|event| !event.is_empty());
            let id = self.id.as_deref().filter(|id| !id.is_empty());
            emit(SseEvent { data, first, last, event, id });
        }
        self.reset();
    }

    fn reset(&mut self) {
        self.data.clear();
        self.from = 0;
        self.has_data = false;
        self.first = None;
        self.last = None;
        self.event.clear();
    }
}

/// Name and value of a line; a comment has an empty name.
fn field(line: &[u8]) -> (&[u8], &[u8]) {
    match memchr(b':', line) {
        Some(colon) => {
            let (name, value) = line.split_at(colon);
            let value = value.get(1..).unwrap_or_default();
            (name, value.strip_prefix(b" ").unwrap_or(value))
        }
        None => (line, &[]),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::SseParser;
    use crate::model::exchange::Mark;
    use crate::model::place::Place;
    use crate::model::time::Time;
    use proptest::prelude::*;

    fn mark(frame: u64) -> Mark {
        Mark { place: Place::frame(0, frame), at: Time::from_us(0) }
    }

    type Seen = (String, Option<String>, Option<String>, (u64, u64));

    fn parse(pieces: &[&[u8]]) -> Vec<Seen> {
        let mut parser = SseParser::default();
        let mut seen = Vec::new();
        for (n, piece) in pieces.iter().enumerate() {
            assert!(parser.push(piece, mark(n as u64 + 1), &mut |e| {
                let own = |s: &str| s.to_owned();
                let text = String::from_utf8_lossy(e.data).into_owned();
                seen.push((text, e.event.map(own), e.id.map(own), (e.first.place.number, e.last.place.number)));
            }));
        }
        seen
    }

    fn datas(text: &[u8]) -> Vec<String> {
        parse(&[text]).into_iter().map(|e| e.0).collect()
    }

    #[test]
    fn line_ends_comments_and_fields() {
        assert_eq!(datas(b"data: a\n\ndata: b\r\n\r\ndata: c\r\rdata:d\r\n\n"), ["a", "b", "c", "d"]);
        assert_eq!(datas(b": ping\n\ndata: a\n: more\ndata:  b\ndata\ndata: c\n\n"), ["a\n b\n\nc"]);
        assert_eq!(datas(b"\xEF\xBB\xBFdata: a\n\n\xEF\xBB\xBFdata: b\n\n"), ["a"]);
        assert_eq!(datas(b"data: cut off"), Vec::<String>::new());
        assert_eq!(datas(b"data: cut off\n"), Vec::<String>::new());
        assert_eq!(datas(b"data:\n\nevent: x\n\ndata: y\n\n"), ["", "y"]);
    }

    #[test]
    fn a_priming_event_is_empty_and_sets_the_id() {
        let seen = parse(&[
            b"id: 0/0\nretry: 3000\ndata: \n\nevent: message\ndata: {}\n\nid: a\0b\ndata: 2\n\nid\ndata: 3\n\n",
        ]);
        let ids: Vec<_> = seen.iter().map(|e| (e.0.as_str(), e.1.as_deref(), e.2.as_deref())).collect();
        let want = [
            ("", None, Some("0/0")),
            ("{}", Some("message"), Some("0/0")),
            ("2", None, Some("0/0")),
            ("3", None, None),
        ];
        assert_eq!(ids, want);
    }

    #[test]
    fn marks_are_those_of_the_data() {
        let seen = parse(&[b"event: message\r\nda", b"ta: {", b"\"a\":1}", b"\r\n", b"\r", b"\ndata: 2\n\n"]);
        assert_eq!(seen[0].3, (2, 3));
        assert_eq!(seen[1].3, (6, 6));
    }

    #[test]
    fn after_a_gap_events_begin_behind_an_empty_line() {
        let mut parser = SseParser::default();
        let mut seen = Vec::new();
        let mut push = |parser: &mut SseParser, bytes: &[u8]| {
            parser.push(bytes, mark(1), &mut |e| seen.push(String::from_utf8_lossy(e.data).into_owned()));
        };
        push(&mut parser, b"data: whole\n\ndata: ha");
        parser.gap();
        push(&mut parser, b"lf\ndata: tail\n\ndata: next\n\n");
        parser.gap();
        push(&mut parser, b"\ndata: doubtful\n\n");
        parser.gap();
        parser.boundary(b"event: message\n");
        push(&mut parser, b"event: message\ndata: chunk\n\n");
        assert_eq!(seen, ["whole", "next", "chunk"]);
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_events(
            lines in prop::collection::vec(prop::sample::select(vec![
                "data: a", "data: bcd", "data", "", "", ": c", "event: x", "id: 7", "id", "retry: 1", "\u{FEFF}data: z", "dat: no",
            ]), 0..20),
            ends in prop::collection::vec(prop::sample::select(vec!["\n", "\r", "\r\n"]), 20),
            cuts in prop::collection::vec(0usize..200, 0..8),
        ) {
            let text: String = lines.iter().zip(&ends).map(|(l, e)| format!("{l}{e}")).collect();
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|c| c % (bytes.len() + 1)).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|w| &bytes[w[0]..w[1]]).collect();
            let whole: Vec<_> = parse(&[bytes]).into_iter().map(|e| (e.0, e.1, e.2)).collect();
            let split: Vec<_> = parse(&pieces).into_iter().map(|e| (e.0, e.1, e.2)).collect();
            prop_assert_eq!(whole, split);
        }
    }
}
