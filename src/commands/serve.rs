//! `crosswire serve`: play a recorded server to a client.

use super::driving::{finish, recorder, spare, writable};
use super::{CLEAN, Command, TROUBLE, complain, output, values};
use crate::drive::Stop;
use crate::drive::play::script::{Script, What};
use crate::drive::play::{Player, Unmatched};
use crate::drive::server::Server;
use crate::drive::tape::{self, Tape};
use crate::model::options::{AnalyzeOptions, ReadOptions};
use crate::model::report::{Report, Severity};
use anyhow::{Context, anyhow, bail};
use clap::{Args, FromArgMatches};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// `crosswire serve`
pub static COMMAND: Command =
    Command { name: "serve", define: Serve::augment_args, run: |matches| Serve::from_arg_matches(matches)?.run() };

/// Play a recorded server to a client: same replies, delays, stream breaks and refusals, and faults on request
#[derive(Clone, Debug, clap::Args)]
#[command(after_long_help = "\
Requests are matched to what was recorded by method, tool and arguments; where the arguments differ, the next recorded \
reply of the tool is sent. Handshake, ping and tool list are made up where the recording lacks them. Every client gets a \
session id of its own.\n\n\
A script (--script, or in place of INPUT) is a JSON file:\n\n  \
    {\"schema\": \"crosswire.script/1\",\n   \
     \"replies\": [{\"method\": \"tools/call\", \"tool\": \"search\", \"arguments\": {}, \"stream\": true,\n                \
                  \"messages\": [{\"after_ms\": 300, \"message\": {\"result\": {}}}]}],\n   \
     \"faults\": [{\"call\": 3, \"do\": \"swap\"}, {\"tool\": \"search\", \"do\": \"delay\", \"ms\": 90000}]}\n\n\
A fault hits the tool call of that number, counted over all tool calls or those of `tool`, or every one where `call` is \
missing. `do` is delay, late (the head comes at once), forget-session (404 from then on), drop (the stream ends without \
the reply), reset, hang, wrong-id, duplicate, swap (the bodies of this call and another one in flight with it) or \
on-get (the reply comes on the GET stream, and the call's own stream ends 250 ms, or `ms`, later).\n\n\
Examples:\n  \
    crosswire serve incident.pcap --listen 127.0.0.1:8000\n  \
    crosswire serve incident.pcap --write-script repro.json\n  \
    crosswire serve repro.json --listen 127.0.0.1:8000 -w client.pcapng\n\n\
Ends at Ctrl-C, or after --for, and then says what the client did. Exit status: 0 at a clean stop, 2 trouble.")]
struct Serve {
    /// Captures, HAR or flow files, or one script
    #[arg(value_name = "INPUT", required = true)]
    inputs: Vec<String>,

    /// Address to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8000")]
    listen: String,

    /// Path of the endpoint
    #[arg(long, value_name = "PATH", default_value = "/mcp")]
    endpoint: String,

    /// Play only this recorded session (its id or the beginning of it)
    #[arg(long, value_name = "ID")]
    session: Option<String>,

    /// Inject the faults of this script, and play its replies first
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,

    /// Write a script that reproduces a finding of the inputs (or all that was recorded), and serve nothing
    #[arg(long, value_name = "FILE")]
    write_script: Option<PathBuf>,

    /// The finding to reproduce, by its number in `crosswire analyze` [default: the first of the highest severity]
    #[arg(long, value_name = "N", requires = "write_script")]
    finding: Option<usize>,

    /// What to say to requests that nothing was recorded for: repeat (the last reply of the tool), error, refuse (404) or hang
    #[arg(long, value_name = "WHAT", default_value = "repeat", value_parser = unmatched)]
    unmatched: Unmatched,

    /// Play this many times faster
    #[arg(long, value_name = "N", default_value_t = 1.0, value_parser = speed)]
    speed: f64,

    /// Stop after this time [default: at Ctrl-C]
    #[arg(long = "for", value_name = "DUR", value_parser = values::duration_ns)]
    time: Option<i64>,

    /// TLS key log to decrypt captures with
    #[arg(long, value_name = "FILE")]
    keylog: Vec<PathBuf>,

