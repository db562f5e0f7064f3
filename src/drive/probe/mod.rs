//! The sweep that shows whether a server crosses replies.
//!
//! Finds tools that give back what they are given, proves with seeded faults that it can see,
//! then sends batches in every [`Configuration`] and judges every reply by id, content, stream and
//! session.

mod plan;
pub mod render;
mod repetition;
pub mod report;
mod selfcheck;
mod sweep;
mod tool;
mod volley;

pub use plan::{Configuration, Kind, Slow};
pub use selfcheck::{Check, Seed};
pub use tool::{Choice, may_call};

use super::client::Client;
use super::record::now_ns;
use super::session::Session;
use super::tags::Tags;
use crate::model::time::Time;
use plan::Maker;
use report::{Counts, Report, ToolInfo};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use tool::{Kit, Trial};
use volley::Range;

/// What to do.
#[derive(Clone, Debug)]
pub struct Options {
    /// Repetitions of each configuration.
    pub repetitions: u64,
    /// Batch sizes.
    pub batches: Vec<usize>,
    /// Tools.
    pub choice: Choice,
    /// How long a caller waits; none: learnt from the tools.
    pub patience: Option<Duration>,
    /// How long a slow call takes.
    pub delay: Duration,
    /// Calls a second at most.
    pub rate: f64,
    /// Go on where no tool gives back what it was given: only ids are judged.
    pub ids_only: bool,
}

/// How far a probe is.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Configurations done.
    pub done: usize,
    /// Of so many.
    pub of: usize,
    /// Calls so far.
    pub calls: u64,
    /// Faults so far.
    pub wrong: u64,
}

/// Time for one answer before anything is known of the server.
const FIRST_PATIENCE: Duration = Duration::from_secs(10);

/// Probes the server. Whatever goes wrong is in the report's troubles.
pub fn run(client: &Client, options: &Options, progress: &mut dyn FnMut(Progress)) -> Report {
    let start = Instant::now();
    let mut report = empty(client);
    if let Err(why) = probe(client, options, &mut report, progress) {
        report.troubles.push(why);
    }
    report.stopped = client.stop.is_set();
    if report.stopped {
        let (done, of) = (report.configurations.len(), report.planned);
        report.troubles.push(format!("stopped: {done} of {of} configurations were run"));
    }
    report.took_s = start.elapsed().as_secs_f64();
    report
}

fn empty(client: &Client) -> Report {
    Report {
        schema: "crosswire.probe/1",
        crosswire: env!("CARGO_PKG_VERSION"),
        target: client.target.to_string(),
        server: None,
        revision: None,
        sessions: false,
        started: Time::from_ns(now_ns(), 3),
        took_s: 0.0,
        tools: vec![],
        left_alone: vec![],
        self_check: vec![],
        planned: 0,
        configurations: vec![],
        findings: vec![],
        summary: Counts::default(),
        stopped: false,
        troubles: vec![],
        notes: vec![],
    }
}

fn probe(
    client: &Client,
    options: &Options,
    report: &mut Report,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), String> {
    let first = options.patience.unwrap_or(FIRST_PATIENCE);
    let tags = Tags::new(now_ns());
    let session = Session::open(client, first).map_err(|e| e.to_string())?;
    report.server = session.server.clone();
    report.revision = Some(session.revision.clone());
    report.sessions = session.id.is_some();
    let listed = session.tools(client, first).map_err(|e| e.to_string())?;
    let trial = Trial { client, session: &session, tags: &tags, patience: first, delay: options.delay };
    let kit = trial.find(&listed, &options.choice);
    session.close(client);
    if !kit.missing.is_empty() {
        let names: Vec<&str> = listed.iter().filter_map(|t| t.get("name")?.as_str()).collect();
        return Err(format!("the server lists no tool {}; it lists: {}", kit.missing.join(", "), names.join(", ")));
    }
    describe(&kit, options, report)?;

    let patience = options.patience.unwrap_or_else(|| patience(&kit, options));
    let range = Range { client, tags: &tags, patience, elsewhere: Mutex::default() };
    let maker = Maker { kit: &kit, tags: &tags, delay: options.delay };
    if !kit.echo.is_empty() {
        report.self_check = selfcheck::run(&range, &maker);
        let failed = report.self_check.iter().filter(|c| !c.passed).map(|c| c.seed.text()).collect::<Vec<_>>();
        if !failed.is_empty() && !client.stop.is_set() {
            report.troubles.push(format!("the self-check failed: {}; what follows proves nothing", failed.join(", ")));
        }
    }
    sweep::run(&range, &maker, options, report, progress);
    Ok(())
}

/// How long a caller waits: a server that serves one call after the other is slow, and loses none.
fn patience(kit: &Kit, options: &Options) -> Duration {
    let slowest = kit.tools.iter().map(|t| t.lone_ms).fold(0.0, f64::max) / 1000.0;
    let delay = options.delay.as_secs_f64();
    let busy = |c: &Configuration| {
        let at_once = sweep::at_once(c, options.repetitions) as f64;
        at_once * (c.calls() as f64 * slowest + c.slow_calls() * delay)
    };
    let longest = plan::configurations(&options.batches, true).iter().map(busy).fold(0.0, f64::max);
    Duration::from_secs_f64(1.0 + 3.0 * (slowest + 2.5 * delay) + 1.5 * longest)
}

/// Writes down which tools are used, and refuses where none can show anything.
fn describe(kit: &Kit, options: &Options, report: &mut Report) -> Result<(), String> {
    let info = |i: &usize| {
        let tool = kit.tool(*i)?;
        Some(ToolInfo { name: tool.name.clone(), echoes: tool.echoes, delays: tool.delays, lone_ms: tool.lone_ms })
    };
    let slow = kit.slow.filter(|s| !kit.echo.contains(s));
    report.tools = kit.echo.iter().chain(&slow).chain(&kit.plain).filter_map(info).collect();
    report.left_alone.clone_from(&kit.left_alone);
    for (name, why) in &kit.useless {
        report.notes.push(format!("{name} was tried and is not used: {why}"));
    }
    if kit.echo.is_empty() {
        let left = if kit.left_alone.is_empty() {
            String::new()
        } else {
            format!(
                "; not marked read-only and left alone: {} (--allow TOOL lets them be called)",
                kit.left_alone.join(", ")
            )
        };
        if kit.tools.is_empty() {
            return Err(format!("no tool can be called{left}"));
        }
        if !options.ids_only {
            return Err(format!(
                "no tool gives back what it is given, so that replies cannot be told apart{left}; name one with --tool and --args, or judge ids alone with --ids-only"
            ));
        }
        report.notes.push("no tool gives back what it is given: bodies are not judged, only ids".into());
    }
    if kit.slow.is_none() {
        report.notes.push(
            "no tool can be told to take its time: whether calls are in flight at once depends on the server's speed"
                .into(),
        );
    }
    Ok(())
}
