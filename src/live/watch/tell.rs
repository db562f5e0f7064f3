//! Telling of findings: as text, as JSON lines, or to a command.

use super::judge::Told;
use super::read::{Shared, lock};
use crate::model::place::Hop;
use crate::model::report::Call;
use crate::report::clean::clean_block;
use crate::report::layout::wrap;
use serde::Serialize;
use std::io::{self, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};

/// Findings that wait for the command.
const WAITING: usize = 64;
/// A command that runs longer is ended.
const COMMAND: Duration = Duration::from_secs(60);

/// Longest text of a paragraph, characters.
const TEXT: usize = 400;
/// Width of text, columns.
const WIDTH: usize = 112;

/// How findings are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A few lines each.
    Text,
    /// One object a line.
    Ndjson,
}

/// A finding as one object: those of the report, with calls and inputs in place.
#[derive(Serialize)]
struct Line<'a> {
    r#type: &'static str,
    #[serde(flatten)]
    finding: &'a crate::model::report::Finding,
    about: Vec<About<'a>>,
    places: Vec<String>,
}

#[derive(Serialize)]
struct About<'a> {
    key: &'a crate::model::report::CallKey,
    id: &'a Option<crate::model::id::RpcId>,
    tool: Option<&'a str>,
    method: Option<&'a str>,
    sent: Option<crate::model::time::Time>,
    outcome: crate::model::report::Outcome,
}

impl<'a> About<'a> {
    fn of(c: &'a Call) -> About<'a> {
        About {
            key: &c.key,
            id: &c.id,
            tool: c.tool.as_deref(),
            method: c.method.as_deref(),
            sent: c.sent,
            outcome: c.outcome,
        }
    }
}

/// Where each piece of evidence is, as `file:number`; where a name had several files, as
/// `file+2:number` for the second after the one that the watch began with.
fn places(told: &Told, windows: &[Shared]) -> Vec<String> {
    let place = |e: &crate::model::report::Evidence| {
        let window = lock(windows.get(e.input? as usize)?);
        let n = window.numbered(e.frame.or(e.line)?);
        let file = if n.file == 0 { String::new() } else { format!("+{}", n.file) };
        Some(format!("{}{file}:{}", window.name, n.number))
    };
    told.finding.evidence.iter().map(|e| place(e).unwrap_or_default()).collect()
}

/// One finding as a JSON line.
///
/// # Errors
/// Those of writing.
pub fn json(told: &Told, windows: &[Shared], out: &mut dyn Write) -> io::Result<()> {
    let line = Line {
        r#type: "finding",
        finding: &told.finding,
        about: told.calls.iter().map(About::of).collect(),
        places: places(told, windows),
    };
    serde_json::to_writer(&mut *out, &line)?;
    out.write_all(b"\n")
}

/// One finding as text.
///
/// # Errors
/// Those of writing.
pub fn text(told: &Told, windows: &[Shared], out: &mut dyn Write) -> io::Result<()> {
    let f = &told.finding;
    let hops = |what: &str, hops: &[Hop]| {
        let names: Vec<String> = hops.iter().map(|h| format!("{h:?}").to_lowercase()).collect();
        if names.is_empty() { String::new() } else { format!("; {what}: {}", names.join(", ")) }
    };
    let word = |d: String| d.to_lowercase();
    let at = f.at.map_or_else(String::new, |t| format!("{t}  "));
    writeln!(
        out,
        "{at}{}  {}, {}{}{}",
        f.rule,
        word(format!("{:?}", f.confidence)),
        word(format!("{:?}", f.severity)),
        hops("fault", &f.fault),
        hops("cleared", &f.cleared)
    )?;
    let mut paragraph =
        |text: &str| wrap(&clean_block(text, TEXT), WIDTH).iter().try_for_each(|line| writeln!(out, "    {line}"));
    paragraph(&f.summary)?;
    for (e, place) in f.evidence.iter().zip(places(told, windows)) {
        paragraph(&format!("{place} {}", e.text.as_deref().unwrap_or_default()))?;
    }
    Ok(())
}

/// Runs a command for each finding, one after the other: the finding as JSON on its standard input.
pub struct Runner {
    send: SyncSender<(String, Vec<u8>)>,
    thread: std::thread::JoinHandle<()>,
}

impl Runner {
    /// A runner of `command`, which a shell reads.
    pub fn new(command: String) -> Runner {
        let (send, receive) = sync_channel(WAITING);
        Runner { send, thread: std::thread::spawn(move || run(&command, &receive)) }
    }

    /// Has the command run; false if too many wait already.
    pub fn tell(&self, told: &Told, windows: &[Shared]) -> bool {
        let mut line = vec![];
        let _ = json(told, windows, &mut line);
        !matches!(self.send.try_send((told.finding.rule.to_owned(), line)), Err(TrySendError::Full(_)))
    }

    /// Waits for what still runs.
    pub fn finish(self) {
        drop(self.send);
        let _ = self.thread.join();
    }
}

fn run(command: &str, receive: &Receiver<(String, Vec<u8>)>) {
    for (rule, line) in receive {
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).env("CROSSWIRE_RULE", &rule).stdin(Stdio::piped());
        let Ok(mut child) = shell.spawn() else { continue };
        if let Some(mut input) = child.stdin.take() {
            // A command that does not read it is right too.
            let _ = input.write_all(&line);
        }
        wait(&mut child);
    }
}

fn wait(child: &mut Child) {
    let began = Instant::now();
    while matches!(child.try_wait(), Ok(None)) {
        if began.elapsed() > COMMAND {
            let _ = child.kill();
            let _ = child.wait();
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
