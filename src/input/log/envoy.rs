//! Envoy's and Istio's access logs, as text and as JSON.

use super::assemble::{Field, Shared, Unit};
use super::format_envoy;
use super::json_layout::JsonLayout;
use super::layout::{self, Layout, LayoutReader, Parsed};
use super::template::Template;
use super::{Format, Grade, Reader, names};
use crate::model::place::{Place, Vantage};

/// The text format.
pub(super) static TEXT: Format = Format {
    name: "envoy",
    vantage: Vantage::Proxy,
    carries: false,
    doc: "Envoy's default access log and Istio's. The time is the start of the request, to the millisecond; the \
          duration is in milliseconds; bytes are those of the body. Response flags say who ended it: DC the client, \
          UC or UR the upstream, UF no connection, UT a timeout. Session ids need a format with \
          %REQ(MCP-SESSION-ID)%, which --log-format reads.",
    samples: &[
        "[2026-11-29T19:50:39.518Z] \"POST /mcp HTTP/1.1\" 200 - 158 350 5 4 \"192.0.2.9\" \"connector-egress/1.4\" \
         \"6c4c9efc-9e75-4f87-8605-a9ab55c139e7\" \"mcp.trailhead.example\" \"10.0.0.2:9311\"\n",
        "[2026-11-29T19:50:39.518Z] \"POST /mcp HTTP/1.1\" 503 UC upstream_reset_before_response_started{connection_termination} \
         - \"-\" 158 95 2003 - \"-\" \"connector-egress/1.4\" \"6c4c9efc-9e75-4f87-8605-a9ab55c139e7\" \"mcp.trailhead.example\" \
         \"10.0.0.2:9311\" inbound|9311|| 127.0.0.6:40311 10.0.0.2:9311 192.0.2.9:51222 outbound_.9311_._.mcp default\n",
    ],
    grade: |head| layout::share(head, &mut TextLog::new()).grade(Grade::Certain),
    reader: Reader::Lines(|context| LayoutReader::boxed(context, Box::new(TextLog::new()))),
};

/// The JSON format.
pub(super) static JSON: Format = Format {
    name: "envoy-json",
    vantage: Vantage::Proxy,
    carries: false,
    doc: "Envoy's and Istio's access log in JSON: `start_time` to the millisecond, `duration` in milliseconds (a number \
          or a string), response flags as in the text format.",
    samples: &[
        "{\"start_time\":\"2026-11-29T19:50:39.518Z\",\"method\":\"POST\",\"path\":\"/mcp\",\"protocol\":\"HTTP/1.1\",\
         \"response_code\":200,\"response_flags\":\"DC\",\"bytes_received\":158,\"bytes_sent\":350,\"duration\":\"5\",\
         \"upstream_service_time\":\"4\",\"x_forwarded_for\":null,\"user_agent\":\"connector-egress/1.4\",\
         \"request_id\":\"6c4c9efc-9e75-4f87-8605-a9ab55c139e7\",\"authority\":\"mcp.trailhead.example\",\
         \"upstream_host\":\"10.0.0.2:9311\",\"upstream_cluster\":\"inbound|9311||\",\
         \"downstream_remote_address\":\"192.0.2.9:51222\"}\n",
    ],
    grade: |head| layout::share(head, &mut json_layout()).grade(Grade::Certain),
    reader: Reader::Lines(|context| LayoutReader::boxed(context, Box::new(json_layout()))),
};

/// Envoy's default (docs/…/observability/access_log/usage, "Default Format String").
const ENVOY: &str = "[%START_TIME%] \"%REQ(:METHOD)% %REQ(X-ENVOY-ORIGINAL-PATH?:PATH)% %PROTOCOL%\" %RESPONSE_CODE% \
    %RESPONSE_FLAGS% %BYTES_RECEIVED% %BYTES_SENT% %DURATION% %RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)% \
    \"%REQ(X-FORWARDED-FOR)%\" \"%REQ(USER-AGENT)%\" \"%REQ(X-REQUEST-ID)%\" \"%REQ(:AUTHORITY)%\" \"%UPSTREAM_HOST%\"";

/// Istio's default (`mesh.accessLogFormat`, since 1.9 with the details of the end).
const ISTIO: &str = "[%START_TIME%] \"%REQ(:METHOD)% %REQ(X-ENVOY-ORIGINAL-PATH?:PATH)% %PROTOCOL%\" %RESPONSE_CODE% \
    %RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS% %CONNECTION_TERMINATION_DETAILS% \
    \"%UPSTREAM_TRANSPORT_FAILURE_REASON%\" %BYTES_RECEIVED% %BYTES_SENT% %DURATION% \
    %RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)% \"%REQ(X-FORWARDED-FOR)%\" \"%REQ(USER-AGENT)%\" \"%REQ(X-REQUEST-ID)%\" \
    \"%REQ(:AUTHORITY)%\" \"%UPSTREAM_HOST%\" %UPSTREAM_CLUSTER% %UPSTREAM_LOCAL_ADDRESS% \
    %DOWNSTREAM_LOCAL_ADDRESS% %DOWNSTREAM_REMOTE_ADDRESS% %REQUESTED_SERVER_NAME% %ROUTE_NAME%";

/// A line of either text format.
pub(super) struct TextLog {
    formats: Vec<Template>,
}

impl TextLog {
    pub(super) fn new() -> TextLog {
        let compiled = [ENVOY, ISTIO].iter().filter_map(|f| format_envoy::compile(f).ok());
        TextLog { formats: compiled.map(Template::new).collect() }
    }
}

impl Layout for TextLog {
    fn parse(&mut self, line: &[u8], place: Place, shared: &mut Shared) -> Parsed {
        // "[2026-11-29T…] \"": cheaper to refuse here than in both formats.
        if line.first() != Some(&b'[') || memchr::memchr(b']', line.get(..40).unwrap_or(line)).is_none() {
            return Parsed::No;
        }
        let mut fits = false;
        for format in &mut self.formats {
            match format.parse(line, place, shared) {
                Parsed::Access(record) => return Parsed::Access(record),
                // A TCP connection ("- - -") has no status and no method.
                Parsed::Quiet(when) => return Parsed::Quiet(when),
                _ => fits |= line.get(1..5).is_some_and(|y| y.iter().all(u8::is_ascii_digit)) && line.contains(&b'"'),
            }
        }
        if fits { Parsed::Bad("a line that fits neither Envoy's nor Istio's default format") } else { Parsed::No }
    }
}

/// Keys that tell Envoy's JSON from others.
const MARKS: &[&[u8]] =
    &[b"start_time", b"response_code", b"response_flags", b"upstream_host", b"upstream_cluster", b"duration"];

pub(super) fn json_layout() -> JsonLayout {
    JsonLayout::new(
        |path| {
            Some(match path {
                b"start_time" => Field::Start,
                b"duration" => Field::Duration(Unit::SuffixOr(1_000_000)),
                b"upstream_service_time" => Field::UpstreamDuration(Unit::SuffixOr(1_000_000)),
                b"response_code" => Field::Status,
                b"bytes_sent" => Field::BodyBytes,
                b"downstream_remote_address" => Field::ClientAddr,
                _ => return names::common(path).filter(|f| !matches!(f, Field::Start | Field::End | Field::Status)),
            })
        },
        MARKS,
        |_, marks| marks >= 4,
    )
    .with_sign(b"\"response_code\"")
}
