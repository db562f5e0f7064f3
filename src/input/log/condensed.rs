//! One request as a person writes it down, read word by word.

use super::assemble::{Assembly, Field, Shared, address, is_session_like};
use super::clock::Clock;
use super::layout::Parsed;
use super::time::{self, Civil, SECOND_NS};
use crate::model::place::Place;
use crate::model::record::When;
use std::sync::Arc;

/// What a line of such a text is.
pub(super) enum Line<'a> {
    /// A request.
    Request(Box<Condensed<'a>>),
    /// It begins with a time and is no request.
    Timed,
    /// Anything else.
    Text,
}

/// A request as it was written down.
#[derive(Default)]
pub(super) struct Condensed<'a> {
    /// When, as far as was written.
    pub(super) time: Option<Civil>,
    /// An arrow pointed to the status.
    pub(super) has_arrow: bool,
    /// The time was written to the minute only.
    to_the_minute: bool,
    address: Option<&'a str>,
    method: &'a str,
    target: Option<&'a str>,
    status: Option<u16>,
    repeat: u32,
    session: Option<&'a str>,
    duration: Option<(i64, i64)>,
    bytes: Option<u64>,
    rpc_method: Option<&'static str>,
    rpc_tool: Option<String>,
    comment: String,
}

/// Words between the time and the method, and between the target and the status, at most.
const LOOSE_WORDS: usize = 6;

/// Reads a line; `in_fence`: it stands in a code block.
pub(super) fn read(line: &[u8], in_fence: bool) -> Line<'_> {
    let Ok(text) = std::str::from_utf8(line) else { return Line::Text };
    if text.len() > 2000 {
        return Line::Text;
    }
    let words: Vec<&str> = without_list_mark(text)
        .split(|c: char| c.is_whitespace() || matches!(c, '|' | '`' | '*'))
        .flat_map(around_arrow)
        .filter(|w| !w.is_empty() && *w != ">")
        .collect();
    let mut out = Condensed { repeat: 1, ..Condensed::default() };
    let mut at = 0;
    read_time(&words, &mut at, &mut out);
    let timed = out.time.is_some();
    match read_request(&words, at, &mut out) {
        Some(()) if timed || untimed_is_one(&out, in_fence) => Line::Request(Box::new(out)),
        _ if timed => Line::Timed,
        _ => Line::Text,
    }
}

/// Without a time a sentence may look the same: only in a code block, or where hardly anything else
/// stands on the line, is it a request. (`POST /mcp 200 5.123 ms - 120` is a server's own line.)
fn untimed_is_one(out: &Condensed<'_>, in_fence: bool) -> bool {
    let few_words = out.comment.split_whitespace().count() <= LOOSE_WORDS;
    out.status.is_some() && out.target.is_some() && out.has_arrow && (in_fence || few_words)
}

/// A line without bullet, number or quote mark.
fn without_list_mark(text: &str) -> &str {
    let text = text.trim_start_matches(|c: char| c.is_whitespace() || c == '>');
    for bullet in ["- ", "* ", "+ ", "• "] {
        if let Some(rest) = text.strip_prefix(bullet) {
            return rest;
        }
    }
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    match text.get(digits..).and_then(|r| r.strip_prefix(". ").or_else(|| r.strip_prefix(") "))) {
        Some(rest) if (1..=3).contains(&digits) => rest,
        _ => text,
    }
}

/// `/mcp->404` as the three words that it is.
fn around_arrow(word: &str) -> [&str; 3] {
    for arrow in ["-->", "==>", "->", "=>", "→", "⇒"] {
        if let Some((target, status)) = word.split_once(arrow)
            && (target.is_empty() || target.starts_with('/') || target.starts_with("http"))
            && status_of(status).is_some()
        {
            return [target, arrow, status];
        }
    }
    [word, "", ""]
}

