//! `crosswire browse`: look around in the terminal.

use super::options::{FilterArgs, OutputArgs, ReadArgs};
use super::{CLEAN, Command, TROUBLE, analyze};
use crate::browse::terminal::{Came, Terminal};
use crate::browse::{Browser, Then};
use crate::evidence::bundle::{self, Order};
use crate::evidence::pseudonym::Key;
use crate::model::options::AnalyzeOptions;
use crate::model::report::CallKey;
use crate::report::view::View;
use anyhow::{Context, bail};
use clap::{Args, FromArgMatches};
use crossterm::event::{Event, KeyEventKind};
use std::io::{IsTerminal, stdout};
use std::path::Path;

/// `crosswire browse`
pub static COMMAND: Command =
    Command { name: "browse", define: Browse::augment_args, run: |matches| Browse::from_arg_matches(matches)?.run() };

/// Look around in the terminal: sessions, their calls, a call's ladder, its bodies
#[derive(clap::Args)]
#[command(after_long_help = "\
Enter goes on: from a session to its calls, to the ladder around a call, to its headers and bodies; Esc goes back. `]` and \
`[` jump between findings, `/` searches (in lists of calls also in their bodies), `f` filters a list, Space marks calls and \
`s` saves them as a redacted bundle, as `crosswire bundle --call` does. `?` lists all keys, `q` leaves.\n\n\
Examples:\n  \
    crosswire browse backend.pcap access.log\n  \
    crosswire browse evidence.zip --rule 'crossed/*'\n\n\
Exit status: 0 left, 2 trouble (no terminal, or an input could not be read).")]
struct Browse {
    #[command(flatten)]
    read: ReadArgs,
    #[command(flatten)]
    filter: FilterArgs,
    /// Colours
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = super::options::ColorArg::Auto, help_heading = "Output")]
    color: super::options::ColorArg,
    /// Draw with ASCII characters alone
    #[arg(long, help_heading = "Output")]
    ascii: bool,
}

impl Browse {
    fn run(self) -> anyhow::Result<u8> {
        if !stdout().is_terminal() {
            bail!("standard output is no terminal; `crosswire timeline` and `crosswire show` write text");
        }
        let keep = AnalyzeOptions { exchanges: true, bodies: true, details: true, ..self.read.analyze_options() };
        let report = analyze::read(&self.read, &self.filter, &keep, true)?;
        let view = View::new(&report);
        let options = OutputArgs::for_terminal(self.color, self.ascii).render_options();
        let mut terminal = Terminal::open(options.color).context("the terminal cannot be used")?;
        let mut browser = Browser::new(&view, options, terminal.size());
        if let Some(first) = report.troubles.first() {
            browser.say(first);
        }
        // A terminal that went away takes no more lines: that is no trouble of ours.
        while terminal.show(browser.draw()).is_ok() {
            let event = match terminal.wait() {
                Came::Event(event) => event,
                Came::Stop => break,
            };
            let then = match event {
                Event::Key(key) if key.kind != KeyEventKind::Release => browser.key(&key),
                Event::Resize(..) => {
                    browser.resize(terminal.size());
                    Then::Redraw
                }
                _ => Then::Go,
            };
            match then {
                Then::Go => {}
                Then::Redraw => terminal.forget(),
                Then::Quit => break,
                Then::Suspend => {
                    terminal.suspend().context("the terminal cannot be used")?;
                    browser.resize(terminal.size());
                }
                Then::Save(path, calls) => {
                    browser.say(&format!("writing {} …", path.display()));
                    if terminal.show(browser.draw()).is_err() {
                        break;
                    }
                    match self.save(&path, &calls) {
                        Ok(said) => browser.say(&said),
                        Err(e) => browser.say(&format!("{e:#}")),
                    }
                }
            }
        }
        drop(terminal);
        Ok(if report.troubles.is_empty() { CLEAN } else { TROUBLE })
    }

    /// Writes a bundle of these calls, as `crosswire bundle --call` does.
    fn save(&self, path: &Path, calls: &[CallKey]) -> anyhow::Result<String> {
        let chosen = calls.iter().flat_map(|key| ["--call".to_owned(), key.to_string()]);
        let output = ["-o".to_owned(), path.to_string_lossy().into_owned()];
        let program = ["crosswire".to_owned(), "bundle".to_owned()];
        let command: Vec<String> =
            program.into_iter().chain(self.read.inputs.iter().cloned()).chain(chosen).chain(output).collect();
        let made = bundle::make(&Order {
            inputs: &self.read.inputs,
            read: &self.read.read_options()?,
            calls,
            output: path,
            keep: &[],
            redact: &[],
            is_open: false,
            key: Key::random().context("the system gives no random numbers")?,
            command: &command,
        })?;
        Ok(format!("{}: {} findings, {} bytes, redacted", path.display(), made.manifest.findings, made.bytes))
    }
}
