//! `strftime` directives, read backwards: from a text to a time.

use super::time::{self, Civil};
use chrono::{DateTime, Datelike, Timelike};

/// One directive or literal byte of such a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Item {
    /// A byte that stands there.
    Byte(u8),
    /// `%Y`
    Year,
    /// `%y`
    ShortYear,
    /// `%m`
    Month,
    /// `%b`, `%h`
    MonthName,
    /// `%B`
    LongMonthName,
    /// `%d`, `%e`
    Day,
    /// `%H`, `%k`
    Hour,
    /// `%I`, `%l`
    Hour12,
    /// `%M`
    Minute,
    /// `%S`
    Second,
    /// `%p`, `%P`
    Half,
    /// `%f`, `%3f`, `%6f`, `%9f`: digits of the fraction, as many as there are
    Fraction,
    /// `%s`
    Epoch,
    /// `%z`
    Offset,
    /// `%Z`
    ZoneName,
    /// `%a`, `%A`
    WeekdayName,
    /// `%j`, `%u`, `%w`, `%U`, `%W`, `%V`: digits that the others say already
    Digits,
}

/// The items of a format; none where a directive is not known.
pub(super) fn compile(format: &str) -> Option<Vec<Item>> {
    let mut items = Vec::new();
    let mut bytes = format.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            items.push(Item::Byte(byte));
            continue;
        }
        let mut directive = bytes.next()?;
        while matches!(directive, b'-' | b'_' | b'0'..=b'9' | b'E' | b'O' | b'^') {
            directive = bytes.next()?;
        }
        let long = match directive {
            b'F' => "%Y-%m-%d",
            b'T' => "%H:%M:%S",
            b'R' => "%H:%M",
            b'D' | b'x' => "%m/%d/%y",
            b'r' => "%I:%M:%S %p",
            b'c' => "%a %b %e %H:%M:%S %Y",
            b'X' => "%H:%M:%S",
            _ => "",
        };
        if !long.is_empty() {
            items.extend(compile(long)?);
            continue;
        }
        items.push(match directive {
            b'Y' | b'G' => Item::Year,
            b'y' | b'g' => Item::ShortYear,
            b'm' => Item::Month,
            b'b' | b'h' => Item::MonthName,
            b'B' => Item::LongMonthName,
            b'd' | b'e' => Item::Day,
            b'H' | b'k' => Item::Hour,
            b'I' | b'l' => Item::Hour12,
            b'M' => Item::Minute,
            b'S' => Item::Second,
            b'p' | b'P' => Item::Half,
            b'f' | b'N' | b'L' => Item::Fraction,
            b's' => Item::Epoch,
            b'z' => Item::Offset,
            b'Z' => Item::ZoneName,
            b'a' | b'A' => Item::WeekdayName,
            b'j' | b'u' | b'w' | b'U' | b'W' | b'V' => Item::Digits,
            b'%' => Item::Byte(b'%'),
            b'n' => Item::Byte(b'\n'),
            b't' => Item::Byte(b'\t'),
            _ => return None,
        });
    }
    Some(items)
}

/// Reads `text` by `items` into `civil`: the bytes that were used.
pub(super) fn parse(items: &[Item], text: &[u8], civil: &mut Civil) -> Option<usize> {
    let mut at = 0;
    let mut month = civil.month_day.map(|(m, _)| m);
    let mut day = civil.month_day.map(|(_, d)| d);
    let mut afternoon = None;
    for item in items {
        let rest = text.get(at..)?;
        let mut number = |most: usize| {
            let spaces = rest.iter().take_while(|c| **c == b' ').count().min(most.saturating_sub(1));
            let digits = rest.get(spaces..)?.iter().take_while(|c| c.is_ascii_digit()).count().min(most - spaces);
            let value = time::decimal(rest.get(spaces..spaces + digits)?, 1)?.0;
            at += spaces + digits;
            Some(value)
        };
        match item {
            Item::Byte(byte) => {
                (rest.first() == Some(byte)).then_some(())?;
                at += 1;
            }
            Item::Year => civil.year = Some(number(4)? as i32),
            Item::ShortYear => {
                // POSIX: 69–99 are of the last century.
                let short = number(2)? as i32;
                civil.year = Some(if short < 69 { 2000 + short } else { 1900 + short });
            }
            Item::Month => month = Some(number(2)? as u8),
            Item::MonthName | Item::LongMonthName => {
                month = Some(time::month(rest)?);
                at += match item {
                    Item::MonthName => 3,
                    _ => rest.iter().take_while(|c| c.is_ascii_alphabetic()).count(),
                };
            }
            Item::Day => day = Some(number(2)? as u8),
            Item::Hour | Item::Hour12 => civil.hour = number(2)? as u8,
            Item::Minute => civil.minute = number(2)? as u8,
            Item::Second => civil.second = number(2)? as u8,
            Item::Half => {
                afternoon = Some(match rest.first()?.to_ascii_lowercase() {
                    b'a' => false,
                    b'p' => true,
                    _ => return None,
                });
                at += 2;
            }
            Item::Fraction => {
                let used = time::fraction(rest, civil);
                (used > 0).then_some(())?;
                at += used;
            }
            Item::Epoch => {
                let seconds = number(12)?;
                set_epoch(seconds, civil)?;
                (month, day) = (civil.month_day.map(|(m, _)| m), civil.month_day.map(|(_, d)| d));
            }
            Item::Offset => {
                let (seconds, used) = time::offset(rest)?;
                civil.offset_s = Some(seconds);
                at += used;
            }
            Item::ZoneName => {
                let name = rest.iter().take_while(|c| c.is_ascii_alphabetic()).count();
                if matches!(rest.get(..name)?, b"UTC" | b"GMT" | b"Z") {
                    civil.offset_s = Some(0);
                }
                at += name;
            }
            Item::WeekdayName => at += rest.iter().take_while(|c| c.is_ascii_alphabetic()).count(),
            Item::Digits => {
                number(3)?;
            }
        }
    }
    if let (Some(month), Some(day)) = (month, day) {
        civil.month_day = Some((month, day));
    } else if let Some(month) = month {
        civil.month_day = Some((month, 1));
    } else if let Some(day) = day {
        civil.month_day = Some((1, day));
    }
    match afternoon {
        Some(true) if civil.hour < 12 => civil.hour += 12,
        Some(false) if civil.hour == 12 => civil.hour = 0,
        _ => {}
    }
    Some(at)
}

/// Sets all but the fraction from whole seconds since the epoch.
pub(super) fn set_epoch(seconds: i64, civil: &mut Civil) -> Option<()> {
    let t = DateTime::from_timestamp(seconds, 0)?;
    civil.year = Some(t.year());
    civil.month_day = Some((t.month() as u8, t.day() as u8));
    (civil.hour, civil.minute, civil.second) = (t.hour() as u8, t.minute() as u8, t.second() as u8);
    civil.offset_s = Some(0);
    Some(())
}