/// `17:19:52`, `[17:19:52.5]`, `17:19`, `2026-07-19 17:19:52 UTC`, `17:19:52–17:20:01` (the first),
/// `19/Jul/2026:17:19:52 +0000`, `Jul 19 17:19:52`.
fn read_time(words: &[&str], at: &mut usize, out: &mut Condensed<'_>) {
    let trim = |word: &str| -> String {
        word.trim_matches(|c: char| matches!(c, '[' | ']' | '(' | ')' | ',' | '~')).to_owned()
    };
    let Some(first) = words.first().map(|w| trim(w)) else { return };
    let mut date = None;
    let day_of_month = words.get(1).filter(|d| d.len() <= 2 && time::month(first.as_bytes()).is_some());
    let named = day_of_month.and_then(|day| {
        let text = format!("{first} {day} {}", trim(words.get(2)?));
        time::syslog(text.as_bytes()).filter(|(_, len)| *len == text.len() && first.len() == 3)
    });
    if let Some((civil, _)) = time::iso8601(first.as_bytes()).or_else(|| time::clf(first.as_bytes())) {
        out.time = Some(civil);
        *at = 1;
    } else if let Some((civil, _)) = named {
        out.time = Some(civil);
        *at = 3;
    } else {
        let mut word = first;
        if word.len() == 10
            && let Some((y, m, d)) =
                time::iso_date(word.as_bytes(), b'-').or_else(|| time::iso_date(word.as_bytes(), b'/'))
        {
            date = Some((y, m, d));
            *at = 1;
            word = words.get(1).map(|w| trim(w)).unwrap_or_default();
        }
        let Some((mut civil, to_the_minute)) = time_word(&word) else {
            *at = 0;
            return;
        };
        if let Some((y, m, d)) = date {
            civil.year = Some(y);
            civil.month_day = Some((m, d));
        }
        out.time = Some(civil);
        out.to_the_minute = to_the_minute;
        *at += 1;
    }
    // A zone as a word of its own.
    if let Some(civil) = &mut out.time
        && civil.offset_s.is_none()
        && let Some(zone) = words.get(*at)
    {
        let zone = zone.trim_matches(|c: char| matches!(c, '[' | ']' | '(' | ')' | ','));
        let seconds = match zone {
            "UTC" | "GMT" | "Z" => Some(0),
            _ => time::offset(zone.as_bytes()).filter(|(_, len)| *len == zone.len() && len > &3).map(|(s, _)| s),
        };
        if let Some(seconds) = seconds {
            civil.offset_s = Some(seconds);
            *at += 1;
        }
    }
}

/// A time of day, and whether it is to the minute only.
fn time_word(word: &str) -> Option<(Civil, bool)> {
    let bytes = word.as_bytes();
    if let Some((mut civil, len)) = time::time_of_day(bytes) {
        let rest = word.get(len..)?;
        match rest.chars().next() {
            None | Some('-' | '–' | '—' | '.' | ':' | '…') => {}
            Some('Z') if rest.len() == 1 => civil.offset_s = Some(0),
            Some('+') => civil.offset_s = Some(time::offset(rest.as_bytes())?.0),
            _ => return None,
        }
        return Some((civil, false));
    }
    let padded = format!("{}:00", word.trim_end_matches([':', 'Z']));
    let minute = word.len() >= 5 && word.len() <= 6;
    time::time_of_day(padded.as_bytes())
        .filter(|(_, len)| minute && *len == padded.len())
        .map(|(civil, _)| (civil, true))
}

/// Everything behind the time.
fn read_request<'a>(words: &[&'a str], from: usize, out: &mut Condensed<'a>) -> Option<()> {
    let words = words.get(from..)?;
    let target_follows = |at: usize| words.get(at + 1).is_some_and(|w| bare(w).starts_with('/'));
    let is_method = |(at, w): (usize, &&str)| method_of(w).is_some_and(|m| m == *w || target_follows(at));
    let method = words.iter().enumerate().take(LOOSE_WORDS).position(is_method);
    // "initialize -> 200": what is not said to be anything else is a POST.
    let begin = method.or_else(|| words.iter().take(LOOSE_WORDS).position(|w| rpc_method(w).is_some()))?;
    let mut other_words = 0;
    for word in words.get(..begin)? {
        match repeat_of(word) {
            Some(times) => out.repeat = times,
            None if address(bare(word).as_bytes()).is_some() => out.address = Some(bare(word)),
            None if status_of(word).is_some() => out.status = status_of(word),
            None if is_arrow(word) => out.has_arrow = true,
            None if word.starts_with('[') || !word.contains(char::is_alphanumeric) => {}
            None => other_words += 1,
        }
    }
    out.method = method.and_then(|at| words.get(at)).and_then(|w| method_of(w)).unwrap_or("POST");
    let mut rest = words.get(begin + usize::from(method.is_some())..)?;
    if let Some(target) = rest.first().map(|w| bare(w)).filter(|w| w.starts_with('/') || w.starts_with("http")) {
        out.target = Some(target);
        rest = rest.get(1..)?;
    }
    let near = |found: &dyn Fn(&str) -> bool| rest.iter().take(LOOSE_WORDS + 2).position(|w| found(w));
    let status = near(&|w| status_of(w).is_some());
    let arrow = near(&is_arrow);
    out.has_arrow |= arrow.is_some();
    let (before, after) = match (status, arrow) {
        (Some(at), _) => {
            out.status = status_of(rest.get(at)?);
            (rest.get(..at)?, rest.get(at + 1..)?)
        }
        // "-> (no reply)", "-> timeout": a request all the same.
        (None, Some(at)) => (rest.get(..at)?, rest.get(at + 1..)?),
        (None, None) if out.status.is_some() => (&[][..], rest),
        (None, None) => return None,
    };
    // "Then we POST /mcp", "POST /mcp returned a plain 404", a program's own line: words around the
    // request make it something else, unless a time stands before it and an arrow points on.
    other_words += before.iter().filter(|w| !is_part_of_request(w)).count() + usize::from(method.is_none());
    if other_words > 0 && !(out.time.is_some() && out.has_arrow) {
        return None;
    }
    read_details(before, after, out);
    Some(())
}

