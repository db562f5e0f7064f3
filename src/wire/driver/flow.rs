//! One connection: its facts, its reassembly, and the way from there to its parser.

use super::key::Key;
use super::{Input, input_of};
use crate::model::exchange::{ExchangeSink, Mark, Peer};
use crate::model::place::InputId;
use crate::model::problem::{ProblemKind, Problems};
use crate::wire::probe::{Probe, looks_like};
use crate::wire::tcp::{At, Clock, Output, Reassembler, Side};
use crate::wire::{Close, Connection, Context, Segment, StreamParser, WireOptions, flags};
use std::net::SocketAddr;

/// One connection.
pub(super) struct Flow {
    pub(super) key: Key,
    /// An earlier connection between the same ports.
    pub(super) older: Option<u32>,
    pub(super) reassembler: Reassembler,
    pub(super) facts: Connection,
    pub(super) parser: Probe,
    pub(super) client: Option<Side>,
    /// The client is known by its SYN or by what it sent.
    pub(super) client_is_certain: bool,
    pub(super) addresses: [SocketAddr; 2],
    pub(super) seen: [bool; 2],
    pub(super) has_data: bool,
    pub(super) is_waiting: bool,
    pub(super) is_closed: bool,
    pub(super) last_count: u64,
    pub(super) last_mark: Mark,
    /// Further inputs that show it.
    pub(super) also_in: Vec<InputId>,
}

impl Flow {
    /// The connection that begins with this segment.
    pub(super) fn new(
        key: Key,
        older: Option<u32>,
        stream: u64,
        segment: &Segment<'_>,
        clock: &Clock,
        options: &WireOptions,
    ) -> Flow {
        let from_low = Key::is_from_low(segment);
        let addresses = if from_low { [segment.src, segment.dst] } else { [segment.dst, segment.src] };
        let facts = Connection {
            input: segment.mark.place.input,
            stream,
            client: segment.src,
            server: segment.dst,
            connected: None,
            one_direction: true,
            offset: 0,
            acked: u64::MAX,
        };
        Flow {
            key,
            older,
            reassembler: Reassembler::new(segment.mark, clock),
            facts,
            parser: Probe::new(options),
            client: None,
            client_is_certain: false,
            addresses,
            seen: [false; 2],
            has_data: false,
            is_waiting: false,
            is_closed: false,
            last_count: clock.count,
            last_mark: segment.mark,
            also_in: Vec::new(),
        }
    }

    /// Learns what only the driver wants to know of a segment.
    pub(super) fn note(&mut self, side: Side, segment: &Segment<'_>, inputs: &mut Vec<Input>) {
        let input = segment.mark.place.input;
        if input != self.facts.input && !self.also_in.contains(&input) {
            self.also_in.push(input);
            input_of(inputs, input).streams += 1;
        }
        self.last_mark = segment.mark;
        if let Some(seen) = self.seen.get_mut(side as usize) {
            *seen = true;
        }
        self.facts.one_direction = self.seen != [true, true];
        if segment.flags & flags::SYN != 0 {
            let is_answer = segment.flags & flags::ACK != 0;
            self.set_client(if is_answer { side.other() } else { side }, true);
            if self.facts.connected.is_none() || !is_answer {
                self.facts.connected = Some(segment.mark.at);
            }
        }
    }

    fn set_client(&mut self, side: Side, certain: bool) {
        if self.client_is_certain || (self.client.is_some() && !certain) {
            return;
        }
        self.client = Some(side);
        self.client_is_certain = certain;
        let [low, high] = self.addresses;
        (self.facts.client, self.facts.server) = match side {
            Side::A => (low, high),
            Side::B => (high, low),
        };
    }

    #[inline]
    pub(super) fn run<T>(
        &mut self,
        told: &mut Told<'_>,
        work: impl FnOnce(&mut Reassembler, &mut Heard<'_, '_>) -> T,
    ) -> T {
        let mut heard = Heard {
            told,
            facts: &mut self.facts,
            parser: &mut self.parser,
            client: self.client,
            certain: self.client_is_certain,
            addresses: self.addresses,
            has_data: &mut self.has_data,
        };
        let result = work(&mut self.reassembler, &mut heard);
        (self.client, self.client_is_certain) = (heard.client, heard.certain);
        result
    }
}

