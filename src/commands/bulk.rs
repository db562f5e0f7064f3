//! What `scan`, `map` and `reduce` are asked alike.

use super::options::{FilterArgs, ReadArgs};
use super::values;
use crate::report::filter::{TimeBound, last_ns};
use crate::scan::{Options, Together, Wanted};
use anyhow::{Context, bail};
use std::io::BufRead;

/// Memory where none is given, bytes.
const MEMORY_BYTES: u64 = 512 << 20;

/// What to read, how, and what of it is wanted and taken together.
#[derive(clap::Args)]
pub struct BulkArgs {
    #[command(flatten)]
    read: ReadArgs,
    #[command(flatten)]
    filter: FilterArgs,

    /// What is correlated: what shares a folder or sessions (auto), everything that overlaps in time (time), nothing (single)
    #[arg(long, value_name = "HOW", value_enum, default_value_t = TogetherArg::Auto, help_heading = "Plan")]
    together: TogetherArg,

    /// What slices of a group that is too large for --memory share with their neighbours
    #[arg(long, value_name = "DUR", default_value = "1h", value_parser = values::duration_ns, help_heading = "Plan")]
    overlap: i64,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum TogetherArg {
    /// What shares a folder or sessions
    Auto,
    /// Everything that overlaps in time
    Time,
    /// Each source by itself
    Single,
}

/// `Args` of a command that reads in bulk, where it says other things than the commands that read a few inputs.
pub fn define(command: clap::Command) -> clap::Command {
    command
        .mut_arg("inputs", |a| {
            a.help("Files, folders with all below them, archives (tar, zip), patterns in quotes such as 'logs/**/access.log*', and URLs")
        })
        .mut_arg("since", |a| a.help("From this time on: RFC 3339 or a date, UTC"))
        .mut_arg("memory", |a| a.help("Memory to stay within [default: 512MiB]"))
}

impl BulkArgs {
    /// The options of a scan without an output folder; `rows`: all calls and exchanges are wanted too.
    pub fn options(&self, rows: bool) -> anyhow::Result<Options> {
        let (baseline, known) = self.filter.baseline()?.map(|(known, bytes)| (known, hash(&bytes))).unzip();
        let filter = self.filter.filter()?;
        let wanted = Wanted { since: instant(filter.since, false)?, until: instant(filter.until, true)? };
        let read = self.read.read_options()?;
        let mut keys = vec![];
        for path in &read.keylogs {
            keys.push(std::fs::read(path).map(|b| hash(&b)).unwrap_or_default());
        }
        let asked = format!("{filter:?} {known:?} {keys:?} {rows}");
        Ok(Options {
            paths: self.read.inputs.clone(),
            jobs: read.threads(),
            read,
            filter,
            baseline,
            wanted,
            together: match self.together {
                TogetherArg::Auto => Together::Auto,
                TogetherArg::Time => Together::Time,
                TogetherArg::Single => Together::Single,
            },
            overlap_ns: self.overlap,
            memory: for_work(self.read.analyze_options().memory_bytes.unwrap_or(MEMORY_BYTES)),
            unit_bytes: 0,
            out: None,
            checkpoint: None,
            is_incremental: false,
            asked,
        })
    }
}

/// What analysis may take of the memory that was given: the rest is for the plan, for what was found and waits to be
/// written, and for what the allocator keeps. Where all was planned with, a scan of 5 GB peaked a third above it, and
/// with three fifths still a little.
fn for_work(bytes: u64) -> u64 {
    bytes / 5 * 2
}

/// The lines of standard input with their numbers, from 1.
///
/// # Errors
/// Each names the line that cannot be read.
pub fn lines() -> impl Iterator<Item = anyhow::Result<(u64, String)>> {
    (1..).zip(std::io::stdin().lock().lines()).map(|(n, text)| Ok((n, text.with_context(|| at(n))?)))
}

/// What a line of standard input is called.
pub fn at(line: u64) -> String {
    format!("standard input, line {line}")
}

fn hash(bytes: &[u8]) -> String {
    use sha2::Digest;
    format!("{:x}", sha2::Sha256::digest(bytes))
}

fn instant(bound: Option<TimeBound>, is_end: bool) -> anyhow::Result<Option<i64>> {
    Ok(match bound {
        None => None,
        Some(TimeBound::At(t)) if is_end => Some(last_ns(t)),
        Some(TimeBound::At(t)) => Some(t.ns()),
        Some(TimeBound::Clock(_)) => {
            bail!("an archive covers many days: --since and --until need a date, such as 2026-11-29T19:38:46Z")
        }
    })
}
