//! journalctl's text modes with one line an entry: `short`, `short-precise`, `short-iso`,
//! `short-iso-precise`, `short-full`, `with-unit`, `short-unix`, `short-monotonic`; and syslog files
//! (RFC 3164 without its priority), which look the same (systemd, src/shared/logs-show.c).

use super::app::{Interpreter, Origin};
use super::journal::{self, TRANSPORT_ERROR_NS};
use super::reading::{self, LocalClock, Reading};
use super::{Format, Grade, LineReader, LogContext, Reader, RecordSink};
use crate::model::limits;
use crate::model::place::{Place, Vantage};
use crate::model::problem::ProblemKind;
use crate::model::record::When;
use crate::model::time::Time;

/// The format.
pub static FORMAT: Format = Format {
    name: "journal-short",
    vantage: Vantage::Server,
    carries: true,
    doc: "journalctl's one-line text modes, and syslog files. Times are the journal's own: `short` and `short-precise` \
          are local and lack year and zone, `short-full` and `with-unit` name the zone, the ISO modes carry it, \
          `short-unix` is UTC, `short-monotonic` has no wall clock (it is derived where messages carry a time of their \
          own). Missing years and zones come from `--year` and `--tz`, else from times inside the messages or the \
          file's modification, and are said to be inferred. Messages are read as application lines.",
    samples: &[
        "2026-11-29T20:01:15.730640+0000 trail-prod-02 trailhead-mcp[25705]: INFO:     Started server process [25705]\n2026-11-29T20:01:16.297380+0000 trail-prod-02 trailhead-mcp[25705]: Created new transport with session ID: cd7a104a5b834ed68551470ea407f525",
        "Nov 29 14:50:39 mcp-host systemd[1]: Started mcp-server.service - MCP server.\nNov 29 14:50:39 mcp-host uvicorn[18750]: StreamableHTTP session manager started",
        "Sun 2026-11-29 14:50:39 EST mcp-host mcp-server.service[18750]: StreamableHTTP session manager started",
        "1795981839.484364 mcp-host systemd[1]: Started mcp-server.service - MCP server.",
        "[ 8999.880000] mcp-host systemd[1]: Started mcp-server.service - MCP server.",
    ],
    grade,
    reader: Reader::Lines(new),
};

/// When a line says that it was written.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Stamp {
    Wall(Reading),
    /// ns since boot.
    Monotonic(i64),
}

/// What stands before the message.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Prefix<'a> {
    stamp: Stamp,
    host: Option<&'a str>,
    ident: Option<&'a str>,
    pid: Option<u32>,
    /// Byte at which the message begins.
    column: usize,
}

fn stamp(line: &[u8]) -> Option<(Stamp, usize)> {
    match line.first()? {
        b'0'..=b'9' => {
            let iso = reading::iso(line).filter(|(r, _)| r.offset_s.is_some() && line.get(10) == Some(&b'T'));
            let (r, n) = iso.or_else(|| reading::epoch(line).filter(|(r, _)| r.digits == 6))?;
            Some((Stamp::Wall(r), n))
        }
        b'[' => {
            let end = memchr::memchr(b']', line.get(..32.min(line.len()))?)?;
            let inner = std::str::from_utf8(line.get(1..end)?).ok()?.trim_start();
            let (s, us) = inner.split_once('.').filter(|(_, us)| us.len() == 6)?;
            let ns = s.parse::<u32>().ok().map(i64::from)? * reading::SECOND_NS
                + us.parse::<u32>().ok().map(i64::from)? * 1000;
            Some((Stamp::Monotonic(ns), end + 1))
        }
        b'A'..=b'Z' => {
            if let Some((r, n)) = reading::month_day(line) {
                return Some((Stamp::Wall(r), n));
            }
            // `Sun 2026-11-29 14:50:39 EST`
            const DAYS: &[&[u8]] = &[b"Mon ", b"Tue ", b"Wed ", b"Thu ", b"Fri ", b"Sat ", b"Sun "];
            DAYS.iter().find(|d| line.starts_with(d))?;
            let (mut r, n) = reading::iso(line.get(4..)?)?;
            let mut end = 4 + n;
            if r.offset_s.is_none() {
                let zone = line.get(end + 1..)?.split(|b| *b == b' ').next()?;
                r.offset_s = reading::zone_name(zone);
                end += 1 + zone.len();
            }
            Some((Stamp::Wall(r), end))
        }
        _ => None,
    }
}