    /// Write what was sent and received to this pcapng capture
    #[arg(short, long, value_name = "FILE")]
    write: Option<PathBuf>,

    /// Output format of the report: text or json
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = ["text", "json"])]
    format: String,

    /// Write the report to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

fn unmatched(text: &str) -> Result<Unmatched, String> {
    match text {
        "repeat" => Ok(Unmatched::Repeat),
        "error" => Ok(Unmatched::Error),
        "refuse" => Ok(Unmatched::Refuse),
        "hang" => Ok(Unmatched::Hang),
        _ => Err("expected repeat, error, refuse or hang".into()),
    }
}

/// A factor of speed.
///
/// # Errors
/// A sentence that says what is accepted.
pub(super) fn speed(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(n) if n > 0.0 && n <= 1e6 => Ok(n),
        _ => Err("expected a factor such as 2 or 0.5".into()),
    }
}

impl Serve {
    fn run(self) -> anyhow::Result<u8> {
        let options = ReadOptions { keylogs: self.keylog.clone(), ..ReadOptions::default() };
        if let Some(path) = &self.write_script {
            spare(&self.inputs, path)?;
            return self.reproduce(&options, path);
        }
        let mut script = match self.inputs.as_slice() {
            [one] if is_script(Path::new(one)) => {
                let script = load(Path::new(one))?;
                if script.replies.is_empty() {
                    bail!("{one}: holds no replies; give what was recorded as well, and this with --script");
                }
                script
            }
            _ => {
                let tape = tape::read(&self.inputs, &options);
                said(&tape)?;
                recorded(&tape, self.session.as_deref())?
            }
        };
        if let Some(path) = &self.script {
            let mut more = load(path)?;
            script.faults.append(&mut more.faults);
            script.get_stream |= more.get_stream;
            more.replies.append(&mut script.replies);
            script.replies = more.replies;
        }
        for (n, fault) in script.faults.iter().enumerate() {
            let is_known = |tool: &String| script.replies.iter().any(|r| r.tool.as_ref() == Some(tool));
            if let Some(tool) = fault.tool.as_ref().filter(|t| !is_known(t)) {
                complain(&format!("fault {}: no reply is of the tool {tool}", n + 1));
            }
        }
        self.serve(script)
    }

    fn serve(&self, script: Script) -> anyhow::Result<u8> {
        let stop = Stop::on_signals().context("signals cannot be caught")?;
        writable(&self.inputs, self.output.as_deref())?;
        let recorder = recorder(&self.inputs, self.write.as_ref(), "crosswire serve")?;
        let server = Server::bind(&self.listen, recorder.clone(), stop.clone())
            .with_context(|| format!("{}: cannot be listened on", self.listen))?;
        if self.endpoint.chars().any(|c| c.is_whitespace() || c.is_control()) {
            bail!("--endpoint {:?}: expected a path such as /mcp", self.endpoint);
        }
        let path = if self.endpoint.starts_with('/') { self.endpoint.clone() } else { format!("/{}", self.endpoint) };
        complain(&format!("serving {} recorded replies at http://{}{path}", script.replies.len(), server.address()?));
        let player = Player::new(script, self.unmatched, self.speed, path);
        if let Some(ns) = self.time {
            stop.set_after(Duration::from_nanos(ns.unsigned_abs()));
        }
        server.run(&player);
        let report = player.report();
        let is_json = self.format == "json";
        output::to(self.output.as_deref(), |out| output::json_or(is_json, &report, out, |out| report.text(out)))?;
        finish(recorder.as_ref(), self.write.as_ref())?;
        Ok(CLEAN)
    }

