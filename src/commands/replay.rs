//! `crosswire replay`: send recorded calls to a live server.

use super::driving::{ConnectArgs, finish, target, writable};
use super::serve::{said, speed};
use super::{CLEAN, Command, FOUND, TROUBLE, output, values};
use crate::drive::Target;
use crate::drive::replay::schedule::{Schedule, Selection};
use crate::drive::replay::{self, Connections, Options};
use crate::drive::tape;
use crate::model::options::ReadOptions;
use crate::report::clean::clean;
use anyhow::bail;
use clap::{Args, FromArgMatches};
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

/// `crosswire replay`
pub static COMMAND: Command =
    Command { name: "replay", define: Replay::augment_args, run: |matches| Replay::from_arg_matches(matches)?.run() };

/// Send recorded calls to a live server with the concurrency they had, and check every reply
#[derive(Clone, Debug, clap::Args)]
#[command(after_long_help = "\
Every recorded session is opened anew (initialize first). Calls keep their ids, their order, their connections and the \
times between them. Tools that the server does not mark read-only are not called unless --allow names them. Header \
fields and credentials of the recording are not sent; give them with -H, or name those to send with \
--recorded-header.\n\n\
Each call comes out as same, differs (with the path of the first difference), crossed (the reply has another id, or \
holds argument values of another call in flight and none of its own), orphaned, refused or not sent.\n\n\
Examples:\n  \
    crosswire replay incident.pcap --dry-run\n  \
    crosswire replay incident.pcap --to http://127.0.0.1:8000/mcp --times 5 -w replay.pcapng\n\n\
Exit status: 0 nothing crossed or orphaned, 1 crossed or orphaned replies (with --strict also those that differ), 2 \
trouble.")]
struct Replay {
    /// Captures, HAR or flow files
    #[arg(value_name = "INPUT", required = true)]
    inputs: Vec<String>,

    /// The server's MCP endpoint, such as http://127.0.0.1:8000/mcp
    #[arg(long, value_name = "URL", value_parser = target, required_unless_present = "dry_run")]
    to: Option<Target>,

    #[command(flatten)]
    connect: ConnectArgs,

    /// Print the schedule and send nothing
    #[arg(long)]
    dry_run: bool,

    /// Only this recorded session (its id or the beginning of it)
    #[arg(long, value_name = "ID", help_heading = "Calls")]
    session: Vec<String>,

    /// Only calls of this tool (or JSON-RPC method); `*` and `?` match as in file names
    #[arg(long, value_name = "NAME", help_heading = "Calls")]
    tool: Vec<String>,

    /// Call this tool though the server does not mark it read-only; `*` and `?` match as in file names
    #[arg(long, value_name = "TOOL", help_heading = "Calls")]
    allow: Vec<String>,

    /// Send this header field with the recorded value, such as `Authorization`; -H has precedence
    #[arg(long, value_name = "NAME", value_parser = recorded_header, help_heading = "Connection")]
    recorded_header: Vec<String>,

    /// Give out ids anew instead of keeping the recorded ones
    #[arg(long, help_heading = "Calls")]
    renumber: bool,

    /// Connections: recorded, pooled (any that is free) or own (one a call)
    #[arg(long, value_name = "WHICH", default_value = "recorded", value_parser = ["recorded", "pooled", "own"], help_heading = "Calls")]
    connections: String,

    /// Send this many times faster than recorded
    #[arg(long, value_name = "N", default_value_t = 1.0, value_parser = speed, help_heading = "Times")]
    speed: f64,

    /// Wait only for the calls that were over before; keeps order and concurrency, not the times
    #[arg(long, conflicts_with = "speed", help_heading = "Times")]
    asap: bool,

    /// Rounds, each with new sessions
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = values::whole::<u64, 1, 100_000>, help_heading = "Times")]
    times: u64,

    /// Send each call up to this much later, by chance
    #[arg(long, value_name = "DUR", default_value = "0s", value_parser = values::duration_ns, help_heading = "Times")]
    jitter: i64,

    /// How long a caller waits for its reply
    #[arg(long, value_name = "DUR", default_value = "30s", value_parser = values::duration_ns, help_heading = "Times")]
    timeout: i64,

    /// TLS key log to decrypt captures with
    #[arg(long, value_name = "FILE")]
    keylog: Vec<PathBuf>,

    /// Replies that differ from the recorded ones count for the exit status too
    #[arg(long, help_heading = "Output")]
    strict: bool,

    /// Output format: text or json
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = ["text", "json"], help_heading = "Output")]
    format: String,

    /// Write the report to this file instead of standard output
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,
}

