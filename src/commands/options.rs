//! Options that all reading commands share, as parsed and as resolved.

use super::choices::{self, OneOf, Suggest};
use super::values;
use crate::input::recorded::RecordedKind;
use crate::input::{client, expand, log, same_file};
use crate::live::capture::helper;
use crate::model::options::{AnalyzeOptions, ReadOptions};
use crate::model::place::Vantage;
use crate::model::report::Confidence;
use crate::model::zone::Zone;
use crate::report::Calls;
use crate::report::baseline::Baseline;
use crate::report::filter::{Filter, TimeBound, last_ns};
use crate::report::table::Table;
use crate::report::tables;
use anyhow::{Context, bail, ensure};
use clap::ValueHint;
use std::path::PathBuf;
use std::sync::Arc;

/// What to read and how.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Reading")]
pub struct ReadArgs {
    /// Captures (pcap, pcapng), logs, journals, client records, archives or directories of them; `-` is standard input
    #[arg(value_name = "INPUT", required = true, help_heading = None, value_hint = ValueHint::AnyPath)]
    pub inputs: Vec<String>,

    /// Read every input, or the one at PATH, as this format (see `crosswire formats`)
    #[arg(long, value_name = "NAME[:PATH]", value_parser = Suggest(choices::formats), hide_possible_values = true)]
    input_format: Vec<String>,

    /// The input at PATH was taken at this vantage point: client, proxy, server or wire
    #[arg(long, value_name = "NAME:PATH")]
    vantage: Vec<String>,

    /// An nginx log_format, Apache LogFormat or HAProxy format string for logs whose own format is not certain; NAME=STRING gives it a name for --input-format NAME:PATH
    #[arg(long, value_name = "[NAME=]STRING", allow_hyphen_values = true)]
    log_format: Vec<String>,

    /// Time zone of log times that name none
    #[arg(long, value_name = "ZONE", value_parser = values::zone)]
    tz: Option<Zone>,

    /// Year of log times that name none
    #[arg(long, value_name = "N", value_parser = values::whole::<i32, 1970, 9999>)]
    year: Option<i32>,

    /// TLS key log (NSS format) to decrypt captures with; secrets inside pcapng files and the file that SSLKEYLOGFILE names are used too
    #[arg(long, value_name = "FILE")]
    keylog: Vec<PathBuf>,

    /// How long the client waits before it gives a call up [default: learnt from the traffic, else 300s]
    #[arg(long, value_name = "DUR", value_parser = values::duration_ns)]
    client_timeout: Option<i64>,

    /// Path of the MCP endpoint [default: found from the traffic]
    #[arg(long, value_name = "PATH")]
    endpoint: Option<String>,

    /// Of captures look only at frames that this capture filter lets through (see pcap-filter(7)); the rest counts as not captured. Compiled by crosswire-capture, without privileges
    #[arg(long, value_name = "BPF")]
    filter: Option<String>,

    /// Threads to use [default: all cores]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true, value_parser = values::whole::<usize, 0, 65535>)]
    jobs: usize,

    /// Memory to stay within, such as 512MiB [default: built-in limits, see `crosswire formats --limits`]
    #[arg(long, value_name = "SIZE", value_parser = values::size_bytes)]
    memory: Option<u64>,
}

/// What of it to report.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Selection")]
pub struct FilterArgs {
    /// From this time on: RFC 3339, or HH:MM:SS (UTC) on the day the inputs begin
    #[arg(long, value_name = "TIME", value_parser = values::time_bound)]
    since: Option<TimeBound>,

    /// Up to this time
    #[arg(long, value_name = "TIME", value_parser = values::time_bound)]
    until: Option<TimeBound>,

    /// Only sessions whose id is or begins with this
    #[arg(long, value_name = "ID")]
    session: Vec<String>,

    /// Only calls of this tool (or JSON-RPC method); `*` and `?` match as in file names
    #[arg(long, value_name = "NAME")]
    tool: Vec<String>,

    /// Only findings of these rules, such as `crossed/*`
    #[arg(long, value_name = "GLOB", value_parser = OneOf { parse: values::rule_pattern, names: choices::rule_patterns }, hide_possible_values = true)]
    rule: Vec<String>,

    /// Only findings that are at least this sure: possible, probable or certain
    #[arg(long, value_name = "LEVEL", value_parser = OneOf { parse: values::confidence, names: || vec!["possible", "probable", "certain"] }, hide_possible_values = true)]
    min_confidence: Option<Confidence>,

