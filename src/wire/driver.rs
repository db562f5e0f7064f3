//! Tells connections apart and leads their segments through reassembly to a parser.

use super::probe::{Probe, looks_like};
use super::tcp::{At, Clock, Output, Reassembler, Side};
use super::{Close, Connection, Context, Segment, StreamParser, flags};
use crate::model::exchange::{ExchangeSink, Mark, Peer};
use crate::model::limits;
use crate::model::place::InputId;
use crate::model::problem::{ProblemKind, Problems};
use crate::model::time::Time;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

/// What the parsers of connections may be told beforehand.
#[derive(Clone, Debug, Default)]
pub struct WireOptions {}

/// Segments between two looks at connections that wait.
const SWEEP_SEGMENTS: u64 = 256;
/// Waiting connections looked at in one sweep.
const SWEEP_CONNECTIONS: usize = 64;
/// Connections between the same ports that are told apart at once.
const SAME_PORTS: usize = 8;

/// All connections of all packet inputs of a run.
///
/// Segments may come in any order, best in that of time. The same packet may come more than once
/// (two interfaces, captures taken at both ends).
pub struct Wire {
    options: WireOptions,
    table: FxHashMap<Key, u32>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    latest: Option<(Key, u32)>,
    inputs: Vec<Input>,
    waiting: VecDeque<(u32, u32)>,
    closed: VecDeque<(u32, u32)>,
    live: usize,
    hand: usize,
    held_bytes: usize,
    count: u64,
    next_exchange: u64,
    stray: Problems,
}

/// Both ends and the network between them, the lower end first.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    low: u128,
    high: u128,
    ports: u32,
    scope: u64,
}

#[derive(Default)]
struct Input {
    streams: u64,
    latest: Option<Time>,
    disorder_ns: i64,
}

#[derive(Default)]
struct Slot {
    generation: u32,
    flow: Option<Box<Flow>>,
}

/// One connection.
struct Flow {
    key: Key,
    /// An earlier connection between the same ports.
    older: Option<u32>,
    reassembler: Reassembler,
    facts: Connection,
    parser: Probe,
    client: Option<Side>,
    /// The client is known by its SYN or by what it sent.
    client_is_certain: bool,
    addresses: [SocketAddr; 2],
    seen: [bool; 2],
    has_data: bool,
    is_waiting: bool,
    is_closed: bool,
    last_count: u64,
    last_mark: Mark,
    /// Further inputs that show it.
    also_in: Vec<InputId>,
}

impl Wire {
    /// No connections yet.
    pub fn new(options: WireOptions) -> Wire {
        Wire {
            options,
            table: FxHashMap::default(),
            slots: Vec::new(),
            free: Vec::new(),
            latest: None,
            inputs: Vec::new(),
            waiting: VecDeque::new(),
            closed: VecDeque::new(),
            live: 0,
            hand: 0,
            held_bytes: 0,
            count: 0,
            next_exchange: 0,
            stray: Problems::default(),
        }
    }

    /// Takes the next segment. `problems` holds those of every input, by its number.
    pub fn segment(&mut self, segment: Segment<'_>, sink: &mut dyn ExchangeSink, problems: &mut [Problems]) {
        self.count += 1;
        let clock = self.tick(&segment);
        let (key, side) = Key::of(&segment);
        let index = match self.latest {
            Some((latest, index)) if latest == key => Some(index),
            _ => self.table.get(&key).copied(),
        };
        let index = self.route(key, index, side, &segment, &clock, sink, problems);
        self.latest = Some((key, self.table.get(&key).copied().unwrap_or(index)));
        self.feed(index, side, &segment, &clock, sink, problems);
        if self.count.is_multiple_of(SWEEP_SEGMENTS) {
            self.sweep(&clock, sink, problems);
        }
    }

