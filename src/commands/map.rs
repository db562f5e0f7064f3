//! `crosswire map`: the map step of a scan, and what comes before it, for cluster engines.

use super::bulk::{self, BulkArgs};
use super::{CLEAN, Command, TROUBLE, complain, values};
use crate::scan::Options;
use crate::scan::steps::{self, Line, Pieces, Sighting};
use anyhow::{Context, ensure};
use clap::{Args, FromArgMatches};
use std::collections::BTreeMap;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

/// `crosswire map`
pub static COMMAND: Command = Command {
    name: "map",
    define: |cmd| {
        bulk::define(Map::augment_args(cmd)).mut_arg("inputs", |a| {
            a.required(false)
                .help("With --step list: files, folders with all below them, archives, and patterns in quotes")
        })
    },
    run: |matches| Map::from_arg_matches(matches)?.run(),
};

/// Turn names, byte ranges or tasks into keyed sightings, one a line: the map step of a scan on a cluster
///
/// Reads lines from standard input and writes lines. With names, or names with two bytes of a log, separated by tabs,
/// everything named is looked at, planned and mapped in this process. On a cluster the steps are run one by one
/// (spark/crosswire_scan.py does): --step list writes what is to be looked at, --step look says what each file or
/// range is, --step plan makes tasks of all that (after --step clocks where it asks for that), and without --step tasks
/// become sightings. `crosswire reduce` folds these, sorted by key and time. `crosswire scan` is the same by the same
/// functions on one machine.
#[derive(clap::Args)]
#[command(after_long_help = "Examples:\n  \
    ls /archive/*/access.log* | crosswire map | sort -k1,1 -k2,2n | crosswire reduce\n  \
    crosswire map --step list /archive --split 64MiB\n\n\
    Ranges: a range begins at the first line that starts behind its first byte (at the beginning of the file for byte 0) and \
    ends with the line that goes over its last; so ranges that follow each other hold each line once. Formats whose \
    lines stand for themselves can be cut (nginx, Apache, Caddy, Traefik, Envoy, ALB, Nginx Proxy Manager and JSON access logs, crosswire-client). \
    All other formats are one task: the look at a range that begins at 0 is that of the whole file then, and other \
    ranges say nothing.\n\n\
    Records: a record is KEY, a tab, TIME, a tab, PAYLOAD. KEY is the number of a lot in the plan, eight digits, a hyphen, and \
    the lot's own name, which ends the keys of its calls. A lot is what is correlated: the sources of one folder (a \
    host's service) or of the same sessions that overlap in time, and where these are more than --memory allows, a \
    slice of time of them. All that a fold needs has its key: records of logs without sessions, journals and clocks \
    go to each lot whose sources and time they are of, those of the --overlap on both sides of a slice to the \
    neighbours' too, and each slice reports what began in its own time. Of a log that is taken alone and names sessions, \
    where a lot of it is larger than two times --share, sessions are dealt into shares (at most 16) that are folded first: the key of \
    a line that names a session in its request is that of its lot with `+` and the number of the share behind the eight digits, \
    and lines that refuse a session (400, 404) go to every share, whose sessions may have lived on then or be the new \
    ones of those clients. `reduce --shares` makes one record of each share, for the key of the lot. Without that step \
    `reduce` does the same itself, as all keys of a lot sort together. TIME is nanoseconds since 1970, of the first \
    sighting in the record; the least 64-bit number where there is none.\n\n\
    Payloads: PAYLOAD is `1`, the version, and a letter, and base64 of a zstd frame behind it (no padding). `h`: the frame is \
    a JSON object that says what the lot is made of (key, core, need, inputs with name, folder, format, from, to, \
    lines, files and clock, shares). `r`: a lot that one task had whole, because it holds captures or recordings; the frame is a JSON \
    object of what came of it (findings, windows, calls, files, problems, troubles, counts, parts). `s`: sightings; \
    before the base64 stand the number of the input in the lot and a full stop, and the frame has a stretch of plain \
    bytes (from, to), the number of the block in it, whether it is the last and then counts and problems, and the \
    records of up to 8,192 lines. Numbers are LEB128, with signs zigzag; optional values have a byte before them; \
    times and lines are differences from those before, texts of up to 256 bytes that came before their number (from \
    1; 0 and the length stand before a new one). `k`: what is left of a share, whose number and a full stop stand before the \
    base64: whether all of its sightings were there, counts of each session whose lines nothing can need any more, when \
    each of their calls was asked and in which exchange, what the lines show, and the lines that stay. Fields are in the order of src/scan/sightings/records.rs. Another \
    version changes the digit, and reduce refuses it.\n\n\
    Exit status: 0; 2 where something could not be read: then what was written must not be used.")]
struct Map {
    #[command(flatten)]
    bulk: BulkArgs,

    /// Which step to do
    #[arg(long, value_name = "STEP", value_enum, default_value_t = Step::Sight, help_heading = "Step")]
    step: Step,

    /// Bytes of large logs that are looked at, and of anything that is mapped, at once
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = values::size_bytes, help_heading = "Step")]
    split: u64,

    /// Of a log that names sessions and is taken alone: bytes of a lot for each share of its sessions, which are folded apart first
    #[arg(long, value_name = "SIZE", default_value = "8MiB", value_parser = values::size_bytes, help_heading = "Step")]
    share: u64,

    /// Read a file from a copy on this machine: a JSON object of names and paths
    #[arg(long, value_name = "FILE", help_heading = "Step")]
    copies: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Step {
    /// What is to be looked at, of the inputs named as arguments or the files on standard input
    List,
    /// What each of these is
    Look,
    /// Tasks; where clocks have to be told first, what is to be read for that and nothing else
    Plan,
    /// Clocks, of what --step plan says has to be read for them; it is given these beside all looks then
    Clocks,
    /// Sightings of tasks, or of names and ranges
    Sight,
}

impl Map {
    fn run(self) -> anyhow::Result<u8> {
        let options = self.bulk.options(false)?;
        ensure!(
            self.step == Step::List || options.paths.is_empty(),
            "{}: only --step list takes names as arguments; the other steps read lines from standard input",
            options.paths.join(", ")
        );
        let mut out = BufWriter::with_capacity(1 << 16, std::io::stdout());
        match self.step {
            Step::List => self.list(&options, &mut out)?,
            Step::Look => self.look(&options, &mut out)?,
            Step::Plan => {
                let given = bulk::lines().filter(|l| l.as_ref().map_or(true, |(_, text)| !text.is_empty()));
                let lines = given.map(|l| l.and_then(|(n, text)| line(n, &text))).collect::<anyhow::Result<_>>()?;
                let mut probes = vec![];
                let mut none = |probe| {
                    probes.push(probe);
                    Ok(None)
                };
                let (told, tasks) = steps::plan(lines, &options, self.pieces(), &mut none)?;
                if probes.is_empty() {
                    write(&Line::Plan(Box::new(told)), &mut out)?;
                    tasks.into_iter().try_for_each(|t| write(&Line::Tasks(t), &mut out))?;
                }
                probes.into_iter().try_for_each(|p| write(&Line::Probe(p), &mut out))?;
            }
            Step::Clocks => self.clocks(&options, &mut out)?,
            Step::Sight => {
                let is_clean = self.sight(&options, &mut out)?;
                out.flush()?;
                return Ok(if is_clean { CLEAN } else { TROUBLE });
            }
        }
        out.flush()?;
        Ok(CLEAN)
    }

    fn pieces(&self) -> Pieces {
        Pieces { split: self.split, share: self.share }
    }

    fn list(&self, options: &Options, out: &mut dyn Write) -> anyhow::Result<()> {
        let given = if options.paths.is_empty() { bulk::lines().collect::<anyhow::Result<_>>()? } else { vec![] };
        let file = |(_, text): &(u64, String)| match text.starts_with('{') {
            true => serde_json::from_str(text).with_context(|| format!("{text}: expected a file as JSON")),
            false => steps::given(text).map(|look| look.file),
        };
        let files = given.iter().filter(|(_, text)| !text.is_empty()).map(file).collect::<anyhow::Result<Vec<_>>>()?;
        steps::list(options, files, self.split).iter().try_for_each(|l| write(l, out))
    }

    fn look(&self, options: &Options, out: &mut dyn Write) -> anyhow::Result<()> {
        let copies = self.copies()?;
        for given in bulk::lines() {
            let (n, text) = given?;
            match line(n, &text)? {
                Line::Look(mut look) => {
                    look.file.at = copies.get(&look.file.name).cloned().or(look.file.at);
                    if let Some(found) = steps::look(&look, options)? {
                        write(&found, out)?;
                    }
                }
                other => write(&other, out)?,
            }
        }
        Ok(())
    }

    fn clocks(&self, options: &Options, out: &mut dyn Write) -> anyhow::Result<()> {
        let copies = self.copies()?;
        let sighting = Sighting { options, at: &copies };
        for given in bulk::lines() {
            let (n, text) = given?;
            match line(n, &text)? {
                Line::Probe(probe) => write(&Line::Clocks(probe.lot.key.clone(), sighting.clocks(&probe)?), out)?,
                // Nothing has to be told for this plan.
                Line::Plan(_) | Line::Tasks(_) => {}
                _ => anyhow::bail!("{}: expected what is to be read for clocks, as --step plan writes it", bulk::at(n)),
            }
        }
        Ok(())
    }

    /// Was everything there?
    fn sight(&self, options: &Options, out: &mut dyn Write) -> anyhow::Result<bool> {
        let copies = self.copies()?;
        let sighting = Sighting { options, at: &copies };
        let (mut named, mut is_clean) = (vec![], true);
        for given in bulk::lines() {
            let (n, text) = given?;
            match text.starts_with('{') {
                true => match line(n, &text)? {
                    Line::Tasks(tasks) => sighting.run(&tasks, out)?,
                    Line::Plan(_) => {}
                    _ => anyhow::bail!("expected tasks, as --step plan writes them, or names"),
                },
                false => named.push(text),
            }
        }
        if named.is_empty() {
            return Ok(true);
        }
        let mut looked = vec![];
        for text in named.iter().filter(|t| !t.is_empty()) {
            let look = match steps::given(text) {
                Ok(look) => look,
                Err(e) => {
                    complain(&format!("{e:#}"));
                    is_clean = false;
                    continue;
                }
            };
            looked.extend(steps::look(&look, options)?);
        }
        let mut tell = |probe| sighting.clocks(&probe).map(Some);
        let (told, tasks) = steps::plan(looked, options, self.pieces(), &mut tell)?;
        let broken = told.broken.iter().map(|b| format!("{}: {}", b.name, b.why));
        for text in told.troubles.iter().cloned().chain(broken) {
            complain(&text);
            is_clean = false;
        }
        tasks.iter().try_for_each(|t| sighting.run(t, out))?;
        Ok(is_clean)
    }

    fn copies(&self) -> anyhow::Result<BTreeMap<String, PathBuf>> {
        let Some(path) = &self.copies else { return Ok(BTreeMap::new()) };
        let text = std::fs::read(path).with_context(|| format!("{}: cannot be read", path.display()))?;
        serde_json::from_slice(&text)
            .with_context(|| format!("{}: expected an object of names and paths", path.display()))
    }
}

fn line(number: u64, text: &str) -> anyhow::Result<Line> {
    serde_json::from_str(text).with_context(|| format!("{}: expected one that another --step wrote", bulk::at(number)))
}

fn write(line: &Line, out: &mut dyn Write) -> anyhow::Result<()> {
    writeln!(out, "{}", serde_json::to_string(line)?)?;
    Ok(())
}
