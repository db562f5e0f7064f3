//! Clients' own logs: one file a format, one line in [`FORMATS`].
//!
//! `json`, `stamp`, `inspect` and `verdict` hold what the formats share: lenient JSON objects,
//! times, Node's way of printing objects, and what an error text says became of a call.

pub mod claude_code;
pub mod claude_code_mcp;
pub mod claude_desktop;
pub mod crosswire_client;
pub mod cursor;
mod frame;
mod inspect;
pub(crate) mod json;
pub mod mcp_remote;
pub(crate) mod stamp;
mod verdict;
pub mod vscode;

#[cfg(test)]
mod tests;

use super::log::{Format, Grade};

/// Every format of a client's or bridge's record. Order decides ties.
pub static FORMATS: &[&Format] = &[
    &crosswire_client::FORMAT,
    &claude_code::FORMAT,
    &claude_code_mcp::FORMAT,
    &claude_desktop::FORMAT,
    &vscode::FORMAT,
    &cursor::FORMAT,
    &mcp_remote::FORMAT,
];

/// Grades an input by its first hundred lines: the best grade counts, as a log may begin with
/// anything. The last line may be cut: JSON is then graded by what stands before the cut, other
/// lines only if they stand alone.
fn grade_lines(head: &[u8], of_line: impl Fn(&[u8]) -> Grade) -> Grade {
    let mut lines = head.split(|&b| b == b'\n').filter(|l| !l.trim_ascii().is_empty()).take(101).peekable();
    let mut best = Grade::No;
    let mut alone = true;
    while let Some(line) = lines.next() {
        let is_cut = lines.peek().is_none() && !head.ends_with(b"\n");
        best = best.max(match of_line(line.trim_ascii_end()) {
            Grade::No if is_cut && line.starts_with(b"{") => {
                let mended = json::mend(&String::from_utf8_lossy(line));
                mended.map_or(Grade::No, |m| of_line(m.as_bytes()))
            }
            _ if is_cut && !alone && !line.starts_with(b"{") => Grade::No,
            grade => grade,
        });
        alone = false;
        if best == Grade::Certain {
            break;
        }
    }
    best
}
