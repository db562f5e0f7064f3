//! What the commands that watch have in common: what is told, to whom, and how.

use super::output;
use super::{complain, values};
use crate::drive::Stop;
use crate::live::watch::judge::Told;
use crate::live::watch::metrics::Metrics;
use crate::live::watch::read::Shared;
use crate::live::watch::tell::{self, Form, Runner};
use crate::live::watch::window::{Bounds, Window};
use crate::live::watch::{self, Watched};
use crate::model::limits::WATCH_BYTES;
use crate::model::options::ReadOptions;
use crate::model::report::{Confidence, Report};
use crate::report::filter::Filter;
use anyhow::Context;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What is told, to whom, and how.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Findings as they happen")]
pub struct TellArgs {
    /// How findings are written: text or ndjson, one object a line
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = form)]
    findings_format: Form,

    /// Write findings to this file too, as JSON lines
    #[arg(long, value_name = "FILE")]
    findings_log: Option<PathBuf>,

    /// Run this command for each finding, which it gets as JSON on standard input; CROSSWIRE_RULE is its rule
    #[arg(long, value_name = "COMMAND")]
    exec: Option<String>,

    /// Serve metrics for Prometheus at http://ADDR/metrics, such as 127.0.0.1:9464
    #[arg(long, value_name = "ADDR")]
    metrics: Option<String>,

    /// Tell a finding when it has not changed for this long
    #[arg(long, value_name = "DUR", default_value = "10s", value_parser = values::duration_ns)]
    settle: i64,

    /// Keep this much time of each input to analyse; longer than any call and its explanation take
    #[arg(long, value_name = "DUR", default_value = "15m", value_parser = values::duration_ns)]
    window: i64,

    /// Keep at most this much of all inputs
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = values::size_bytes)]
    window_size: u64,
}

fn form(name: &str) -> Result<Form, String> {
    match name {
        "text" => Ok(Form::Text),
        "ndjson" => Ok(Form::Ndjson),
        _ => Err("expected text or ndjson".into()),
    }
}

impl TellArgs {
    /// A window for one of `inputs`.
    pub fn window(&self, name: &str, inputs: usize) -> Shared {
        let bytes = usize::try_from(self.window_size).unwrap_or(WATCH_BYTES).min(WATCH_BYTES);
        let time = Duration::from_nanos(self.window.unsigned_abs());
        Arc::new(Mutex::new(Window::new(name, Bounds { time, bytes: bytes / inputs.max(1) })))
    }

    /// Tells of findings until stopped.
    ///
    /// # Errors
    /// If a file cannot be written or the port not listened on.
    pub fn run(
        &self,
        inputs: &[Watched],
        options: &ReadOptions,
        select: &dyn Fn(&mut Report),
        stop: &Stop,
    ) -> anyhow::Result<()> {
        let metrics = Metrics::default();
        if let Some(address) = &self.metrics {
            let at = metrics.serve(address, stop.clone());
            let at = at.with_context(|| format!("{address}: cannot be listened on"))?;
            complain(&format!("metrics at http://{at}/metrics"));
        }
        let create = |path: &PathBuf| {
            let file = File::options().create(true).append(true).open(path);
            file.with_context(|| format!("{}: cannot be written", path.display()))
        };
        let mut log = self.findings_log.as_ref().map(create).transpose()?;
        let runner = self.exec.clone().map(Runner::new);
        let windows: Vec<Shared> = inputs.iter().map(|w| w.window.clone()).collect();
        let mut trouble: Option<std::io::Error> = None;
        let mut tell = |news: Vec<Told>| {
            for told in &news {
                metrics.finding(told.finding.rule);
                let write = |out: &mut dyn Write| match self.findings_format {
                    Form::Text => tell::text(told, &windows, out),
                    Form::Ndjson => tell::json(told, &windows, out),
                };
                if let Err(e) = output::print(write) {
                    // Nobody reads any more.
                    stop.set();
                    trouble.get_or_insert(e);
                }
                if let Some(log) = &mut log
                    && let Err(e) = tell::json(told, &windows, log)
                {
                    complain(&format!("a finding could not be written to the log: {e}"));
                }
                if runner.as_ref().is_some_and(|r| !r.tell(told, &windows)) {
                    metrics.untold();
                    complain("the command is too slow: it was not run for a finding");
                }
            }
        };
        let settle = Duration::from_nanos(self.settle.unsigned_abs());
        watch::run(&|| inputs.to_vec(), options, settle, &metrics, stop, select, &mut tell);
        if let Some(runner) = runner {
            runner.finish();
        }
        trouble.map_or(Ok(()), |e| Err(e.into()))
    }
}

/// Takes nothing out but what is only possible.
pub fn sure(report: &mut Report) {
    Filter { min_confidence: Some(Confidence::Probable), ..Filter::default() }.apply(report);
}
