//! The plan of a scan: everything that is looked at, put together and cut, before any is analysed.

use super::aside::aside;
use super::clocks::{Probe, probes};
use super::copies::{Copy, copies};
use super::groups::groups;
use super::items::{Item, Looked, Looking, items};
use super::journal::{Journal, file_key};
use super::output;
use super::progress::Progress;
use super::sets::{Logical, logicals};
use super::skip::{Wanted, skip};
use super::slices::{Room, Unit, units};
use super::source::{Passed, StoredFile};
use super::survey::Kind;
use super::walk::list;
use super::{Broken, Options, Stop};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// What is to be done.
#[derive(Debug, Default)]
pub struct Plan {
    /// Every input.
    pub items: Vec<Item>,
    /// What analysis reads as one.
    pub logicals: Vec<Logical>,
    /// The work, in order of time.
    pub units: Vec<Unit>,
    /// What is read to tell clocks before that.
    pub probes: Vec<Probe>,
    /// Left out because another source holds it.
    pub copies: Vec<Copy>,
    /// Copies that differ from another source, read by themselves.
    pub variants: Vec<String>,
    /// Members that cannot be read to their end.
    pub broken: Vec<Broken>,
    /// Left out because of `--since` and `--until`, and why.
    pub skipped: Vec<(String, String)>,
    /// Files found that are of no known format.
    pub unknown: Vec<String>,
    /// Files without a byte.
    pub empty: u64,
    /// Paths that are missing, named files that are of no known format.
    pub troubles: Vec<String>,
    /// Stored files looked at.
    pub files: u64,
    /// Their bytes.
    pub stored_bytes: u64,
    /// Of the files, those that were known from the checkpoint.
    pub unchanged: u64,
    /// Keys of the files in the checkpoint.
    pub keys: Vec<String>,
}

/// Lists, looks, puts together, and cuts.
///
/// # Errors
/// If the checkpoint cannot be written, or the scan was stopped.
pub fn plan(options: &Options, journal: &mut Journal, progress: &Progress, stop: Stop<'_>) -> anyhow::Result<Plan> {
    let mut plan = Plan::default();
    let listing = list(&options.paths, options.out.as_deref());
    plan.troubles = listing.troubles;
    let files = plan.wanted(listing.files, options);
    let passed = Passed::default();
    progress.begin("looking at", &passed, plan.stored_bytes);
    let stopped = || stop.is_set();
    let looking = Looking { options: &options.read, folder: options.temporary(), passed, stop: &stopped };
    let looked = look(&files, &looking, options, journal, progress, &mut plan)?;
    anyhow::ensure!(!stop.is_set(), super::STOPPED);
    plan.put_together(&files, looked, &looking, options);
    Ok(plan)
}

/// What a plan says of the archive.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Told {
    /// Lots that have to come out of the fold.
    pub lots: u64,
    pub files: u64,
    pub stored_bytes: u64,
    pub plain_bytes: u64,
    pub sources: u64,
    pub over_memory: u64,
    pub empty: u64,
    pub broken: Vec<Broken>,
    pub copies: Vec<Copy>,
    pub variants: Vec<String>,
    pub skipped: Vec<(String, String)>,
    pub unknown: Vec<String>,
    pub troubles: Vec<String>,
}

impl Plan {
    /// Takes out what it says of the archive.
    pub fn told(&mut self, options: &Options) -> Told {
        let works = || self.units.iter().flat_map(|u| &u.works);
        Told {
            lots: works().count() as u64,
            over_memory: works().filter(|w| w.need > options.memory).count() as u64,
            plain_bytes: self.units.iter().map(|u| u.bytes).sum(),
            sources: self.logicals.len() as u64,
            files: self.files,
            stored_bytes: self.stored_bytes,
            empty: self.empty,
            broken: std::mem::take(&mut self.broken),
            copies: std::mem::take(&mut self.copies),
            variants: std::mem::take(&mut self.variants),
            skipped: std::mem::take(&mut self.skipped),
            unknown: std::mem::take(&mut self.unknown),
            troubles: std::mem::take(&mut self.troubles),
        }
    }

