//! Tasks from all looks: the plan of a scan, in pieces that do not need each other.

use super::{FileLine, Line, PartLine, Probe, SourceLine, Task, TaskLine, Told, record_key};
use crate::model::options::GivenClock;
use crate::scan::Options;
use crate::scan::clocks::give;
use crate::scan::items::{Looked, Looking};
use crate::scan::lot::{Lot, log_format};
use crate::scan::plan::Plan;
use crate::scan::sets::Logical;
use crate::scan::slices::{Portion, Work};
use crate::scan::source::{Passed, StoredFile, Way};
use crate::scan::stretch::{Cut, Part, RANGES, merge};
use crate::scan::survey::Kind;
use std::collections::{BTreeMap, BTreeSet};

/// Shares of the sessions of a lot, at most: each is shown what the others were refused.
const SHARES: u32 = 16;

/// Clocks of the inputs of a probe.
type Clocks = Vec<Option<GivenClock>>;

/// Bytes that are done at once.
#[derive(Clone, Copy, Debug)]
pub struct Pieces {
    /// Of what is looked at or mapped.
    pub split: u64,
    /// Of a log that names sessions: each share of its sessions is of about so much of a lot.
    pub share: u64,
}

/// Makes a plan of all that was found: what it says, and the tasks, of about as many bytes as `pieces` says where they
/// can be cut.
/// `tell` is asked for clocks that are not among the lines; without them the plan has none for that group.
///
/// # Errors
/// Those of `tell`.
pub fn plan(
    lines: Vec<Line>,
    options: &Options,
    pieces: Pieces,
    tell: &mut dyn FnMut(Probe) -> anyhow::Result<Option<Clocks>>,
) -> anyhow::Result<(Told, Vec<TaskLine>)> {
    let mut plan = Plan::default();
    let (mut cuts, mut clocks) = (BTreeMap::new(), BTreeMap::new());
    let found = found(lines, &mut plan, &mut cuts, &mut clocks);
    let (files, mut looked): (Vec<StoredFile>, Vec<Looked>) = found.into_iter().unzip();
    let kept = plan.wanted(files.clone(), options);
    let mut names = files.iter().map(|f| f.name.clone());
    looked.retain(|_| names.next().is_some_and(|n| kept.binary_search_by(|k| k.name.cmp(&n)).is_ok()));
    let never = || false;
    let looking =
        Looking { options: &options.read, folder: options.temporary(), passed: Passed::default(), stop: &never };
    plan.put_together(&kept, looked, &looking, options);
    for probe in std::mem::take(&mut plan.probes) {
        let lot = Lot::of(&probe.work, &plan.logicals);
        let told =
            clocks.remove(&lot.key).map_or_else(|| tell(probe_line(&plan, &probe.work, lot)), |told| Ok(Some(told)))?;
        give(&probe, &told.unwrap_or_default(), &mut plan.units);
    }
    let works: Vec<&Work> = plan.units.iter().flat_map(|u| &u.works).collect();
    let tasks = Tasks { plan: &plan, cuts, pieces }.of(&works);
    Ok((plan.told(options), tasks))
}

fn probe_line(plan: &Plan, work: &Work, lot: Lot) -> Probe {
    let sources = sources(plan, work);
    let files: BTreeSet<&String> = sources.iter().flat_map(|s| &s.parts).map(|p| &p.file.name).collect();
    let files = files.into_iter().cloned().collect();
    let bytes = work.portions.iter().map(|p| p.to - p.from).sum();
    Probe { lot, sources, bytes, files }
}

/// The files in order of their names, with the looks at them.
fn found(
    lines: Vec<Line>,
    plan: &mut Plan,
    cuts: &mut BTreeMap<String, Vec<Cut>>,
    clocks: &mut BTreeMap<String, Clocks>,
) -> Vec<(StoredFile, Looked)> {
    let mut files: BTreeMap<String, (FileLine, Option<Looked>, Vec<Part>)> = BTreeMap::new();
    for line in lines {
        match line {
            Line::Trouble(text) => plan.troubles.push(text),
            Line::Looked(file, looked) => {
                files.entry(file.name.clone()).or_insert((file, None, vec![])).1 = Some(looked);
            }
            Line::Part(file, part) => {
                files.entry(file.name.clone()).or_insert((file, None, vec![])).2.push(part);
            }
            // The tasks to look are answered by what was found.
            Line::Look(_) | Line::Probe(_) | Line::Plan(_) | Line::Tasks(_) | Line::Lot(_) => {}
            Line::Clocks(key, told) => drop(clocks.insert(key, told)),
        }
    }
    let mut out = vec![];
    for (name, (file, whole, parts)) in files {
        let merged = || merge(parts, file.modified_ns, file.bytes);
        match whole.map(|w| (w, vec![])).or_else(merged) {
            Some((looked, at)) => {
                cuts.insert(name, at);
                out.push((file.stored(), looked));
            }
            None => plan.troubles.push(format!("{name}: not all of it was looked at")),
        }
    }
    out
}

