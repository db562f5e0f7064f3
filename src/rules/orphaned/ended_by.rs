//! Who ended an exchange, as the line of a proxy has it: its status, or the flags behind it.

use crate::mcp::Visit;
use crate::model::place::Hop;
use crate::model::record::ClientOutcome;

const SECOND_NS: i64 = 1_000_000_000;
/// Deadlines of clients and proxies after which hung calls are ended, s.
const DEADLINES_S: [i64; 4] = [60, 120, 240, 300];
/// How far from a deadline a call may have ended, ns.
const NEAR_NS: i64 = 500_000_000;
/// Who gives up sooner did not run out of patience, ns.
pub(super) const PATIENCE_NS: i64 = 10_000_000_000;
/// HAProxy counts heads as bytes; with more than this a reply may have been among them.
const HEAD_BYTES: u64 = 1024;

/// Who ended an exchange before its response was whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EndedBy {
    /// The asking side went away.
    Caller,
    /// The proxy, when nothing had come for as long as it waits.
    Deadline,
}

/// Who ended it, where the line says so.
pub(super) fn ended_by(line: &Visit) -> Option<EndedBy> {
    if line.status == Some(499) {
        return Some(EndedBy::Caller);
    }
    let flags = line.termination.as_deref()?;
    // Apache's `%X`.
    if flags == "X" {
        return Some(EndedBy::Caller);
    }
    for flag in flags.split(',') {
        match flag {
            "DC" | "DR" => return Some(EndedBy::Caller),
            "UT" | "SI" | "DT" => return Some(EndedBy::Deadline),
            _ => {}
        }
    }
    if !is_haproxy(flags) {
        return None;
    }
    // While it waited for the response's head, or passed on its body.
    let (who, when) = (flags.chars().next()?, flags.chars().nth(1)?);
    match who {
        'C' if matches!(when, 'Q' | 'C' | 'H' | 'D') => Some(EndedBy::Caller),
        's' | 'c' if matches!(when, 'H' | 'D') => Some(EndedBy::Deadline),
        _ => None,
    }
}

/// A termination state of HAProxy: two characters, and two more of cookies. Of those that have no more, some are flags of
/// Envoy's too (`DC`, `UC`, `UT`, `LR`).
fn is_haproxy(flags: &str) -> bool {
    let first = |c: char| "CSPcs-".contains(c) || flags.len() == 4 && "LRUDKI".contains(c);
    let second = |c: char| "RQCHDLT-".contains(c);
    let mut chars = flags.chars();
    matches!(flags.len(), 2 | 4) && chars.next().is_some_and(first) && chars.next().is_some_and(second)
}

/// Does the line show a response without a body, or, where it counts heads too, with hardly one and broken off?
pub(super) fn is_bodiless(line: &Visit) -> bool {
    let counts_heads = line.termination.as_deref().is_some_and(is_haproxy);
    match line.bytes {
        Some(0) => true,
        Some(bytes) => counts_heads && ended_by(line).is_some() && bytes <= HEAD_BYTES,
        None => false,
    }
}

/// Its bytes, in words.
pub(super) fn bytes_text(line: &Visit) -> String {
    match line.bytes {
        Some(bytes) if bytes > 0 && line.termination.as_deref().is_some_and(is_haproxy) => {
            format!("{bytes} bytes with its head")
        }
        Some(bytes) => format!("{bytes} body bytes"),
        None => "an unknown number of body bytes".into(),
    }
}

/// Did a call end when callers and proxies usually stop to wait?
pub(super) fn at_deadline(took_ns: i64) -> bool {
    DEADLINES_S.iter().any(|d| (took_ns - d * SECOND_NS).abs() <= NEAR_NS)
}

/// Who can be at fault for a call that its caller ended: that he ended it is sure, that he had to wait in vain is what
/// his own record says, or the time that it took.
pub(super) fn fault_of_leaving(took_ns: i64, record: Option<&Visit>) -> Vec<Hop> {
    let outcome = record.and_then(|r| r.client_outcome);
    let waited = record.and_then(|r| Some(r.ended?.at.since(r.asked))).unwrap_or(took_ns);
    match outcome {
        Some(ClientOutcome::Aborted) => vec![Hop::Client],
        Some(ClientOutcome::Timeout) if waited >= PATIENCE_NS => vec![Hop::Server, Hop::Proxy],
        // Whether it waited long enough, none of these says.
        Some(ClientOutcome::Timeout) => vec![Hop::Client, Hop::Proxy, Hop::Server],
        _ if at_deadline(took_ns) => vec![Hop::Server, Hop::Proxy],
        _ if took_ns >= super::unanswered::PATIENCE_NS => vec![Hop::Client, Hop::Proxy, Hop::Server],
        _ => vec![Hop::Client],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::place::{Place, Vantage};
    use crate::model::record::When;
    use crate::model::time::Time;

    fn line(status: Option<u16>, bytes: u64, flags: &str) -> Visit {
        let when = When { at: Time::from_ns(0, 0), error_ns: 0 };
        let place = Place::line(0, 1);
        let mut v = Visit::new(1, place, Vantage::Proxy, when);
        (v.status, v.bytes, v.termination) = (status, Some(bytes), (!flags.is_empty()).then(|| flags.into()));
        v
    }

    #[test]
    fn flags_say_who_ended_it() {
        let of = |flags| ended_by(&line(Some(200), 0, flags));
        for caller in ["DC", "DR", "DC,URX", "CD--", "CDVN", "CH--", "CD", "X"] {
            assert_eq!(of(caller), Some(EndedBy::Caller), "{caller}");
        }
        for deadline in ["UT", "SI", "sD--", "sH--", "cD--", "sD"] {
            assert_eq!(of(deadline), Some(EndedBy::Deadline), "{deadline}");
        }
        // Ended by none of them, or before there was a request.
        for other in ["", "-", "----", "--", "OK", "+", "UC", "SD--", "SH--", "CR--", "cR--", "PH--", "URX", "NR"] {
            assert_eq!(of(other), None, "{other}");
        }
        assert_eq!(ended_by(&line(Some(499), 0, "")), Some(EndedBy::Caller));
    }

    #[test]
    fn heads_that_are_counted_are_no_body() {
        assert!(is_bodiless(&line(Some(200), 0, "")));
        assert!(is_bodiless(&line(Some(200), 200, "CD--")));
        assert!(!is_bodiless(&line(Some(200), 200, "DC")));
        assert!(!is_bodiless(&line(Some(200), 200, "----")));
        assert!(!is_bodiless(&line(Some(200), 5000, "CD--")));
    }
}
