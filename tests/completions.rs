//! Completions as a shell uses them: subcommands, options, and the names of rules and formats.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crosswire::commands::COMMANDS;
use crosswire::input::{client, log};
use crosswire::rules::RULES;
use std::process::Command;

fn script(shell: &str) -> String {
    let o = Command::new(env!("CARGO_BIN_EXE_crosswire")).args(["completions", shell]).output().unwrap();
    assert_eq!(o.status.code(), Some(0), "{shell}");
    String::from_utf8(o.stdout).unwrap()
}

fn formats() -> impl Iterator<Item = &'static str> {
    log::FORMATS.iter().chain(client::FORMATS).map(|f| f.name).chain(["pcap", "pcapng"])
}

/// Runs a shell on its script and something to do with it; none where there is no such shell.
fn run(shell: &str, arguments: &[&str], then: &str) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("completions"), script(shell)).unwrap();
    // A shell that waits for something must not hold the tests up.
    let o = Command::new("timeout")
        .args(["120", shell])
        .args(arguments)
        .arg(then)
        .current_dir(folder.path())
        .env("HOME", folder.path())
        .output()
        .unwrap();
    if o.status.code() == Some(127) {
        eprintln!("{shell} is not installed: its completions are checked by their text alone");
        return None;
    }
    assert!(o.status.success(), "{shell}: {}", String::from_utf8_lossy(&o.stderr));
    Some(String::from_utf8(o.stdout).unwrap())
}