/// Header fields that belong to the connection, the session or the protocol are made anew.
fn recorded_header(name: &str) -> Result<String, String> {
    const OWN: &[&str] = &[
        "accept",
        "connection",
        "content-length",
        "content-type",
        "expect",
        "host",
        "mcp-protocol-version",
        "mcp-session-id",
        "transfer-encoding",
        "upgrade",
    ];
    if OWN.iter().any(|own| own.eq_ignore_ascii_case(name)) {
        return Err("this header field is made anew for the replay".into());
    }
    if name.is_empty() || name.contains([':', ' ', '\r', '\n']) {
        return Err("expected the name of a header field, such as Authorization".into());
    }
    Ok(name.to_owned())
}

impl Replay {
    fn run(self) -> anyhow::Result<u8> {
        let read = ReadOptions { keylogs: self.keylog.clone(), ..ReadOptions::default() };
        let tape = tape::read(&self.inputs, &read);
        said(&tape)?;
        let selection = Selection { sessions: self.session.clone(), tools: self.tool.clone() };
        let schedule = Schedule::new(&tape, &selection);
        if schedule.calls.is_empty() {
            let chosen = if self.session.is_empty() && self.tool.is_empty() { "" } else { " of those chosen" };
            bail!("the inputs hold no call{chosen} that could be replayed");
        }
        let had_trouble = !tape.troubles.is_empty();
        let Some(target) = self.to.clone().filter(|_| !self.dry_run) else {
            self.print(&schedule)?;
            return Ok(if had_trouble { TROUBLE } else { CLEAN });
        };
        let client = self.connect.client(target, "replay", &self.inputs)?;
        writable(&self.inputs, self.output.as_deref())?;
        let ns = |ns: i64| Duration::from_nanos(ns.unsigned_abs());
        let options = Options {
            speed: self.speed,
            asap: self.asap,
            times: self.times,
            jitter: ns(self.jitter),
            renumber: self.renumber,
            connections: match self.connections.as_str() {
                "pooled" => Connections::Pooled,
                "own" => Connections::Own,
                _ => Connections::Recorded,
            },
            patience: ns(self.timeout),
            allow: self.allow.clone(),
            recorded_headers: self.recorded_header.clone(),
        };
        let report = replay::run(&client, &schedule, &options);
        let is_json = self.format == "json";
        output::to(self.output.as_deref(), |out| output::json_or(is_json, &report, out, |out| report.text(out)))?;
        finish(client.recorder.as_ref(), self.connect.write.as_ref())?;
        let differs = || report.calls.iter().any(|c| matches!(c.verdict, replay::report::Verdict::Differs { .. }));
        Ok(match (had_trouble || !report.troubles.is_empty(), report.has_findings() || (self.strict && differs())) {
            (true, _) => TROUBLE,
            (false, true) => FOUND,
            (false, false) => CLEAN,
        })
    }

    fn print(&self, schedule: &Schedule) -> anyhow::Result<()> {
        let words = |out: &mut dyn Write| -> std::io::Result<()> {
            let (calls, sessions) = (schedule.calls.len(), schedule.sessions.len());
            let s = if sessions == 1 { "" } else { "s" };
            writeln!(out, "{calls} calls in {sessions} session{s}")?;
            for c in &schedule.calls {
                let at = c.at_ns as f64 / 1e9 / self.speed;
                let name = c.what.tool.as_deref().unwrap_or(&c.what.method);
                let line = format!(
                    "{at:>9.3} s  session {}  connection {}  {name} id {}",
                    c.session + 1,
                    c.connection + 1,
                    c.what.id
                );
                writeln!(out, "{}", clean(&line))?;
            }
            Ok(())
        };
        let is_json = self.format == "json";
        output::to(self.output.as_deref(), |out| output::json_or(is_json, schedule, out, words))
    }
}
