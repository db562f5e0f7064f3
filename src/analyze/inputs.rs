//! What each input is, its clock, how much of it was joined, and what it can show.

use crate::join::World;
use crate::join::sources::{Shown, file_of};
use crate::model::place::{InputId, Side, Vantage};
use crate::model::report::{Clock, InputInfo, NO_REQUESTS, Part};
use crate::model::time::Time;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Fills in all but what [`joined`] counts.
pub(super) fn fill(world: &World, inputs: &mut [InputInfo]) {
    sides(world, inputs);
    for (n, info) in (0u32..).zip(inputs.iter_mut()) {
        info.clock = clock(world, n, info.first);
        info.shows = shows(world, n, info.vantage);
    }
    parts(world, inputs);
}

/// Counts a call for each input and part that shows it; `seen` are its sightings, by source, and whether each could be
/// another call's.
pub(super) fn joined(world: &World, inputs: &mut [InputInfo], seen: &mut Vec<(InputId, bool)>) {
    // Of one source's sightings the ambiguous one, if any, comes first.
    let once = |seen: &mut Vec<(InputId, bool)>| {
        seen.sort_unstable_by_key(|(source, ambiguous)| (*source, !ambiguous));
        seen.dedup_by_key(|(source, _)| *source);
    };
    once(seen);
    for (source, ambiguous) in seen.iter() {
        let Some(info) = inputs.get_mut(file_of(*source) as usize) else { continue };
        let sources = &world.logs.sources;
        let is_own = |p: &&mut Part| p.vantage.is_some_and(|v| sources.source(file_of(*source), v) == *source);
        if let Some(part) = info.parts.iter_mut().find(is_own) {
            part.joined += 1;
            part.ambiguous += u64::from(*ambiguous);
        }
    }
    seen.iter_mut().for_each(|(source, _)| *source = file_of(*source));
    once(seen);
    for (input, ambiguous) in seen.iter() {
        if let Some(info) = inputs.get_mut(*input as usize) {
            info.joined += 1;
            info.ambiguous += u64::from(*ambiguous);
        }
    }
}

/// What each of several who wrote in one input left there.
fn parts(world: &World, inputs: &mut [InputInfo]) {
    for span in world.logs.sources.parts() {
        let input = file_of(span.source);
        let Some(info) = inputs.get_mut(input as usize) else { continue };
        let vantage = if span.source == input { Vantage::Server } else { Vantage::Proxy };
        info.parts.push(Part {
            vantage: Some(vantage),
            records: span.records,
            first: span.first,
            last: span.last,
            clock: clock(world, span.source, span.first),
            shows: shown(world, span.source).unwrap_or_default(),
            ..Part::default()
        });
    }
}

/// The clock of a source, at its first record.
fn clock(world: &World, source: InputId, first: Option<Time>) -> Clock {
    // Lines that took their times from another log say nothing of a clock.
    let is_ordered = world.logs.ordered.contains_key(&source);
    let offset = world.logs.offsets.get(&source).copied().flatten().filter(|_| !is_ordered);
    let drift = offset.and_then(|o| o.drift);
    Clock {
        offset_ms: offset.map(|o| ms(first.map_or(o.ns, |t| o.at(t)))),
        error_ms: offset.map(|o| ms(o.error_ns)),
        drift_ppm: drift.map(|d| d.ns_per_s as f64 / 1000.0),
        drift_error_ppm: drift.map(|d| d.error_ns_per_s as f64 / 1000.0),
    }
}

/// What an input can and cannot show, in one line.
fn shows(world: &World, input: u32, vantage: Option<Vantage>) -> String {
    let results =
        || world.visits.iter().filter(|v| v.input == input).any(|v| v.replies.iter().any(|r| r.body.is_some()));
    match vantage {
        Some(Vantage::Wire) => "bodies and stream ends".into(),
        Some(Vantage::Client) if results() => "the client's calls, results".into(),
        Some(Vantage::Client) => "the client's calls, no results".into(),
        Some(Vantage::Proxy | Vantage::Server) => lines_show(world, input),
        None => String::new(),
    }
}

fn lines_show(world: &World, input: u32) -> String {
    let of = |vantage| world.logs.sources.source(input, vantage);
    let shown = |source| shown(world, source);
    let (server, proxy) = (of(Vantage::Server), of(Vantage::Proxy));
    match (shown(server), shown(proxy)) {
        (Some(lines), Some(front)) if server != proxy => format!("server's lines: {lines}; proxy's: {front}"),
        (Some(lines), _) | (_, Some(lines)) => lines,
        (None, None) => events(world, input),
    }
}

fn shown(world: &World, source: InputId) -> Option<String> {
    let text = world.logs.shown.get(&source).or(world.past.shown.as_ref()).map(Shown::text)?;
    let told = if world.logs.ordered.contains_key(&source) { ", times by its order" } else { "" };
    Some(format!("{text}{told}"))
}

/// A log without requests gives no calls to judge: what it tells must not look like nothing.
fn events(world: &World, input: u32) -> String {
    let mut counts: BTreeMap<&str, u64> = world.past.said.clone();
    for e in world.logs.events.iter().filter(|e| e.place.input == input) {
        *counts.entry(e.kind.name()).or_default() += 1;
    }
    let mut counts: Vec<(&str, u64)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, n)| Reverse(*n));
    let told: Vec<String> = counts.iter().map(|(name, n)| format!("{name} ×{n}")).collect();
    match told.as_slice() {
        [] => format!("{NO_REQUESTS}, no events"),
        told => format!("{NO_REQUESTS}; events: {}", told.join(", ")),
    }
}

/// Marks captures that show one side of a proxy only.
fn sides(world: &World, inputs: &mut [InputInfo]) {
    let mut seen: FxHashMap<u32, (bool, bool)> = FxHashMap::default();
    for (v, visit) in world.visits.iter().enumerate() {
        let hop = world.hop_of.get(v).copied().unwrap_or(0) as usize;
        if world.chains.joined.get(hop) == Some(&true) {
            let back = world.chains.depth.get(hop).is_some_and(|d| *d > 0);
            let entry = seen.entry(visit.input).or_default();
            if back { entry.1 = true } else { entry.0 = true }
        }
    }
    for (input, sides) in seen {
        if let Some(info) = inputs.get_mut(input as usize) {
            info.side = match sides {
                (true, false) => Some(Side::Front),
                (false, true) => Some(Side::Back),
                _ => None,
            };
        }
    }
}

/// Nanoseconds as milliseconds of three digits.
pub(super) fn ms(ns: i64) -> f64 {
    (ns / 1000) as f64 / 1000.0
}