struct Tasks<'a> {
    plan: &'a Plan,
    /// Where files can be cut beside their marks.
    cuts: BTreeMap<String, Vec<Cut>>,
    pieces: Pieces,
}

impl Tasks<'_> {
    fn of(&self, works: &[&Work]) -> Vec<TaskLine> {
        let logicals = &self.plan.logicals;
        // Stretches of logs by source: where they begin and end, and which lots want them.
        let mut wanted: BTreeMap<usize, Vec<Want>> = BTreeMap::new();
        let mut lots: Vec<(usize, Task)> = vec![];
        let mut heads: BTreeMap<String, Lot> = BTreeMap::new();
        let alone = self.alone(works);
        for (number, work) in works.iter().enumerate() {
            let mut lot = Lot::of(work, logicals);
            let key = record_key(number, &lot);
            if lot.log_formats().is_none() {
                lots.push((number, Task::Lot { key, sources: sources(self.plan, work), lot }));
                continue;
            }
            if let ([one], true) = (work.portions.as_slice(), lot.is_alone()) {
                lot.shares = alone.get(&one.logical).copied().unwrap_or(0);
            }
            for (input, p) in (0u32..).zip(&work.portions) {
                let want = Want { from: p.from, to: p.to, lines: p.lines, key: key.clone(), input };
                wanted.entry(p.logical).or_default().push(want);
            }
            heads.insert(key, lot);
        }
        let mut all: Vec<(String, Task)> =
            lots.into_iter().map(|(number, task)| (format!("{number:08}"), task)).collect();
        for (n, wants) in wanted {
            if let Some(l) = logicals.get(n) {
                all.extend(
                    self.stretches(l, wants, alone.get(&n).copied()).into_iter().map(|t| (first_key(&t).to_owned(), t)),
                );
            }
        }
        // Neighbours in the plan read neighbouring files.
        all.sort_by(|a, b| a.0.cmp(&b.0));
        let mut tasks: Vec<Task> = all.into_iter().map(|(_, t)| t).collect();
        for task in &mut tasks {
            if let Task::Log { wanted, heads: own, .. } = task {
                own.extend(wanted.iter().filter_map(|(key, _)| heads.remove_entry(key)));
            }
        }
        lines(tasks, self.pieces.split)
    }

    /// The logs that are alone in all their lots, and into how many shares their sessions are dealt, where they name any
    /// and one of these lots is large: the same in all lots of a log, since each line is written down once for all.
    fn alone(&self, works: &[&Work]) -> BTreeMap<usize, u32> {
        let mut alone: BTreeMap<usize, u32> = BTreeMap::new();
        let mut others: BTreeSet<usize> = BTreeSet::new();
        for work in works {
            let [one] = work.portions.as_slice() else {
                others.extend(work.portions.iter().map(|p| p.logical));
                continue;
            };
            let Some(l) = self.plan.logicals.get(one.logical) else { continue };
            if !Lot::of(work, &self.plan.logicals).is_alone() {
                others.insert(one.logical);
                continue;
            }
            let is_named = can_cut(l) && !l.ids.is_empty();
            let count = u32::try_from((one.to - one.from) / self.pieces.share.max(1)).unwrap_or(u32::MAX);
            let count = if is_named && count > 1 { count.min(SHARES) } else { 0 };
            let most = alone.entry(one.logical).or_default();
            *most = (*most).max(count);
        }
        alone.retain(|logical, _| !others.contains(logical));
        alone
    }

    /// Cuts a log where lots begin and end, and where else it must be so that no piece is too large.
    fn stretches(&self, l: &Logical, wants: Vec<Want>, alone: Option<u32>) -> Vec<Task> {
        if !can_cut(l) {
            // What is read from the middle on depends on where: each lot has its own.
            return wants.into_iter().map(|w| self.stretch(l, (w.from, w.lines), w.to, &[w], alone)).collect();
        }
        let mut places: BTreeMap<u64, u64> = wants.iter().map(|w| (w.from, w.lines)).collect();
        let ends: BTreeSet<u64> = wants.iter().map(|w| w.to).collect();
        let mut between: BTreeMap<u64, u64> = l.marks.iter().map(|m| (m.at, m.lines)).collect();
        for (part, item) in l.joined.parts.iter().zip(l.items.iter().filter_map(|n| self.plan.items.get(*n))) {
            if !part.is_torn {
                between.insert(part.at, part.lines);
            }
            if part.is_plain && item.way.is_file() {
                let cuts = self.cuts.get(&item.file.name).into_iter().flatten();
                between.extend(cuts.map(|(at, lines)| (part.at + at, part.lines + lines)));
            }
        }
        // A portion ends at a mark, or where all ends.
        places.extend(ends.iter().filter_map(|at| Some((*at, *between.get(at)?))));
        let mut last = 0;
        for (at, lines) in between {
            let from = places.range(..=at).next_back().map_or(0, |(at, _)| *at).max(last);
            if at - from >= self.pieces.split {
                places.insert(at, lines);
                last = at;
            }
        }
        let mut tasks = vec![];
        let starts: Vec<Cut> = places.into_iter().collect();
        for (n, (from, lines)) in starts.iter().enumerate() {
            let all = l.joined.bytes();
            let to = starts.get(n + 1).map_or(all, |next| next.0).min(all);
            let own: Vec<Want> = wants.iter().filter(|w| w.from <= *from && to <= w.to).cloned().collect();
            if to > *from && !own.is_empty() {
                tasks.push(self.stretch(l, (*from, *lines), to, &own, alone));
            }
        }
        tasks
    }

    fn stretch(&self, l: &Logical, (from, lines): Cut, to: u64, wants: &[Want], alone: Option<u32>) -> Task {
        let wanted = wants.iter().map(|w| (w.key.clone(), w.input)).collect();
        let source = source(self.plan, l, from, to);
        let (alone, shares) = (alone.is_some(), alone.unwrap_or(0));
        Task::Log { source, from, to, lines, wanted, alone, shares, heads: vec![] }
    }
}