impl Flow {
    /// Says of a connection that is over what could not be read of it.
    pub(super) fn tell_one_direction(&self, told: &mut Told<'_>) {
        if self.has_data && self.facts.one_direction {
            let text = "only one direction of this connection was captured";
            told.problem(ProblemKind::OneDirection, self.last_mark, text);
        }
    }
}

/// Where results go.
pub(super) struct Told<'a> {
    pub(super) sink: &'a mut dyn ExchangeSink,
    pub(super) problems: &'a mut [Problems],
    pub(super) next_exchange: &'a mut u64,
    pub(super) stray: &'a mut Problems,
}

impl Told<'_> {
    pub(super) fn problem(&mut self, kind: ProblemKind, mark: Mark, text: &'static str) {
        let problems = self.problems.get_mut(mark.place.input as usize).unwrap_or(self.stray);
        problems.add(kind, || format!("frame {}", mark.place.number), || text);
    }
}

/// Leads what one connection's reassembler delivers to its parser.
pub(super) struct Heard<'a, 'b> {
    told: &'a mut Told<'b>,
    facts: &'a mut Connection,
    parser: &'a mut Probe,
    client: Option<Side>,
    certain: bool,
    addresses: [SocketAddr; 2],
    has_data: &'a mut bool,
}

impl Heard<'_, '_> {
    fn peer(&mut self, from: Side, at: At) -> Peer {
        let client = match self.client {
            Some(client) => client,
            // Nothing told it: a server's port is usually the lower one.
            None => {
                self.set_client(if self.addresses[0].port() > self.addresses[1].port() { Side::A } else { Side::B })
            }
        };
        self.facts.offset = at.offset;
        self.facts.acked = at.acked;
        if from == client { Peer::Client } else { Peer::Server }
    }

    fn set_client(&mut self, side: Side) -> Side {
        self.client = Some(side);
        let [low, high] = self.addresses;
        (self.facts.client, self.facts.server) = match side {
            Side::A => (low, high),
            Side::B => (high, low),
        };
        side
    }

    /// Who is the client, by what these bytes begin with.
    fn learn_client(&mut self, from: Side, bytes: &[u8]) {
        let client = match looks_like(bytes) {
            Some(Peer::Client) => from,
            Some(Peer::Server) => from.other(),
            None => return,
        };
        if self.client.is_some_and(|was| was != client) {
            self.parser.swap_ends();
        }
        self.set_client(client);
        self.certain = true;
    }

    fn parse(&mut self, mark: Mark, work: impl FnOnce(&mut Probe, &Connection, &mut Context<'_>)) {
        let problems = self.told.problems.get_mut(mark.place.input as usize).unwrap_or(self.told.stray);
        let mut context = Context { sink: self.told.sink, problems, next_exchange: self.told.next_exchange };
        work(self.parser, self.facts, &mut context);
    }
}

impl Output for Heard<'_, '_> {
    #[inline]
    fn data(&mut self, from: Side, bytes: &[u8], at: At) {
        *self.has_data = true;
        if !self.certain {
            self.learn_client(from, bytes);
        }
        let peer = self.peer(from, at);
        self.parse(at.mark, |parser, facts, context| parser.data(facts, peer, bytes, at.mark, context));
    }

    fn gap(&mut self, from: Side, bytes: Option<u64>, at: At) {
        let peer = self.peer(from, at);
        self.parse(at.mark, |parser, facts, context| parser.gap(facts, peer, bytes, at.mark, context));
    }

    fn close(&mut self, from: Side, close: Close, at: At) {
        let peer = self.peer(from, at);
        self.parse(at.mark, |parser, facts, context| parser.close(facts, peer, close, at.mark, context));
    }

    fn midstream(&mut self, held: &mut dyn Iterator<Item = (Side, &[u8])>, mark: Mark) {
        self.problem(ProblemKind::MidstreamStart, mark, "the beginning of this connection was not captured");
        if self.certain {
            return;
        }
        for (side, bytes) in held {
            self.learn_client(side, bytes);
            if self.certain {
                return;
            }
        }
    }

    fn problem(&mut self, kind: ProblemKind, mark: Mark, text: &'static str) {
        self.told.problem(kind, mark, text);
    }
}
