//! `crosswire man`: manual pages from the definitions of the commands.

use super::{CLEAN, COMMANDS, Command, definition, output};
use anyhow::bail;
use clap::{Args, FromArgMatches};

/// `crosswire man`
pub static COMMAND: Command =
    Command { name: "man", define: Man::augment_args, run: |matches| Man::from_arg_matches(matches)?.run() };

/// Print a manual page (roff)
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Example: crosswire man analyze | man -l -")]
struct Man {
    /// The command; none: crosswire itself
    command: Option<String>,
}

impl Man {
    fn run(self) -> anyhow::Result<u8> {
        let Some((_, page)) = pages().into_iter().find(|(name, _)| *name == self.command.as_deref().unwrap_or(""))
        else {
            let names: Vec<&str> = COMMANDS.iter().map(|c| c.name).collect();
            bail!("no such command; expected one of {}", names.join(", "));
        };
        output::print(|out| out.write_all(page.as_bytes()))?;
        Ok(CLEAN)
    }
}

/// Every manual page with the command it is about (empty: crosswire itself).
pub fn pages() -> Vec<(&'static str, String)> {
    let mut root = definition();
    root.build();
    let page = |definition: clap::Command| {
        let mut roff = Vec::new();
        // Writing to memory cannot fail.
        let _ = clap_mangen::Man::new(definition).render(&mut roff);
        String::from_utf8_lossy(&roff).into_owned()
    };
    let mut out = vec![("", page(root.clone()))];
    for command in COMMANDS {
        if let Some(definition) = root.find_subcommand(command.name) {
            out.push((command.name, page(definition.clone())));
        }
    }
    out
}