fn prefix(line: &[u8]) -> Option<Prefix<'_>> {
    let (stamp, mut at) = stamp(line)?;
    if line.get(at) != Some(&b' ') {
        return None;
    }
    at += 1;
    let rest = line.get(at..)?;
    let word = memchr::memchr(b' ', rest).unwrap_or(rest.len());
    let host = rest.get(..word)?;
    // an application's own `time LEVEL logger: message` is none of these
    if host.is_empty() || super::app::is_level(host) {
        return None;
    }
    let mut host = Some(host).filter(|h| !h.ends_with(b":"));
    if host.is_some() {
        at += word + 1;
    }
    let rest = line.get(at..).unwrap_or_default();
    let within = rest.get(..128.min(rest.len())).unwrap_or_default();
    let colon = memchr::memchr_iter(b':', within).find(|c| matches!(rest.get(c + 1), Some(b' ') | None));
    let tag = colon.and_then(|c| rest.get(..c)).and_then(|t| std::str::from_utf8(t).ok());
    let Some((tag, colon)) = tag.zip(colon).filter(|(t, _)| !t.is_empty() && !t.starts_with('-')) else {
        // `Mar 24 14:26:01 --- last message repeated 2 times ---`
        let plain = matches!(stamp, Stamp::Wall(r) if matches!(r.date, reading::Date::MonthDay(..)));
        host = host.filter(|h| !h.starts_with(b"-"));
        let host = host.and_then(|h| std::str::from_utf8(h).ok());
        return plain.then_some(Prefix { stamp, host, ident: None, pid: None, column: at });
    };
    let (ident, pid) = match tag.strip_suffix(']').and_then(|t| t.rsplit_once('[')) {
        Some((ident, pid)) if pid.bytes().all(|b| b.is_ascii_digit()) => (ident, pid.parse().ok()),
        _ => (tag, None),
    };
    let sure = matches!(stamp, Stamp::Wall(Reading { date: reading::Date::MonthDay(..), .. })) || host.is_some();
    if pid.is_none() && (!sure || ident.contains(' ')) {
        return None;
    }
    Some(Prefix {
        stamp,
        host: host.and_then(|h| std::str::from_utf8(h).ok()),
        ident: Some(ident),
        pid,
        column: at + (colon + 2).min(rest.len()),
    })
}

/// The program that a line of one of these modes names.
pub(super) fn ident(line: &[u8]) -> Option<&str> {
    prefix(line)?.ident
}

fn grade(bytes: &[u8]) -> Grade {
    let (mut own, mut proxy, mut all) = (0u32, 0u32, 0u32);
    for line in journal::whole_lines(bytes).take(400) {
        let line = super::app::plain(line);
        if line.is_empty() || line.starts_with(b" ") && all > 0 || line.starts_with(b"-- ") {
            continue;
        }
        all += 1;
        if let Some(ident) = prefix(&line).and_then(|p| p.ident) {
            own += 1;
            // a proxy's log that came through syslog says more to the proxy's own format
            proxy += u32::from(journal::is_proxy(ident));
        }
    }
    match own {
        0 => Grade::No,
        _ if own * 10 >= all * 9 && proxy * 2 < own => Grade::Certain,
        _ if own * 2 >= all => Grade::Likely,
        _ => Grade::Unsure,
    }
}

struct Short {
    interpreter: Interpreter,
    clock: LocalClock,
    input: u32,
    /// Lines held until the clock knows enough; none: it does, or they were too many.
    held: Option<Vec<(u64, Vec<u8>)>>,
    /// Wall clock at boot, ns, for monotonic times.
    boot: Option<When>,
    /// The last line with a prefix, and its number.
    last: Vec<u8>,
    last_number: u64,
    last_when: Option<When>,
}

/// A reader.
pub(super) fn new(context: &LogContext<'_>) -> Box<dyn LineReader> {
    Box::new(Short {
        interpreter: Interpreter::with_strays(context),
        clock: LocalClock::new(context.options, context.modified_ns),
        input: context.input,
        held: Some(Vec::new()),
        boot: None,
        last: Vec::new(),
        last_number: 0,
        last_when: None,
    })
}