    /// Writes the script of a finding.
    fn reproduce(&self, options: &ReadOptions, path: &Path) -> anyhow::Result<u8> {
        let mut tape = tape::read(&self.inputs, options);
        said(&tape)?;
        let keep = AnalyzeOptions { bodies: true, ..AnalyzeOptions::default() };
        let report = crate::analyze::run(&self.inputs, options, &keep)?;
        let chosen = self.choose(&report)?;
        let mut session = self.session.clone();
        if let Some(index) = chosen
            && let Some(finding) = report.findings.get(index)
        {
            session = session.or(finding.session.as_deref().map(str::to_owned));
            let cited: Vec<_> = report.calls.iter().filter(|c| finding.calls.contains(&c.key)).collect();
            for exchange in &mut tape.exchanges {
                exchange.calls.retain(|call| {
                    let is_cited = |c: &&&crate::model::report::Call| {
                        c.id.as_ref() == Some(&call.id)
                            && c.tool.as_deref() == call.tool()
                            && c.method.as_deref() == Some(call.method.as_str())
                    };
                    cited.iter().any(|c| is_cited(&c)) || matches!(call.method.as_str(), "initialize" | "tools/list")
                });
            }
        }
        let mut script = recorded(&tape, session.as_deref())?;
        if let Some(finding) = chosen.and_then(|i| report.findings.get(i)) {
            script.about = format!("{}: {}", finding.rule, finding.summary);
        }
        let text = serde_json::to_string_pretty(&script)? + "\n";
        std::fs::write(path, text).with_context(|| format!("{}: cannot be written", path.display()))?;
        complain(&format!(
            "{}: {} replies; run it with `crosswire serve {} --listen 127.0.0.1:8000`",
            path.display(),
            script.replies.len(),
            path.display()
        ));
        Ok(if tape.troubles.is_empty() { CLEAN } else { TROUBLE })
    }

    fn choose(&self, report: &Report) -> anyhow::Result<Option<usize>> {
        if let Some(n) = self.finding {
            let count = report.findings.len();
            if n == 0 || n > count {
                bail!("--finding {n}: the inputs give {count} findings");
            }
            return Ok(Some(n - 1));
        }
        let of = |s: Severity| report.findings.iter().position(|f| f.severity == s && f.rule.starts_with("crossed/"));
        let any = |s: Severity| report.findings.iter().position(|f| f.severity == s);
        Ok(of(Severity::High)
            .or_else(|| any(Severity::High))
            .or_else(|| any(Severity::Medium))
            .or_else(|| any(Severity::Low)))
    }
}

/// What of the inputs can be played; says what cannot.
fn recorded(tape: &Tape, session: Option<&str>) -> anyhow::Result<Script> {
    let (script, unknown) = Script::from_tape(tape, session);
    if script.replies.is_empty() {
        bail!(
            "the inputs hold no reply that could be played{}",
            session.map(|s| format!(" of session {s}")).unwrap_or_default()
        );
    }
    if unknown > 0 {
        complain(&format!("{unknown} recorded calls are left out: the inputs do not show how they ended"));
    }
    Ok(script)
}

/// Says what could not be read; an error if nothing could.
pub(super) fn said(tape: &Tape) -> anyhow::Result<()> {
    if let (true, Some(first)) = (tape.exchanges.is_empty(), tape.troubles.iter().chain(&tape.notes).next()) {
        return Err(anyhow!(first.clone()));
    }
    tape.troubles.iter().chain(&tape.notes).for_each(|t| complain(t));
    if tape.left_out > 0 {
        complain(&format!(
            "{} exchanges with other ends are left out; only one side of a proxy is played",
            tape.left_out
        ));
    }
    Ok(())
}

/// Where in a file its schema must stand.
const SCRIPT_HEAD: u64 = 64 << 10;

fn is_script(path: &Path) -> bool {
    let mut head = vec![];
    let read = std::fs::File::open(path).and_then(|f| f.take(SCRIPT_HEAD).read_to_end(&mut head));
    read.is_ok() && Script::is_one(&head)
}

fn load(path: &Path) -> anyhow::Result<Script> {
    let text = std::fs::read(path).with_context(|| format!("{}: cannot be read", path.display()))?;
    let script = Script::parse(&text).map_err(|e| anyhow!("{}: {e}", path.display()))?;
    if script.faults.iter().any(|f| f.what == What::Delay && f.ms.is_none()) {
        complain(&format!("{}: a delay without `ms` is a minute", path.display()));
    }
    Ok(script)
}
