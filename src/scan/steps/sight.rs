//! The map step: a task in, keyed sightings out.

use super::deal::Dealt;
use super::{PartLine, Probe, SourceLine, Task, TaskLine, share_key};
use crate::analyze::logs::{Log, sight};
use crate::input::Source;
use crate::input::packed::Packed;
use crate::model::options::GivenClock;
use crate::scan::Options;
use crate::scan::clocks;
use crate::scan::fold::Folding;
use crate::scan::joined::{Joined, Part};
use crate::scan::lot::{Lot, log_format};
use crate::scan::sightings::{self, Stretch, payload};
use crate::scan::source::{FileOpener, Passed, Place, opener};
use crate::scan::spool::Container;
use crate::scan::worker::whole;
use anyhow::{Context, bail};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

/// Maps tasks.
pub struct Sighting<'a> {
    /// As for the whole scan.
    pub options: &'a Options,
    /// Copies on this machine that are read in the place of files.
    pub at: &'a BTreeMap<String, PathBuf>,
}

impl Sighting<'_> {
    /// Writes the records of the tasks of a line.
    ///
    /// # Errors
    /// Where a file cannot be opened, an object not be read to its end, or `out` not be written to.
    pub fn run(&self, line: &TaskLine, out: &mut dyn Write) -> anyhow::Result<()> {
        // Archives that were unpacked for one task stay for the next ones of the line.
        let mut containers = Containers::default();
        for task in &line.tasks {
            match task {
                Task::Lot { key, lot, sources } => self.lot(key, lot, sources, &mut containers, out)?,
                Task::Log { source, from, to, lines, wanted, alone, shares, heads } => {
                    for (key, lot) in heads {
                        writeln!(out, "{}", sightings::head(key, lot)?)?;
                        for share in 0..lot.shares {
                            writeln!(out, "{}", sightings::head(&share_key(key, share), lot)?)?;
                        }
                    }
                    let stretch = Stretch { from: *from, to: *to };
                    self.log(source, stretch, *lines, (wanted, *alone, *shares), &mut containers, out)?;
                }
            }
        }
        containers.there()
    }

    /// Tells the clocks of what a probe reads.
    ///
    /// # Errors
    /// Where a file cannot be opened, or an object not be read to its end.
    pub fn clocks(&self, probe: &Probe) -> anyhow::Result<Vec<Option<GivenClock>>> {
        let mut containers = Containers::default();
        let sources = self.sources(&probe.lot, &probe.sources, &mut containers);
        let told = clocks::told(&probe.lot, &sources, &self.options.read)?;
        containers.there()?;
        Ok(told)
    }

    fn log(
        &self,
        source: &SourceLine,
        stretch: Stretch,
        lines: u64,
        (wanted, alone, shares): (&[(String, u32)], bool, u32),
        containers: &mut Containers,
        out: &mut dyn Write,
    ) -> anyhow::Result<()> {
        let format = log_format(&source.format)
            .with_context(|| format!("{}: there is no format {} of logs", source.name, source.format))?;
        let mut open = self.source(source, stretch, containers).open()?;
        let mut failed = None;
        let mut each = |share: Option<u32>, ns: i64, code: &str| {
            for (key, input) in wanted {
                let key = share.map_or(Cow::Borrowed(key), |share| Cow::Owned(share_key(key, share)));
                if let Err(e) = writeln!(out, "{key}\t{ns}\t{}", payload(*input, code)) {
                    failed.get_or_insert(e);
                }
            }
        };
        // The input's number is that of the lot that reads it back.
        let log = Log { input: 0, name: &source.name, format, lines, options: &self.options.read };
        let mut dealt = Dealt::new(stretch, alone, shares, &mut each);
        let problems = sight(&log, &mut open, &mut dealt);
        dealt.finish(&problems);
        failed.map_or(Ok(()), |e| Err(e.into()))
    }

    fn lot(
        &self,
        key: &str,
        lot: &Lot,
        sources: &[SourceLine],
        containers: &mut Containers,
        out: &mut dyn Write,
    ) -> anyhow::Result<()> {
        let sources = self.sources(lot, sources, containers);
        let report = whole(&Folding::of(self.options), lot, sources, false)?;
        writeln!(out, "{}", sightings::result(key, &lot.result(&report))?)?;
        Ok(())
    }

    fn sources(&self, lot: &Lot, sources: &[SourceLine], containers: &mut Containers) -> Vec<Source> {
        let stretches = lot.inputs.iter().map(|i| Stretch { from: i.from, to: i.to });
        sources.iter().zip(stretches).map(|(s, of)| self.source(s, of, containers)).collect()
    }

    fn source(&self, of: &SourceLine, stretch: Stretch, containers: &mut Containers) -> Source {
        let passed = Passed::default();
        let parts = of.parts.iter().map(|p| self.part(p, containers, &passed)).collect();
        let opener = Joined { parts }.range(stretch.from, stretch.to, &passed);
        let packed = Packed { member: of.name.clone(), modified_ns: of.modified_ns, opener };
        Source { name: of.name.clone(), path: None, found: true, packed: Some(packed) }
    }

    fn part(&self, p: &PartLine, containers: &mut Containers, passed: &Passed) -> Part {
        let mut file = p.file.clone();
        file.at = self.at.get(&file.name).cloned();
        let stored = file.stored();
        containers.places.push((stored.name.clone(), stored.place.clone()));
        let container = containers.of.entry(stored.name.clone()).or_insert_with(|| {
            let whole = FileOpener { place: stored.place.clone(), passed: passed.clone() };
            let container = Arc::new(Container::new(stored.clone(), whole, self.options.temporary()));
            container.claim();
            container
        });
        Part {
            name: p.name.clone(),
            opener: opener(&stored, &p.way, container, passed),
            modified_ns: p.modified_ns,
            at: p.at,
            bytes: p.bytes,
            is_closed: p.closed,
            lines: p.lines,
            is_torn: p.torn,
            is_plain: p.plain,
        }
    }
}

impl Containers {
    /// Was all there to be read to its end?
    fn there(&self) -> anyhow::Result<()> {
        let failed = self.places.iter().find_map(|(name, place)| Some((name, place.failure()?)));
        failed.map_or(Ok(()), |(name, why)| bail!("{name}: {why}"))
    }
}

/// What is open for the tasks of a line.
#[derive(Default)]
struct Containers {
    of: BTreeMap<String, Arc<Container>>,
    /// Everything that is read.
    places: Vec<(String, Place)>,
}
