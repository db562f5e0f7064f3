//! Where reports go: standard output or a file, with the width and colours it can take.

use super::options::{ColorArg, OutputArgs};
use crate::report::layout::wrap;
use crate::report::{Calls, RenderOptions};
use anyhow::{Context, bail};
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::path::Path;

/// Width of text that goes to no terminal.
const WIDTH: usize = 120;
/// Lines longer than this are hard to read, however wide the terminal.
const WIDEST: usize = 160;

impl OutputArgs {
    /// How to render to where the output goes.
    pub fn render_options(&self) -> RenderOptions {
        let on_terminal = self.output.is_none() && io::stdout().is_terminal();
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
        let is_dumb = std::env::var_os("TERM").is_some_and(|t| t == "dumb");
        RenderOptions {
            width: self.width.map_or_else(|| width(on_terminal), usize::from),
            color: match self.color {
                ColorArg::Always => true,
                ColorArg::Never => false,
                ColorArg::Auto => on_terminal && !no_color && !is_dumb,
            },
            ascii: self.ascii || (on_terminal && !is_utf8()),
            calls: self.calls().or(self.verbose.then_some(Calls::All)),
            table: self.table,
            mermaid: self.mermaid,
            verbose: self.verbose,
            around: None,
        }
    }

    /// Writes to the file or to standard output. A reader that went away is no error.
    ///
    /// # Errors
    /// If the output cannot be written, or is one of `inputs`.
    pub fn write(&self, inputs: &[String], body: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> anyhow::Result<()> {
        let Some(path) = &self.output else {
            return match print(body) {
                Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
                result => result.context("standard output cannot be written"),
            };
        };
        if is_one_of(inputs, path) {
            bail!("{}: is one of the inputs and would be overwritten; give -o another name", path.display());
        }
        let write = || -> io::Result<()> {
            let mut out = io::BufWriter::with_capacity(1 << 16, File::create(path)?);
            body(&mut out)?;
            out.flush()
        };
        write().with_context(|| format!("{}: cannot be written", path.display()))
    }
}

/// How to render text for a command without options for it.
pub fn plain(to_stdout: bool) -> RenderOptions {
    let on_terminal = to_stdout && io::stdout().is_terminal();
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
    RenderOptions {
        width: width(on_terminal).max(if on_terminal { 0 } else { WIDEST }),
        color: on_terminal && !no_color && std::env::var_os("TERM").is_none_or(|t| t != "dumb"),
        ascii: on_terminal && !is_utf8(),
        calls: None,
        table: None,
        mermaid: false,
        verbose: false,
        around: None,
    }
}

/// Writes to the file, else to standard output.
///
/// # Errors
/// Those of writing.
pub fn to(path: Option<&Path>, body: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> anyhow::Result<()> {
    let Some(path) = path else { return Ok(print(body)?) };
    let write = || -> io::Result<()> {
        let mut out = io::BufWriter::with_capacity(1 << 16, File::create(path)?);
        body(&mut out)?;
        out.flush()
    };
    write().with_context(|| format!("{}: cannot be written", path.display()))
}

/// Writes a report as JSON or in words.
///
/// # Errors
/// Those of writing.
pub fn json_or(
    is_json: bool,
    report: &impl serde::Serialize,
    out: &mut dyn Write,
    words: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    if !is_json {
        return words(out);
    }
    serde_json::to_writer_pretty(&mut *out, report)?;
    out.write_all(b"\n")
}

/// Writes to standard output through a buffer.
///
/// # Errors
/// Those of writing.
pub fn print(body: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut out = io::BufWriter::with_capacity(1 << 16, io::stdout().lock());
    body(&mut out)?;
    out.flush()
}

/// Manual text with its paragraphs broken to the terminal's width (at most 100 columns); lines that
/// are indented stay as they are.
pub fn paragraphs(text: &str) -> String {
    const COMFORTABLE: usize = 100;
    let width = width(io::stdout().is_terminal()).min(COMFORTABLE);
    let mut out = String::new();
    for line in text.lines() {
        let lines = if line.starts_with(' ') { vec![line.to_string()] } else { wrap(line, width) };
        for line in lines {
            out.push_str(&line);
            out.push('\n');
        }
    }
    out
}

/// Is it an error because the reader of a pipe went away?
pub fn is_closed_pipe(e: &anyhow::Error) -> bool {
    e.chain().any(|e| e.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe))
}

fn width(on_terminal: bool) -> usize {
    let columns = std::env::var("COLUMNS").ok().and_then(|c| c.parse::<usize>().ok()).filter(|c| *c >= 40);
    let terminal = || terminal_size::terminal_size().map(|(w, _)| usize::from(w.0));
    if on_terminal { terminal().or(columns).unwrap_or(WIDTH).min(WIDEST) } else { WIDTH }
}

/// Does the locale use UTF-8? (POSIX: LC_ALL over LC_CTYPE over LANG.)
fn is_utf8() -> bool {
    let name = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(|v| std::env::var(v).ok().filter(|v| !v.is_empty()));
    name.is_some_and(|n| {
        let n = n.to_ascii_lowercase();
        n.contains("utf-8") || n.contains("utf8")
    })
}

/// Is the output one of the inputs?
pub fn is_one_of(inputs: &[String], output: &Path) -> bool {
    inputs.iter().any(|i| is_same_file(Path::new(i), output))
}

fn is_same_file(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}
