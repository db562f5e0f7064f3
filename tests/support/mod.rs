//! What the tests of encrypted captures share: recordings of both directions of a connection, and
//! reading them.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

use crosswire::model::exchange::{Event, Exchange, ExchangeSink, Mark, Peer};
use crosswire::model::place::Place;
use crosswire::model::problem::{ProblemKind, Problems};
use crosswire::model::time::Time;
use crosswire::wire::tls::{Application, KeyStore, TlsCount, TlsParser, TlsSetup};
use crosswire::wire::{Close, Connection, Context, StreamParser};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// Bytes of one direction, in the order of both.
#[derive(Clone, Debug)]
pub enum Step {
    Data(Peer, Vec<u8>),
    Gap(Peer, Option<u64>),
}

/// Everything that crossed a connection, and the key log of one end.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    pub steps: Vec<Step>,
    pub keylog: Vec<u8>,
}

impl Recording {
    pub fn push(&mut self, from: Peer, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.steps.push(Step::Data(from, bytes.to_vec()));
        }
    }

    /// Bytes of one direction.
    pub fn bytes(&self, of: Peer) -> usize {
        self.steps
            .iter()
            .map(|step| if let Step::Data(from, bytes) = step { if *from == of { bytes.len() } else { 0 } } else { 0 })
            .sum()
    }

    /// The same in pieces of at most `size` bytes.
    pub fn split(&self, size: usize) -> Recording {
        let steps = self.steps.iter().flat_map(|step| match step {
            Step::Data(from, bytes) => bytes.chunks(size).map(|piece| Step::Data(*from, piece.to_vec())).collect(),
            other => vec![other.clone()],
        });
        Recording { steps: steps.collect(), keylog: self.keylog.clone() }
    }

    /// The same with bytes `start..end` of one direction missing; `told`: with the length of the hole.
    pub fn with_hole(&self, of: Peer, start: usize, end: usize, told: bool) -> Recording {
        let mut steps = Vec::new();
        let mut at = 0;
        let mut hole = 0;
        for step in &self.steps {
            match step {
                Step::Data(from, bytes) if *from == of => {
                    let (begin, after) = (at, at + bytes.len());
                    at = after;
                    let head = &bytes[..start.clamp(begin, after) - begin];
                    let tail = &bytes[end.clamp(begin, after) - begin..];
                    if !head.is_empty() && start > begin {
                        steps.push(Step::Data(*from, head.to_vec()));
                    }
                    hole += end.clamp(begin, after) - start.clamp(begin, after);
                    if !tail.is_empty() && end < after {
                        if hole > 0 {
                            steps.push(Step::Gap(of, told.then_some(hole as u64)));
                            hole = 0;
                        }
                        steps.push(Step::Data(*from, tail.to_vec()));
                    }
                }
                other => steps.push(other.clone()),
            }
        }
        if hole > 0 {
            steps.push(Step::Gap(of, told.then_some(hole as u64)));
        }
        Recording { steps, keylog: self.keylog.clone() }
    }
}

/// What a decrypted direction held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    Data(Vec<u8>),
    Gap(Option<u64>),
    Close(Close),
}

#[derive(Default)]
pub struct Seen {
    pub client: Vec<Piece>,
    pub server: Vec<Piece>,
    pub application: Option<Application>,
}

impl Seen {
    fn of(&mut self, from: Peer) -> &mut Vec<Piece> {
        if from == Peer::Client { &mut self.client } else { &mut self.server }
    }

    /// The bytes of a direction, over holes.
    pub fn text(&self, from: Peer) -> Vec<u8> {
        let pieces = if from == Peer::Client { &self.client } else { &self.server };
        pieces
            .iter()
            .flat_map(|piece| if let Piece::Data(bytes) = piece { bytes.as_slice() } else { &[] })
            .copied()
            .collect()
    }

    pub fn has_gap(&self, from: Peer) -> bool {
        let pieces = if from == Peer::Client { &self.client } else { &self.server };
        pieces.iter().any(|piece| matches!(piece, Piece::Gap(_)))
    }
}

/// An inner parser that only remembers.
struct Remember(Rc<RefCell<Seen>>);

impl StreamParser for Remember {
    fn data(&mut self, _: &Connection, from: Peer, bytes: &[u8], _: Mark, _: &mut Context<'_>) {
        let mut seen = self.0.borrow_mut();
        let pieces = seen.of(from);
        if let Some(Piece::Data(last)) = pieces.last_mut() {
            last.extend_from_slice(bytes);
        } else {
            pieces.push(Piece::Data(bytes.to_vec()));
        }
    }
    fn gap(&mut self, _: &Connection, from: Peer, bytes: Option<u64>, _: Mark, _: &mut Context<'_>) {
        self.0.borrow_mut().of(from).push(Piece::Gap(bytes));
    }
    fn close(&mut self, _: &Connection, from: Peer, close: Close, _: Mark, _: &mut Context<'_>) {
        self.0.borrow_mut().of(from).push(Piece::Close(close));
    }
}

