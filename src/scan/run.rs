//! Runs a plan: units on several threads within the memory, results in the order of the plan.

use super::aside::aside;
use super::clocks;
use super::copies::Copy;
use super::fold::Folding;
use super::journal::Journal;
use super::output;
use super::plan::{Plan, Told, plan};
use super::progress::Progress;
use super::result::{Counts, FileProblem, UnitResult};
use super::slices::{Unit, Work};
use super::source::Passed;
use super::summary::Table;
use super::worker::Worker;
use super::{Broken, Options, Stop};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// Units that may be done ahead of the one whose result is awaited, for each thread.
const AHEAD: usize = 4;
/// Problems that are named; more are counted.
const NAMED: usize = 10_000;

/// What a scan came to, beside its findings.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Counts over all.
    pub counts: Counts,
    /// Findings by day, service, rule and fault.
    pub table: Table,
    /// Members that could not be read to their end.
    pub broken: Vec<Broken>,
    /// Sources left out because another holds them.
    pub copies: Vec<Copy>,
    /// Copies that differ, read by themselves.
    pub variants: Vec<String>,
    /// Files left out for their time, and why.
    pub skipped: Vec<(String, String)>,
    /// Files of no known format.
    pub unknown: Vec<String>,
    /// Files without a byte.
    pub empty: u64,
    /// Inputs that could not be read at all.
    pub troubles: Vec<String>,
    /// What could be read only in part.
    pub problems: Vec<FileProblem>,
    /// Stored files looked at.
    pub files: u64,
    /// Their bytes.
    pub stored_bytes: u64,
    /// Plain bytes analysed.
    pub plain_bytes: u64,
    /// Files that were known from the checkpoint.
    pub unchanged: u64,
    /// Sources after joining.
    pub sources: u64,
    /// Units of work.
    pub units: u64,
    /// Of these, known from the checkpoint.
    pub reused: u64,
    /// Pieces of work that may need more memory than was allowed.
    pub over_memory: u64,
}

impl Outcome {
    /// Of an archive in which nothing was analysed yet.
    pub fn of(told: Told) -> Outcome {
        Outcome {
            broken: told.broken,
            copies: told.copies,
            variants: told.variants,
            skipped: told.skipped,
            unknown: told.unknown,
            empty: told.empty,
            troubles: told.troubles,
            files: told.files,
            stored_bytes: told.stored_bytes,
            plain_bytes: told.plain_bytes,
            sources: told.sources,
            units: told.lots,
            over_memory: told.over_memory,
            ..Outcome::default()
        }
    }
}

impl Outcome {
    /// What could be looked at, and not be read a second time, is as broken as what could not be looked at.
    fn tell_failures<'a>(&mut self, failed: impl Iterator<Item = (&'a String, &'a str)>) {
        for (name, why) in failed {
            let is_of =
                |b: &Broken| b.name.strip_prefix(name.as_str()).is_some_and(|m| m.is_empty() || m.starts_with('!'));
            if !self.broken.iter().any(is_of) {
                self.broken.push(Broken { name: name.clone(), why: why.to_owned() });
            }
        }
    }
}

/// Scans. `emit` gets the result of each unit, in order of the plan, as soon as it and all before
/// it are certain; its first argument is the number of the unit.
///
/// # Errors
/// If the checkpoint or the output cannot be written, or `emit` fails.
pub fn run(
    options: &Options,
    progress: &Progress,
    stop: Stop<'_>,
    emit: &mut dyn FnMut(&UnitResult) -> anyhow::Result<()>,
) -> anyhow::Result<Outcome> {
    if let Some(out) = &options.out {
        std::fs::create_dir_all(out).map_err(|e| anyhow::anyhow!("{}: cannot be made: {e}", out.display()))?;
    }
    let mut journal = options.checkpoint.as_deref().map_or(Ok(Journal::default()), Journal::open)?;
    let mut plan = plan(options, &mut journal, progress, stop)?;
    let clocks = tell_clocks(&mut plan, options, &mut journal, progress, stop)?;
    let prints: Vec<String> = plan.units.iter().map(|u| fingerprint(&u.works, &plan, options)).collect();
    let told = plan.told(options);
    let mut outcome = Outcome { unchanged: plan.unchanged, units: plan.units.len() as u64, ..Outcome::of(told) };
    let passed = Passed::default();
    progress.begin("reading", &passed, outcome.plain_bytes);
    all(options, &plan, &prints, &mut journal, progress, &passed, stop, &mut |result, reused| {
        outcome.counts.add(&result.counts);
        outcome.reused += u64::from(reused);
        outcome.table.add(result);
        outcome.troubles.extend(result.troubles.iter().cloned());
        let room = NAMED.saturating_sub(outcome.problems.len());
        outcome.problems.extend(result.problems.iter().take(room).cloned());
        progress.findings.store(outcome.counts.findings, Ordering::Relaxed);
        emit(result)
    })?;
    let failed = plan.items.iter().filter_map(|i| Some((&i.file.name, i.file.place.failure()?)));
    outcome.tell_failures(failed);
    if let Some(out) = &options.out {
        output::write(out, &outcome, &mut prints.iter().map(|p| journal.unit(p)))?;
    }
    match options.is_incremental {
        true => journal.keep_only(&plan.keys, &clocks, &prints)?,
        false => journal.remove()?,
    }
    Ok(outcome)
}

