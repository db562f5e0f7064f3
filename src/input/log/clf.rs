//! The common log format and its children: `addr ident user [time] "request" status bytes`, then
//! `"referer" "agent"`, then whatever a proxy adds.

use super::assemble::{Assembly, Field, Shared, address};

/// The parts of such a line, still as written.
pub(super) struct Clf<'a> {
    /// Address (or name) of the peer.
    pub(super) host: &'a [u8],
    /// A virtual host stood before it.
    pub(super) has_vhost: bool,
    /// What stood between the brackets.
    pub(super) time: &'a [u8],
    /// Request line, without its quotes.
    pub(super) request: &'a [u8],
    /// Status.
    pub(super) status: &'a [u8],
    /// Bytes.
    pub(super) bytes: &'a [u8],
    /// Referer, without its quotes.
    pub(super) referer: Option<&'a [u8]>,
    /// User agent, without its quotes.
    pub(super) agent: Option<&'a [u8]>,
    /// What follows.
    pub(super) rest: &'a [u8],
}

/// Why a line is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Miss {
    /// It is no such line.
    NotClf,
    /// It begins as one and then breaks off or does not parse.
    Broken,
}

/// Splits a line.
pub(super) fn split(line: &[u8]) -> Result<Clf<'_>, Miss> {
    // An IPv6 address with a port begins with a bracket of its own.
    let before = line.get(..512).unwrap_or(line);
    let open =
        memchr::memchr_iter(b'[', before).find(|at| *at > 0 && line.get(at - 1) == Some(&b' ')).ok_or(Miss::NotClf)?;
    let (host, has_vhost) = peer(line.get(..open).unwrap_or_default()).ok_or(Miss::NotClf)?;
    let after_open = line.get(open + 1..).unwrap_or_default();
    let Some(close) = memchr::memchr(b']', after_open.get(..64).unwrap_or(after_open)) else {
        // Cut within the time, or no time at all.
        let began = after_open.first().is_none_or(u8::is_ascii_digit) && after_open.len() < 26;
        return Err(if began { Miss::Broken } else { Miss::NotClf });
    };
    let time = after_open.get(..close).unwrap_or_default();
    // Its shape alone: it is read when the rest is known to fit.
    if !matches!(time, [_, _, b'/', _, _, _, b'/', _, _, _, _, b':', ..]) {
        return Err(Miss::NotClf);
    }
    let rest = after_open.get(close + 1..).unwrap_or_default();
    let (request, rest) = rest.strip_prefix(b" \"").and_then(quoted).ok_or(Miss::Broken)?;
    let (status, rest) = word(rest).ok_or(Miss::Broken)?;
    let (bytes, rest) = word(rest).ok_or(Miss::Broken)?;
    let mut clf = Clf {
        host,
        has_vhost,
        time,
        request,
        status,
        bytes,
        referer: None,
        agent: None,
        rest: rest.trim_ascii_start(),
    };
    if let Some((referer, rest)) = rest.strip_prefix(b" \"").and_then(quoted) {
        let (agent, rest) = rest.strip_prefix(b" \"").and_then(quoted).ok_or(Miss::Broken)?;
        clf.referer = Some(referer);
        clf.agent = Some(agent);
        clf.rest = rest.trim_ascii_start();
    } else if rest.starts_with(b" \"") {
        return Err(Miss::Broken);
    }
    Ok(clf)
}

/// Fills in what such a line always says; the time is of the end given by `time_field`.
pub(super) fn fill(clf: &Clf<'_>, time_field: Field, bytes: Field, out: &mut Assembly, shared: &mut Shared) -> bool {
    out.set(Field::ClientAddr, clf.host, shared);
    out.set(Field::RequestLine, clf.request, shared);
    if let Some(agent) = clf.agent {
        out.set(Field::UserAgent, agent, shared);
    }
    out.set(time_field, clf.time, shared)
        && out.set(Field::Status, clf.status, shared)
        && out.set(bytes, clf.bytes, shared)
}

/// The peer in `addr - user `, `addr - `, `vhost:port addr - user `.
fn peer(head: &[u8]) -> Option<(&[u8], bool)> {
    let head = head.strip_suffix(b" ")?;
    let mut words = head.split(|c| *c == b' ');
    let first = words.next().filter(|w| !w.is_empty() && !w.contains(&b'"'))?;
    let second = words.next()?;
    if address(first).is_some() {
        return Some((first, false));
    }
    if address(second).is_some() && words.next().is_some() {
        return Some((second, true));
    }
    // A host name, with the identity that nobody has behind it.
    (second == b"-" && first.iter().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'-' | b'_' | b':')))
        .then_some((first, false))
}

/// The text up to its closing quote, and what follows that. A quote that the writer escaped, or
/// that no space, bracket or end follows, does not close.
pub(super) fn quoted(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut from = 0;
    loop {
        let at = from + memchr::memchr(b'"', text.get(from..)?)?;
        let before = text.get(..at)?;
        let escaped = before.iter().rev().take_while(|c| **c == b'\\').count() % 2 == 1;
        if !escaped && matches!(text.get(at + 1), None | Some(b' ' | b'\t' | b',' | b']')) {
            return Some((before, text.get(at + 1..)?));
        }
        from = at + 1;
    }
}

/// The next word after one space, and what follows it.
pub(super) fn word(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = text.strip_prefix(b" ")?;
    let end = memchr::memchr(b' ', text).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}