    /// No more segments will come: everything that waits is delivered and every exchange ended.
    pub fn finish(&mut self, sink: &mut dyn ExchangeSink, problems: &mut [Problems]) {
        let clock = Clock { now: Time::from_ns(i64::MAX, 0), count: self.count, disorder_ns: 0, ended: true };
        for index in 0..self.slots.len() as u32 {
            self.end(index, &clock, sink, problems);
        }
        if let Some(first) = problems.first_mut() {
            first.merge(&self.stray);
            self.stray = Problems::default();
        }
    }

    /// The clock as of this segment; learns how disordered the input is.
    fn tick(&mut self, segment: &Segment<'_>) -> Clock {
        let input = input_of(&mut self.inputs, segment.mark.place.input);
        let now = segment.mark.at;
        match input.latest {
            Some(latest) if latest > now => input.disorder_ns = input.disorder_ns.max(latest.since(now)),
            _ => input.latest = Some(now),
        }
        Clock { now, count: self.count, disorder_ns: input.disorder_ns, ended: false }
    }

    /// The connection that the segment belongs to.
    #[expect(clippy::too_many_arguments)]
    #[inline]
    fn route(
        &mut self,
        key: Key,
        newest: Option<u32>,
        side: Side,
        segment: &Segment<'_>,
        clock: &Clock,
        sink: &mut dyn ExchangeSink,
        problems: &mut [Problems],
    ) -> u32 {
        let mut at = newest;
        let mut depth = 0;
        while let Some(index) = at {
            let Some(flow) = self.slots.get(index as usize).and_then(|slot| slot.flow.as_deref()) else { break };
            if flow.reassembler.fits(side, segment) {
                return index;
            }
            depth += 1;
            if depth >= SAME_PORTS {
                break;
            }
            at = flow.older;
        }
        let starts = segment.flags & flags::SYN != 0 || segment.wire_len > 0;
        if let Some(newest) = newest.filter(|_| !starts) {
            // A bare acknowledgment or reset of nothing that is known says nothing.
            return newest;
        }
        self.make_room(clock, sink, problems);
        self.open(key, newest, segment, clock)
    }

