//! The command line: one file a subcommand, one line in [`COMMANDS`]. Help, manual pages and
//! completions all come from the same definitions.

use clap::{ArgMatches, Command as Definition};
use std::ffi::OsString;
use std::io::Write;

mod analyze;
mod browse;
mod bulk;
mod bundle;
mod capture;
mod choices;
mod completions;
mod driving;
mod formats;
pub mod man;
mod manual;
mod map;
mod options;
mod output;
mod probe;
mod proxy;
mod reduce;
mod replay;
mod roff;
mod rules;
mod scan;
mod serve;
mod show;
mod telling;
mod timeline;
mod values;
mod verify;
mod watch;

/// Exit status: nothing found.
pub const CLEAN: u8 = 0;
/// Exit status: findings.
pub const FOUND: u8 = 1;
/// Exit status: an input could not be read, bad usage, or too little could be read.
pub const TROUBLE: u8 = 2;

/// What `-V` prints.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("CROSSWIRE_COMMIT"), ")");
/// What `--version` prints.
const LONG_VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    "\ncommit: ",
    env!("CROSSWIRE_COMMIT"),
    "\nfeatures: ",
    env!("CROSSWIRE_FEATURES")
);

/// One subcommand.
pub struct Command {
    /// Its name.
    pub name: &'static str,
    /// Its arguments and help, to be laid on an empty definition of that name.
    pub define: fn(Definition) -> Definition,
    /// Runs it and gives the exit status.
    pub run: fn(&ArgMatches) -> anyhow::Result<u8>,
}

/// Every subcommand, in the order of the help text.
pub static COMMANDS: &[&Command] = &[
    &analyze::COMMAND,
    &timeline::COMMAND,
    &show::COMMAND,
    &scan::COMMAND,
    &map::COMMAND,
    &reduce::COMMAND,
    &browse::COMMAND,
    &capture::COMMAND,
    &proxy::COMMAND,
    &watch::COMMAND,
    &replay::COMMAND,
    &serve::COMMAND,
    &probe::COMMAND,
    &bundle::COMMAND,
    &verify::COMMAND,
    &rules::COMMAND,
    &formats::COMMAND,
    &completions::COMMAND,
    &man::COMMAND,
];

/// The definition of the whole command line.
pub fn definition() -> Definition {
    defined(COMMANDS)
}

/// Of the commands, those that an answer to `args` needs: to define all takes longer than a small capture.
fn needed(args: &[OsString]) -> &'static [&'static Command] {
    let first = args.get(1).and_then(|a| a.to_str()).unwrap_or_default();
    match COMMANDS.iter().position(|c| c.name == first) {
        Some(n) => COMMANDS.get(n..=n).unwrap_or(COMMANDS),
        None if matches!(first, "--version" | "-V") => &[],
        None => COMMANDS,
    }
}

fn defined(commands: &[&Command]) -> Definition {
    let root = Definition::new("crosswire")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Says which MCP reply reached which call, and which side is at fault")
        .long_about(
            "Reads captures and logs of MCP (Model Context Protocol) traffic, follows every call from the client \
             through the proxy to the server and back, and reports replies that reached the wrong call, calls that \
             were never answered, and sessions that went stale.",
        )
        .after_long_help(
            "Exit status: 0 nothing found; 1 findings (those of low severity only with --strict); 2 trouble: an \
             input could not be read, bad usage, or less could be read than --require-coverage asks.\n\n\
             Standard output carries only the report; warnings and errors go to standard error.",
        )
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true);
    commands.iter().fold(root, |root, c| root.subcommand((c.define)(Definition::new(c.name))))
}

/// Runs the command line and gives the exit status. A closed pipe is no error.
pub fn main(args: impl IntoIterator<Item = OsString>) -> u8 {
    // Not part of the definition: manual pages must not change with the commit.
    let args: Vec<OsString> = args.into_iter().collect();
    let definition = defined(needed(&args)).version(VERSION).long_version(LONG_VERSION);
    let matches = match definition.try_get_matches_from(args) {
        Ok(matches) => matches,
        // Help and version come as errors too; their exit code is 0.
        Err(e) => {
            let _ = e.print();
            return u8::try_from(e.exit_code()).unwrap_or(TROUBLE);
        }
    };
    let Some((name, matches)) = matches.subcommand() else { return TROUBLE };
    let Some(command) = COMMANDS.iter().find(|c| c.name == name) else { return TROUBLE };
    // A fault of ours must still end in an exit status that scripts know.
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| (command.run)(matches))) {
        Ok(Ok(status)) => status,
        Ok(Err(e)) if output::is_closed_pipe(&e) => CLEAN,
        Ok(Err(e)) => {
            complain(&format!("{e:#}"));
            TROUBLE
        }
        Err(_) => {
            complain("stopped by an internal error; please report it with the line above");
            TROUBLE
        }
    }
}

/// Tells the user on standard error; where that is closed there is nobody to tell.
fn complain(text: &str) {
    let text = crate::report::clean::clean_block(text, 10_000);
    let _ = writeln!(std::io::stderr(), "crosswire: {text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_sound() {
        definition().debug_assert();
    }

    #[test]
    fn what_is_not_needed_is_not_missed() {
        let said = |args: &[&str], whole: bool| {
            let args: Vec<OsString> = args.iter().map(OsString::from).collect();
            let definition = if whole { definition() } else { defined(needed(&args)) };
            match definition.version("1").try_get_matches_from(args) {
                Ok(matches) => format!("{:?}", matches.subcommand_name()),
                Err(e) => e.to_string(),
            }
        };
        for args in [
            &["crosswire", "--version"][..],
            &["crosswire", "-V"],
            &["crosswire", "--help"],
            &["crosswire"],
            &["crosswire", "anlyze", "x"],
            &["crosswire", "analyze"],
            &["crosswire", "analyze", "--help"],
            &["crosswire", "analyze", "--no-such"],
            &["crosswire", "scan", "x", "--jobs", "y"],
            &["crosswire", "--no-such", "analyze"],
        ] {
            assert_eq!(said(args, false), said(args, true), "{args:?}");
        }
    }

    #[test]
    fn every_argument_is_documented() {
        for command in definition().get_subcommands() {
            assert!(command.get_about().is_some(), "{}", command.get_name());
            for arg in command.get_arguments() {
                assert!(arg.get_help().is_some(), "{} {}", command.get_name(), arg.get_id());
            }
        }
    }
}
