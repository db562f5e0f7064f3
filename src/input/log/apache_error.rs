//! Apache's error log.

use super::assemble::Shared;
use super::event;
use super::layout::{self, Layout, LayoutReader, Parsed};
use super::time;
use super::{Format, Grade, Reader};
use crate::model::place::{Place, Vantage};
use crate::model::record::{LogEventKind, When};

/// The format.
pub(super) static FORMAT: Format = Format {
    name: "apache-error",
    vantage: Vantage::Proxy,
    carries: false,
    doc: "Apache's error log: what mod_proxy says of its upstream. Times are local, to the microsecond (--tz ZONE).",
    samples: &[
        "[Sun Nov 29 19:55:22.155420 2026] [mpm_event:notice] [pid 22531:tid 22531] AH00489: Apache/2.4.71 (Debian) \
         configured -- resuming normal operations\n\
         [Sun Nov 29 19:55:24.512077 2026] [proxy_http:error] [pid 22533:tid 22591] (70008)Partial results are valid but \
         processing is incomplete: [client 127.0.0.1:33870] AH01110: error reading response\n",
    ],
    grade: |head| layout::share(head, &mut ErrorLog).grade(Grade::Certain),
    reader: Reader::Lines(|context| LayoutReader::boxed(context, Box::new(ErrorLog))),
};

/// A line of the error log: `[ctime] [module:level] [pid N:tid N] message` (2.4's default
/// `ErrorLogFormat`; 2.2 had `[ctime] [level] message`).
pub(super) struct ErrorLog;

impl Layout for ErrorLog {
    fn parse(&mut self, line: &[u8], place: Place, shared: &mut Shared) -> Parsed {
        let Some((civil, len)) = line.strip_prefix(b"[").and_then(time::ctime) else {
            return Parsed::No;
        };
        let Some(rest) = line.get(len + 1..).and_then(|r| r.strip_prefix(b"] [")) else {
            return Parsed::No;
        };
        let Some(end) = memchr::memchr(b']', rest) else {
            return Parsed::Bad("an error log line that breaks off");
        };
        let (source, message) = rest.split_at(end);
        let Some(at) = shared.clock.resolve(&civil) else {
            return Parsed::Bad("a time that is none");
        };
        let half = time::resolution_of(at.digits()) / 2;
        let when = Some(When { at: at.plus_ns(half), error_ns: half + 1_000_000 });
        let mut message = message.get(1..).unwrap_or_default().trim_ascii_start();
        let mut pid = None;
        if let Some(process) = message.strip_prefix(b"[pid ") {
            let digits = process.iter().take_while(|c| c.is_ascii_digit()).count();
            pid = process.get(..digits).and_then(|d| std::str::from_utf8(d).ok()?.parse().ok());
            message = memchr::memchr(b']', process)
                .and_then(|end| process.get(end + 1..))
                .unwrap_or_default()
                .trim_ascii_start();
        }
        let kind = match event::upstream_kind(message).filter(|_| source.starts_with(b"proxy")) {
            Some(kind) => kind,
            None if source.ends_with(b"error") || source.ends_with(b"crit") => LogEventKind::Error,
            None => LogEventKind::Other,
        };
        let mut event = event::new(kind, when, message, place, shared);
        event.pid = pid;
        Parsed::Event(event)
    }
}