    fn open(&mut self, key: Key, older: Option<u32>, segment: &Segment<'_>, clock: &Clock) -> u32 {
        let input = input_of(&mut self.inputs, segment.mark.place.input);
        let stream = input.streams;
        input.streams += 1;
        let (from_low, _) = Key::order(segment);
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
        let flow = Box::new(Flow {
            key,
            older,
            reassembler: Reassembler::new(segment.mark, clock),
            facts,
            parser: Probe::new(&self.options),
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
        });
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            (self.slots.len() - 1) as u32
        });
        if let Some(slot) = self.slots.get_mut(index as usize) {
            slot.flow = Some(flow);
        }
        self.table.insert(key, index);
        self.live += 1;
        index
    }

    fn feed(
        &mut self,
        index: u32,
        side: Side,
        segment: &Segment<'_>,
        clock: &Clock,
        sink: &mut dyn ExchangeSink,
        problems: &mut [Problems],
    ) {
        let Some(slot) = self.slots.get_mut(index as usize) else { return };
        let Some(flow) = slot.flow.as_deref_mut() else { return };
        flow.note(side, segment, &mut self.inputs);
        flow.last_count = self.count;
        if flow.is_closed {
            return;
        }
        let before = flow.reassembler.held_bytes();
        let mut context = Told { sink, problems, next_exchange: &mut self.next_exchange, stray: &mut self.stray };
        flow.run(&mut context, |reassembler, out| {
            reassembler.segment(side, segment, clock, out);
        });
        self.held_bytes = self.held_bytes + flow.reassembler.held_bytes() - before;
        let over_total = self.held_bytes > limits::REORDER_TOTAL_BYTES;
        if over_total && flow.reassembler.held_bytes() > 0 {
            context.problem(
                ProblemKind::LimitHit,
                segment.mark,
                "reorder-total-bytes: too much waits for missing bytes",
            );
            let before = flow.reassembler.held_bytes();
            flow.run(
                &mut context,
                |reassembler, out| while reassembler.held_bytes() > 0 && reassembler.force(clock, out) {},
            );
            self.held_bytes = self.held_bytes + flow.reassembler.held_bytes() - before;
        }
        if flow.reassembler.is_over() {
            self.retire(index);
        } else if !flow.is_waiting && flow.reassembler.is_waiting() {
            flow.is_waiting = true;
            self.waiting.push_back((index, slot.generation));
        }
    }

    /// Looks at connections that wait for packets that may never come.
    fn sweep(&mut self, clock: &Clock, sink: &mut dyn ExchangeSink, problems: &mut [Problems]) {
        for _ in 0..SWEEP_CONNECTIONS.min(self.waiting.len()) {
            let Some((index, generation)) = self.waiting.pop_front() else { return };
            let Some(slot) = self.slots.get_mut(index as usize).filter(|slot| slot.generation == generation) else {
                continue;
            };
            let Some(flow) = slot.flow.as_deref_mut().filter(|flow| !flow.is_closed) else { continue };
            let before = flow.reassembler.held_bytes();
            let mut context = Told { sink, problems, next_exchange: &mut self.next_exchange, stray: &mut self.stray };
            flow.run(&mut context, |reassembler, out| reassembler.expire(clock, out));
            self.held_bytes = self.held_bytes + flow.reassembler.held_bytes() - before;
            flow.is_waiting = flow.reassembler.is_waiting();
            if flow.reassembler.is_over() {
                self.retire(index);
            } else if flow.is_waiting {
                self.waiting.push_back((index, generation));
            }
        }
    }

    /// Ends a connection: what waits is delivered.
    fn end(&mut self, index: u32, clock: &Clock, sink: &mut dyn ExchangeSink, problems: &mut [Problems]) {
        let Some(flow) = self.slots.get_mut(index as usize).and_then(|slot| slot.flow.as_deref_mut()) else { return };
        if flow.is_closed {
            return;
        }
        let before = flow.reassembler.held_bytes();
        let mut context = Told { sink, problems, next_exchange: &mut self.next_exchange, stray: &mut self.stray };
        flow.run(&mut context, |reassembler, out| reassembler.finish(clock, out));
        if flow.has_data && flow.facts.one_direction {
            let mark = flow.last_mark;
            context.problem(ProblemKind::OneDirection, mark, "only one direction of this connection was captured");
        }
        self.held_bytes -= before;
        self.retire(index);
    }

    /// A connection is over: only its numbers are kept, to know copies of its packets.
    fn retire(&mut self, index: u32) {
        let Some(slot) = self.slots.get_mut(index as usize) else { return };
        let Some(flow) = slot.flow.as_deref_mut() else { return };
        flow.is_closed = true;
        flow.parser = Probe::spent();
        self.live -= 1;
        self.closed.push_back((index, slot.generation));
        if self.closed.len() > limits::CLOSED_CONNECTIONS
            && let Some((oldest, generation)) = self.closed.pop_front()
        {
            self.forget(oldest, generation);
        }
    }

    fn forget(&mut self, index: u32, generation: u32) {
        let Some(slot) = self.slots.get_mut(index as usize).filter(|slot| slot.generation == generation) else {
            return;
        };
        let Some(flow) = slot.flow.take() else { return };
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(index);
        self.latest = None;
        // Takes it out of the chain of connections between the same ports.
        let Some(newest) = self.table.get(&flow.key).copied() else { return };
        if newest == index {
            match flow.older {
                Some(older) => self.table.insert(flow.key, older),
                None => self.table.remove(&flow.key),
            };
            return;
        }
        let mut at = Some(newest);
        while let Some(here) = at {
            let Some(other) = self.slots.get_mut(here as usize).and_then(|slot| slot.flow.as_deref_mut()) else {
                return;
            };
            if other.older == Some(index) {
                other.older = flow.older;
                return;
            }
            at = other.older;
        }
    }

    /// Ends a connection that has been idle for long, if there are too many.
    fn make_room(&mut self, clock: &Clock, sink: &mut dyn ExchangeSink, problems: &mut [Problems]) {
        if self.live < limits::CONNECTIONS {
            return;
        }
        // The longest idle of a few, going round: the longest of all would need a list in order.
        let mut idle: Option<(u64, u32)> = None;
        let mut looked = 0;
        for _ in 0..self.slots.len() {
            self.hand = (self.hand + 1) % self.slots.len().max(1);
            let flow = self.slots.get(self.hand).and_then(|slot| slot.flow.as_deref());
            if let Some(flow) = flow.filter(|flow| !flow.is_closed) {
                looked += 1;
                if idle.is_none_or(|(count, _)| flow.last_count < count) {
                    idle = Some((flow.last_count, self.hand as u32));
                }
            }
            if looked >= 32 {
                break;
            }
        }
        if let Some((_, index)) = idle {
            self.end(index, clock, sink, problems);
            let first = problems.first_mut().unwrap_or(&mut self.stray);
            first.add(ProblemKind::LimitHit, String::new, || "connections: the longest idle one was closed");
        }
    }
}

