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

/// Grades an input by its lines: `of_line` tells each whole line's grade (the last one may be cut
/// and counts only if it stands alone). One certain line of the first hundred that have a grade
/// decides; a log may begin with anything.
fn grade_lines(head: &[u8], of_line: impl Fn(&[u8]) -> Grade) -> Grade {
    let mut lines = head.split(|&b| b == b'\n').filter(|l| !l.trim_ascii().is_empty()).take(101).peekable();
    let mut best = Grade::No;
    let mut first = true;
    while let Some(line) = lines.next() {
        if lines.peek().is_none() && !first && !head.ends_with(b"\n") {
            break;
        }
        first = false;
        best = best.max(of_line(line.trim_ascii_end()));
        if best == Grade::Certain {
            break;
        }
    }
    best
}