    /// Of the files found, those that may hold something of the time asked for.
    pub fn wanted(&mut self, mut files: Vec<StoredFile>, options: &Options) -> Vec<StoredFile> {
        self.skipped = skip(&mut files, options.wanted.widened(options.overlap_ns));
        self.files = files.len() as u64;
        self.stored_bytes = files.iter().map(|f| f.bytes).sum();
        files
    }

    /// Puts together what was found in the files, and cuts it into pieces of work.
    pub fn put_together(
        &mut self,
        files: &[StoredFile],
        looked: Vec<Looked>,
        looking: &Looking<'_>,
        options: &Options,
    ) {
        let wanted = options.wanted.widened(options.overlap_ns);
        for (file, looked) in files.iter().zip(looked) {
            let container = looking.container(file);
            if let Some(why) = &looked.broken {
                self.broken.push(Broken { name: file.name.clone(), why: why.clone() });
            }
            for item in items(file, looked, &container, &looking.passed) {
                self.take(item, wanted);
            }
        }
        unique_names(&mut self.items);
        let found = copies(&self.items);
        let out: BTreeSet<usize> = found.out.keys().copied().collect();
        self.variants = found.variants.iter().filter_map(|n| Some(self.items.get(*n)?.name.clone())).collect();
        self.copies = found.out.into_values().collect();
        self.logicals = logicals(&self.items, &out, &found.variants);
        let groups = groups(&self.logicals, options.together);
        let room = Room {
            memory: options.memory,
            overlap_ns: options.overlap_ns,
            unit_bytes: options.unit_bytes,
            lists_all: output::rows(options.out.as_deref(), "").wants_exchanges(),
        };
        self.units = units(&self.logicals, &groups, room);
        self.probes = probes(&self.logicals, &groups, &self.units, room);
    }

    fn take(&mut self, item: Item, wanted: Wanted) {
        let s = &item.survey;
        if let Some(why) = &s.broken {
            self.broken.push(Broken { name: item.name.clone(), why: why.clone() });
        }
        match s.kind {
            Kind::Empty => self.empty += 1,
            // What is broken was named already.
            Kind::Unknown if s.broken.is_some() => {}
            Kind::Unknown if item.found => self.unknown.push(item.name),
            Kind::Unknown => self.troubles.push(format!(
                "{}: no known format; `crosswire formats` lists what can be read, --input-format NAME or --log-format STRING says what it is",
                item.name
            )),
            _ => match s.span {
                Some((first, last)) if !wanted.meets(first, last) => {
                    self.skipped.push((item.name, "its records are all outside of --since and --until".into()));
                }
                _ => self.items.push(item),
            },
        }
    }
}

/// Archives may hold two members of one name.
fn unique_names(items: &mut [Item]) {
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    for item in items {
        let n = seen.entry(item.name.clone()).or_default();
        *n += 1;
        if *n > 1 {
            item.name = format!("{}#{n}", item.name);
        }
    }
}

/// Looks at every file, several at a time; what the checkpoint knows is not read again.
fn look(
    files: &[StoredFile],
    looking: &Looking<'_>,
    options: &Options,
    journal: &mut Journal,
    progress: &Progress,
    plan: &mut Plan,
) -> anyhow::Result<Vec<Looked>> {
    let reading = options.reading();
    plan.keys = files.iter().map(|f| file_key(f, &reading)).collect();
    let mut out: Vec<Option<Looked>> = plan.keys.iter().map(|key| journal.looked(key)).collect();
    let missing: Vec<usize> = out.iter().enumerate().filter(|(_, l)| l.is_none()).map(|(n, _)| n).collect();
    plan.unchanged = (files.len() - missing.len()) as u64;
    let keys = &plan.keys;
    let each = |n: usize| {
        let file = files.get(n)?;
        progress.at(&file.name);
        Some(looking.look(file))
    };
    aside(options.jobs, &missing, looking.stop, &each, &mut |n, looked| {
        let (Some(file), Some(looked)) = (files.get(n), looked) else { return Ok(()) };
        // What could not be had over the network is tried again next time.
        if let Some(key) = keys.get(n).filter(|_| file.place.failure().is_none()) {
            journal.note_looked(key, &looked)?;
        }
        if let Some(slot) = out.get_mut(n) {
            *slot = Some(looked);
        }
        Ok(())
    })?;
    Ok(out.into_iter().map(Option::unwrap_or_default).collect())
}