impl Key {
    fn of(segment: &Segment<'_>) -> (Key, Side) {
        let (from_low, [low, high]) = Key::order(segment);
        let (low_port, high_port) = match from_low {
            true => (segment.src.port(), segment.dst.port()),
            false => (segment.dst.port(), segment.src.port()),
        };
        let ports = u32::from(low_port) << 16 | u32::from(high_port);
        (Key { low, high, ports, scope: segment.scope }, if from_low { Side::A } else { Side::B })
    }

    /// Is the sender the lower end? And both addresses, the lower first.
    fn order(segment: &Segment<'_>) -> (bool, [u128; 2]) {
        let (src, dst) = (bits(segment.src.ip()), bits(segment.dst.ip()));
        match (src, segment.src.port()) <= (dst, segment.dst.port()) {
            true => (true, [src, dst]),
            false => (false, [dst, src]),
        }
    }
}

fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => u128::from(v4.to_bits()),
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

fn input_of(inputs: &mut Vec<Input>, input: InputId) -> &mut Input {
    let index = input as usize;
    if inputs.len() <= index {
        inputs.resize_with(index + 1, Input::default);
    }
    // The line above made sure that it is there.
    #[expect(clippy::indexing_slicing, reason = "just resized")]
    &mut inputs[index]
}

impl Flow {
    /// Learns what only the driver wants to know of a segment.
    fn note(&mut self, side: Side, segment: &Segment<'_>, inputs: &mut Vec<Input>) {
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

    fn run(&mut self, told: &mut Told<'_>, work: impl FnOnce(&mut Reassembler, &mut Heard<'_, '_>)) {
        let mut facts = self.facts;
        let mut heard = Heard {
            told,
            facts: &mut facts,
            parser: &mut self.parser,
            client: self.client,
            certain: self.client_is_certain,
            addresses: self.addresses,
            has_data: &mut self.has_data,
        };
        work(&mut self.reassembler, &mut heard);
        let (client, certain) = (heard.client, heard.certain);
        self.client = client;
        self.client_is_certain = certain;
        self.facts = facts;
    }
}

/// Where results go.
struct Told<'a> {
    sink: &'a mut dyn ExchangeSink,
    problems: &'a mut [Problems],
    next_exchange: &'a mut u64,
    stray: &'a mut Problems,
}

impl Told<'_> {
    fn problem(&mut self, kind: ProblemKind, mark: Mark, text: &'static str) {
        let problems = self.problems.get_mut(mark.place.input as usize).unwrap_or(self.stray);
        problems.add(kind, || format!("frame {}", mark.place.number), || text);
    }
}

/// Leads what one connection's reassembler delivers to its parser.
struct Heard<'a, 'b> {
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
