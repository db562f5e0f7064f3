//! Turns recorded exchanges into exchange events in order of time.

use super::Counts;
use crate::model::exchange::{BodyKind, End, Event, Exchange, ExchangeSink, Mark, Message, Peer, Request, Response};
use crate::model::limits;
use crate::model::place::{InputId, Place};
use crate::model::problem::{ProblemKind, Problems};
use crate::model::time::Time;
use crate::wire::sse::{SseEvent, SseParser};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

/// A body as far as the recorder kept it, transfer and content coding undone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Body {
    /// All that came.
    Kept(Vec<u8>),
    /// There was one, or may have been, and the recorder did not keep it.
    Missing,
}

/// An event of an event stream with its own time, where the recorder kept that.
#[derive(Clone, Debug)]
pub(super) struct TimedEvent {
    pub at: Time,
    pub event: Option<String>,
    pub event_id: Option<String>,
    pub data: String,
}

/// A recorded response.
#[derive(Clone, Debug)]
pub(super) struct RecordedResponse {
    pub status: u16,
    pub headers: Vec<(Arc<str>, Arc<str>)>,
    pub body: Body,
    /// Instead of the body, for event streams.
    pub events: Vec<TimedEvent>,
    /// When its head came.
    pub first: Time,
    /// When its last byte came.
    pub last: Time,
}

/// One entry of a recording.
#[derive(Clone, Debug)]
pub(super) struct Recorded {
    /// Entry number from 1.
    pub number: u64,
    pub client: SocketAddr,
    pub server: SocketAddr,
    pub connected: Option<Time>,
    pub method: Arc<str>,
    pub target: Arc<str>,
    pub headers: Vec<(Arc<str>, Arc<str>)>,
    pub body: Body,
    /// First and last byte of the request.
    pub first: Time,
    pub last: Time,
    pub response: Option<RecordedResponse>,
    pub end: End,
    pub ended_by: Option<Peer>,
    pub ended: Time,
}

/// Stands in where a recording does not say an address.
pub(super) const UNKNOWN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// Collects entries and tells of them in order of time.
pub(super) struct Teller<'a> {
    input: InputId,
    next_exchange: &'a mut u64,
    sink: &'a mut dyn ExchangeSink,
    held: Vec<Recorded>,
    held_bytes: usize,
    pub counts: Counts,
}

/// The steps of an exchange, in the order in which they follow each other at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Request,
    Head,
    Timed(usize),
    Body,
    End,
}

impl<'a> Teller<'a> {
    pub(super) fn new(input: InputId, next_exchange: &'a mut u64, sink: &'a mut dyn ExchangeSink) -> Teller<'a> {
        Teller { input, next_exchange, sink, held: Vec::new(), held_bytes: 0, counts: Counts::default() }
    }

    /// Takes one entry. Where too much is held, what is there is told first; order is then kept
    /// only within each part, which is counted.
    pub(super) fn add(&mut self, entry: Recorded, problems: &mut Problems) {
        self.counts.saw(entry.first);
        self.counts.saw(entry.ended);
        self.held_bytes += size(&entry);
        if lacks_messages(&entry) {
            let text = || "a body that may be JSON-RPC is not in the recording (streamed, or not saved)";
            problems.add(ProblemKind::ElidedMessage, || format!("entry {}", entry.number), text);
        }
        self.held.push(entry);
        if self.held_bytes > limits::RECORDED_BYTES {
            let number = self.counts.records;
            problems.add(
                ProblemKind::LimitHit,
                || format!("entry {number}"),
                || "recorded-bytes: the recording is read in parts; exchanges that span them are not interleaved",
            );
            self.tell();
        }
    }

    /// Tells of all that is held.
    pub(super) fn tell(&mut self) {
        let held = std::mem::take(&mut self.held);
        self.held_bytes = 0;
        let mut steps: Vec<(Time, usize, Step)> = Vec::new();
        for (i, entry) in held.iter().enumerate() {
            // Within an exchange no step comes before the one that it follows, whatever the clock says.
            let request = entry.last.max(entry.first);
            steps.push((request, i, Step::Request));
            let mut at = request;
            if let Some(response) = &entry.response {
                at = at.max(response.first);
                steps.push((at, i, Step::Head));
                for (n, event) in response.events.iter().enumerate() {
                    at = at.max(event.at);
                    steps.push((at, i, Step::Timed(n)));
                }
                at = at.max(response.last);
                steps.push((at, i, Step::Body));
            }
            steps.push((at.max(entry.ended), i, Step::End));
        }
        steps.sort_by_key(|&(at, i, step)| (at, i, step));
        let mut open: Vec<Option<Exchange>> = held.iter().map(|_| None).collect();
        for (at, i, step) in steps {
            let (Some(entry), Some(slot)) = (held.get(i), open.get_mut(i)) else { continue };
            self.step(entry, slot, Mark { place: Place::line(self.input, entry.number), at }, step);
        }
    }

    fn step(&mut self, entry: &Recorded, slot: &mut Option<Exchange>, mark: Mark, step: Step) {
        if step == Step::Request {
            let exchange = slot.insert(opened(entry, *self.next_exchange, self.input, mark));
            *self.next_exchange += 1;
            self.sink.event(exchange, Event::Request);
            if let Body::Kept(data) = &entry.body
                && !data.is_empty()
            {
                let message = whole(Peer::Client, data, mark);
                self.sink.event(exchange, Event::Message(message));
            }
            return;
        }
        let Some(exchange) = slot.as_mut() else { return };
        let recorded = entry.response.as_ref();
        match step {
            Step::Request => {}
            Step::Head => {
                if let Some(r) = recorded {
                    exchange.response = Some(answered(r, mark));
                    self.sink.event(exchange, Event::Head);
                }
            }
            Step::Timed(n) => {
                if let Some(event) = recorded.and_then(|r| r.events.get(n)) {
                    grow(exchange, event.data.len() as u64, mark);
                    let message = Message {
                        from: Peer::Server,
                        data: event.data.as_bytes(),
                        first: mark,
                        last: mark,
                        is_event: true,
                        event: event.event.as_deref(),
                        event_id: event.event_id.as_deref(),
                    };
                    self.sink.event(exchange, Event::Message(message));
                }
            }
            Step::Body => {
                if let Some(r) = recorded {
                    self.body(exchange, r, entry.end, mark);
                }
            }
            Step::End => {
                exchange.end = Some(entry.end);
                exchange.ended = Some(mark);
                exchange.ended_by = entry.ended_by;
                if entry.ended_by == Some(Peer::Client) {
                    exchange.client_closed = Some(mark);
                    self.sink.event(exchange, Event::ClientClosed);
                }
                self.sink.event(exchange, Event::End);
                *slot = None;
            }
        }
    }

    fn body(&mut self, exchange: &mut Exchange, recorded: &RecordedResponse, end: End, mark: Mark) {
        let data = match &recorded.body {
            Body::Missing => {
                if let Some(r) = &mut exchange.response {
                    r.gap = true;
                }
                self.sink.event(exchange, Event::ResponseGap);
                return;
            }
            Body::Kept(data) => data,
        };
        if data.is_empty() {
            return;
        }
        grow(exchange, data.len() as u64, mark);
        let kind = exchange.response.as_ref().map_or(BodyKind::Other, |r| r.kind);
        if kind == BodyKind::EventStream {
            self.stream(exchange, data, mark);
        } else if end == End::Complete {
            self.sink.event(exchange, Event::Message(whole(Peer::Server, data, mark)));
        }
    }
}

