//! AWS Application Load Balancer access logs.

use super::assemble::{Assembly, Field, Shared};
use super::clf::quoted;
use super::layout::{self, Layout, LayoutReader, Parsed};
use super::time::{self, SECOND_NS};
use super::{Format, Grade, Reader};
use crate::model::place::{Place, Vantage};

/// The format.
pub(super) static FORMAT: Format = Format {
    name: "aws-alb",
    vantage: Vantage::Proxy,
    carries: false,
    doc: "AWS Application Load Balancer access log (usually gzip files). `time` is when the response was generated, \
          `request_creation_time` when the request was received, both to the microsecond; the three processing times \
          make the duration (-1: not dispatched, or the target closed). Bytes count heads too. The trace id is that of \
          X-Amzn-Trace-Id. Fields behind those known are passed over.",
    samples: &[
        "https 2026-11-29T19:53:46.679895Z app/mcp/50dc6c495c0c9188 192.0.2.9:44740 10.0.0.1:9311 0.001 2.048 0.000 200 200 \
         340 570 \"POST https://mcp.trailhead.example:443/mcp HTTP/1.1\" \"connector-egress/1.4\" ECDHE-RSA-AES128-GCM-SHA256 TLSv1.2 \
         arn:aws:elasticloadbalancing:us-east-2:123456789012:targetgroup/mcp/73e2d6bc24d8a067 \
         \"Root=1-58337262-36d228ad5d99923122bbe354\" \"mcp.trailhead.example\" \"session-reused\" 0 2026-11-29T19:53:44.630000Z \
         \"forward\" \"-\" \"-\" \"10.0.0.1:9311\" \"200\" \"-\" \"-\" TID_1234abcd5678ef90\n\
         h2 2026-11-29T19:53:48.000001Z app/mcp/50dc6c495c0c9188 192.0.2.9:44741 - -1 -1 -1 503 - 204 167 \
         \"POST https://mcp.trailhead.example:443/mcp HTTP/2.0\" \"a \\\"b\\\"\" - - - \"Root=1-6449814a-01d4cd3e280010e00ac46641\" \"-\" \"-\" \
         0 2026-11-29T19:53:47.999000Z \"forward\" \"-\" \"-\" \"-\" \"-\" \"-\" \"-\"\n",
    ],
    grade: |head| layout::share(head, &mut AlbLog).grade(Grade::Certain),
    reader: Reader::Lines(|context| LayoutReader::boxed(context, Box::new(AlbLog))),
};

/// A line of the log (ELB user guide, "Access log entries").
pub(super) struct AlbLog;

impl Layout for AlbLog {
    fn parse(&mut self, line: &[u8], place: Place, shared: &mut Shared) -> Parsed {
        let mut fields = Words(line);
        let kind = fields.next().unwrap_or_default();
        if !matches!(kind, b"http" | b"https" | b"h2" | b"grpcs" | b"ws" | b"wss") {
            return Parsed::No;
        }
        let end = fields.next().unwrap_or_default();
        let Some((civil, _)) = time::iso8601(end).filter(|(civil, len)| *len == end.len() && civil.offset_s.is_some())
        else {
            return Parsed::No;
        };
        let Some(end) = shared.clock.resolve(&civil) else {
            return Parsed::Bad("a time that is none");
        };
        let rest: Vec<&[u8]> = fields.take(26).collect();
        let [
            _elb,
            client,
            target,
            t1,
            t2,
            t3,
            status,
            target_status,
            _received,
            sent,
            request,
            agent,
            _cipher,
            _tls,
            _group,
            trace,
            _domain,
            _cert,
            _priority,
            created,
            ..,
        ] = rest.as_slice()
        else {
            return Parsed::Bad("an ALB line that breaks off");
        };
        let mut out = Assembly::default();
        out.set_instant(false, end);
        let fits = out.set(Field::ClientAddr, client, shared)
            && out.set(Field::Status, status, shared)
            && out.set(Field::UpstreamStatus, target_status, shared)
            && out.set(Field::Bytes, sent, shared)
            && out.set(Field::RequestLine, request, shared)
            && out.set(Field::UserAgent, agent, shared)
            && out.set(Field::Upstream, target, shared)
            && out.set(Field::RequestId, trace, shared)
            && out.set(Field::Start, created, shared);
        if !fits {
            return Parsed::Bad("a field of an ALB line that cannot stand there");
        }
        let part = |text: &[u8]| time::decimal(text, SECOND_NS).map(|(ns, _)| ns).filter(|ns| *ns >= 0);
        if let (Some(a), Some(b), Some(c)) = (part(t1), part(t2), part(t3)) {
            out.set_duration(a + b + c, 1_000_000);
        }
        out.record.upstream_ns = part(t2);
        // Where no target was chosen the reason stands among the last fields.
        if let Some(reason) = rest.get(22).filter(|r| !matches!(**r, b"-" | b"")) {
            out.set(Field::Termination, reason, shared);
        }
        Parsed::Access(out.finish(place, shared))
    }
}

/// Words and quoted texts of a line.
struct Words<'a>(&'a [u8]);

impl<'a> Iterator for Words<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let text = self.0.trim_ascii_start();
        if text.is_empty() {
            return None;
        }
        if let Some((inner, rest)) = text.strip_prefix(b"\"").and_then(quoted) {
            self.0 = rest;
            return Some(inner);
        }
        let end = memchr::memchr(b' ', text).unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        self.0 = rest;
        Some(word)
    }
}
