//! Colours of terminals, which stand between the words of a line.

use std::borrow::Cow;

/// A line without ANSI escape sequences (ECMA-48 CSI and OSC), trailing white space and CR.
pub(in crate::input::log) fn plain(line: &[u8]) -> Cow<'_, [u8]> {
    let line = line.trim_ascii_end();
    let Some(first) = memchr::memchr(0x1b, line) else { return Cow::Borrowed(line) };
    let mut out = line.get(..first).unwrap_or_default().to_vec();
    let mut rest = line.get(first..).unwrap_or_default();
    while let Some((&b, after)) = rest.split_first() {
        if b != 0x1b {
            let n = memchr::memchr(0x1b, rest).unwrap_or(rest.len());
            out.extend_from_slice(rest.get(..n).unwrap_or_default());
            rest = rest.get(n..).unwrap_or_default();
            continue;
        }
        rest = match after.first() {
            Some(b'[') => {
                let end = after.iter().skip(1).position(|b| (0x40..=0x7e).contains(b));
                end.and_then(|e| after.get(e + 2..)).unwrap_or_default()
            }
            Some(b']') => {
                let end = after.iter().position(|b| matches!(b, 0x07 | 0x1b)).unwrap_or(after.len());
                after.get(end + 1..).unwrap_or_default()
            }
            _ => after.get(1..).unwrap_or_default(),
        };
    }
    Cow::Owned(out.trim_ascii_end().to_vec())
}
