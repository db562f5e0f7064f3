//! The geometry: which row a message is on and which lane its call takes. Lanes are reused as
//! soon as they are free, so their number is that of calls open at once.

use super::{Bar, IDLE_NS, Ladder, Message, Row};
use crate::model::report::CallKey;
use crate::model::time::Time;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Lays out the messages at the indices `which` (ascending). `last_of` gives the index of a call's
/// last message among all: a call whose end is left out stays open to the bottom.
pub(super) fn lay_out(
    title: String,
    columns: Vec<&'static str>,
    messages: &[Message],
    which: &[usize],
    windows: &[(Time, Time)],
    last_of: impl Fn(CallKey) -> Option<usize>,
) -> Ladder {
    let shown: Vec<&Message> = which.iter().filter_map(|i| messages.get(*i)).collect();
    let mut ladder = Ladder { title, columns, rows: Vec::new(), bars: Vec::new(), lanes: 0, bands: Vec::new() };
    let mut lanes = Lanes::default();
    let mut next = 0;
    let mut before: Option<Time> = None;
    for (index, m) in which.iter().zip(&shown) {
        if *index > next {
            ladder.rows.push(Row::LeftOut(index - next));
            before = None;
        }
        next = index + 1;
        if let Some(idle) = m.at.zip(before).map(|(at, before)| at.since(before)).filter(|ns| *ns >= IDLE_NS) {
            ladder.rows.push(Row::Idle(idle));
        }
        before = m.at.or(before);
        let row = ladder.rows.len();
        let is_last = m.call.is_some_and(|key| last_of(key) == Some(*index));
        let lane = m.call.map(|key| lanes.visit(key, m, row, is_last, &mut ladder.bars));
        ladder.rows.push(Row::Message((*m).clone(), lane));
    }
    if messages.len() > next {
        ladder.rows.push(Row::LeftOut(messages.len() - next));
    }
    let bottom = ladder.rows.len().saturating_sub(1);
    for at in lanes.open.values() {
        if let Some(bar) = ladder.bars.get_mut(*at) {
            bar.to = bottom;
        }
    }
    ladder.lanes = lanes.used;
    ladder.bands = bands(&ladder.rows, windows);
    ladder
}

#[derive(Default)]
struct Lanes {
    free: BinaryHeap<Reverse<usize>>,
    used: usize,
    /// Index of the open bar of a call.
    open: FxHashMap<CallKey, usize>,
}

impl Lanes {
    /// The lane of a call at one of its rows; opens its bar at the first and closes it at the last.
    fn visit(&mut self, key: CallKey, m: &Message, row: usize, is_last: bool, bars: &mut Vec<Bar>) -> usize {
        let at = *self.open.entry(key).or_insert_with(|| {
            let lane = self.free.pop().map_or_else(
                || {
                    self.used += 1;
                    self.used - 1
                },
                |Reverse(lane)| lane,
            );
            bars.push(Bar { call: key, lane, from: row, to: row, hangs: false, is_open: true });
            bars.len() - 1
        });
        let Some(bar) = bars.get_mut(at) else { return 0 };
        bar.to = row;
        bar.hangs |= m.mood == super::Mood::Hanging;
        if m.closes {
            bar.is_open = false;
        }
        if is_last {
            self.open.remove(&key);
            self.free.push(Reverse(bar.lane));
        }
        bar.lane
    }
}

/// The rows that lie within stale-session windows.
fn bands(rows: &[Row], windows: &[(Time, Time)]) -> Vec<(usize, usize)> {
    let times: Vec<(Time, usize)> = rows
        .iter()
        .enumerate()
        .filter_map(|(n, row)| match row {
            Row::Message(m, _) => Some((m.at?, n)),
            _ => None,
        })
        .collect();
    let band = |(from, to): &(Time, Time)| {
        let first = times.partition_point(|(t, _)| t < from);
        let end = times.partition_point(|(t, _)| t <= to);
        Some((times.get(first)?.1, times.get(end.checked_sub(1)?)?.1)).filter(|(a, b)| a <= b)
    };
    windows.iter().filter_map(band).collect()
}