/// What stands around the status.
fn read_details<'a>(before: &[&'a str], after: &[&'a str], out: &mut Condensed<'a>) {
    for (at, word) in before.iter().chain(after).enumerate() {
        let next = before.iter().chain(after).nth(at + 1).map_or("", |w| bare(w));
        let word = bare(word);
        let value = word.rsplit(['=', ':']).next().unwrap_or(word);
        if let Some(times) = repeat_of(word) {
            out.repeat = times;
        } else if is_session_like(value.as_bytes()) {
            out.session.get_or_insert(value);
        } else if next == "times" {
            out.repeat = value.parse().unwrap_or(1).max(1);
        } else if at < before.len() + 2 && !matches!(next, "of" | "later" | "after" | "ago" | "before") {
            // Numbers right behind the status are its own; further on they belong to a sentence.
            read_measure(value, next, out);
        }
    }
    let told = |words: &[&str]| {
        words.iter().filter(|w| !is_arrow(w) && repeat_of(w).is_none()).copied().collect::<Vec<_>>().join(" ")
    };
    let (before, after) = (told(before), told(after));
    let marks = |c: char| matches!(c, '#' | '—' | '–' | '-' | '/' | ';' | ',' | ':' | '<' | '←') || c.is_whitespace();
    let comment = after.trim_start_matches(marks);
    let comment = comment.strip_prefix('(').and_then(|c| c.strip_suffix(')')).unwrap_or(comment);
    let of_call = [before.as_str(), comment].into_iter().find_map(|text| Some((rpc_method(text)?, text)));
    if let Some((method, text)) = of_call {
        out.rpc_method = Some(method);
        let mut words = text.split_whitespace().skip(1).map(bare);
        out.rpc_tool = match (words.next(), words.next()) {
            (Some(tool), None) if method == "tools/call" => Some(tool.to_owned()),
            _ => None,
        };
    }
    out.comment = comment.to_owned();
}

/// `60.0s`, `362 bytes`, `0B`.
fn read_measure(value: &str, next: &str, out: &mut Condensed<'_>) {
    if !value.starts_with(|c: char| c.is_ascii_digit()) {
        return;
    }
    if let Some(duration) = time::duration(value.as_bytes()) {
        out.duration.get_or_insert(duration);
    } else if matches!(next, "bytes" | "byte" | "B") {
        out.bytes = value.parse().ok();
    } else if let Some(bytes) = value.strip_suffix('B').and_then(|v| v.parse().ok()) {
        out.bytes = Some(bytes);
    }
}

/// `POST`, `"POST`, `post`.
fn method_of(word: &str) -> Option<&'static str> {
    const METHODS: [&str; 7] = ["POST", "GET", "DELETE", "PUT", "PATCH", "HEAD", "OPTIONS"];
    METHODS.into_iter().find(|m| m.eq_ignore_ascii_case(bare(word)))
}

/// May it stand between the target and the status?
fn is_part_of_request(word: &str) -> bool {
    let is_leader = !word.contains(char::is_alphanumeric);
    is_leader
        || is_arrow(word)
        || word.starts_with(['(', '['])
        || word.starts_with("HTTP/")
        || rpc_method(word).is_some()
}

/// A word without the marks around it.
fn bare(word: &str) -> &str {
    word.trim_matches(|c: char| matches!(c, ',' | ';' | ':' | '(' | ')' | '[' | ']' | '"' | '\''))
}

