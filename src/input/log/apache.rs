//! Apache's `common`, `combined` and `vhost_combined`.

use super::assemble::{Assembly, Field, Shared};
use super::clf::{self, Miss};
use super::layout::{self, Layout, LayoutReader, Parsed};
use super::time;
use super::{Format, Grade, Reader, tail, traefik};
use crate::model::place::{Place, Vantage};

/// The format.
pub(super) static COMBINED: Format = Format {
    name: "apache-combined",
    vantage: Vantage::Proxy,
    carries: false,
    doc: "Apache's access log in `common`, `combined` or `vhost_combined`. The time is when the request was \
          received, to the second, although the line is written when it is done: lines come in order of \
          completion, and without %D there is no end. Bytes are those of the body (%b) or with the head (%O, as \
          Debian configures it). Neither session ids nor bodies are shown: \
          --log-format '… %D \"%{Mcp-Session-Id}i\" \"%{Mcp-Session-Id}o\" %X' reads a log that has them.",
    samples: &[
        "127.0.0.1 - - [29/Nov/2026:19:55:22 +0000] \"POST /mcp HTTP/1.1\" 200 608 \"-\" \"connector-egress/1.4\"\n\
         127.0.0.1 - - [29/Nov/2026:19:55:22 +0000] \"POST /mcp HTTP/1.1\" 202 180 \"-\" \"connector-egress/1.4\"\n",
        "mcp.trailhead.example:443 192.0.2.9 - - [29/Nov/2026:19:55:22 +0000] \"POST /mcp HTTP/1.1\" 202 - \"-\" \"a \\\"b\\\" c\"\n",
        "192.0.2.9 - - [29/Nov/2026:19:55:23 +0000] \"GET /mcp HTTP/1.1\" 409 -\n",
    ],
    grade,
    reader: Reader::Lines(|context| LayoutReader::boxed(context, Box::new(Combined::default()))),
};

/// A line of `combined` as Apache means it.
#[derive(Default)]
pub(super) struct Combined {
    /// An empty body was logged as empty: the bytes are those of the body.
    counts_body: bool,
}

impl Layout for Combined {
    fn parse(&mut self, line: &[u8], place: Place, shared: &mut Shared) -> Parsed {
        let clf = match clf::split(line) {
            Ok(clf) => clf,
            Err(Miss::NotClf) => return Parsed::No,
            Err(Miss::Broken) => return Parsed::Bad("a line of the combined format that breaks off"),
        };
        let mut out = Assembly::default();
        self.counts_body |= matches!(clf.bytes, b"-" | b"0");
        let bytes = if self.counts_body { Field::ClfBytes } else { Field::Bytes };
        if !clf::fill(&clf, Field::Start, bytes, &mut out, shared) {
            return Parsed::Bad("a line of the combined format with a status, time or size that is none");
        }
        tail::read(clf.rest, &mut out, shared);
        Parsed::Access(out.finish(place, shared))
    }
}

fn grade(head: &[u8]) -> Grade {
    let grade = layout::share(head, &mut Combined::default()).grade(Grade::Likely);
    if has_marks(head) && traefik::share(head).own == 0 { grade } else { grade.min(Grade::Unsure) }
}

/// Do these lines show that Apache wrote them, not nginx?
///
/// - `-` for no bytes (`%b`); nginx writes 0.
/// - Bytes for answers that have no body (202 of a streamable HTTP server, 204, 304, HEAD): `%O`
///   counts the head; nginx's `$body_bytes_sent` does not.
/// - A quote escaped as `\"`; nginx writes `\x22`.
/// - `vhost:port` before the address.
/// - Times that go back by more than a second in order of completion: they are of the start, unless
///   answers without a body were logged as 0, as nginx does.
pub(super) fn has_marks(head: &[u8]) -> bool {
    let (mut headed, mut bodiless, mut zeros) = (0u32, 0u32, 0u32);
    let (mut latest, mut goes_back) = (i64::MIN, 0u32);
    let mut marked = false;
    layout::with_plain_context(|shared| {
        for line in layout::head_lines(head) {
            let Ok(clf) = clf::split(line) else { continue };
            let vhost_with_port = clf.has_vhost
                && line
                    .split(|c| *c == b' ')
                    .next()
                    .and_then(|v| v.rsplit(|c| *c == b':').next())
                    .is_some_and(|port| !port.is_empty() && port.iter().all(u8::is_ascii_digit));
            let escaped = [Some(clf.request), clf.agent, clf.referer]
                .into_iter()
                .flatten()
                .any(|text| memchr::memmem::find(text, b"\\\"").is_some());
            marked |= clf.bytes == b"-" && clf.status != b"-" || vhost_with_port || escaped;
            zeros += u32::from(clf.bytes == b"0");
            if matches!(clf.status, b"202" | b"204" | b"304") || clf.request.starts_with(b"HEAD ") {
                bodiless += 1;
                headed += u32::from(time::decimal(clf.bytes, 1).is_some_and(|(n, _)| n >= 60));
            }
            if let Some(at) = time::clf(clf.time).and_then(|(civil, _)| shared.clock.resolve(&civil)) {
                goes_back += u32::from(at.ns() < latest.saturating_sub(time::SECOND_NS));
                latest = latest.max(at.ns());
            }
        }
    });
    marked || (goes_back > 0 && zeros == 0) || (bodiless > 0 && headed * 10 >= bodiless * 9)
}
