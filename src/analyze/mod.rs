//! The main job: read every input, correlate, check the rules, and fill in the report.

pub mod alone;
mod along;
mod beside;
pub mod clocks;
mod inputs;
pub mod logs;
mod parts;
mod read;
mod rows;
mod sessions;
mod writers;

use crate::input::{Source, bundle, expand};
use crate::join::World;
use crate::join::drift::Offset;
use crate::model::options::{AnalyzeOptions, ReadOptions};
use crate::model::problem::ProblemKind;
use crate::model::report::Report;
use crate::rules;

/// Where more than one packet in this many was dropped, whole exchanges may be missing.
const MUCH_DROPPED: u64 = 10;

/// Reads `inputs` (as named on a command line) and reports.
///
/// Inputs that cannot be read at all are in [`Report::troubles`]; the others are reported all the same.
///
/// # Errors
/// None at present: whatever goes wrong is trouble or a problem of an input.
pub fn run(inputs: &[String], read: &ReadOptions, options: &AnalyzeOptions) -> anyhow::Result<Report> {
    let read = &bundle::options(inputs, read);
    let (sources, errors) = expand(inputs);
    run_sources(sources, errors.iter().map(ToString::to_string).collect(), read, options)
}

/// Reads `sources` and reports; `troubles` are those that were met on the way to them.
///
/// # Errors
/// As [`run`].
pub fn run_sources(
    sources: Vec<Source>,
    troubles: Vec<String>,
    read: &ReadOptions,
    options: &AnalyzeOptions,
) -> anyhow::Result<Report> {
    let mut gathered = read::Gathered { troubles, ..read::Gathered::default() };
    read::read(sources, read, options, &mut gathered);
    Ok(conclude(gathered, read, options))
}

/// Reports what some logs showed: `logs` in the order of their numbers as inputs.
pub fn fold_logs(logs: Vec<logs::Sighted>, read: &ReadOptions, options: &AnalyzeOptions) -> Report {
    conclude(gathered(logs), read, options)
}

fn gathered(logs: Vec<logs::Sighted>) -> read::Gathered {
    let mut gathered = read::Gathered::default();
    for mut log in logs {
        let mut seen = read::Vantages::default();
        log.records.iter().for_each(|r| seen.add(r));
        seen.tell(&mut log.info);
        logs::close(&mut log.info);
        gathered.inputs.push(log.info);
        gathered.records.append(&mut log.records);
    }
    gathered
}

/// Correlates all that was read, and checks the rules.
fn conclude(gathered: read::Gathered, read: &ReadOptions, options: &AnalyzeOptions) -> Report {
    let read::Gathered { mut inputs, tracked, records, troubles, passed_over, tls, parts } = gathered;
    let (past, tracked, known) = parts.finish(tracked);
    if let (Some(info), true) = (inputs.first_mut(), past.dropped > 0) {
        let text = || format!("kept-visits: {} exchanges that are not clean were too many to keep", past.dropped);
        info.problems.add(ProblemKind::LimitHit, || "", text);
    }
    let mut world = World::new(tracked, records, read, past, known, writers::writers(&inputs), &options.clocks);
    for (input, info) in (0u32..).zip(&inputs) {
        let offset = world.logs.offsets.get(&input).copied().flatten().unwrap_or(Offset::none(0));
        world.input_start.extend(info.first.map(|t| (input, offset.apply(t))));
        world.input_end.extend(info.last.map(|t| (input, offset.apply(t))));
    }
    for part in world.logs.sources.parts() {
        let offset = world.logs.offsets.get(&part.source).copied().flatten().unwrap_or(Offset::none(0));
        world.input_start.extend(part.first.map(|t| (part.source, offset.apply(t))));
        world.input_end.extend(part.last.map(|t| (part.source, offset.apply(t))));
    }
    let has =
        |x: &crate::model::report::InputInfo, kinds: &[ProblemKind]| kinds.iter().any(|k| x.problems.count(*k) > 0);
    for (i, x) in inputs.iter().enumerate() {
        if has(
            x,
            &[ProblemKind::StreamGap, ProblemKind::DroppedPackets, ProblemKind::CutFrame, ProblemKind::OneDirection],
        ) {
            world.lossy_inputs.insert(i as u32);
        }
        if has(x, &[ProblemKind::DroppedPackets]) {
            world.dropped_inputs.insert(i as u32);
            let dropped = x.problems.count(ProblemKind::DroppedPackets);
            if dropped.saturating_mul(MUCH_DROPPED) > x.records.saturating_add(dropped) {
                world.holed_inputs.insert(i as u32);
            }
        }
        if has(x, &[ProblemKind::LogGap]) {
            world.gapped_inputs.insert(i as u32);
        }
    }
    world.cover();
    let (checked, seen) = beside::both(read, || rules::check(&world), || rows::Seen::of(&world, inputs, options.core));
    let mut report = rows::report(&world, seen, troubles, checked, options);
    report.passed_over = passed_over;
    report.summary.tls_connections = tls.connections;
    report.summary.tls_readable = tls.readable;
    report
}
