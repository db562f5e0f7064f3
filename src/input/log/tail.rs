//! Fields that people put behind a known layout: `key=value`, quoted texts, bare numbers.

use super::assemble::{Assembly, Field, Shared, Unit, is_session_like};
use super::clf::quoted;
use super::names;
use super::time::{self, SECOND_NS};

/// Reads what it can of `rest`. Texts without a name are taken only for what they must be: a
/// session id by its looks, a duration by nginx's three decimals.
pub(super) fn read(rest: &[u8], out: &mut Assembly, shared: &mut Shared) {
    if rest.is_empty() {
        return;
    }
    let mut rest = rest.trim_ascii_start();
    let mut seconds = Vec::new();
    let mut unnamed_sessions = 0;
    while !rest.is_empty() {
        let (name, value, after) = next_field(rest);
        rest = after.trim_ascii_start();
        if let Some(name) = name {
            if let Some(field) = names::common(name).filter(|f| !matches!(f, Field::Start | Field::End)) {
                out.set(field, value, shared);
            }
            continue;
        }
        if is_session_like(value) {
            let field = if unnamed_sessions == 0 { Field::Session } else { Field::SessionGiven };
            out.set(field, value, shared);
            unnamed_sessions += 1;
        } else if value == b"-" && unnamed_sessions == 0 && seconds.is_empty() {
            // The place of a session id that initialize does not carry, as likely as not.
        } else if is_seconds(value) {
            seconds.push(value);
        }
    }
    match seconds.as_slice() {
        [one] => {
            out.set(Field::Duration(Unit::Ns(SECOND_NS)), one, shared);
        }
        [a, b, ..] => {
            // The total is never less than the upstream's part; which comes first differs.
            let value = |v: &[u8]| time::decimal(v, SECOND_NS).map_or(0, |(ns, _)| ns);
            let (total, part) = if value(a) >= value(b) { (a, b) } else { (b, a) };
            out.set(Field::Duration(Unit::Ns(SECOND_NS)), total, shared);
            out.set(Field::UpstreamDuration(Unit::Ns(SECOND_NS)), part, shared);
        }
        [] => {}
    }
}

/// nginx writes its times with exactly three decimals.
fn is_seconds(value: &[u8]) -> bool {
    let Some(dot) = memchr::memchr(b'.', value) else { return false };
    dot > 0
        && dot < 8
        && value.len() == dot + 4
        && value.iter().enumerate().all(|(i, c)| i == dot || c.is_ascii_digit())
}

/// The next `name=value`, quoted text or word: its name, its value, and what follows it.
pub(super) fn next_field(rest: &[u8]) -> (Option<&[u8]>, &[u8], &[u8]) {
    if let Some((value, after)) = rest.strip_prefix(b"\"").and_then(quoted) {
        return (None, value, after);
    }
    let end = memchr::memchr(b' ', rest).unwrap_or(rest.len());
    let (word, after) = rest.split_at(end);
    let is_name =
        |n: &[u8]| !n.is_empty() && n.iter().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'-' | b'.'));
    match memchr::memchr2(b'=', b':', word).filter(|at| word.get(..*at).is_some_and(is_name)) {
        Some(at) if word.get(at) == Some(&b'=') => {
            let (name, value) = (word.get(..at), word.get(at + 1..).unwrap_or_default());
            match rest.get(at + 1..).and_then(|v| v.strip_prefix(b"\"")).and_then(quoted) {
                Some((value, after)) => (name, value, after),
                None => (name, value.strip_suffix(b",").unwrap_or(value), after),
            }
        }
        _ => (None, word, after),
    }
}
