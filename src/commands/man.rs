//! `crosswire man`: manual pages from the definitions of the commands, and from the tables of
//! rules, formats and report fields.

use super::roff::Page;
use super::{CLEAN, COMMANDS, Command, choices, definition, manual, output};
use anyhow::bail;
use clap::{Args, FromArgMatches};

/// `crosswire man`
pub static COMMAND: Command =
    Command { name: "man", define: Man::augment_args, run: |matches| Man::from_arg_matches(matches)?.run() };

/// Print a manual page (roff)
#[derive(Debug, clap::Args)]
#[command(after_long_help = "Example: crosswire man analyze | man -l -")]
struct Man {
    /// A command, or one of rules.7, formats.7 and report.7; none: crosswire itself
    #[arg(value_name = "PAGE", value_parser = choices::Suggest(page_names), hide_possible_values = true)]
    page: Option<String>,
}

impl Man {
    fn run(self) -> anyhow::Result<u8> {
        let wanted = self.page.as_deref().unwrap_or("");
        let named = |section: u8| pages().into_iter().find(|p| p.section == section && p.name == wanted);
        let with_section = || pages().into_iter().find(|p| format!("{}.{}", p.name, p.section) == wanted);
        let Some(page) = named(1).or_else(|| named(7)).or_else(with_section) else {
            bail!("{wanted}: no such manual page; expected one of {}", page_names().join(", "));
        };
        output::print(|out| out.write_all(page.text.as_bytes()))?;
        Ok(CLEAN)
    }
}

/// One manual page.
pub struct ManualPage {
    /// The command or subject that it is about; empty: crosswire itself.
    pub name: &'static str,
    /// 1: commands, 7: everything else.
    pub section: u8,
    /// Its roff.
    pub text: String,
}

impl ManualPage {
    /// The name of its file, such as `crosswire-analyze.1`.
    pub fn file(&self) -> String {
        let dash = if self.name.is_empty() { "" } else { "-" };
        format!("crosswire{dash}{}.{}", self.name, self.section)
    }
}

fn page_names() -> Vec<&'static str> {
    COMMANDS.iter().map(|c| c.name).chain(manual::PAGES.iter().map(|(name, ..)| *name)).collect()
}

/// The subject of a page of section 7.
fn subject(name: &'static str) -> &'static str {
    name.trim_end_matches(".7")
}

/// Every manual page.
pub fn pages() -> Vec<ManualPage> {
    let mut root = definition();
    root.build();
    let mut pages = vec![ManualPage { name: "", section: 1, text: command_page(root.clone(), "crosswire") }];
    for command in COMMANDS {
        if let Some(definition) = root.find_subcommand(command.name) {
            let text = command_page(definition.clone(), &format!("crosswire-{}", command.name));
            pages.push(ManualPage { name: command.name, section: 1, text });
        }
    }
    for (name, clause, write) in manual::PAGES {
        let name = subject(name);
        let file = format!("crosswire-{name}");
        let mut page = Page::new(&file, 7, clause);
        write(&mut page);
        page.see_also(&see_also(&format!("{file}(7)")));
        pages.push(ManualPage { name, section: 7, text: page.finish() });
    }
    pages
}

/// Every page but this one, as `name(section)`.
fn see_also(own: &str) -> Vec<String> {
    let commands = COMMANDS.iter().map(|c| format!("crosswire-{}(1)", c.name));
    let subjects = manual::PAGES.iter().map(|(name, ..)| format!("crosswire-{}(7)", subject(name)));
    std::iter::once("crosswire(1)".to_owned()).chain(commands).chain(subjects).filter(|page| page != own).collect()
}

fn command_page(definition: clap::Command, name: &str) -> String {
    let about = definition.get_about().map(ToString::to_string).unwrap_or_default();
    let extra = definition.get_after_long_help().map(ToString::to_string).unwrap_or_default();
    let has_subcommands = definition.has_subcommands();
    let mut text = Page::new(name, 1, &about).finish();
    let man = clap_mangen::Man::new(definition);
    let mut roff = Vec::new();
    // Writing to memory cannot fail.
    let _ = man.render_synopsis_section(&mut roff);
    let _ = man.render_description_section(&mut roff);
    let _ = man.render_options_section(&mut roff);
    if has_subcommands {
        let _ = man.render_subcommands_section(&mut roff);
    }
    let roff = String::from_utf8_lossy(&roff);
    // Each part begins with definitions that the title stands for.
    let lines = roff.lines().filter(|l| !l.starts_with(".ie ") && !l.starts_with(".el "));
    for line in lines {
        text.push_str(line.trim_end());
        text.push('\n');
    }
    let mut page = Page::after(without_warnings(&text));
    for block in extra.split("\n\n") {
        more(block, &mut page);
    }
    page.see_also(&see_also(&format!("{name}(1)")));
    page.finish()
}

/// Blocks that have a section of their own, by how they begin.
const TITLED: &[(&str, &str)] = &[("Ranges:", "RANGES"), ("Records:", "RECORD FORMAT"), ("Payloads:", "PAYLOADS")];

/// A block of text behind a command's help: examples, exit status, or what else there is to say.
fn more(block: &str, page: &mut Page) {
    let block = block.trim();
    if let Some(examples) = block.strip_prefix("Examples:").or(block.strip_prefix("Example:")) {
        page.section("EXAMPLES");
        page.example(&examples.trim().lines().map(str::trim).collect::<Vec<_>>().join("\n"));
    } else if let Some(status) = block.strip_prefix("Exit status:") {
        page.section("EXIT STATUS");
        page.paragraph(status.trim(), &[]);
    } else if let Some((title, text)) = TITLED.iter().find_map(|(lead, title)| Some((title, block.strip_prefix(lead)?)))
    {
        page.section(title);
        page.paragraph(text.trim(), &[]);
    } else if !block.is_empty() {
        page.section("NOTES");
        page.paragraphs(block, &[]);
    }
}

/// Roff without what checkers warn of: breaks around an empty line, and an apostrophe that needs a
/// definition at the top.
fn without_warnings(text: &str) -> String {
    text.replace(".br\n\n.br\n", ".sp\n").replace("\\*(Aq", "\\(aq")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::roff;

    #[test]
    fn pages_have_names_and_titles_of_their_own() {
        let pages = pages();
        let mut files: Vec<String> = pages.iter().map(ManualPage::file).collect();
        files.sort();
        files.dedup();
        assert_eq!(files.len(), pages.len());
        for page in &pages {
            let title = page.file().to_uppercase();
            let title = title.rsplit_once('.').map_or("", |(t, _)| t);
            assert!(page.text.starts_with(&roff::title_line(title, page.section)), "{}", page.file());
        }
    }
}