fn is_arrow(word: &str) -> bool {
    matches!(word, "->" | "-->" | "=>" | "==>" | "→" | "⇒" | "➜" | "➔" | "⟶" | ">" | "=")
}

fn status_of(word: &str) -> Option<u16> {
    let word = bare(word);
    let word = word.trim_start_matches("->").trim_start_matches('→').trim_start_matches("=>");
    let digits = word.strip_prefix("status=").or_else(|| word.strip_prefix("HTTP/")).unwrap_or(word);
    let status = (digits.len() == 3).then(|| digits.parse::<u16>().ok())??;
    (100..=599).contains(&status).then_some(status)
}

/// `x3`, `×3`, `(x3)`, `3x`.
fn repeat_of(word: &str) -> Option<u32> {
    let word = bare(word);
    let digits = word
        .strip_prefix(['x', 'X', '×'])
        .or_else(|| word.strip_suffix(['x', '×']))
        .filter(|d| d.len() <= 5 && d.bytes().all(|c| c.is_ascii_digit()))?;
    digits.parse().ok().filter(|n| *n > 0)
}

/// The JSON-RPC method that a comment begins with.
fn rpc_method(text: &str) -> Option<&'static str> {
    const METHODS: [&str; 14] = [
        "initialize",
        "notifications/initialized",
        "notifications/cancelled",
        "tools/list",
        "tools/call",
        "ping",
        "prompts/list",
        "prompts/get",
        "resources/list",
        "resources/read",
        "resources/templates/list",
        "completion/complete",
        "logging/setLevel",
        "server/discover",
    ];
    let first = bare(text.split_whitespace().next()?).trim_start_matches("(re-)").trim_start_matches("re-");
    match first {
        "initialized" => Some("notifications/initialized"),
        word => METHODS.into_iter().find(|m| *m == word),
    }
}

/// Dates in a text: the times that follow without one are of that day. Dates that name revisions
/// of the protocol are none.
pub(super) fn dates_in(line: &[u8], clock: &mut Clock) {
    const REVISIONS: [(i32, u8, u8); 5] = [(2024, 11, 5), (2025, 3, 26), (2025, 6, 18), (2025, 11, 25), (2026, 7, 28)];
    for (at, byte) in line.iter().enumerate().take(2000) {
        let begins = byte.is_ascii_digit() && (at == 0 || line.get(at - 1).is_some_and(|c| !c.is_ascii_alphanumeric()));
        if begins
            && line.get(at + 10).is_none_or(|c| !c.is_ascii_alphanumeric() || *c == b'T')
            && let Some(date) = line.get(at..at + 10).and_then(|text| time::iso_date(text, b'-'))
            && !REVISIONS.contains(&date)
        {
            clock.saw_date(date.0, date.1, date.2);
        }
    }
}

impl Condensed<'_> {
    /// The record of the request.
    pub(super) fn into_record(self: Box<Self>, place: Place, shared: &mut Shared) -> Parsed {
        let mut out = Assembly::default();
        let mut start = None;
        if let Some(civil) = self.time {
            let Some(at) = shared.clock.resolve(&civil) else {
                return Parsed::Bad("a time that is none");
            };
            shared.clock.saw(&civil);
            match self.to_the_minute {
                true => start = Some(When { at: at.plus_ns(30 * SECOND_NS), error_ns: 30 * SECOND_NS }),
                false => out.set_instant(true, at),
            }
        }
        out.set(Field::Method, self.method.as_bytes(), shared);
        // The id that stands beside initialize is the one that it was given.
        let session = if self.rpc_method == Some("initialize") { Field::SessionGiven } else { Field::Session };
        for (field, value) in [
            (Field::Target, self.target),
            (session, self.session),
            (Field::ClientAddr, self.address),
            (Field::RpcMethod, self.rpc_method),
            (Field::RpcTool, self.rpc_tool.as_deref()),
        ] {
            out.set(field, value.unwrap_or_default().as_bytes(), shared);
        }
        if let Some((ns, resolution)) = self.duration {
            out.set_duration(ns, resolution);
        }
        out.record.status = self.status;
        out.record.bytes = self.bytes;
        out.record.repeat = self.repeat;
        out.record.comment = (!self.comment.is_empty()).then(|| Arc::from(&*self.comment));
        let mut record = out.finish(place, shared);
        record.start = record.start.or(start);
        Parsed::Access(record)
    }
}
