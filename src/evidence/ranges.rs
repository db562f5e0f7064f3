//! What a text holds that is more than words: dates, addresses, credentials, known sentences.

use super::cells;
use super::phrases::LOG_PHRASES;
use super::vocabulary::PHRASES;
use crate::model::time::Time;
use aho_corasick::{AhoCorasick, MatchKind};
use regex::bytes::Regex;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

/// What a range is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum What {
    /// A sentence that everybody knows.
    Phrase,
    /// A date, perhaps with a time; midnight of it.
    Date(Time),
    /// An IP address.
    Address(IpAddr),
    /// Numbers in it are no numbers but parts of a credential, name or address.
    Secret,
    /// A text as an array of its bytes.
    Bytes,
}

/// A part of a text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// First byte.
    pub from: usize,
    /// Behind the last byte.
    pub to: usize,
    /// What it is.
    pub what: What,
}

static PHRASE: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    AhoCorasick::builder()
        .match_kind(MatchKind::LeftmostLongest)
        .ascii_case_insensitive(true)
        .build(PHRASES.iter().chain(LOG_PHRASES))
        .ok()
});

static DATE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?-u)[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]{1,9})?)?(?:Z|[+-][0-9]{2}:?[0-9]{2})?)?").ok()
});

static V4: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"(?-u)[0-9]{1,3}(?:\.[0-9]{1,3}){3}").ok());

static V6: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?-u)[0-9a-fA-F:]*:[0-9a-fA-F]*:[0-9a-fA-F:]*(?:\.[0-9]{1,3}){0,3}").ok());

/// E-mail addresses and host names; `key=value` and `"key":"value"` of what a credential is called.
static SECRET: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?i-u)(?:[a-z0-9._%+-]{1,64}(?:@|%40))?(?:[a-z0-9_-]{1,63}\.){1,16}[a-z]{2,24}",
        r#"|(?:pass(?:word|wd|phrase)?|pwd|secret|[a-z_-]*token|api[_-]?key|apikey|access[_-]?key|authorization|bearer|basic|cookie|credentials?|signature|otp|pin)\\{0,4}["']?(?:\s*[=:]\s*|%3d|\s+)\\{0,4}(?:["'][^"'\\]{1,4096}|[^\s"'&;,{}\\]{1,4096})"#,
        r"|(?:[a-z][a-z0-9+.-]{1,15}://)[^\s/@:]{1,256}:[^\s/@]{1,256}@",
    ))
    .ok()
});

static BYTES: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?-u)\[\s*[0-9]{1,3}(?:\s*,\s*[0-9]{1,3}){3,}\s*\]").ok());

/// What a match (its bytes, from, to) is; none: nothing after all.
type Judge<'a> = &'a dyn Fn(&[u8], usize, usize) -> Option<What>;

/// All ranges of a text, by where they begin, however it writes its characters.
pub fn find(text: &[u8], in_log: bool) -> Vec<Range> {
    if memchr::memchr2(b'%', b'\\', text).is_none() {
        return find_plain(text, in_log);
    }
    let (plain, from) = cells::plain_text(text);
    let mut ranges = find_plain(&plain, in_log);
    let place = |at: usize| from.get(at).copied().unwrap_or(text.len());
    for range in &mut ranges {
        (range.from, range.to) = (place(range.from), place(range.to));
    }
    ranges
}

fn find_plain(text: &[u8], in_log: bool) -> Vec<Range> {
    let mut all = vec![];
    if let Some(phrase) = PHRASE.as_ref() {
        let bounded = |from: usize, to: usize| !is_letter(text, from.checked_sub(1)) && !is_letter(text, Some(to));
        let found = phrase.find_iter(text).filter(|m| bounded(m.start(), m.end()));
        all.extend(found.map(|m| Range { from: m.start(), to: m.end(), what: What::Phrase }));
    }
    let mut each = |regex: &LazyLock<Option<Regex>>, what: Judge<'_>| {
        for m in (**regex).iter().flat_map(|r| r.find_iter(text)) {
            if let Some(what) = what(m.as_bytes(), m.start(), m.end()) {
                all.push(Range { from: m.start(), to: m.end(), what });
            }
        }
    };
    each(&DATE, &|m, from, to| {
        let is_alone = !is_digit(text, from.checked_sub(1)) && !is_digit(text, Some(to));
        is_alone.then(|| date(m)).flatten()
    });
    each(&V4, &|m, from, to| {
        let dot = text.get(to) == Some(&b'.') && is_digit(text, Some(to + 1));
        let before = from.checked_sub(1);
        let is_alone = !is_digit(text, before)
            && !is_digit(text, Some(to))
            && !dot
            && before.and_then(|b| text.get(b)) != Some(&b'.');
        let address = std::str::from_utf8(m).ok()?.parse::<Ipv4Addr>().ok()?;
        is_alone.then_some(What::Address(address.into()))
    });
    each(&V6, &|m, from, to| {
        let is_alone = !is_letter(text, from.checked_sub(1)) && !is_letter(text, Some(to));
        let address = std::str::from_utf8(m).ok()?.parse::<Ipv6Addr>().ok()?;
        (is_alone && m.len() > 3).then_some(What::Address(address.into()))
    });
    each(&SECRET, &|m, _, _| (!is_number_member(m)).then_some(What::Secret));
    if in_log {
        each(&BYTES, &|m, _, _| is_text(m).then_some(What::Bytes));
    }
    // Of two that begin at the same byte a credential first: it only marks what follows.
    all.sort_by_key(|r| (r.from, r.what != What::Secret, std::cmp::Reverse(r.to)));
    all
}

fn is_letter(text: &[u8], at: Option<usize>) -> bool {
    at.and_then(|at| text.get(at)).is_some_and(u8::is_ascii_alphanumeric)
}

fn is_digit(text: &[u8], at: Option<usize>) -> bool {
    at.and_then(|at| text.get(at)).is_some_and(u8::is_ascii_digit)
}

/// `"maxTokens":100`: a JSON number, however its key is called.
fn is_number_member(text: &[u8]) -> bool {
    let Some(colon) = memchr::memchr(b':', text) else { return false };
    let before = text.get(..colon).unwrap_or_default().trim_ascii_end();
    let after = text.get(colon + 1..).unwrap_or_default().trim_ascii_start();
    before.ends_with(b"\"") && after.first().is_some_and(|b| b.is_ascii_digit() || *b == b'-')
}

/// Midnight of a date that exists.
fn date(text: &[u8]) -> Option<What> {
    let day = std::str::from_utf8(text.get(..10)?).ok()?;
    let day = chrono::NaiveDate::parse_from_str(day, "%Y-%m-%d").ok()?;
    let ns = day.and_hms_opt(0, 0, 0)?.and_utc().timestamp_nanos_opt()?;
    Some(What::Date(Time::from_ns(ns, 0)))
}

/// An array of numbers that are the bytes of a text.
fn is_text(array: &[u8]) -> bool {
    let text = String::from_utf8_lossy(array);
    let numbers = text.split(|c: char| !c.is_ascii_digit()).filter(|n| !n.is_empty());
    let bytes: Option<Vec<u8>> = numbers.map(|n| n.parse().ok()).collect();
    bytes.is_some_and(|b| {
        std::str::from_utf8(&b).is_ok_and(|s| !s.chars().any(|c| c.is_control() && !c.is_whitespace() && c != '\u{1b}'))
    })
}
