//! `crosswire analyze`: read everything, correlate, print findings.

use super::choices::OneOf;
use super::options::{FilterArgs, OutputArgs, ReadArgs, StatusArgs};
use super::{CLEAN, Command, FOUND, TROUBLE, complain};
use crate::analyze;
use crate::model::options::AnalyzeOptions;
use crate::model::report::{Report, Severity};
use crate::report::headline::coverage_percent;
use crate::report::table::counted;
use crate::report::view::View;
use crate::report::{self, Calls, Renderer};
use clap::{Args, FromArgMatches};

/// `crosswire analyze`
pub static COMMAND: Command = Command {
    name: "analyze",
    define: Analyze::augment_args,
    run: |matches| Analyze::from_arg_matches(matches)?.run(),
};

/// Read captures and logs, correlate them, and report what went wrong
#[derive(clap::Args)]
#[command(after_long_help = "Examples:\n  \
    crosswire analyze backend.pcap\n  \
    crosswire analyze front.pcap backend.pcap access.log journal.json client.jsonl\n  \
    crosswire analyze backend.pcap --format json --rule 'crossed/*' -o report.json\n  \
    zstdcat capture.pcap.zst | crosswire analyze -\n\n\
    Exit status: 0 nothing found, 1 findings (those of low severity only with --strict), 2 trouble.")]
struct Analyze {
    #[command(flatten)]
    read: ReadArgs,
    #[command(flatten)]
    filter: FilterArgs,
    #[command(flatten)]
    status: StatusArgs,
    #[command(flatten)]
    output: OutputArgs,
    /// Output format: text, markdown, csv, json, ndjson or html
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = OneOf { parse: report_format, names: format_names }, hide_possible_values = true, help_heading = "Output")]
    format: &'static Renderer,
}

fn report_format(name: &str) -> Result<&'static Renderer, String> {
    report::find(name)
        .filter(|r| r.report.is_some())
        .ok_or_else(|| format!("expected one of {}", format_names().join(", ")))
}

fn format_names() -> Vec<&'static str> {
    report::RENDERERS.iter().filter(|r| r.report.is_some()).map(|r| r.name).collect()
}

impl Analyze {
    fn run(self) -> anyhow::Result<u8> {
        let options = self.output.render_options();
        let lists_calls = (self.format.calls)(&options) == Calls::All || self.filter.filter()?.narrows();
        let keep = AnalyzeOptions {
            bodies: self.output.bodies,
            cited_calls_only: !lists_calls,
            ..self.read.analyze_options()
        };
        let report = read(&self.read, &self.filter, &keep, self.output.quiet)?;
        let Some(render) = self.format.report else { return Ok(TROUBLE) };
        // Text on standard output says itself what could not be read.
        if !self.output.quiet && (self.format.name != "text" || self.output.output.is_some()) {
            warn(&report);
        }
        self.output.write(&self.read.inputs, |out| render(&View::new(&report), &options, out))?;
        Ok(status(&report, &self.status))
    }
}

/// Reads and analyses the inputs and takes out what is not wanted. Says on standard error which
/// inputs could not be read at all, and unless it is `quiet` what was passed over.
pub(super) fn read(read: &ReadArgs, filter: &FilterArgs, keep: &AnalyzeOptions, quiet: bool) -> anyhow::Result<Report> {
    let wanted = filter.filter()?;
    let options = read.read_options()?;
    read.check_paths()?;
    let baseline = filter.baseline()?;
    let mut report = analyze::run(&read.inputs, &options, keep)?;
    report.troubles.iter().for_each(|trouble| complain(trouble));
    let calls = report.summary.calls;
    wanted.apply(&mut report);
    if !quiet {
        passed_over(&report);
        if calls > 0 && report.summary.calls == 0 {
            complain(&format!("--since, --until, --session and --tool leave none of {}", counted(calls, "call")));
        }
    }
    if let Some((baseline, _)) = baseline {
        baseline.apply(&mut report);
    }
    Ok(report)
}

/// One line on standard error about files in directories that nothing was read of.
fn passed_over(report: &Report) {
    const NAMED: usize = 5;
    let names = &report.passed_over;
    if names.is_empty() {
        return;
    }
    let named = names.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = if names.len() > NAMED { ", …" } else { "" };
    complain(&format!("{} of no known format not read: {named}{more}", counted(names.len() as u64, "file")));
}

/// One line on standard error for each input with problems.
pub(super) fn warn(report: &Report) {
    for input in report.inputs.iter().filter(|i| !i.problems.is_empty()) {
        let kinds: Vec<String> = input.problems.iter().map(|p| format!("{} ×{}", p.kind.name(), p.count)).collect();
        complain(&format!("{}: read with problems: {}", input.name, kinds.join(", ")));
    }
}

/// The exit status that a report and `--strict`, `--require-coverage` give.
pub(super) fn status(report: &Report, args: &StatusArgs) -> u8 {
    let mut is_trouble = !report.troubles.is_empty();
    if let Some(wanted) = args.require_coverage {
        let got = coverage_percent(report);
        if got < wanted {
            complain(&format!("{got:.1} % of the traffic could be followed, --require-coverage asks for {wanted} %"));
            is_trouble = true;
        }
    }
    let counts = |s: Severity| args.strict || s > Severity::Low;
    status_of(is_trouble, report.findings.iter().any(|f| counts(f.severity)))
}

/// Trouble wins over findings.
pub(super) fn status_of(is_trouble: bool, found: bool) -> u8 {
    match (is_trouble, found) {
        (true, _) => TROUBLE,
        (false, true) => FOUND,
        (false, false) => CLEAN,
    }
}
