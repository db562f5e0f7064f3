//! Tells connections apart and leads their segments through reassembly to a parser.

mod flow;
mod key;

use super::probe::Probe;
use super::tcp::{Clock, Side};
use super::tls::TlsSetup;
use super::{Segment, flags};
use crate::model::exchange::{ExchangeSink, Mark};
use crate::model::limits;
use crate::model::place::InputId;
use crate::model::problem::{ProblemKind, Problems};
use crate::model::time::Time;
use flow::{Flow, Told};
use key::Key;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::Arc;

/// What the parsers of connections may be told beforehand.
#[derive(Clone, Debug, Default)]
pub struct WireOptions {
    /// Secrets for TLS connections, and what became of these.
    pub tls: Arc<TlsSetup>,
}

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
    /// Inputs that gave segments so far.
    captures: u32,
    waiting: VecDeque<(u32, u32)>,
    closed: VecDeque<(u32, u32)>,
    live: usize,
    hand: usize,
    held_bytes: usize,
    count: u64,
    next_exchange: u64,
    stray: Problems,
}

#[derive(Default)]
struct Input {
    streams: u64,
    /// The latest segment.
    latest: Option<Mark>,
    disorder_ns: i64,
}

#[derive(Default)]
struct Slot {
    generation: u32,
    flow: Option<Box<Flow>>,
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
            captures: 0,
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
        let clock =
            Clock { now: Time::from_ns(i64::MAX, 0), count: self.count, disorder_ns: 0, alone: true, ended: true };
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
            Some(latest) if latest.at > now => input.disorder_ns = input.disorder_ns.max(latest.at.since(now)),
            before => {
                self.captures += u32::from(before.is_none());
                input.latest = Some(segment.mark);
            }
        }
        let disorder_ns = input.disorder_ns;
        Clock { now, count: self.count, disorder_ns, alone: self.captures == 1, ended: false }
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
        let flow = Box::new(Flow::new(key, older, stream, segment, clock, &self.options));
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
        let usual = flow.run(&mut context, |reassembler, out| reassembler.segment(side, segment, clock, out));
        if usual && !flow.reassembler.is_over() {
            return;
        }
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
            flow.tell_one_direction(&mut context);
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

    /// Ends a connection: what waits is delivered. Where all `ended`, that is where its inputs do.
    fn end(&mut self, index: u32, clock: &Clock, sink: &mut dyn ExchangeSink, problems: &mut [Problems]) {
        let Some(flow) = self.slots.get_mut(index as usize).and_then(|slot| slot.flow.as_deref_mut()) else { return };
        if flow.is_closed {
            return;
        }
        let inputs = flow.also_in.iter().chain([&flow.facts.input]);
        let latest = inputs.filter_map(|input| self.inputs.get(*input as usize)?.latest).max_by_key(|mark| mark.at);
        let latest = latest.filter(|_| clock.ended);
        let before = flow.reassembler.held_bytes();
        let mut context = Told { sink, problems, next_exchange: &mut self.next_exchange, stray: &mut self.stray };
        flow.run(&mut context, |reassembler, out| reassembler.finish(clock, latest, out));
        flow.tell_one_direction(&mut context);
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

fn input_of(inputs: &mut Vec<Input>, input: InputId) -> &mut Input {
    let index = input as usize;
    if inputs.len() <= index {
        inputs.resize_with(index + 1, Input::default);
    }
    // The line above made sure that it is there.
    #[expect(clippy::indexing_slicing, reason = "just resized")]
    &mut inputs[index]
}
