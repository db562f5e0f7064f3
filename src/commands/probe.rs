//! `crosswire probe`: does a server cross replies?

use super::driving::{ConnectArgs, finish, target, writable};
use super::{CLEAN, Command, FOUND, TROUBLE, output, values};
use crate::drive::Target;
use crate::drive::probe::{self, Choice, Options, Progress, render, report::Report};
use anyhow::bail;
use clap::{Args, FromArgMatches};
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::time::Duration;

/// `crosswire probe`
pub static COMMAND: Command =
    Command { name: "probe", define: Probe::augment_args, run: |matches| Probe::from_arg_matches(matches)?.run() };

/// Sweep concurrent batches of calls against a server and check the id and content of every reply
#[derive(Clone, Debug, clap::Args)]
#[command(after_long_help = "\
Calls tools that the server marks read-only and that give back what they are given, in batches: sizes × where the slow \
call stands × one or several tools × own or pooled connections, with a GET stream held open, in two sessions at once, \
after callers that left, and with ids that collide between two conversations on one session. Every call carries a \
unique tag; every reply is checked for its id, its tag, its stream and its session. Before that, faults are put into \
the probe's own path, and each must be found.\n\n\
Examples:\n  \
    crosswire probe http://127.0.0.1:8000/mcp\n  \
    crosswire probe http://127.0.0.1:8000/mcp --tool search --args '{\"query\": \"{tag}\"}' -w probe.pcapng\n  \
    crosswire analyze probe.pcapng\n\n\
In --args, {tag} stands for the call's tag; \"{seconds}\" and \"{milliseconds}\", alone in a string, for the number that \
tells the tool how long to take.\n\n\
Exit status: 0 every reply was right; 1 replies were crossed or lost; 2 trouble: the server could not be reached, no \
tool can be told apart, the self-check failed, or the sweep was stopped.")]
struct Probe {
    /// The server's MCP endpoint, such as http://127.0.0.1:8000/mcp
    #[arg(value_name = "URL", value_parser = target)]
    url: Target,

    #[command(flatten)]
    connect: ConnectArgs,

    /// Call this tool and no other; may be repeated [default: tools that give back what they are given]
    #[arg(long, value_name = "NAME", help_heading = "Calls")]
    tool: Vec<String>,

    /// Arguments for the tool of the same position, as JSON, with {tag} where the call's tag belongs
    #[arg(long, value_name = "JSON", value_parser = arguments, help_heading = "Calls")]
    args: Vec<serde_json::Value>,

    /// Call this tool though the server does not mark it read-only; `*` and `?` match as in file names
    #[arg(long, value_name = "TOOL", help_heading = "Calls")]
    allow: Vec<String>,

    /// Go on where no tool gives back what it is given: only ids are judged then
    #[arg(long, help_heading = "Calls")]
    ids_only: bool,

    /// Repetitions of each configuration
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = values::whole::<u64, 1, 1000>, help_heading = "Calls")]
    repetitions: u64,

    /// Batch sizes
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_values_t = [3, 12], value_parser = values::whole::<u16, 2, 256>, help_heading = "Calls")]
    batch: Vec<u16>,

    /// How long a slow call takes
    #[arg(long, value_name = "DUR", default_value = "100ms", value_parser = values::duration_ns, help_heading = "Calls")]
    slow: i64,

    /// How long a caller waits for its reply [default: learnt from the tools]
    #[arg(long, value_name = "DUR", value_parser = values::duration_ns, help_heading = "Calls")]
    timeout: Option<i64>,

    /// Calls a second at most
    #[arg(long, value_name = "N", default_value_t = 200.0, value_parser = rate, help_heading = "Calls")]
    rate: f64,

    /// Output format: text or json
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = ["text", "json"], help_heading = "Output")]
    format: String,

    /// Write the report to this file instead of standard output
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,

    /// No progress on standard error
    #[arg(long, help_heading = "Output")]
    quiet: bool,
}

fn arguments(text: &str) -> Result<serde_json::Value, String> {
    let value: serde_json::Value = serde_json::from_str(text).map_err(|e| format!("expected a JSON object: {e}"))?;
    if value.is_object() { Ok(value) } else { Err("expected a JSON object".into()) }
}

fn rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(n) if n > 0.0 && n <= 1e6 => Ok(n),
        _ => Err("expected a number of calls a second, such as 200".into()),
    }
}

impl Probe {
    fn run(self) -> anyhow::Result<u8> {
        if self.args.len() > self.tool.len() {
            bail!("--args: give --tool for each");
        }
        if let Some(timeout) = self.timeout.filter(|t| *t < self.slow.saturating_mul(4)) {
            let [timeout, slow] = [timeout, self.slow].map(|ns| Duration::from_nanos(ns.unsigned_abs()));
            bail!(
                "--timeout {timeout:?}: slow calls take up to three times --slow ({slow:?}); give at least four times that"
            );
        }
        let client = self.connect.client(self.url.clone(), "probe", &[])?;
        writable(&[], self.output.as_deref())?;
        let ns = |ns: i64| Duration::from_nanos(ns.unsigned_abs());
        let options = Options {
            repetitions: self.repetitions,
            batches: each_once(&self.batch),
            choice: Choice { tools: self.tool.clone(), arguments: self.args.clone(), allow: self.allow.clone() },
            patience: self.timeout.map(ns),
            delay: ns(self.slow),
            rate: self.rate,
            ids_only: self.ids_only,
        };
        let shows = !self.quiet && std::io::stderr().is_terminal();
        let report = probe::run(&client, &options, &mut |p| {
            if shows {
                bar(p);
            }
        });
        if shows {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
        self.write(&report)?;
        finish(client.recorder.as_ref(), self.connect.write.as_ref())?;
        Ok(match (report.troubles.is_empty(), report.has_findings()) {
            (false, _) => TROUBLE,
            (true, true) => FOUND,
            (true, false) => CLEAN,
        })
    }

    fn write(&self, report: &Report) -> anyhow::Result<()> {
        let options = output::plain(self.output.is_none());
        let is_json = self.format == "json";
        let words = |out: &mut dyn Write| render::text(report, &options, out);
        output::to(self.output.as_deref(), |out| output::json_or(is_json, report, out, words))
    }
}

/// Batch sizes in the order given, each once.
fn each_once(sizes: &[u16]) -> Vec<usize> {
    let mut seen = vec![];
    for size in sizes.iter().map(|n| usize::from(*n)) {
        if !seen.contains(&size) {
            seen.push(size);
        }
    }
    seen
}

fn bar(p: Progress) {
    const WIDTH: usize = 24;
    let full = (p.done * WIDTH).checked_div(p.of).unwrap_or(0);
    let bar = format!("{}{}", "█".repeat(full), "░".repeat(WIDTH.saturating_sub(full)));
    let _ = write!(
        std::io::stderr(),
        "\r\x1b[K{bar} {} of {} configurations, {} calls, {} wrong",
        p.done,
        p.of,
        p.calls,
        p.wrong
    );
}