/// Tells the clocks of what is cut into slices; gives the fingerprints of what that was done with.
fn tell_clocks(
    plan: &mut Plan,
    options: &Options,
    journal: &mut Journal,
    progress: &Progress,
    stop: Stop<'_>,
) -> anyhow::Result<Vec<String>> {
    let probes = std::mem::take(&mut plan.probes);
    let prints: Vec<String> =
        probes.iter().map(|p| fingerprint(std::slice::from_ref(&p.work), plan, options)).collect();
    let mut clocks: Vec<_> = prints.iter().map(|p| journal.clocks(p)).collect();
    let missing: Vec<usize> = (0..probes.len()).filter(|n| clocks.get(*n).is_some_and(Option::is_none)).collect();
    let works = || missing.iter().filter_map(|n| Some(&probes.get(*n)?.work));
    let bytes = |w: &Work| w.portions.iter().map(|p| p.to - p.from).sum::<u64>();
    let (passed, most) = (Passed::default(), works().map(|w| w.need).max().unwrap_or(0).max(1));
    progress.begin("telling clocks", &passed, works().map(bytes).sum());
    works().for_each(|w| containers(plan, std::slice::from_ref(w), &|c| c.claim()));
    let worker = Worker { logicals: &plan.logicals, folding: Folding::of(options), passed };
    let at_once = options.jobs.min((options.memory / most) as usize).max(1);
    let each = |n: usize| {
        let work = std::slice::from_ref(&probes.get(n)?.work);
        // A source that cannot be read is told by the work that reads it for its findings.
        let told = work.first().and_then(|w| worker.clocks(w).ok());
        containers(plan, work, &|c| c.release());
        told.filter(|_| !has_failed(plan, work))
    };
    aside(at_once, &missing, &|| stop.is_set(), &each, &mut |n, told| {
        let (Some(print), Some(told)) = (prints.get(n), told) else { return Ok(()) };
        journal.note_clocks(print, &told)?;
        if let Some(slot) = clocks.get_mut(n) {
            *slot = Some(told);
        }
        Ok(())
    })?;
    anyhow::ensure!(!stop.is_set(), super::STOPPED);
    for (probe, told) in probes.iter().zip(clocks) {
        clocks::give(probe, &told.unwrap_or_default(), &mut plan.units);
    }
    Ok(prints)
}

/// What the result of work depends on: contents, names, portions, clocks, options, and the program.
fn fingerprint(works: &[Work], plan: &Plan, options: &Options) -> String {
    let mut digest = Sha256::new();
    let mut add = |text: &str| {
        digest.update(text.len().to_le_bytes());
        digest.update(text);
    };
    add(concat!(env!("CARGO_PKG_VERSION"), " ", env!("CROSSWIRE_COMMIT")));
    add(&options.reading());
    add(&options.asked);
    for work in works {
        add(&format!("{:?}", work.core));
        for p in &work.portions {
            add(&format!("{} {} {} {:?}", p.from, p.to, p.lines, p.clock));
            for n in plan.logicals.get(p.logical).map_or(&[][..], |l| &l.items) {
                let Some(item) = plan.items.get(*n) else { continue };
                add(&item.name);
                add(&item.survey.hash);
                // Years that a log does not say are taken from it.
                add(&format!("{:?}", item.modified_ns));
            }
        }
    }
    digest.finalize().iter().take(8).map(|b| format!("{b:02x}")).collect()
}

/// What the threads share.
#[derive(Default)]
struct Shared {
    next: usize,
    /// Units whose results were handed on.
    committed: usize,
    /// Memory taken.
    taken: u64,
    done: BTreeMap<usize, anyhow::Result<UnitResult>>,
}

