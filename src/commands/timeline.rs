//! `crosswire timeline`: each session's ladder.

use super::choices::OneOf;
use super::options::{FilterArgs, OutputArgs, ReadArgs, StatusArgs};
use super::{Command, TROUBLE, analyze};
use crate::model::options::AnalyzeOptions;
use crate::model::report::Report;
use crate::report::view::View;
use crate::report::{self, Renderer};
use anyhow::bail;
use clap::{Args, FromArgMatches};

/// `crosswire timeline`
pub static COMMAND: Command = Command {
    name: "timeline",
    define: Timeline::augment_args,
    run: |matches| Timeline::from_arg_matches(matches)?.run(),
};

/// Show each session's ladder: one line a message, who sent what to whom, findings in place
#[derive(clap::Args)]
#[command(after_long_help = "Examples:\n  \
    crosswire timeline backend.pcap\n  \
    crosswire timeline front.pcap backend.pcap --around 1\n  \
    crosswire timeline backend.pcap --format svg -o ladder.svg\n\n\
    A solid arrow was seen by an input; a dotted one must have been, where no input looks. An arrow that stops short \
    was not seen beyond, though an input covers it. Bars beside the arrows are calls: they begin at the request and \
    end at the reply; a broken bar is a call that was never answered. `!` marks a stale-session window; numbers in \
    brackets are those of the findings below.\n\n\
    Exit status: 0 nothing found, 1 findings (those of low severity only with --strict), 2 trouble.")]
struct Timeline {
    #[command(flatten)]
    read: ReadArgs,
    #[command(flatten)]
    filter: FilterArgs,
    /// Only the messages around this finding: its number in the report, or the key of the call that it befell, such as c8
    #[arg(long, value_name = "FINDING", help_heading = "Selection")]
    around: Option<String>,
    #[command(flatten)]
    status: StatusArgs,
    #[command(flatten)]
    output: OutputArgs,
    /// Output format: text, markdown, csv, json, ndjson, html or svg
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = OneOf { parse: timeline_format, names: format_names }, hide_possible_values = true, help_heading = "Output")]
    format: &'static Renderer,
}

fn timeline_format(name: &str) -> Result<&'static Renderer, String> {
    report::find(name)
        .filter(|r| r.timeline.is_some())
        .ok_or_else(|| format!("expected one of {}", format_names().join(", ")))
}

fn format_names() -> Vec<&'static str> {
    report::RENDERERS.iter().filter(|r| r.timeline.is_some()).map(|r| r.name).collect()
}

impl Timeline {
    fn run(self) -> anyhow::Result<u8> {
        let keep = AnalyzeOptions { exchanges: true, bodies: self.output.bodies, ..self.read.analyze_options() };
        let report = analyze::read(&self.read, &self.filter, &keep, self.output.quiet)?;
        if !self.output.quiet {
            analyze::warn(&report);
        }
        let mut options = self.output.render_options();
        options.around = self.around.as_deref().map(|text| around(text, &report)).transpose()?;
        let Some(render) = self.format.timeline else { return Ok(TROUBLE) };
        self.output.write(&self.read.inputs, |out| render(&View::new(&report), &options, out))?;
        Ok(analyze::status(&report, &self.status))
    }
}

/// The number of the finding that is meant: its number, or the key of its victim.
fn around(text: &str, report: &Report) -> anyhow::Result<usize> {
    let number = text.trim_start_matches(['#', 'f']).parse::<usize>().ok();
    let by_call =
        || report.findings.iter().position(|f| f.victim.is_some_and(|k| k.to_string() == text)).map(|n| n + 1);
    match number.filter(|n| (1..=report.findings.len()).contains(n)).or_else(by_call) {
        Some(n) => Ok(n),
        None => bail!(
            "--around {text}: there is no such finding; the report has {}, numbered from 1, and the call that one befell (such as c8) stands for it",
            report::table::counted(report.findings.len() as u64, "finding")
        ),
    }
}