/// Roughly what an entry holds in memory.
fn size(entry: &Recorded) -> usize {
    let of = |b: &Body| match b {
        Body::Kept(data) => data.len(),
        Body::Missing => 0,
    };
    let headers = |h: &[(Arc<str>, Arc<str>)]| h.iter().map(|(n, v)| n.len() + v.len() + 48).sum::<usize>();
    let response = entry
        .response
        .as_ref()
        .map_or(0, |r| of(&r.body) + headers(&r.headers) + r.events.iter().map(|e| e.data.len() + 96).sum::<usize>());
    256 + of(&entry.body) + headers(&entry.headers) + response
}

fn opened(entry: &Recorded, id: u64, input: InputId, mark: Mark) -> Exchange {
    let body_bytes = match &entry.body {
        Body::Kept(data) => data.len() as u64,
        Body::Missing => 0,
    };
    let request = Request {
        first: Mark { place: mark.place, at: entry.first },
        last: mark,
        method: entry.method.clone(),
        target: entry.target.clone(),
        headers: entry.headers.clone(),
        body_bytes,
        gap: entry.body == Body::Missing,
    };
    Exchange {
        id,
        input,
        stream: entry.number,
        h2_stream: None,
        client: entry.client,
        server: entry.server,
        request: Some(request),
        response: None,
        end: None,
        ended: None,
        ended_by: None,
        client_closed: None,
        connected: entry.connected,
        one_direction: false,
    }
}

fn answered(recorded: &RecordedResponse, mark: Mark) -> Response {
    Response {
        first: mark,
        status: recorded.status,
        headers: recorded.headers.clone(),
        kind: kind_of(&recorded.headers),
        body_bytes: 0,
        last: None,
        gap: false,
    }
}

/// Does the recording lack a body in which messages may have been?
fn lacks_messages(entry: &Recorded) -> bool {
    let speaks = |headers: &[(Arc<str>, Arc<str>)]| matches!(kind_of(headers), BodyKind::Json | BodyKind::EventStream);
    let asked = entry.body == Body::Missing && speaks(&entry.headers);
    let response = entry.response.as_ref().filter(|r| r.body == Body::Missing && speaks(&r.headers));
    asked || response.is_some()
}

/// What a body is by its `content-type`.
pub(super) fn kind_of(headers: &[(Arc<str>, Arc<str>)]) -> BodyKind {
    let Some(value) = crate::model::exchange::header(headers, "content-type") else { return BodyKind::Other };
    match value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase().as_str() {
        "text/event-stream" => BodyKind::EventStream,
        "application/json" => BodyKind::Json,
        other if other.ends_with("+json") => BodyKind::Json,
        _ => BodyKind::Other,
    }
}

fn grow(exchange: &mut Exchange, bytes: u64, mark: Mark) {
    if let Some(r) = &mut exchange.response {
        r.body_bytes += bytes;
        r.last = Some(mark);
    }
}

fn whole(from: Peer, data: &[u8], mark: Mark) -> Message<'_> {
    Message { from, data, first: mark, last: mark, is_event: false, event: None, event_id: None }
}

impl Teller<'_> {
    /// Splits a whole event stream into its events; what no empty line ends is no event.
    fn stream(&mut self, exchange: &Exchange, body: &[u8], mark: Mark) {
        let mut sink = |event: SseEvent<'_>| {
            let message = Message {
                from: Peer::Server,
                data: event.data,
                first: mark,
                last: mark,
                is_event: true,
                event: event.event,
                event_id: event.id,
            };
            self.sink.event(exchange, Event::Message(message));
        };
        // A body is no longer than what is kept of a message, so that no event is.
        SseParser::default().push(body, mark, &mut sink);
    }
}
