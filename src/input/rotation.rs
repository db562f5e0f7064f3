//! What file names say of rotation: which files are one log in turn, and of which day.

use chrono::NaiveDate;

/// A name without what rotation put into it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rotated {
    /// The name with dates as `*`, without number and compression: the same for all of a set.
    pub stem: String,
    /// The number behind it: `access.log.2` is 2; the higher, the older.
    pub number: Option<u32>,
    /// The date in it, days since 1970-01-01.
    pub day: Option<i64>,
    /// The compression that its ending says.
    pub compression: Option<&'static str>,
}

const COMPRESSIONS: &[(&str, &str)] =
    &[(".gz", "gzip"), (".zst", "zstd"), (".xz", "xz"), (".bz2", "bzip2"), (".zstd", "zstd")];

/// What the path of a file (or archive member) says.
pub fn rotated(path: &str) -> Rotated {
    let (path, outer) = compression(path);
    let (path, number) = number(path);
    let (path, inner) = compression(path);
    let (mut stem, mut day) = (String::new(), None);
    // Folders by date: `2026/10/05`, `year=2026/month=10/day=05`.
    let (mut year, mut month) = (None, None);
    let mut parts = path.split('/').peekable();
    while let Some(part) = parts.next() {
        let is_folder = parts.peek().is_some();
        let value = part.split_once('=').map_or(part, |(_, v)| v);
        let digits = value.parse::<u32>().ok().filter(|_| is_folder && value.bytes().all(|b| b.is_ascii_digit()));
        match (digits, value.len(), year, month) {
            (Some(y @ 1990..=2200), 4, None, _) => year = i32::try_from(y).ok(),
            (Some(m @ 1..=12), 1 | 2, Some(_), None) => month = Some(m),
            (Some(n @ 0..=59), 1 | 2, Some(y), Some(m)) => {
                day = day.or_else(|| NaiveDate::from_ymd_opt(y, m, n).map(days));
            }
            _ => {
                let (text, found) = dated(part);
                day = found.or(day);
                stem.push_str(&text);
                stem.push('/');
                continue;
            }
        }
        stem.push_str("*/");
    }
    stem.pop();
    Rotated { stem, number, day, compression: outer.or(inner) }
}

fn compression(path: &str) -> (&str, Option<&'static str>) {
    let ending = COMPRESSIONS.iter().find_map(|(ending, name)| Some((path.strip_suffix(ending)?, *name)));
    ending.map_or((path, None), |(rest, name)| (rest, Some(name)))
}

/// `access.log.2`, and `capture.pcap17` as tcpdump -C names them.
fn number(path: &str) -> (&str, Option<u32>) {
    let digits = path.bytes().rev().take_while(u8::is_ascii_digit).count();
    let (front, tail) = path.split_at(path.len() - digits);
    if (1..=6).contains(&digits) {
        if let Some(base) = front.strip_suffix('.').filter(|b| !b.is_empty() && !b.ends_with('/')) {
            return (base, tail.parse().ok());
        }
        if front.ends_with(".pcap") || front.ends_with(".pcapng") {
            return (front, tail.parse().ok());
        }
    }
    (path, None)
}

fn days(date: NaiveDate) -> i64 {
    date.signed_duration_since(NaiveDate::default()).num_days()
}

/// A part of a path with every date (and the time behind it) as `*`.
fn dated(part: &str) -> (String, Option<i64>) {
    let (mut out, mut day, mut rest, mut before) = (String::new(), None, part, ' ');
    while let Some(c) = rest.chars().next() {
        match date(rest).filter(|_| !before.is_ascii_digit()) {
            Some((found, length)) => {
                day = Some(found);
                out.push('*');
                rest = rest.get(length..).unwrap_or("");
            }
            None => {
                out.push(c);
                rest = rest.get(c.len_utf8()..).unwrap_or("");
            }
        }
        before = c;
    }
    (out, day)
}

/// `2026-10-05`, `2026_10_05`, `20261005`, and the digits of a time behind it; the day and its length.
fn date(text: &str) -> Option<(i64, usize)> {
    let bytes = text.as_bytes();
    let digits = |from: usize, n: usize| -> Option<u32> {
        text.get(from..from + n).filter(|t| t.bytes().all(|b| b.is_ascii_digit()))?.parse().ok()
    };
    let year = digits(0, 4).filter(|y| (1990..=2200).contains(y))?;
    let is_separator = |at: usize| bytes.get(at).is_some_and(|b| matches!(b, b'-' | b'_' | b'.'));
    let (month, day, mut length) = match is_separator(4) {
        true if bytes.get(4) == bytes.get(7) => (digits(5, 2)?, digits(8, 2)?, 10),
        true => return None,
        false => (digits(4, 2)?, digits(6, 2)?, 8),
    };
    let date = NaiveDate::from_ymd_opt(i32::try_from(year).ok()?, month, day)?;
    for _ in 0..3 {
        let at = length + usize::from(bytes.get(length).is_some_and(|b| matches!(b, b'T' | b'-' | b'_' | b':')));
        if digits(at, 2).is_none() {
            break;
        }
        length = at + 2;
    }
    // What goes on with digits is a number, no date.
    (!bytes.get(length).is_some_and(u8::is_ascii_digit)).then(|| (days(date), length))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::{Rotated, days, rotated};
    use chrono::NaiveDate;

    #[test]
    fn sets_have_one_stem() {
        for (names, stem) in [
            (vec!["a/access.log", "a/access.log.1", "a/access.log.2.gz", "a/access.log.12.zst"], "a/access.log"),
            (vec!["x/journal-2026-10-05.log", "x/journal-2026-10-04.log.gz"], "x/journal-*.log"),
            (vec!["access.log-20261005", "access.log-20261004.gz", "access.log-20261004T130000"], "access.log-*"),
            (vec!["s/2026/10/05/access.log.gz", "s/2026/11/30/access.log"], "s/*/*/*/access.log"),
            (vec!["s/year=2026/month=1/day=05/a.log.1"], "s/*/*/*/a.log"),
            (vec!["s/dt=2026-10-05/x.log"], "s/dt=*/x.log"),
            (vec!["cap_00001_20261005120000.pcapng"], "cap_00001_*.pcapng"),
            (vec!["t.pcap", "t.pcap0", "t.pcap12"], "t.pcap"),
            (vec!["app.2026-10-05T13.log.xz", "app.2026-10-05T14-30-00.log"], "app.*.log"),
            (vec!["日本-2026-10-05.log"], "日本-*.log"),
            (vec!["10.0.0.5/access.log"], "10.0.0.5/access.log"),
        ] {
            for name in names {
                assert_eq!(rotated(name).stem, stem, "{name}");
            }
        }
    }

    #[test]
    fn numbers_days_and_endings() {
        let r = rotated("h/access.log.2.gz");
        assert_eq!((r.number, r.day, r.compression), (Some(2), None, Some("gzip")));
        let day = |y, m, d| Some(days(NaiveDate::from_ymd_opt(y, m, d).unwrap()));
        assert_eq!(rotated("j-2026-10-05.log").day, day(2026, 10, 5));
        assert_eq!(rotated("2026/10/05/x.log").day, day(2026, 10, 5));
        let plain = Rotated { stem: "mcp-0-13.pcap".into(), number: None, day: None, compression: None };
        assert_eq!(rotated("mcp-0-13.pcap"), plain);
        assert_eq!(rotated("report-99999999.log").day, None);
    }
}
