//! Findings while traffic goes on: inputs are followed as they grow, their last minutes kept
//! ([`window`]), analysed again and again as any files are, and what comes out is told once, when it has
//! settled ([`judge`]).
//!
//! What is kept is bounded in time and size, so a watch can run for days. The bound is also what it can
//! see: a call and all that explains it must lie within one window.

pub mod follow;
pub mod judge;
pub mod metrics;
pub mod read;
pub mod tell;
pub mod window;

use crate::analyze;
use crate::drive::Stop;
use crate::drive::record::now_ns;
use crate::model::options::{AnalyzeOptions, ReadOptions};
use crate::model::report::Report;
use crate::model::time::Time;
use judge::{Judge, Told};
use metrics::{Input, Metrics};
use read::{Shared, lock};
use std::time::{Duration, Instant};

/// How often it is looked for news.
const TICK: Duration = Duration::from_millis(200);
/// Analyses take at most this part of the time.
const SHARE: u32 = 5;
/// Of a window that was cut, what lies in this part at its beginning is not told any more.
const MARGIN: u64 = 4;
/// A live source may be this far behind the clock.
const BEHIND: Duration = Duration::from_secs(2);

/// An input that is watched.
#[derive(Clone)]
pub struct Watched {
    /// What is kept of it.
    pub window: Shared,
    /// It is a capture; else lines.
    pub is_wire: bool,
    /// What was not read of it has not happened: it is written by this program, at once.
    pub is_live: bool,
}

/// Analyses the windows until stopped, and once more then; gives each finding to `tell` once.
///
/// `select` takes out of a report what the user does not want to hear of.
pub fn run(
    inputs: &dyn Fn() -> Vec<Watched>,
    options: &ReadOptions,
    settle: Duration,
    metrics: &Metrics,
    stop: &Stop,
    select: &dyn Fn(&mut Report),
    tell: &mut dyn FnMut(Vec<Told>),
) {
    let mut judge = Judge::new(settle);
    let mut seen = 0;
    let mut rest = Instant::now();
    let options = without_capture_formats(options);
    loop {
        let stopped = stop.is_set();
        let watched = inputs();
        let changes = watched.iter().map(|w| lock(&w.window).changes).sum::<u64>();
        // A call that waits is known to have waited too long without anything coming.
        let is_live = watched.iter().any(|w| w.is_live);
        let now = Instant::now();
        if stopped || (now >= rest && (changes != seen || is_live)) {
            seen = changes;
            analyse(&watched, &options, &mut judge, metrics, select);
            rest = Instant::now() + now.elapsed() * (SHARE - 1);
            if is_live {
                rest = rest.max(now + Duration::from_secs(1));
            }
        }
        if judge.is_waiting() || stopped {
            let news = judge.news(Instant::now(), stopped);
            if !news.is_empty() {
                tell(news);
            }
        }
        if stopped {
            return;
        }
        std::thread::sleep(TICK);
    }
}

fn analyse(
    watched: &[Watched],
    options: &ReadOptions,
    judge: &mut Judge,
    metrics: &Metrics,
    select: &dyn Fn(&mut Report),
) {
    let began = Instant::now();
    let (mut sources, mut reads, mut cut, mut told) = (vec![], vec![], vec![], vec![]);
    for (number, input) in watched.iter().enumerate() {
        let mut window = lock(&input.window);
        let behind = i64::try_from(BEHIND.as_nanos()).unwrap_or(0);
        let until = input.is_live.then(|| Time::from_ns(now_ns() - behind, 9));
        if let Some((source, numbers)) = window.source(input.is_wire, until) {
            sources.push(source);
            reads.push(judge::Read { window: number, numbers });
        }
        cut.push(window.trusted_from(MARGIN));
        told.push(Input {
            name: window.name.clone(),
            records: window.records,
            bytes: window.bytes() as u64,
            dropped: window.dropped_packets(),
        });
    }
    if !sources.is_empty()
        && let Ok(mut report) = analyze::run_sources(sources, vec![], options, &AnalyzeOptions::default())
    {
        select(&mut report);
        judge.take(&report, &reads, &cut, began);
    }
    metrics.analysed(began.elapsed(), told);
}

/// What a capture's window gives is pcapng, whatever the capture is.
fn without_capture_formats(options: &ReadOptions) -> ReadOptions {
    let is_capture = |name: &str| matches!(name, "pcap" | "pcapng");
    let mut options = options.clone();
    options.input_format = options.input_format.filter(|name| !is_capture(name));
    options.input_formats.retain(|(name, _)| !is_capture(name));
    // Its frames were chosen when they came, and are others now.
    options.filter = None;
    options
}
