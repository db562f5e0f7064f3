//! `crosswire completions`: shell completions from the definitions of the commands.

use super::{CLEAN, Command, output};
use clap::{Args, FromArgMatches};
use clap_complete::Shell;
use std::collections::BTreeSet;
use std::fmt::Write;

/// `crosswire completions`
pub static COMMAND: Command = Command {
    name: "completions",
    define: Completions::augment_args,
    run: |matches| {
        let shell = Completions::from_arg_matches(matches)?.shell;
        output::print(|out| out.write_all(script(shell).as_bytes()))?;
        Ok(CLEAN)
    },
};

/// Print completions for a shell
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Examples:\n  \
    crosswire completions bash > /etc/bash_completion.d/crosswire\n  \
    crosswire completions zsh > /usr/local/share/zsh/site-functions/_crosswire\n  \
    crosswire completions fish > ~/.config/fish/completions/crosswire.fish\n  \
    crosswire completions powershell >> $PROFILE")]
struct Completions {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

fn script(shell: Shell) -> String {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut super::definition(), "crosswire", &mut text);
    let text = String::from_utf8_lossy(&text).into_owned();
    match shell {
        Shell::PowerShell => with_values(&text),
        Shell::Fish => with_positionals(text),
        Shell::Zsh => with_options_behind_inputs(&text),
        _ => text,
    }
}

/// zsh's script with what the generator does not heed: `*::` hides from `_arguments` the words before,
/// so that no option is completed behind an input; a `*` in a value is taken for a pattern of file
/// names; a colon in the name of a value (`NAME[:PATH]`) ends that name.
fn with_options_behind_inputs(script: &str) -> String {
    let mut anew = String::with_capacity(script.len());
    for line in script.lines() {
        let line = match line.strip_prefix("'*::").filter(|rest| !rest.starts_with(':')) {
            Some(rest) => format!("'*:{rest}"),
            None => line.to_owned(),
        };
        match line.rsplit_once(":(") {
            Some((head, values)) => anew.extend([head, ":(", &values.replace('*', "\\*")]),
            None => anew.push_str(&line),
        }
        anew.push('\n');
    }
    let definition = super::definition();
    let arguments = definition.get_subcommands().flat_map(|c| c.get_arguments());
    let names = arguments.flat_map(|a| a.get_value_names().unwrap_or_default());
    let names: BTreeSet<&str> = names.map(|n| n.as_str()).filter(|n| n.contains(':')).collect();
    for name in names {
        anew = anew.replace(&format!("]:{name}:"), &format!("]:{}:", name.replace(':', "\\:")));
    }
    anew
}

/// fish's script with what may stand behind a command, which the generator leaves out, and without
/// values that it would take for patterns of file names.
fn with_positionals(script: String) -> String {
    let mut script = script.replace("*\\t''", "\\*\\t''");
    for command in super::definition().get_subcommands() {
        for arg in command.get_positionals() {
            let values: Vec<String> = arg.get_possible_values().iter().map(|v| v.get_name().to_owned()).collect();
            if !values.is_empty() {
                let _ = writeln!(
                    script,
                    "complete -c crosswire -n \"__fish_crosswire_using_subcommand {}\" -f -a \"{}\"",
                    command.get_name(),
                    values.join(" ").replace('*', "\\*")
                );
            }
        }
    }
    script
}

/// PowerShell's script with what may stand behind an option or a command, which the generator
/// leaves out.
fn with_values(script: &str) -> String {
    const BEFORE: &str = "    $completions.Where{";
    let Some((head, tail)) = script.split_once(BEFORE) else { return script.to_owned() };
    let mut table = String::new();
    for command in super::definition().get_subcommands() {
        for arg in command.get_arguments() {
            let values: Vec<String> =
                arg.get_possible_values().iter().map(|v| format!("'{}'", v.get_name().replace('\'', "''"))).collect();
            if !values.is_empty() && arg.get_action().takes_values() {
                let option = arg.get_long().map(|l| format!(" --{l}")).unwrap_or_default();
                let _ = writeln!(table, "        '{}{option}' = @({})", command.get_name(), values.join(", "));
            }
        }
    }
    format!(
        "{head}    $values = @{{\n{table}    }}
    $words = @($commandElements | ForEach-Object {{ $_.Extent.Text }})
    $typed = if ($wordToComplete) {{ $words.Count - 1 }} else {{ $words.Count }}
    $subcommand = if ($typed -gt 1) {{ $words[1] }}
    $option = \"$subcommand $($words[$typed - 1])\"
    $found = if ($values.ContainsKey($option)) {{ $values[$option] }}
        elseif ($typed -eq 2 -and $values.ContainsKey($subcommand)) {{ $values[$subcommand] }}
    $completions += @($found | Where-Object {{ $_ }} | ForEach-Object {{
        [CompletionResult]::new($_, $_, [CompletionResultType]::ParameterValue, $_)
    }})

{BEFORE}{tail}"
    )
}
