//! `crosswire reduce`: the fold of a scan, for cluster engines.

use super::bulk::{self, BulkArgs};
use super::options::ColorArg;
use super::{CLEAN, Command};
use crate::scan::output::{self, Numbers};
use crate::scan::result::UnitResult;
use crate::scan::steps::{Line, LotTotal, Reducer, ShareReducer, total};
use crate::scan::summary;
use anyhow::Context;
use clap::{Args, FromArgMatches};
use std::io::{BufWriter, Write};

/// `crosswire reduce`
pub static COMMAND: Command = Command {
    name: "reduce",
    define: |cmd| bulk::define(Reduce::augment_args(cmd)).mut_arg("inputs", |a| a.required(false).hide(true)),
    run: |matches| Reduce::from_arg_matches(matches)?.run(),
};

/// Fold keyed sightings to findings, calls and windows: the reduce step of a scan on a cluster
///
/// Reads the records of `crosswire map` from standard input, sorted by key and time, and writes the objects of
/// `crosswire scan --format ndjson`, each with the `lot` it is of: input, call, window, finding, and for each lot
/// last an object {"lot": …} with what it came to. The numbers of inputs are those of their lot. One lot is in memory
/// at a time; of a lot that is one log, only what is odd or open. Give it the options that map was given.
///
/// With --shares it folds only shares of the sessions of large lots, one at a time, and writes what is left of each as a
/// record of the lot, and all other records as they are: sorted again, that goes to reduce.
///
/// With --total it reads instead what --step plan wrote and the objects of lots, and prints the summary of a scan.
#[derive(clap::Args)]
#[command(after_long_help = "Examples:\n  \
    sort -k1,1 -k2,2n sightings | crosswire reduce\n  \
    sort -k1,1 -k2,2n sightings | crosswire reduce --shares | sort -k1,1 -k2,2n | crosswire reduce\n\n\
    Exit status: 0; 2 where a record could not be read: then what was written must not be used. With --total that of \
    `crosswire scan`: 0 nothing found, 1 findings (those of low severity only with --strict), 2 trouble.")]
struct Reduce {
    #[command(flatten)]
    bulk: BulkArgs,

    /// Fold shares of sessions only, and write what is left of them as records, among all others as they were: a step before the fold of lots
    #[arg(long, conflicts_with = "total", help_heading = "Shares")]
    shares: bool,

    /// Add up what lots came to, and print the summary
    #[arg(long, help_heading = "Total")]
    total: bool,

    /// What --total prints: text for people, or ndjson, the summary as one object
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Format::Text, help_heading = "Total")]
    format: Format,

    /// Colours
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = ColorArg::Auto, help_heading = "Total")]
    color: ColorArg,

    /// List every broken, skipped and unknown file
    #[arg(short, long, help_heading = "Total")]
    verbose: bool,

    /// Members that are broken do not make the exit status 2
    #[arg(long, help_heading = "Total")]
    keep_going: bool,

    /// Findings of low severity count for the exit status too
    #[arg(long, help_heading = "Total")]
    strict: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// A summary for people
    Text,
    /// One object
    Ndjson,
}

impl Reduce {
    fn run(self) -> anyhow::Result<u8> {
        match (self.total, self.shares) {
            (true, _) => self.add_up(),
            (false, true) => self.fold_shares(),
            (false, false) => self.fold(),
        }
    }

    fn fold(&self) -> anyhow::Result<u8> {
        let options = self.bulk.options(false)?;
        let mut reducer = Reducer::new(&options);
        let mut out = BufWriter::with_capacity(1 << 16, std::io::stdout());
        for given in bulk::lines() {
            let (n, text) = given?;
            if !text.is_empty()
                && let Some((total, result)) = reducer.take(&text).with_context(|| bulk::at(n))?
            {
                write(&total, &result, &mut out)?;
            }
        }
        if let Some((total, result)) = reducer.finish()? {
            write(&total, &result, &mut out)?;
        }
        out.flush()?;
        Ok(CLEAN)
    }

    fn fold_shares(&self) -> anyhow::Result<u8> {
        let options = self.bulk.options(false)?;
        let mut reducer = ShareReducer::new(&options);
        let mut out = BufWriter::with_capacity(1 << 16, std::io::stdout());
        let mut each = |record: &str| Ok(writeln!(out, "{record}")?);
        for given in bulk::lines() {
            let (n, text) = given?;
            if !text.is_empty() {
                reducer.take(&text, &mut each).with_context(|| bulk::at(n))?;
            }
        }
        reducer.finish(&mut each)?;
        out.flush()?;
        Ok(CLEAN)
    }

    fn add_up(&self) -> anyhow::Result<u8> {
        let (mut told, mut lots) = (None, vec![]);
        for given in bulk::lines() {
            let (_, text) = given?;
            match serde_json::from_str(&text) {
                Ok(Line::Plan(plan)) => told = Some(*plan),
                Ok(Line::Lot(lot)) => lots.push(*lot),
                // Findings and tasks may stand between them.
                _ => {}
            }
        }
        let outcome = total(told.context("there is no plan: expected what `map --step plan` wrote")?, lots);
        match self.format {
            Format::Text => super::scan::text(&outcome, self.verbose, self.color)?,
            Format::Ndjson => {
                let mut out = std::io::stdout().lock();
                output::line("summary", summary::json(&outcome), &mut out)?;
            }
        }
        Ok(super::scan::status(&outcome, self.keep_going, self.strict))
    }
}

fn write(total: &LotTotal, result: &UnitResult, out: &mut dyn Write) -> anyhow::Result<()> {
    output::lines(result, Some(&total.lot), &mut Numbers::default(), out)?;
    writeln!(out, "{}", serde_json::to_string(&Line::Lot(Box::new(total.clone())))?)?;
    Ok(())
}