#[allow(clippy::too_many_arguments)]
fn all(
    options: &Options,
    plan: &Plan,
    prints: &[String],
    journal: &mut Journal,
    progress: &Progress,
    passed: &Passed,
    stop: Stop<'_>,
    each: &mut dyn FnMut(&UnitResult, bool) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let known: Vec<bool> =
        prints.iter().map(|p| journal.unit(p).is_some_and(|r| output::has_parts(options.out.as_deref(), &r))).collect();
    let todo: Vec<usize> = (0..plan.units.len()).filter(|n| known.get(*n) != Some(&true)).collect();
    let works_of = |n: usize| plan.units.get(n).map_or(&[][..], |u| &u.works);
    todo.iter().for_each(|n| containers(plan, works_of(*n), &|c| c.claim()));
    let mut read = options.read.clone();
    read.jobs = (options.jobs / todo.len().clamp(1, options.jobs)).max(1);
    let folding = Folding { read: &read, ..Folding::of(options) };
    let worker = Worker { logicals: &plan.logicals, folding, passed: passed.clone() };
    let shared = Arc::new((Mutex::new(Shared::default()), Condvar::new()));
    let failed = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..options.jobs.min(todo.len()) {
            scope.spawn(|| {
                let (state, changed) = &*shared;
                while let Some((n, need)) = take(state, changed, &todo, plan, options, &failed, stop) {
                    let result = one(&worker, plan, prints, n, options, progress);
                    containers(plan, works_of(n), &|c| c.release());
                    let mut s = state.lock().unwrap_or_else(PoisonError::into_inner);
                    s.taken -= need;
                    s.done.insert(n, result);
                    changed.notify_all();
                }
                changed.notify_all();
            });
        }
        let mut commit = || -> anyhow::Result<()> {
            for (n, print) in prints.iter().enumerate() {
                if known.get(n) == Some(&true) {
                    let result = journal.unit(print).unwrap_or_default();
                    each(&result, true)?;
                } else {
                    let result = wait(&shared.0, &shared.1, n, stop)??;
                    if !has_failed(plan, works_of(n)) {
                        journal.note_unit(print, &result)?;
                    }
                    each(&result, false)?;
                }
                let mut s = shared.0.lock().unwrap_or_else(PoisonError::into_inner);
                s.committed = n + 1;
                shared.1.notify_all();
            }
            Ok(())
        };
        let result = commit();
        failed.store(result.is_err(), Ordering::Relaxed);
        shared.1.notify_all();
        result
    })
}

/// The next unit for a thread, when there is memory for it and it is not too far ahead.
fn take(
    state: &Mutex<Shared>,
    changed: &Condvar,
    todo: &[usize],
    plan: &Plan,
    options: &Options,
    failed: &std::sync::atomic::AtomicBool,
    stop: Stop<'_>,
) -> Option<(usize, u64)> {
    let mut s = state.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        if failed.load(Ordering::Relaxed) || stop.is_set() {
            return None;
        }
        let n = *todo.get(s.next)?;
        let unit = plan.units.get(n)?;
        let need = unit.works.iter().map(|w| w.need).max().unwrap_or(0).min(options.memory);
        let is_near = n < s.committed + options.jobs * AHEAD;
        if is_near && (s.taken == 0 || s.taken + need <= options.memory) {
            s.next += 1;
            s.taken += need;
            return Some((n, need));
        }
        s = wait_on(changed, s);
    }
}

fn wait(
    state: &Mutex<Shared>,
    changed: &Condvar,
    n: usize,
    stop: Stop<'_>,
) -> anyhow::Result<anyhow::Result<UnitResult>> {
    let mut s = state.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        if let Some(result) = s.done.remove(&n) {
            return Ok(result);
        }
        anyhow::ensure!(!stop.is_set(), super::STOPPED);
        s = wait_on(changed, s);
    }
}

/// Waits a while: a signal to stop wakes nobody.
fn wait_on<'a>(changed: &Condvar, s: std::sync::MutexGuard<'a, Shared>) -> std::sync::MutexGuard<'a, Shared> {
    let tick = std::time::Duration::from_millis(200);
    changed.wait_timeout(s, tick).unwrap_or_else(PoisonError::into_inner).0
}

fn one(
    worker: &Worker<'_>,
    plan: &Plan,
    prints: &[String],
    n: usize,
    options: &Options,
    progress: &Progress,
) -> anyhow::Result<UnitResult> {
    let (Some(unit), Some(print)) = (plan.units.get(n), prints.get(n)) else { return Ok(UnitResult::default()) };
    let name = unit.works.first().and_then(|w| plan.logicals.get(w.portions.first()?.logical)).map(|l| &l.name);
    progress.at(name.map_or("", |n| n));
    let mut rows = output::rows(options.out.as_deref(), print);
    // A fault of ours in one unit must not take the others along.
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| worker.run(unit, &mut *rows)));
    result.unwrap_or_else(|_| {
        let names = names(unit, plan).join(", ");
        Ok(UnitResult {
            troubles: vec![format!("{names}: analysis stopped with an internal error; please report it")],
            ..UnitResult::default()
        })
    })
}

fn names(unit: &Unit, plan: &Plan) -> Vec<String> {
    let portions = unit.works.iter().flat_map(|w| &w.portions);
    portions.filter_map(|p| Some(plan.logicals.get(p.logical)?.name.clone())).collect()
}

/// Archives stay unpacked from when they are claimed until the last work that needs them has released them.
fn containers(plan: &Plan, works: &[Work], each: &dyn Fn(&super::spool::Container)) {
    items(plan, works).filter_map(|i| i.container.as_ref()).for_each(|c| each(c));
}

/// Was something not to be had over the network? Then the work is done again next time.
fn has_failed(plan: &Plan, works: &[Work]) -> bool {
    items(plan, works).any(|i| i.file.place.failure().is_some())
}

fn items<'p>(plan: &'p Plan, works: &[Work]) -> impl Iterator<Item = &'p super::items::Item> {
    let portions = works.iter().flat_map(|w| &w.portions);
    let logicals = portions.filter_map(|p| plan.logicals.get(p.logical));
    logicals.flat_map(|l| &l.items).filter_map(|i| plan.items.get(*i))
}
