//! The ladder: who sent what to whom, in order of time, with concurrent calls side by side.
//!
//! `gather` turns the report into messages, `lanes` lays messages out as rows (the geometry),
//! and `text`, `svg` and `mermaid` draw rows. The drawings know nothing of the report.

use super::view::{View, span};
use crate::model::report::CallKey;
use crate::model::time::Time;
use rustc_hash::{FxHashMap, FxHashSet};

mod gather;
mod lanes;
pub mod mermaid;
pub mod svg;
pub mod text;

/// Which way a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the client to the server.
    ToServer,
    /// From the server to the client.
    ToClient,
    /// No message: something that happened at one column.
    At(usize),
}

/// What a row is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    /// In order.
    Plain,
    /// A reply in the wrong hands.
    Crossed,
    /// A call without a reply.
    Hanging,
    /// An error, a refusal.
    Refused,
    /// A remark.
    Note,
}

/// One message or event, as a row shows it. All text is clean.
#[derive(Clone, Debug)]
pub struct Message {
    /// When.
    pub at: Option<Time>,
    /// Which way.
    pub direction: Direction,
    /// Parts of the path (0 next to the client) on which an input saw it, as bits.
    pub seen: u8,
    /// Parts of the path that no input can show, as bits: it may have passed there.
    pub dark: u8,
    /// Method, tool, id.
    pub text: String,
    /// Status, size, latency, what is wrong.
    pub note: String,
    /// `file:frame` of each place.
    pub places: Vec<String>,
    /// What it is about.
    pub mood: Mood,
    /// The call it belongs to.
    pub call: Option<CallKey>,
    /// It begins the call.
    pub opens: bool,
    /// It ends the call.
    pub closes: bool,
    /// The call that should have got this reply.
    pub owner: Option<CallKey>,
    /// Numbers of the findings (from 1) that concern it.
    pub findings: Vec<usize>,
}

/// A line of the drawing.
#[derive(Clone, Debug)]
pub enum Row {
    /// A message or event, and the lane of its call.
    Message(Message, Option<usize>),
    /// Nothing happened for this long, ns.
    Idle(i64),
    /// This many messages are not shown.
    LeftOut(usize),
}

/// A call's bar: the rows over which it was open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bar {
    /// Whose.
    pub call: CallKey,
    /// Lane, from 0.
    pub lane: usize,
    /// First row.
    pub from: usize,
    /// Last row.
    pub to: usize,
    /// It never got a reply of its own.
    pub hangs: bool,
    /// Its end is not among the rows.
    pub is_open: bool,
}

/// A laid-out ladder.
#[derive(Clone, Debug)]
pub struct Ladder {
    /// What it shows.
    pub title: String,
    /// Names of the columns from client to server.
    pub columns: Vec<&'static str>,
    /// Rows from top to bottom.
    pub rows: Vec<Row>,
    /// Bars of calls.
    pub bars: Vec<Bar>,
    /// Lanes used.
    pub lanes: usize,
    /// Rows (first, last) within a stale-session window.
    pub bands: Vec<(usize, usize)>,
}

/// All messages of one session, or of sessions that a stale window ties together.
pub struct Group {
    title: String,
    messages: Vec<Message>,
    windows: Vec<(Time, Time)>,
}

/// All messages of a report in groups, from which ladders are cut.
pub struct Timeline {
    columns: Vec<&'static str>,
    groups: Vec<Group>,
    /// Where each call's rows are: group and index.
    places: FxHashMap<CallKey, (usize, Vec<usize>)>,
    /// Rows that only a finding has (no call).
    marks: FxHashMap<usize, (usize, usize)>,
}

/// Silence that is worth a line of its own, ns.
const IDLE_NS: i64 = 2_000_000_000;

impl Timeline {
    /// Gathers the messages of a report.
    pub fn new(view: &View<'_>) -> Timeline {
        let (columns, groups) = gather::gather(view);
        let mut places: FxHashMap<CallKey, (usize, Vec<usize>)> = FxHashMap::default();
        let mut marks: FxHashMap<usize, (usize, usize)> = FxHashMap::default();
        for (g, group) in groups.iter().enumerate() {
            for (i, m) in group.messages.iter().enumerate() {
                match m.call {
                    Some(key) => places.entry(key).or_insert_with(|| (g, Vec::new())).1.push(i),
                    None => marks.extend(m.findings.iter().map(|f| (*f, (g, i)))),
                }
            }
        }
        Timeline { columns, groups, places, marks }
    }

    /// One ladder a group; longer ones are cut to their first `max_rows` messages.
    pub fn ladders(&self, max_rows: usize) -> impl Iterator<Item = Ladder> {
        self.groups.iter().map(move |group| {
            let shown = group.messages.len().min(max_rows);
            self.lay_out(group, &(0..shown).collect::<Vec<_>>())
        })
    }

    /// The messages around some calls and a finding (its number from 1): theirs, with up to
    /// `context` more before, between and after, one ladder a group.
    pub fn around(&self, finding: usize, calls: &[CallKey], context: usize) -> Vec<Ladder> {
        let mut wanted: FxHashMap<usize, FxHashSet<usize>> = FxHashMap::default();
        let mut want = |g: usize, at: usize| {
            let last = self.groups.get(g).map_or(0, |group| group.messages.len().saturating_sub(1));
            wanted.entry(g).or_default().extend(at.saturating_sub(context)..=(at + context).min(last));
        };
        for key in calls {
            if let Some((g, rows)) = self.places.get(key) {
                rows.iter().for_each(|at| want(*g, *at));
            }
        }
        if let Some((g, at)) = self.marks.get(&finding) {
            want(*g, *at);
        }
        let mut groups: Vec<usize> = wanted.keys().copied().collect();
        groups.sort_unstable();
        let cut = |g: &usize| {
            let mut rows: Vec<usize> = wanted.get(g)?.iter().copied().collect();
            rows.sort_unstable();
            Some(self.lay_out(self.groups.get(*g)?, &rows))
        };
        groups.iter().filter_map(cut).collect()
    }

    /// The messages of a call's session from up to `context` before its first to as many after its
    /// last.
    pub fn of_call(&self, key: CallKey, context: usize) -> Option<Ladder> {
        let (g, rows) = self.places.get(&key)?;
        let group = self.groups.get(*g)?;
        let from = rows.first()?.saturating_sub(context);
        let to = rows.last()?.saturating_add(context + 1).min(group.messages.len());
        Some(self.lay_out(group, &(from..to).collect::<Vec<_>>()))
    }

    fn lay_out(&self, group: &Group, which: &[usize]) -> Ladder {
        let last_of = |key| self.places.get(&key).and_then(|(_, rows)| rows.last().copied());
        lanes::lay_out(group.title.clone(), self.columns.clone(), &group.messages, which, &group.windows, last_of)
    }
}

/// `13.5 s idle`.
fn idle_text(ns: i64) -> String {
    format!("{} idle", span(ns))
}

/// `3 messages left out`.
fn left_out_text(n: usize) -> String {
    format!("{} left out", super::table::counted(n as u64, "message"))
}