/// What bash offers for the last of these words.
fn bash(words: &str) -> Option<Vec<String>> {
    let then = format!(
        "source ./completions; COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); COMP_LINE=\"${{COMP_WORDS[*]}}\"; \
         _crosswire crosswire \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD-1]}}\"; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    );
    let out = run("bash", &["--norc", "-f", "-c"], &then)?;
    Some(out.lines().map(|l| l.trim().to_owned()).filter(|l| !l.is_empty()).collect())
}

#[test]
fn bash_completes_commands_rules_and_formats() {
    let Some(commands) = bash("crosswire ''") else { return };
    for command in COMMANDS {
        assert!(commands.iter().any(|c| c == command.name), "{}: {commands:?}", command.name);
    }
    assert_eq!(bash("crosswire ana").unwrap(), ["analyze"]);
    for words in ["crosswire rules ''", "crosswire analyze x.pcap --rule ''", "crosswire timeline x.pcap --rule ''"] {
        let offered = bash(words).unwrap();
        for rule in RULES {
            assert!(offered.iter().any(|o| o == rule.name), "{words}: {} not in {offered:?}", rule.name);
        }
        assert!(offered.iter().any(|o| o == "crossed/*"), "{words}: {offered:?}");
    }
    for words in ["crosswire formats ''", "crosswire analyze x --input-format ''"] {
        let offered = bash(words).unwrap();
        for format in formats() {
            assert!(offered.iter().any(|o| o == format), "{words}: {format} not in {offered:?}");
        }
    }
    assert_eq!(bash("crosswire rules crossed/id").unwrap(), ["crossed/id-collision"]);
    assert_eq!(bash("crosswire analyze x --min-confidence pr").unwrap(), ["probable"]);
    assert_eq!(bash("crosswire analyze x --format md").unwrap(), [""; 0]);
    assert_eq!(bash("crosswire timeline x --format s").unwrap(), ["svg"]);
    assert!(bash("crosswire man r").unwrap().iter().any(|o| o == "report.7"));
}

#[test]
fn fish_completes_rules_and_formats() {
    let offered =
        |line: &str| run("fish", &["--no-config", "-c"], &format!("source ./completions; complete -C '{line}'"));
    let Some(rules) = offered("crosswire rules ") else { return };
    for rules in [rules, offered("crosswire analyze x --rule ").unwrap()] {
        assert!(RULES.iter().all(|r| rules.contains(r.name)), "{rules}");
        assert!(rules.contains("crossed/*"), "{rules}");
    }
    assert!(formats().all(|f| offered("crosswire formats ").unwrap().contains(f)));
    let by_option = offered("crosswire analyze --input-format ").unwrap();
    assert!(formats().all(|f| by_option.contains(f)), "{by_option}");
    assert!(COMMANDS.iter().all(|c| offered("crosswire ").unwrap().contains(c.name)));
}

/// What zsh offers for these lines, each in a terminal of its own, since without one it completes nothing.
fn zsh(lines: &[&str]) -> Option<Vec<Vec<String>>> {
    let lines: Vec<String> = lines.iter().map(|l| format!("'{}'", l.replace('\'', "'\\''"))).collect();
    let out = run("zsh", &["-f", "-c"], &ZSH.replace("LINES", &lines.join(" ")))?;
    let offered = |part: &str| part.lines().filter_map(|l| Some(l.split_once("offered:")?.1.to_owned())).collect();
    let mut parts: Vec<Vec<String>> = out.split("all-offered").map(offered).collect();
    parts.pop();
    assert_eq!(parts.len(), lines.len(), "{out}");
    Some(parts)
}

const ZSH: &str = r#"
zmodload zsh/zpty || exit 1
for line in LINES; do
    zpty terminal zsh -f -i
    zpty -w terminal 'PROMPT=; stty -onlcr -echo
        autoload -Uz compinit; compinit -u -d ./dump; source ./completions
        compadd() {
            [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]] && { builtin compadd "$@"; return }
            typeset -a offered
            builtin compadd -O offered "$@"
            (( $#offered )) && print -rl -- "" "offered:"${^offered}
            builtin compadd "$@"
        }
        finished() { print -r -- all-"offered" }
        comppostfuncs=(finished)
        bindkey "^I" complete-word
        print is-"ready"'
    zpty -r -m terminal reply '*is-ready*' || exit 1
    zpty -w -n terminal "$line"$'\t'
    zpty -r -m terminal reply '*all-offered*' || exit 1
    print -r -- "$reply"
    zpty -d terminal
done
"#;

#[test]
fn zsh_completes_commands_rules_and_formats() {
    let lines = [
        "crosswire ",
        "crosswire ana",
        "crosswire rules ",
        "crosswire analyze x.pcap --rule ",
        "crosswire formats ",
        "crosswire analyze x --input-format ",
        "crosswire analyze x --min-confidence pr",
        "crosswire timeline x --format s",
    ];
    let Some(offered) = zsh(&lines) else { return };
    assert!(COMMANDS.iter().all(|c| offered[0].iter().any(|o| o == c.name)), "{offered:?}");
    assert_eq!(offered[1], ["analyze"]);
    for rules in &offered[2..4] {
        assert!(RULES.iter().all(|r| rules.iter().any(|o| o == r.name)), "{rules:?}");
        assert!(rules.iter().any(|o| o == "crossed/*"), "{rules:?}");
    }
    for names in &offered[4..6] {
        assert!(formats().all(|f| names.iter().any(|o| o == f)), "{names:?}");
    }
    assert_eq!(offered[6], ["probable"]);
    assert_eq!(offered[7], ["svg"]);
}

#[test]
fn every_script_names_commands_rules_and_formats() {
    for shell in ["bash", "zsh", "fish", "powershell"] {
        let script = script(shell);
        let names = COMMANDS.iter().map(|c| c.name).chain(RULES.iter().map(|r| r.name)).chain(formats());
        for name in names {
            assert!(script.contains(name), "{shell}: {name}");
        }
    }
    assert!(script("elvish").contains("analyze"));
    let powershell = script("powershell");
    assert!(powershell.contains("'rules' = @('crossed/*', "), "{powershell}");
    assert!(powershell.contains("'analyze --rule' = @('crossed/*', "));
    assert!(powershell.contains("'formats' = @('pcap', "));
}