struct Ignore;
impl ExchangeSink for Ignore {
    fn event(&mut self, _: &Exchange, _: Event<'_>) {}
}

/// What came of reading a recording.
pub struct Read {
    pub seen: Seen,
    pub problems: Problems,
    pub count: TlsCount,
}

impl Read {
    pub fn problem(&self, kind: ProblemKind) -> Option<String> {
        self.problems.iter().find(|problem| problem.kind == kind).and_then(|problem| problem.text.clone())
    }
}

pub fn connection() -> Connection {
    Connection {
        input: 0,
        stream: 0,
        client: "192.0.2.1:40000".parse().unwrap(),
        server: "192.0.2.2:443".parse().unwrap(),
        connected: None,
        one_direction: false,
        offset: 0,
        acked: u64::MAX,
    }
}

pub fn mark(number: u64) -> Mark {
    Mark { place: Place::frame(0, number), at: Time::from_us(number as i64) }
}

/// Feeds a recording to `parser`, then the end of the input.
pub fn feed(
    parser: &mut dyn StreamParser,
    recording: &Recording,
    sink: &mut dyn ExchangeSink,
    problems: &mut Problems,
) {
    let connection = connection();
    let mut next_exchange = 0;
    let mut context = Context { sink, problems, next_exchange: &mut next_exchange };
    let mut number = 0;
    for step in &recording.steps {
        number += 1;
        match step {
            Step::Data(from, bytes) => parser.data(&connection, *from, bytes, mark(number), &mut context),
            Step::Gap(from, bytes) => parser.gap(&connection, *from, *bytes, mark(number), &mut context),
        }
    }
    parser.close(&connection, Peer::Client, Close::InputEnded, mark(number + 1), &mut context);
}

/// Decrypts a recording with its own key log.
pub fn decrypt(recording: &Recording) -> Read {
    let keys = Arc::new(KeyStore::new());
    keys.read(&recording.keylog);
    decrypt_with(recording, &Arc::new(TlsSetup::new(keys)))
}

/// Decrypts a recording with what `setup` has.
pub fn decrypt_with(recording: &Recording, setup: &Arc<TlsSetup>) -> Read {
    let seen = Rc::new(RefCell::new(Seen::default()));
    let inner = Rc::clone(&seen);
    let mut parser = TlsParser::new(
        Arc::clone(setup),
        Rc::new(move |application| {
            inner.borrow_mut().application = Some(application);
            Box::new(Remember(Rc::clone(&inner))) as Box<dyn StreamParser>
        }),
    );
    let mut problems = Problems::default();
    feed(&mut parser, recording, &mut Ignore, &mut problems);
    drop(parser);
    let seen = seen.take();
    Read { seen, problems, count: setup.count() }
}

/// Asserts that everything that was read is what was sent, holes and all.
pub fn assert_true_to(sent: &[u8], read: &Seen, from: Peer) {
    let pieces = if from == Peer::Client { &read.client } else { &read.server };
    let (mut at, mut sure) = (0, true);
    for piece in pieces {
        match piece {
            Piece::Data(bytes) if sure => {
                assert_eq!(sent.get(at..at + bytes.len()), Some(bytes.as_slice()), "at {at}");
                at += bytes.len();
            }
            Piece::Data(bytes) => {
                let found = sent[at..].windows(bytes.len()).position(|window| window == bytes.as_slice());
                at += found.unwrap_or_else(|| panic!("{} bytes that were never sent behind {at}", bytes.len()))
                    + bytes.len();
                sure = true;
            }
            Piece::Gap(Some(bytes)) => at += *bytes as usize,
            Piece::Gap(None) => sure = false,
            Piece::Close(_) => {}
        }
    }
}

/// Bytes that do not repeat, so that a wrong place shows.
pub fn text(bytes: usize, seed: u32) -> Vec<u8> {
    let mut state = u64::from(seed) * 2_654_435_761 + 1;
    let next = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..bytes).map(next).collect()
}

pub type Fields = Vec<(String, String)>;

/// An exchange as it was told, from its first step to its end.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Told {
    pub stream: Option<u32>,
    /// Method, target and header fields.
    pub request: Option<(String, String, Fields)>,
    pub request_gap: bool,
    pub status: Option<u16>,
    pub response_headers: Fields,
    pub response_gap: bool,
    pub sent: Vec<String>,
    pub answered: Vec<String>,
    pub end: Option<crosswire::model::exchange::End>,
    pub ended_by: Option<Peer>,
    pub client_closed: bool,
}

/// Collects exchanges in order of being opened.
#[derive(Default)]
pub struct Exchanges(pub std::collections::BTreeMap<u64, Told>);

impl ExchangeSink for Exchanges {
    fn event(&mut self, exchange: &Exchange, event: Event<'_>) {
        let told = self.0.entry(exchange.id).or_default();
        assert!(told.end.is_none(), "an event after the end");
        let own = |headers: &[(Arc<str>, Arc<str>)]| -> Fields {
            headers.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
        };
        told.stream = exchange.h2_stream;
        if let Some(request) = &exchange.request {
            told.request = Some((request.method.to_string(), request.target.to_string(), own(&request.headers)));
            told.request_gap = request.gap;
        }
        if let Some(response) = &exchange.response {
            told.status = Some(response.status);
            told.response_headers = own(&response.headers);
            told.response_gap = response.gap;
        }
        match event {
            Event::Message(message) => {
                let text = String::from_utf8_lossy(message.data).into_owned();
                if message.from == Peer::Client { told.sent.push(text) } else { told.answered.push(text) }
            }
            Event::ClientClosed => told.client_closed = true,
            Event::End => (told.end, told.ended_by) = (exchange.end, exchange.ended_by),
            _ => {}
        }
    }
}

/// The exchanges of a recording, and what could not be read of it.
pub fn exchanges(parser: &mut dyn StreamParser, recording: &Recording) -> (Vec<Told>, Problems) {
    let (mut told, mut problems) = (Exchanges::default(), Problems::default());
    feed(parser, recording, &mut told, &mut problems);
    assert!(told.0.values().all(|told| told.end.is_some()), "every exchange ends");
    (told.0.into_values().collect(), problems)
}