impl LineReader for Short {
    fn line(&mut self, line: &[u8], number: u64, out: &mut dyn RecordSink) {
        let Some(held) = &mut self.held else { return self.read(line, number, out) };
        let full = held.len() >= limits::HELD_LINES || held.iter().map(|l| l.1.len()).sum::<usize>() > (1 << 20);
        if full || self.knows_enough(line) {
            self.release(out);
            return self.read(line, number, out);
        }
        if let Some(held) = &mut self.held {
            held.push((number, line.to_vec()));
        }
    }

    fn finish(&mut self, out: &mut dyn RecordSink) {
        self.release(out);
        self.interpreter.finish(out);
    }
}

impl Short {
    /// Can this line, and so those after it, be given its time without more context?
    fn knows_enough(&mut self, line: &[u8]) -> bool {
        let Some(p) = prefix(line) else { return false };
        let message = line.get(p.column..).unwrap_or_default();
        match p.stamp {
            Stamp::Wall(r) => {
                let year = matches!(r.date, reading::Date::MonthDay(..)) && self.clock.lacks_year();
                let zone = r.offset_s.is_none() && self.clock.lacks_zone();
                if !year && !zone {
                    return true;
                }
                if let Some(inner) = reading::find_full(message) {
                    self.clock.learn(&r, &inner);
                }
                !((year && self.clock.lacks_year()) || (zone && self.clock.lacks_zone()))
            }
            Stamp::Monotonic(ns) => {
                let Some(inner) = reading::find_full(message) else { return false };
                let Some(i) = self.clock.resolve(&inner) else { return false };
                let boot = When { at: i.when.at.plus_ns(-ns), error_ns: i.when.error_ns };
                if self.boot.is_none_or(|b| boot.error_ns < b.error_ns) {
                    self.boot = Some(boot);
                }
                inner.digits >= 3
            }
        }
    }

    fn release(&mut self, out: &mut dyn RecordSink) {
        for (number, line) in self.held.take().unwrap_or_default() {
            self.read(&line, number, out);
        }
    }

    fn read(&mut self, line: &[u8], number: u64, out: &mut dyn RecordSink) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.first().is_none_or(|b| *b == b' ') {
            return self.further(line, out);
        }
        let Some(p) = prefix(line) else { return self.other(line, number, out) };
        let place = Place::line(self.input, number);
        let when = self.when(p.stamp, place, out);
        let origin = origin(&p, place, when);
        let message = line.get(p.column..).unwrap_or_default();
        if journal::is_elided(message) {
            out.problem(ProblemKind::ElidedMessage, place, "journalctl left the message out; export with --all");
        }
        self.interpreter.entry(message, &origin, out);
        self.last.clear();
        self.last.extend_from_slice(line);
        (self.last_number, self.last_when) = (number, when);
    }

    /// A line of a message with several, indented to the message's column.
    fn further(&mut self, line: &[u8], out: &mut dyn RecordSink) {
        let Some(p) = prefix(&self.last) else { return };
        let indent = line.iter().take_while(|b| **b == b' ').count().min(p.column);
        let rest = line.get(indent..).unwrap_or_default();
        let origin = origin(&p, Place::line(self.input, self.last_number), self.last_when);
        self.interpreter.continuation(rest, &origin, out);
    }

    /// A line without a prefix: journalctl's own, or one that came from elsewhere.
    fn other(&mut self, line: &[u8], number: u64, out: &mut dyn RecordSink) {
        if line.starts_with(b"-- ") || line.starts_with(b"Hint: ") {
            if line.starts_with(b"-- Boot ") || line.starts_with(b"-- Reboot ") {
                self.boot = None;
            }
            return;
        }
        let place = Place::line(self.input, number);
        if !self.interpreter.knows(line, place) {
            out.problem(ProblemKind::UnknownLine, place, "no journal line, and no application's or proxy's");
        }
        self.interpreter.entry(line, &Origin::at(place), out);
    }

    fn when(&mut self, stamp: Stamp, place: Place, out: &mut dyn RecordSink) -> Option<When> {
        const TEXT: &str =
            "journal times without zone or year: --tz and --year; else taken from the messages, the file or as UTC";
        match stamp {
            Stamp::Wall(r) => {
                let i = self.clock.resolve(&r)?;
                if i.inferred {
                    out.problem(ProblemKind::InferredTime, place, TEXT);
                }
                Some(When { at: i.when.at, error_ns: i.when.error_ns + TRANSPORT_ERROR_NS })
            }
            Stamp::Monotonic(ns) => {
                let boot = self.boot?;
                out.problem(
                    ProblemKind::InferredTime,
                    place,
                    "monotonic times: the wall clock was derived from times in the messages",
                );
                Some(When {
                    at: Time::from_ns(boot.at.plus_ns(ns).ns(), 6),
                    error_ns: boot.error_ns + TRANSPORT_ERROR_NS,
                })
            }
        }
    }
}

