//! A server that plays what was recorded, to a real client under test, and does wrong what a script
//! says.

mod answer;
pub mod report;
pub mod script;
mod swap;

use crate::drive::record::now_ns;
use crate::drive::tags::Tags;
use crate::model::time::Time;
use report::{Matched, Report, Served};
use rustc_hash::{FxHashMap, FxHashSet};
use script::{Entry, FaultRule, Script};
use serde_json::Value;
use std::sync::mpsc::Sender;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use swap::Swaps;

/// What is said to a request that nothing was recorded for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unmatched {
    /// The last recorded reply of its method and tool again; else an error.
    Repeat,
    /// A JSON-RPC error.
    Error,
    /// 404.
    Refuse,
    /// Nothing, until the client leaves.
    Hang,
}

/// The played server.
pub struct Player {
    script: Script,
    unmatched: Unmatched,
    /// Recorded times are divided by this.
    speed: f64,
    /// Path that is served.
    path: String,
    tags: Tags,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    used: FxHashSet<usize>,
    sessions: FxHashSet<String>,
    streams: FxHashMap<String, Sender<Value>>,
    calls: u64,
    calls_of: FxHashMap<String, u64>,
    requests: Vec<Served>,
    swaps: Swaps,
}

impl Player {
    /// A server that plays `script` at `path`.
    pub fn new(script: Script, unmatched: Unmatched, speed: f64, path: String) -> Player {
        let tags = Tags::new(now_ns());
        Player { script, unmatched, speed, path, tags, state: Mutex::default(), changed: Condvar::new() }
    }

    /// What the client did so far.
    pub fn report(&self) -> Report {
        Report::new(self.lock().requests.clone())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The recorded answer to a request, and how it was found.
    fn find(&self, state: &mut State, method: &str, tool: Option<&str>, arguments: &Value) -> (Option<Entry>, Matched) {
        let fits = |e: &&(usize, &Entry)| e.1.method == method && e.1.tool.as_deref() == tool;
        let all: Vec<(usize, &Entry)> = self.script.replies.iter().enumerate().filter(|e| fits(&e)).collect();
        let is_free = |e: &&(usize, &Entry)| !state.used.contains(&e.0);
        let same = |e: &&(usize, &Entry)| e.1.arguments == *arguments;
        let exact = all.iter().filter(is_free).find(same).map(|e| (e, Matched::Exact));
        // Arguments of what is no tool call (cursors, client names) do not matter.
        let order =
            || all.iter().find(is_free).map(|e| (e, if tool.is_some() { Matched::InOrder } else { Matched::Exact }));
        let again = || {
            let last = all.iter().rev().find(same).or(all.last()).map(|e| (e, Matched::Repeated));
            last.filter(|_| self.unmatched == Unmatched::Repeat || tool.is_none())
        };
        match exact.or_else(order).or_else(again) {
            Some(((index, entry), how)) => {
                state.used.insert(*index);
                (Some((*entry).clone()), how)
            }
            None => (None, Matched::Unmatched),
        }
    }

    /// The fault for the next tool call.
    fn fault(&self, state: &mut State, tool: &str) -> Option<FaultRule> {
        state.calls += 1;
        let of_tool = state.calls_of.entry(tool.to_owned()).or_default();
        *of_tool += 1;
        let (all, of_tool) = (state.calls, *of_tool);
        let hits = |f: &&FaultRule| match (&f.tool, f.call) {
            (Some(wanted), _) if wanted != tool => false,
            (Some(_), call) => call.is_none_or(|n| n == of_tool),
            (None, call) => call.is_none_or(|n| n == all),
        };
        self.script.faults.iter().find(hits).cloned()
    }

    /// Writes down a request; gives its index.
    fn note(&self, state: &mut State, served: Served) -> usize {
        state.requests.push(Served { number: state.requests.len() + 1, ..served });
        state.requests.len() - 1
    }

    fn update(&self, index: usize, change: impl FnOnce(&mut Served)) {
        if let Some(served) = self.lock().requests.get_mut(index) {
            change(served);
        }
    }
}

/// Milliseconds since `start`.
fn since(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1000.0
}

fn now() -> Time {
    Time::from_ns(now_ns(), 3)
}
