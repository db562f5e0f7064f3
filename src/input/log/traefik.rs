//! Traefik's access logs: `common` (CLF with five further fields) and JSON.

use super::assemble::{Assembly, Field, Shared, Unit};
use super::clf::{self, Miss};
use super::json_layout::JsonLayout;
use super::layout::{self, Layout, LayoutReader, Parsed, Share};
use super::{Format, Grade, Reader, names};
use crate::model::place::{Place, Vantage};

/// The text format.
pub(super) static CLF: Format = Format {
    name: "traefik",
    vantage: Vantage::Proxy,
    carries: false,
    doc: "Traefik's access log in its default format: CLF, then the number of the request, router, server URL and \
          duration in whole milliseconds. The time is the start of the request, to the second. Bytes are those of \
          the body.",
    samples: &[
        "192.0.2.9 - - [29/Nov/2026:19:55:22 +0000] \"POST /mcp HTTP/1.1\" 200 414 \"-\" \"connector-egress/1.4\" 500 \
         \"mcp@docker\" \"http://172.17.0.3:80\" 42ms\n\
         192.0.2.9 - - [29/Nov/2026:19:55:23 +0000] \"GET /mcp HTTP/1.1\" - - \"-\" \"-\" 501 \"-\" \"-\" 0ms\n",
    ],
    grade: |head| share(head).grade(Grade::Certain),
    reader: Reader::Lines(|context| LayoutReader::boxed(context, Box::new(TextLog))),
};

/// The JSON format.
pub(super) static JSON: Format = Format {
    name: "traefik-json",
    vantage: Vantage::Proxy,
    carries: false,
    doc: "Traefik's access log in JSON. `StartUTC` is the start of the request to the nanosecond, `Duration` the \
          total and `OriginDuration` the server's part, in nanoseconds. Session ids are shown where \
          accessLog.fields.headers keeps `Mcp-Session-Id`.",
    samples: &[
        "{\"ClientAddr\":\"192.0.2.9:50552\",\"ClientHost\":\"192.0.2.9\",\"ClientPort\":\"50552\",\"DownstreamContentSize\":414,\
         \"DownstreamStatus\":200,\"Duration\":42123456,\"OriginDuration\":41000000,\"OriginStatus\":200,\"RequestAddr\":\
         \"mcp.trailhead.example\",\"RequestMethod\":\"POST\",\"RequestPath\":\"/mcp\",\"RequestProtocol\":\"HTTP/1.1\",\
         \"ServiceAddr\":\"172.17.0.3:80\",\"StartUTC\":\"2026-11-29T19:55:22.503609123Z\",\"level\":\"info\",\"msg\":\"\",\
         \"request_Mcp-Session-Id\":\"4eb5feb57f4f432990e2c1260691e398\",\"time\":\"2026-11-29T19:55:22Z\"}\n",
    ],
    grade: |head| layout::share(head, &mut json_layout()).grade(Grade::Certain),
    reader: Reader::Lines(|context| LayoutReader::boxed(context, Box::new(json_layout()))),
};

pub(super) fn share(head: &[u8]) -> Share {
    layout::share(head, &mut TextLog)
}

/// A line of the text format.
pub(super) struct TextLog;

impl Layout for TextLog {
    fn parse(&mut self, line: &[u8], place: Place, shared: &mut Shared) -> Parsed {
        let line = line.trim_ascii_end();
        if !line.ends_with(b"ms") {
            return Parsed::No;
        }
        let clf = match clf::split(line) {
            Ok(clf) => clf,
            Err(Miss::NotClf) => return Parsed::No,
            Err(Miss::Broken) => return Parsed::Bad("a line of Traefik's format that breaks off"),
        };
        let Some((url, duration)) = added_fields(clf.rest) else {
            return Parsed::No;
        };
        let mut out = Assembly::default();
        let fits = clf::fill(&clf, Field::Start, Field::BodyBytes, &mut out, shared)
            && out.set(Field::Upstream, url, shared)
            && out.set(Field::Duration(Unit::Ns(1_000_000)), duration, shared);
        if fits {
            Parsed::Access(out.finish(place, shared))
        } else {
            Parsed::Bad("a field of Traefik's format is none")
        }
    }
}

/// `N "router" "url" Nms`: the URL and the milliseconds.
fn added_fields(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let space = memchr::memchr(b' ', rest)?;
    let (count, rest) = rest.split_at(space);
    if !count.iter().all(u8::is_ascii_digit) && count != b"-" {
        return None;
    }
    let (_router, rest) = rest.strip_prefix(b" \"").and_then(clf::quoted)?;
    let (url, rest) = rest.strip_prefix(b" \"").and_then(clf::quoted)?;
    let ms = rest.strip_prefix(b" ")?.strip_suffix(b"ms")?;
    (!ms.is_empty() && ms.iter().all(u8::is_ascii_digit)).then_some((url, ms))
}

/// Traefik's JSON keys (`pkg/middlewares/accesslog/logdata.go`).
pub(super) fn json_layout() -> JsonLayout {
    JsonLayout::new(
        |path| {
            Some(match path {
                b"StartUTC" | b"StartLocal" => Field::Start,
                b"Duration" => Field::Duration(Unit::Ns(1)),
                b"OriginDuration" => Field::UpstreamDuration(Unit::Ns(1)),
                b"RequestMethod" => Field::Method,
                b"RequestPath" => Field::Target,
                b"DownstreamStatus" => Field::Status,
                b"OriginStatus" => Field::UpstreamStatus,
                b"DownstreamContentSize" => Field::BodyBytes,
                b"ClientAddr" | b"ClientHost" => Field::ClientAddr,
                b"ServiceAddr" | b"ServiceURL" => Field::Upstream,
                _ => {
                    let text = std::str::from_utf8(path).ok()?;
                    match text.split_once('_')? {
                        ("request", header) => names::request_header(header)?,
                        ("downstream" | "origin", header) => names::response_header(header)?,
                        _ => return None,
                    }
                }
            })
        },
        &[b"RequestMethod", b"RequestPath", b"DownstreamStatus", b"StartUTC", b"StartLocal"],
        |_, marks| marks >= 3,
    )
    .with_sign(b"\"RequestMethod\"")
}