fn origin<'a>(p: &Prefix<'a>, place: Place, when: Option<When>) -> Origin<'a> {
    Origin {
        when,
        host: p.host,
        unit: p.ident,
        pid: p.pid,
        is_manager: p.ident.is_some_and(journal::is_manager),
        ..Origin::at(place)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use crate::input::log::told::{events, read_with, whens};
    use crate::model::options::ReadOptions;

    #[test]
    fn prefixes_of_every_mode() {
        for sample in FORMAT.samples {
            for line in sample.lines() {
                let p = prefix(line.as_bytes()).unwrap();
                assert!(p.host.is_some() && p.pid.is_some(), "{line}");
            }
        }
        let p = prefix(b"Nov 29 14:50:39 uvicorn[1]: x: y").unwrap();
        assert_eq!((p.host, p.ident, p.column), (None, Some("uvicorn"), 28));
        let p = prefix(b"Nov 29 14:50:39 h kernel: x").unwrap();
        assert_eq!((p.host, p.ident, p.pid), (Some("h"), Some("kernel"), None));
        assert!(prefix(b"Mar 24 14:26:01 --- last message repeated 2 times ---").unwrap().ident.is_none());
        for not in [&b"2026-11-29 14:50:39,123 - x: y"[..], b"Nov 29", b"[x] y: z", b"", b"1795981839 x y: z"] {
            assert_eq!(prefix(not), None);
        }
    }

    #[test]
    fn year_zone_and_boot_come_from_the_messages() {
        let text = "Nov 29 14:50:39.484364 h systemd[1]: Started x.service - X.\n\
                    Nov 29 14:50:39.604364 h app[7]: 2026-11-29T19:50:39.604Z INFO hello\n";
        assert_eq!(
            whens(&read_with(&FORMAT, text, &ReadOptions::default(), None)),
            ["2026-11-29T19:50:39.484364Z", "2026-11-29T19:50:39.604364Z"]
        );
        let text = "[ 3717.151401] h app[7]: one\n[ 3717.166411] h app[7]: 2026-11-29 20:01:15,745 INFO two\n";
        let got = read_with(&FORMAT, text, &ReadOptions::default(), None);
        assert_eq!(whens(&got)[0], "2026-11-29T20:01:15.730490Z");
        let got = read_with(&FORMAT, "[ 3717.151401] h app[7]: one\n", &ReadOptions::default(), None);
        assert_eq!((got.entries.len(), got.count(ProblemKind::NoTime)), (1, 1));
    }

    #[test]
    fn long_messages_go_on_in_their_column() {
        let text = "Nov 29 19:50:39 h app[42]: Traceback (most recent call last):\n\
                    \x20                          File \"x.py\", line 1\n\
                    \x20                        ValueError: no\n\
                    Nov 29 19:50:40 h app[42]: done\n";
        let got = read_with(&FORMAT, text, &ReadOptions { year: Some(2026), ..ReadOptions::default() }, None);
        assert_eq!(got.entries.len(), 2);
        assert_eq!(events(&got), ["Error - - - Traceback (most recent call last): ValueError: no"]);
    }

    #[test]
    fn coarse_times_are_refined_by_the_messages_own() {
        let options = ReadOptions { year: Some(2026), tz: "America/New_York".parse().ok(), ..ReadOptions::default() };
        let got = read_with(&FORMAT, "Nov 29 14:50:39 h app[42]: 2026-11-29 19:50:39,770 INFO x\n", &options, None);
        assert_eq!(whens(&got), ["2026-11-29T19:50:39.770Z"]);
    }

    #[test]
    fn lines_of_no_layout_are_counted() {
        let got = read_with(&FORMAT, "1795981839.484364 h a[1]: x\ngarbage\n", &ReadOptions::default(), None);
        assert_eq!((got.entries.len(), got.count(ProblemKind::UnknownLine)), (2, 1));
    }
}
