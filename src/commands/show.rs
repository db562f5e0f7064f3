//! `crosswire show`: one call in full from every vantage point.

use super::options::{FilterArgs, OutputArgs, ReadArgs};
use super::{CLEAN, Command, TROUBLE, analyze};
use crate::model::options::AnalyzeOptions;
use crate::model::report::{Call, Report};
use crate::report::call::{self, Shown};
use crate::report::view::View;
use anyhow::bail;
use clap::{Args, FromArgMatches};

/// `crosswire show`
pub static COMMAND: Command =
    Command { name: "show", define: Show::augment_args, run: |matches| Show::from_arg_matches(matches)?.run() };

/// Show one call in full: headers, request and reply, times and places, from every vantage point
#[derive(clap::Args)]
#[command(after_long_help = "Example: crosswire show backend.pcap client.jsonl --call c9\n\n\
    Exit status: 0 shown, 2 trouble (no such call, or an input could not be read).")]
struct Show {
    #[command(flatten)]
    read: ReadArgs,
    /// The call's key in the report, such as c9
    #[arg(long, value_name = "KEY", required = true, help_heading = "Selection")]
    call: Vec<String>,
    #[command(flatten)]
    filter: FilterArgs,
    #[command(flatten)]
    output: OutputArgs,
    /// Messages exactly as sent, not indented
    #[arg(long, help_heading = "Output")]
    raw: bool,
    /// Output format: text or json
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = ["text", "json"], help_heading = "Output")]
    format: String,
}

impl Show {
    fn run(self) -> anyhow::Result<u8> {
        let keep = AnalyzeOptions { bodies: true, details: true, ..self.read.analyze_options() };
        let report = analyze::read(&self.read, &self.filter, &keep, self.output.quiet)?;
        if !self.output.quiet {
            analyze::warn(&report);
        }
        let calls = self.calls(&report)?;
        let view = View::new(&report);
        let options = self.output.render_options();
        let shown = Shown { view: &view, options: &options, raw: self.raw };
        self.output.write(&self.read.inputs, |out| match self.format.as_str() {
            "json" => call::json(&calls, out),
            _ => calls.iter().try_for_each(|c| call::text(&shown, c, out)),
        })?;
        Ok(if report.troubles.is_empty() { CLEAN } else { TROUBLE })
    }

    fn calls<'r>(&self, report: &'r Report) -> anyhow::Result<Vec<&'r Call>> {
        let mut out = Vec::new();
        for key in &self.call {
            match report.calls.iter().find(|c| c.key.to_string() == *key) {
                Some(call) => out.push(call),
                None => bail!("--call {key}: there is no such call; `crosswire analyze … --calls all` lists them"),
            }
        }
        Ok(out)
    }
}