/// Do its lines stand for themselves?
fn can_cut(l: &Logical) -> bool {
    l.kind == Kind::Lines && RANGES.contains(&l.format.as_str()) && log_format(&l.format).is_some()
}

fn sources(plan: &Plan, work: &Work) -> Vec<SourceLine> {
    let source = |p: &Portion| Some(source(plan, plan.logicals.get(p.logical)?, p.from, p.to));
    work.portions.iter().filter_map(source).collect()
}

fn source(plan: &Plan, l: &Logical, from: u64, to: u64) -> SourceLine {
    let items = l.items.iter().filter_map(|n| plan.items.get(*n));
    let parts = l.joined.parts.iter().zip(items);
    let meets = |p: &crate::scan::joined::Part| p.at + p.bytes + u64::from(p.is_closed) > from && p.at < to;
    let line = |(p, item): (&crate::scan::joined::Part, &crate::scan::items::Item)| PartLine {
        name: p.name.clone(),
        file: FileLine::of(&item.file),
        way: item.way.clone(),
        modified_ns: p.modified_ns,
        at: p.at,
        bytes: p.bytes,
        closed: p.is_closed,
        lines: p.lines,
        torn: p.is_torn,
        plain: p.is_plain,
    };
    SourceLine {
        name: l.name.clone(),
        format: l.format.clone(),
        modified_ns: l.joined.modified_ns(),
        parts: parts.filter(|(p, _)| meets(p)).map(line).collect(),
    }
}

/// A stretch that a lot wants.
#[derive(Clone)]
struct Want {
    from: u64,
    to: u64,
    lines: u64,
    key: String,
    input: u32,
}

fn first_key(task: &Task) -> &str {
    match task {
        Task::Log { wanted, .. } => wanted.first().map_or("", |(key, _)| key),
        Task::Lot { key, .. } => key,
    }
}

/// Small tasks together; those of one archive that has to be unpacked from its beginning on one line.
fn lines(tasks: Vec<Task>, split: u64) -> Vec<TaskLine> {
    let (mut archives, mut out): (BTreeMap<String, TaskLine>, Vec<TaskLine>) = (BTreeMap::new(), vec![]);
    let mut open = TaskLine::default();
    for task in tasks {
        let (bytes, files, archive) = about(&task);
        let line = match archive {
            Some(name) => archives.entry(name).or_default(),
            None => {
                if !open.tasks.is_empty() && open.bytes + bytes > split {
                    out.push(std::mem::take(&mut open));
                }
                &mut open
            }
        };
        line.tasks.push(task);
        line.bytes += bytes;
        line.files.extend(files);
    }
    out.push(open);
    out.extend(archives.into_values());
    out.retain(|line| !line.tasks.is_empty());
    for line in &mut out {
        line.files.sort();
        line.files.dedup();
    }
    out
}

/// Bytes that a task reads, files, and the archive among these that has to be unpacked.
fn about(task: &Task) -> (u64, Vec<String>, Option<String>) {
    let (bytes, sources) = match task {
        Task::Log { source, from, to, .. } => (to - from, std::slice::from_ref(source)),
        Task::Lot { lot, sources, .. } => (lot.inputs.iter().map(|i| i.to - i.from).sum(), sources.as_slice()),
    };
    let parts = || sources.iter().flat_map(|s| &s.parts);
    let files = parts().map(|p| p.file.name.clone()).collect();
    let archive = parts().find(|p| matches!(p.way, Way::Nth(_))).map(|p| p.file.name.clone());
    (bytes, files, archive)
}
