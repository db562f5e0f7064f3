//! JSON access logs of any proxy, by the names of their keys.

use super::assemble::Assembly;
use super::json_layout::JsonLayout;
use super::json_scan::walk;
use super::layout::{self, LayoutReader};
use super::{Format, Grade, Reader, names};
use crate::model::place::Vantage;

/// The format.
pub(super) static FORMAT: Format = Format {
    name: "json-access",
    vantage: Vantage::Proxy,
    carries: false,
    doc: "An access log with one JSON object a line, read by the names of its keys: nginx variables as people \
          write them out (`time_iso8601`, `msec`, `request_time`, `body_bytes_sent`, `http_mcp_session_id`, …) and \
          the names in common use (`time`, `ts`, `status`, `method`, `uri`, `path`, `duration_ms`, `remote_addr`, …), \
          nested keys too (`req.method`, `httpRequest.status`). A time is of the end of the request unless its name \
          says otherwise; of several the finest counts. A duration takes its unit from its name or its value; \
          without one it is in seconds if it has a decimal point, else in milliseconds. Other names, and other \
          meanings, by --log-format 'json:end=KEY,duration=KEY@us,status=KEY,session=KEY,…'.",
    samples: &[
        "{\"ts\":\"2026-11-29T19:38:38+00:00\",\"msec\":\"1795981118.589\",\"remote_addr\":\"127.0.0.1\",\"remote_port\":\"54550\",\
         \"request_id\":\"798f8ce12a9c04129217d44b6c9d79ed\",\"method\":\"POST\",\"uri\":\"/mcp\",\"status\":\"200\",\"bytes_sent\":\"614\",\
         \"body_bytes_sent\":\"362\",\"request_time\":\"0.005\",\"upstream_addr\":\"127.0.0.1:9311\",\"upstream_status\":\"200\",\
         \"upstream_response_time\":\"0.006\",\"request_completion\":\"OK\",\"mcp_session_id\":\"\",\
         \"sent_mcp_session_id\":\"28731ae8108048b2b7529375ef255631\",\"user_agent\":\"connector-egress/1.4\"}\n",
        "{\"timestamp\":\"2026-11-29T19:38:38.589Z\",\"httpRequest\":{\"requestMethod\":\"POST\",\"requestUrl\":\"https://mcp.example/mcp\",\
         \"status\":404,\"responseSize\":\"120\",\"latency\":\"0.005s\",\"remoteIp\":\"192.0.2.9\"}}\n",
    ],
    grade,
    reader: Reader::Lines(|context| LayoutReader::boxed(context, Box::new(layout()))),
};

/// Names that only a log of nginx's variables has together.
const NGINX_NAMES: &[&[u8]] = &[
    b"remote_addr",
    b"request_time",
    b"body_bytes_sent",
    b"upstream_response_time",
    b"request_uri",
    b"time_iso8601",
    b"time_local",
    b"http_user_agent",
    b"request_method",
    b"upstream_addr",
    b"request_completion",
];

pub(super) fn layout() -> JsonLayout {
    JsonLayout::new(names::common, SERVER_MARKS, is_access).guessing()
}

/// Keys of Node's request loggers (pino-http, bunyan, restify): the server itself wrote the line.
const SERVER_MARKS: &[&[u8]] = &[b"req.method", b"res.statusCode"];

/// A status, what was asked, and a time make a line of an access log.
fn is_access(out: &mut Assembly, server_marks: usize) -> bool {
    if server_marks == SERVER_MARKS.len() {
        out.record.vantage = Some(Vantage::Server);
    }
    let r = &out.record;
    r.status.is_some() && r.method.is_some() && r.target.is_some() && out.has_time()
}

fn grade(head: &[u8]) -> Grade {
    let of_nginx = layout::head_lines(head).next().is_some_and(|line| {
        let mut found = 0;
        let whole = walk(line, &mut |path, _| found += usize::from(NGINX_NAMES.contains(&path)));
        whole && found >= 3
    });
    layout::share(head, &mut layout()).grade(if of_nginx { Grade::Certain } else { Grade::Likely })
}
