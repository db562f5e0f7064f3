//! `crosswire scan`: archives in bulk.

use super::analyze::status_of;
use super::bulk::{self, BulkArgs};
use super::options::ColorArg;
use super::output::{plain, print};
use super::{Command, complain, values};
use crate::scan::progress::Progress;
use crate::scan::{self, Options, Outcome, Stop, output, summary};
use anyhow::bail;
use clap::{Args, FromArgMatches};
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// `crosswire scan`
pub static COMMAND: Command = Command {
    name: "scan",
    define: |cmd| bulk::define(Scan::augment_args(cmd)),
    run: |matches| Scan::from_arg_matches(matches)?.run(),
};

/// Search whole archives of logs and captures: folders, rotated sets, compressed files, tar and zip members
///
/// Everything below the paths is looked at: what it is, which time it covers, which sessions it names. Files of a
/// rotated set are read as one log. Sources of one folder that overlap in time, and sources anywhere that overlap in
/// time and name the same sessions, are correlated as analyze does; what has neither in common is not compared.
/// Copies are read once and named. Findings come as soon as they are certain, a summary at the end.
///
/// With --out or --checkpoint an interrupted scan goes on where it was, by the same command; with --incremental the
/// next scan reads only what changed.
///
/// In builds with the feature objects (`crosswire --version` says it) paths may be URLs: s3://BUCKET/KEY, gs://BUCKET/KEY,
/// az://CONTAINER/NAME, abfs://CONTAINER@ACCOUNT.dfs.core.windows.net/NAME, https://HOST/PATH; of one object, of all below (ending in /), or
/// with a pattern. Credentials and endpoints come from the environment, as AWS_*, GOOGLE_* and AZURE_*.
#[derive(clap::Args)]
#[command(after_long_help = "Examples:\n  \
    crosswire scan /archive/2026-11 --out findings\n  \
    crosswire scan '/archive/*/nginx/access.log*' --since 2026-11-01 --until 2026-11-30\n  \
    crosswire scan /archive --format ndjson --rule 'crossed/*' | jq .summary\n  \
    crosswire scan /archive --out findings --incremental\n  \
    crosswire scan 's3://logs/2026/11/*.gz' --out findings\n\n\
    Exit status: 0 nothing found, 1 findings (those of low severity only with --strict), 2 \
    trouble: a member that is broken (not with --keep-going), a path that cannot be read.")]
struct Scan {
    #[command(flatten)]
    bulk: BulkArgs,

    /// Write findings.csv and findings.ndjson to this folder, and in builds with parquet calls and exchanges as Parquet by day
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    out: Option<PathBuf>,

    /// What standard output gets: text, the summary at the end; ndjson, each finding with what it cites, the summary last
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Format::Text, help_heading = "Output")]
    format: Format,

    /// Colours
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = ColorArg::Auto, help_heading = "Output")]
    color: ColorArg,

    /// List every broken, skipped and unknown file
    #[arg(short, long, help_heading = "Output")]
    verbose: bool,

    /// No progress and no warnings on standard error
    #[arg(long, help_heading = "Output")]
    quiet: bool,

    /// Where to note what is done [default: checkpoint.ndjson in --out]
    #[arg(long, value_name = "FILE", help_heading = "Going on")]
    checkpoint: Option<PathBuf>,

    /// Keep the checkpoint: the next scan reads only files that are new or changed
    #[arg(long, help_heading = "Going on")]
    incremental: bool,

    /// Members that are broken do not make the exit status 2
    #[arg(long, help_heading = "Exit status")]
    keep_going: bool,

    /// Findings of low severity count for the exit status too
    #[arg(long, help_heading = "Exit status")]
    strict: bool,

    /// Small groups are done, and noted in the checkpoint, so much at a time
    #[arg(long, value_name = "SIZE", default_value = "8MiB", value_parser = values::size_bytes, help_heading = "Going on")]
    step: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// A summary for people
    Text,
    /// One object a line
    Ndjson,
}

impl Scan {
    fn run(self) -> anyhow::Result<u8> {
        if self.incremental && self.out.is_none() && self.checkpoint.is_none() {
            bail!("--incremental needs --out or --checkpoint, where it notes what is done");
        }
        let options = self.options()?;
        let (progress, stop) = (Progress::default(), Arc::new(AtomicBool::new(false)));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            // The second one ends the program at once.
            signal_hook::flag::register_conditional_shutdown(signal, 130, stop.clone())?;
            signal_hook::flag::register(signal, stop.clone())?;
        }
        let shows = !self.quiet && std::io::stderr().is_terminal();
        let outcome = std::thread::scope(|scope| {
            if shows {
                scope.spawn(|| progress.show(&mut std::io::stderr()));
            }
            let outcome = self.scan(&options, &progress, Stop(&stop));
            progress.finish();
            outcome
        })?;
        if !self.quiet {
            warn(&outcome, self.format == Format::Ndjson);
        }
        if self.format == Format::Text {
            text(&outcome, self.verbose, self.color)?;
        }
        Ok(status(&outcome, self.keep_going, self.strict))
    }

    fn scan(&self, options: &Options, progress: &Progress, stop: Stop<'_>) -> anyhow::Result<Outcome> {
        if self.format == Format::Text {
            return scan::run(options, progress, stop, &mut |_| Ok(()));
        }
        let mut out = std::io::BufWriter::with_capacity(1 << 16, std::io::stdout());
        let mut numbers = output::Numbers::default();
        let outcome = scan::run(options, progress, stop, &mut |result| {
            output::lines(result, None, &mut numbers, &mut out)?;
            // A finding is worth most while it is new.
            Ok(out.flush()?)
        })?;
        output::line("summary", summary::json(&outcome), &mut out)?;
        out.flush()?;
        Ok(outcome)
    }

    fn options(&self) -> anyhow::Result<Options> {
        let rows = cfg!(feature = "parquet") && self.out.is_some();
        let default = self.out.as_ref().map(|out| out.join("checkpoint.ndjson"));
        Ok(Options {
            unit_bytes: self.step,
            out: self.out.clone(),
            checkpoint: self.checkpoint.clone().or(default),
            is_incremental: self.incremental,
            ..self.bulk.options(rows)?
        })
    }
}

/// Prints the summary for people.
pub fn text(outcome: &Outcome, verbose: bool, color: ColorArg) -> anyhow::Result<()> {
    let color = match color {
        ColorArg::Always => true,
        ColorArg::Never => false,
        ColorArg::Auto => plain(true).color,
    };
    let render = crate::report::RenderOptions { verbose, color, ..plain(true) };
    Ok(print(|out| summary::text(outcome, &render, out))?)
}

/// The exit status that a scan ends with.
pub fn status(outcome: &Outcome, keep_going: bool, strict: bool) -> u8 {
    let is_trouble = !outcome.troubles.is_empty() || (!outcome.broken.is_empty() && !keep_going);
    let found = if strict { outcome.counts.findings } else { outcome.counts.serious };
    status_of(is_trouble, found > 0)
}

/// One line on standard error for what standard output does not say.
fn warn(outcome: &Outcome, all: bool) {
    if all {
        outcome.troubles.iter().for_each(|t| complain(t));
        outcome.broken.iter().for_each(|b| complain(&format!("{}: {}", b.name, b.why)));
    }
    if !outcome.skipped.is_empty() {
        complain(&format!("{} files hold nothing of the time asked for and were not read", outcome.skipped.len()));
    }
}