    /// Leave out the findings that this earlier JSON report lists
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,
}

/// What the exit status is to say.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Exit status")]
pub struct StatusArgs {
    /// Findings of low severity count for the exit status too
    #[arg(long)]
    pub strict: bool,

    /// Exit with status 2 where less than this share of the traffic could be followed
    #[arg(long, value_name = "PCT", value_parser = values::percent)]
    pub require_coverage: Option<f64>,
}

/// How to write it.
#[derive(Clone, clap::Args)]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// The table that CSV holds: findings, crossed, orphaned, windows, calls, inputs, sessions, exchanges or others
    #[arg(long, value_name = "NAME", value_parser = OneOf { parse: table, names: || tables::TABLES.iter().map(|t| t.name).collect() }, hide_possible_values = true)]
    pub table: Option<&'static Table>,

    /// The calls to list [default: all in json, cited elsewhere]
    #[arg(long, value_name = "WHICH", value_enum)]
    calls: Option<CallsArg>,

    /// Put the text of requests and replies into the report
    #[arg(long)]
    pub bodies: bool,

    /// Add Mermaid sequence diagrams to Markdown
    #[arg(long)]
    pub mermaid: bool,

    /// Colours
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = ColorArg::Auto)]
    pub color: ColorArg,

    /// Line width of text [default: the terminal's, else 120]
    #[arg(long, value_name = "COLUMNS", value_parser = values::whole::<u16, 40, 65535>)]
    pub width: Option<u16>,

    /// Draw with ASCII characters alone
    #[arg(long)]
    pub ascii: bool,

    /// No warnings on standard error
    #[arg(long)]
    pub quiet: bool,

    /// List sessions and all calls too, and what is nearly a finding and why not; JSON holds the latter
    #[arg(short, long)]
    pub verbose: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum CallsArg {
    /// Every call
    All,
    /// Those that findings and windows cite
    Cited,
    /// None
    None,
}

/// When to colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ColorArg {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

fn table(name: &str) -> Result<&'static Table, String> {
    tables::find(name).ok_or_else(|| {
        let names: Vec<&str> = tables::TABLES.iter().map(|t| t.name).collect();
        format!("expected one of {}", names.join(", "))
    })
}

impl OutputArgs {
    /// For a command that only draws on the terminal.
    pub fn for_terminal(color: ColorArg, ascii: bool) -> OutputArgs {
        OutputArgs {
            output: None,
            table: None,
            calls: None,
            bodies: false,
            mermaid: false,
            color,
            width: None,
            ascii,
            quiet: true,
            verbose: false,
        }
    }

    /// `--calls`.
    pub fn calls(&self) -> Option<Calls> {
        self.calls.map(|c| match c {
            CallsArg::All => Calls::All,
            CallsArg::Cited => Calls::Cited,
            CallsArg::None => Calls::None,
        })
    }
}

impl FilterArgs {
    /// The report of `--baseline`, and its bytes.
    ///
    /// # Errors
    /// Where it cannot be read, or is no report.
    pub fn baseline(&self) -> anyhow::Result<Option<(Baseline, Vec<u8>)>> {
        let Some(path) = &self.baseline else { return Ok(None) };
        let bytes = std::fs::read(path).with_context(|| format!("{}: cannot be read", path.display()))?;
        let baseline = Baseline::read(&bytes).with_context(|| format!("{}", path.display()))?;
        Ok(Some((baseline, bytes)))
    }

    /// What is wanted of a report.
    ///
    /// # Errors
    /// Where the end lies before the beginning, so that nothing found would look like nothing there.
    pub fn filter(&self) -> anyhow::Result<Filter> {
        if let (Some(TimeBound::At(since)), Some(TimeBound::At(until))) = (self.since, self.until) {
            ensure!(since.ns() <= last_ns(until), "--until {until} lies before --since {since}");
        }
        Ok(Filter {
            since: self.since,
            until: self.until,
            sessions: self.session.clone(),
            tools: self.tool.clone(),
            rules: self.rule.clone(),
            min_confidence: self.min_confidence,
        })
    }
}

