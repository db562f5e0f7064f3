//! `crosswire completions`: shell completions from the definitions of the commands.

use super::{CLEAN, Command, output};
use clap::{Args, FromArgMatches};

/// `crosswire completions`
pub static COMMAND: Command = Command {
    name: "completions",
    define: Completions::augment_args,
    run: |matches| {
        let shell = Completions::from_arg_matches(matches)?.shell;
        let mut text = Vec::new();
        clap_complete::generate(shell, &mut super::definition(), "crosswire", &mut text);
        output::print(|out| out.write_all(&text))?;
        Ok(CLEAN)
    },
};

/// Print completions for a shell
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Example: crosswire completions bash > /etc/bash_completion.d/crosswire")]
struct Completions {
    /// The shell
    #[arg(value_enum)]
    shell: clap_complete::Shell,
}