impl ReadArgs {
    /// How inputs are to be read.
    ///
    /// # Errors
    /// Where a name stands for nothing.
    pub fn read_options(&self) -> anyhow::Result<ReadOptions> {
        let bound: Vec<(String, String)> = self.input_format.iter().filter_map(|f| split(f, ':')).collect();
        let mut options = ReadOptions {
            input_format: self.input_format.iter().find(|f| !f.contains(':')).cloned(),
            tz: self.tz.clone(),
            year: self.year,
            keylogs: self.keylogs(),
            client_timeout_ns: self.client_timeout,
            endpoint: self.endpoint.clone(),
            filter: self.filter.as_deref().map(helper::compile).transpose()?.map(Arc::new),
            jobs: self.jobs,
            ..ReadOptions::default()
        };
        for text in &self.log_format {
            match split(text, '=').filter(|(name, _)| bound.iter().any(|(b, _)| b == name)) {
                Some(named) => options.log_formats.push(named),
                None => options.log_format = Some(text.clone()),
            }
        }
        for name in options.input_format.iter().chain(bound.iter().map(|(name, _)| name)) {
            let is_named = options.log_formats.iter().any(|(n, _)| n == name);
            ensure!(
                is_named || is_format(name),
                "--input-format {name}: no such format; `crosswire formats` lists them, and --log-format {name}=STRING defines one"
            );
        }
        options.input_formats = bound;
        for text in &self.vantage {
            options.vantages.push(vantage(text)?);
        }
        Ok(options)
    }

    /// Options that are for one input name one that there is.
    ///
    /// # Errors
    /// Where PATH in `--input-format NAME:PATH` or `--vantage NAME:PATH` is none of the inputs.
    pub fn check_paths(&self) -> anyhow::Result<()> {
        let of = |option, texts: &[String]| -> Vec<_> {
            texts.iter().filter_map(|t| split(t, ':')).map(|(_, path)| (option, path)).collect()
        };
        let bound = [of("--input-format", &self.input_format), of("--vantage", &self.vantage)].concat();
        if bound.is_empty() {
            return Ok(());
        }
        let (sources, _) = expand(&self.inputs);
        for (option, path) in bound {
            let mut names = self.inputs.iter().chain(sources.iter().map(|s| &s.name));
            let is_there = names.any(|name| same_file(&path, name));
            ensure!(is_there, "{option} …:{path}: {path} is none of the inputs");
        }
        Ok(())
    }

    /// What an analysis is to keep.
    pub fn analyze_options(&self) -> AnalyzeOptions {
        AnalyzeOptions { memory_bytes: self.memory, ..AnalyzeOptions::default() }
    }

    fn keylogs(&self) -> Vec<PathBuf> {
        let from_environment = std::env::var_os("SSLKEYLOGFILE").filter(|f| !f.is_empty()).map(PathBuf::from);
        // A variable that names no file is a habit of the shell, not a wish of this command.
        self.keylog.iter().cloned().chain(from_environment.filter(|f| f.exists())).collect()
    }
}

/// `NAME:REST` or `NAME=REST` where NAME is a plain word.
fn split(text: &str, at: char) -> Option<(String, String)> {
    let (name, rest) = text.split_once(at)?;
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    (!name.is_empty() && !rest.is_empty() && name.chars().all(is_word)).then(|| (name.into(), rest.into()))
}

fn vantage(text: &str) -> anyhow::Result<(Vantage, String)> {
    let Some((name, path)) = split(text, ':') else {
        bail!("--vantage {text}: expected NAME:PATH, such as proxy:access.log");
    };
    let vantage = match name.as_str() {
        "client" => Vantage::Client,
        "proxy" => Vantage::Proxy,
        "server" => Vantage::Server,
        "wire" => Vantage::Wire,
        _ => bail!("--vantage {text}: expected client, proxy, server or wire before the colon"),
    };
    Ok((vantage, path))
}

/// Names of capture formats, which are found by their first bytes and are in no table.
const CAPTURES: &[(&str, &str)] = &[
    ("pcap", "libpcap captures, either byte order, microseconds or nanoseconds."),
    ("pcapng", "pcapng captures: several sections and interfaces, comments, embedded TLS secrets."),
];

/// What is read as the wire: captures, and exchanges that something else recorded.
pub fn of_the_wire() -> impl Iterator<Item = (&'static str, &'static str)> {
    CAPTURES.iter().copied().chain(RecordedKind::ALL.into_iter().map(|kind| (kind.name(), kind.doc())))
}

fn is_format(name: &str) -> bool {
    of_the_wire().any(|(n, _)| n == name) || log::FORMATS.iter().chain(client::FORMATS).any(|f| f.name == name)
}
