//! The layouts of application logs: how a line of each is recognised, and the formats that are
//! nothing but a layout.

use super::{head, json_lines, reader};
use crate::input::log::reading;
use crate::input::log::{Format, Grade, Reader};
use crate::model::place::Vantage;

/// Grades the beginning of an input by how many of its lines `is` claims.
pub(super) fn grade(bytes: &[u8], is: fn(&str) -> Mark) -> Grade {
    let (mut own, mut strong, mut all) = (0u32, 0u32, 0u32);
    // the last line may be cut
    let whole = memchr::memrchr(b'\n', bytes).and_then(|i| bytes.get(..i)).unwrap_or(bytes);
    for line in whole.split(|b| *b == b'\n').take(400) {
        let line = super::plain(line);
        let Ok(text) = std::str::from_utf8(&line) else { continue };
        let text = text.trim_end();
        if text.is_empty() {
            continue;
        }
        match is(text) {
            Mark::Own => (own, strong, all) = (own + 1, strong + 1, all + 1),
            Mark::Fits => (own, all) = (own + 1, all + 1),
            Mark::Continues => {}
            Mark::No => all += 1,
        }
    }
    match (own, strong) {
        (0, _) | (_, 0) => Grade::No,
        // its marks all over
        (_, s) if s * 10 >= all * 8 => Grade::Likely,
        // its marks on some lines, and the rest of the lines are what such logs are full of
        (o, s) if o * 10 >= all * 8 && s * 10 >= all => Grade::Likely,
        _ => Grade::Unsure,
    }
}

/// What a line is to a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// It bears the layout's marks.
    Own,
    /// It often stands in such logs.
    Fits,
    /// The rest of an earlier line.
    Continues,
    /// Neither.
    No,
}

fn mark(own: bool, line: &str) -> Mark {
    if own {
        Mark::Own
    } else if line.starts_with([' ', '\t', '\u{2502}', '\u{256d}', '\u{2570}']) || line.starts_with("Traceback (") {
        // among them the boxes that FastMCP and Rich draw
        Mark::Continues
    } else if fits(line) {
        Mark::Fits
    } else {
        Mark::No
    }
}

/// A line that any server's output may hold: uvicorn's, or a known message after a head.
fn fits(line: &str) -> bool {
    uvicorn_line(line) || super::says_something(line)
}

fn uvicorn_line(line: &str) -> bool {
    let Some((level, rest)) = line.split_once(':') else { return false };
    matches!(level, "INFO" | "WARNING" | "ERROR" | "DEBUG" | "CRITICAL" | "TRACE")
        && rest.len() > 2
        && level.len() + 1 + rest.bytes().take_while(|b| *b == b' ').count() == 10
}

/// `INFO:     …`: levels padded to ten.
pub(super) fn is_uvicorn(line: &str) -> Mark {
    mark(uvicorn_line(line), line)
}

/// `[2026-11-29 19:50:48 +0000] [18949] [INFO] …`.
pub(super) fn is_gunicorn(line: &str) -> Mark {
    let own = line.strip_prefix('[').and_then(|l| reading::iso(l.as_bytes()).and_then(|(_, n)| l.get(n..)));
    mark(own.is_some_and(|r| r.starts_with("] [") && r.as_bytes().get(3).is_some_and(u8::is_ascii_digit)), line)
}

fn after_iso(line: &str) -> Option<(&str, u8, Option<i32>)> {
    let (r, n) = reading::iso(line.as_bytes())?;
    Some((line.get(n..)?, r.digits, r.offset_s))
}

/// `2026-11-29 14:50:39,123 - name - LEVEL - …`: the comma is Python's.
fn is_python(line: &str) -> Mark {
    let own = after_iso(line).is_some_and(|(_, digits, _)| digits == 3 && line.as_bytes().get(19) == Some(&b','));
    mark(own, line)
}

fn is_rich(line: &str) -> Mark {
    mark(line.starts_with(['[', ' ']) && super::fold::open(line).is_some(), line)
}

/// `2026-11-29 14:50:39.123 | INFO     | module:function:line - …`.
fn is_loguru(line: &str) -> Mark {
    mark(after_iso(line).is_some_and(|(rest, _, _)| rest.starts_with(" | ") && rest.matches(" | ").count() >= 2), line)
}

/// An ISO time in UTC and no level, or a known message of a Node server.
pub(super) fn is_node(line: &str) -> Mark {
    let stamped = after_iso(line)
        .is_some_and(|(_, digits, zone)| digits == 3 && zone == Some(0) && line.as_bytes().get(10) == Some(&b'T'));
    let own = stamped && head_level(line).is_none();
    let said = [
        "Session initialized",
        "Transport closed for session",
        "server.onerror ",
        "MCP Streamable HTTP Server",
        "Received session termination",
    ];
    mark(own || said.iter().any(|s| line.starts_with(s)), line)
}

/// `POST /mcp 200 182 - 28.596 ms`.
pub(super) fn is_morgan(line: &str) -> Mark {
    let bare = ["POST /", "GET /", "DELETE /", "OPTIONS /"].iter().any(|m| line.starts_with(m));
    let own = bare && super::access::read(line, 0).is_some();
    mark(own, line)
}

pub(super) fn is_json_line(line: &str) -> Mark {
    let json = line.starts_with('{').then(|| json_lines::parse(line)).flatten();
    let own = json.is_some_and(|j| j.message.is_some() && (j.has_level || j.reading.is_some()));
    mark(own, line)
}

/// A JSON line with message, level and time.
pub(super) fn is_whole_json_line(line: &str) -> Mark {
    let json = line.starts_with('{').then(|| json_lines::parse(line)).flatten();
    if json.is_some_and(|j| j.message.is_some() && j.has_level && j.reading.is_some()) { Mark::Own } else { Mark::No }
}

/// `info: Category[0]`.
fn is_dotnet(line: &str) -> Mark {
    mark(!line.starts_with([' ', '[']) && super::fold::open(line).is_some(), line)
}

/// `time  INFO 12345 --- [app] [thread] logger : …` or `time [thread] INFO logger - …`.
fn is_logback(line: &str) -> Mark {
    let rest = after_iso(line)
        .map(|r| r.0)
        .or_else(|| reading::time_of_day(line.as_bytes()).and_then(|(_, _, n)| line.get(n..)));
    let own = rest.map(str::trim_start).is_some_and(|r| {
        let spring = r.contains(" --- [");
        let plain = r.strip_prefix('[').and_then(|r| r.split_once("] ")).is_some_and(|(_, r)| {
            let mut words = r.split_ascii_whitespace();
            words.next().and_then(|w| head::level(w.as_bytes())).is_some()
                && words.nth(1).is_some_and(|w| w == "-" || w == "--")
        });
        spring || plain
    });
    mark(own, line)
}

/// `2026-11-29T19:49:34.640130Z  INFO module::path: …`.
fn is_tracing(line: &str) -> Mark {
    let own = after_iso(line).is_some_and(|(rest, _, zone)| {
        let mut words = rest.split_ascii_whitespace();
        let level = words.next().is_some_and(|w| matches!(w, "TRACE" | "DEBUG" | "INFO" | "WARN" | "ERROR"));
        zone == Some(0) && level && words.next().is_some_and(|w| w.ends_with(':') || w.contains("::"))
    });
    mark(own, line)
}

/// `time=… level=… msg=…`.
fn is_logfmt(line: &str) -> Mark {
    let pairs = line.split_ascii_whitespace().take(3).filter(|w| {
        w.split_once('=').is_some_and(|(k, _)| {
            !k.is_empty() && k.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-'))
        })
    });
    let own = pairs.count() >= 2 && (line.contains("level=") || line.contains("lvl=")) && line.contains("msg=");
    mark(own, line)
}

/// `14:50:39.123 [info] …`.
fn is_elixir(line: &str) -> Mark {
    let own = reading::time_of_day(line.as_bytes()).and_then(|(_, _, n)| line.get(n..)).is_some_and(|r| {
        r.strip_prefix(" [")
            .and_then(|r| r.split_once("] ").or_else(|| r.split_once(']')))
            .is_some_and(|(l, _)| head::level(l.as_bytes()).is_some())
    });
    mark(own, line)
}

/// A message that is known, after any head; a time and a level alone are anyone's.
fn is_known(line: &str) -> Mark {
    if super::says_something(line) { Mark::Own } else { mark(false, line) }
}

fn is_stamped(line: &str) -> Mark {
    mark(head::stamp(line.as_bytes()).is_some() && head_level(line).is_some(), line)
}

fn grade_any(bytes: &[u8]) -> Grade {
    let known = grade(bytes, is_known);
    known.max(grade(bytes, is_stamped).min(Grade::Unsure))
}

fn head_level(line: &str) -> Option<head::Level> {
    line.split(|c: char| c.is_whitespace() || "[]|:-()".contains(c))
        .filter(|w| !w.is_empty())
        .take(12)
        .find_map(|w| head::level(w.as_bytes()).filter(|_| w.bytes().all(|b| b.is_ascii_alphabetic())))
}

const READER: Reader = Reader::Lines(reader::new);

const fn format(
    name: &'static str,
    doc: &'static str,
    samples: &'static [&'static str],
    grade: fn(&[u8]) -> Grade,
) -> Format {
    Format { name, vantage: Vantage::Server, carries: false, doc, samples, grade, reader: READER }
}

/// Python's `logging`.
pub static PYTHON: Format = format(
    "python-logging",
    "Python's `logging` with `%(asctime)s`: `2026-11-29 14:50:39,123 - name - LEVEL - message`, in any order of name \
     and level. Times are the process's local time to the millisecond, without a zone: give `--tz`, else UTC is taken and \
     said. Between them uvicorn's lines and tracebacks, which have no time.",
    &[
        "2026-11-29 14:50:39,123 - mcp.server.streamable_http_manager - INFO - Created new transport with session ID: 745b2234a9ff40a4b4512a63d0e76b63\n2026-11-29 14:50:40,277 - mcp.server.lowlevel.server - INFO - Processing request of type CallToolRequest",
        "2026-11-29 19:50:39,770 INFO [mcp.server.streamable_http_manager] Created new transport with session ID: 745b2234a9ff40a4b4512a63d0e76b63",
    ],
    |b| grade(b, is_python),
);
/// Rich.
pub static RICH: Format = format(
    "rich",
    "Rich's console columns, as FastMCP sets them up: `[11/29/26 19:33:32] INFO     message   file.py:116`, wrapped at 80 \
     columns, the time blank where it has not changed. Messages are put together again, session ids that were broken over \
     lines with them. Local time to the second, without a zone. uvicorn's lines between them have no time.",
    &[
        "[11/29/26 19:34:24] INFO     Created new          streamable_http_manager.py:240\n                             transport with                                     \n                             session ID:                                        \n                             c67ddcae2e924a24b0fe                               \n                             8bfd3902f47f                                       \nINFO:     127.0.0.1:50580 - \"POST /mcp HTTP/1.1\" 200 OK\n",
    ],
    |b| grade(b, is_rich),
);
/// loguru.
pub static LOGURU: Format = format(
    "loguru",
    "loguru's default: `2026-11-29 14:50:39.123 | INFO     | module:function:line - message`. Local time to the \
     millisecond, without a zone.",
    &[
        "2026-11-29 14:50:39.123 | INFO     | mcp.server.streamable_http_manager:handle:240 - Created new transport with session ID: 745b2234a9ff40a4b4512a63d0e76b63\n2026-11-29 14:50:40.277 | INFO     | app.tools:call:12 - tool=search start",
    ],
    |b| grade(b, is_loguru),
);
/// .NET's console.
pub static DOTNET: Format = format(
    "dotnet",
    ".NET's simple console: `info: Category[0]` with the message indented below. No time unless a journal or container \
     adds one. The C# SDK names each method and tool that it begins and completes.",
    &[
        "info: ModelContextProtocol.Server.McpServer[570385771]\n      Server (mcp 1.0.0.0), Client (chat 1.0.0.0) method 'tools/call' request handler called.\nfail: App[0]\n      it broke\n",
    ],
    |b| grade(b, is_dotnet),
);
/// Spring and logback.
pub static LOGBACK: Format = format(
    "logback",
    "Spring Boot (`time  INFO 12345 --- [app] [thread] logger : message`) and logback's default (`14:50:39.123 [thread] \
     INFO logger - message`). With a zone in Spring Boot 3; a time of day alone takes its date from its neighbours.",
    &[
        "2026-11-29T14:50:39.123+01:00  INFO 12345 --- [mcp] [nio-8080-exec-1] i.m.s.t.HttpServletTransport : Session not found: 745b2234a9ff40a4b4512a63d0e76b63\n2026-11-29T14:50:39.223+01:00  WARN 12345 --- [mcp] [nio-8080-exec-1] o.x.Y : z",
    ],
    |b| grade(b, is_logback),
);
/// Rust's tracing.
pub static TRACING: Format = format(
    "tracing",
    "Rust's `tracing` console, with or without colours: `2026-11-29T19:49:34.640130Z  INFO module::path: message \
     field=value`. UTC to the microsecond. rmcp names sessions when it creates and closes them.",
    &[
        "\u{1b}[2m2026-11-29T19:49:34.640130Z\u{1b}[0m \u{1b}[32m INFO\u{1b}[0m \u{1b}[2mrmcp::transport::streamable_http_server::session::local\u{1b}[0m\u{1b}[2m:\u{1b}[0m create new session \u{1b}[3msession_id\u{1b}[0m\u{1b}[2m=\u{1b}[0m\"974c93c5-ef4c-4082-ab09-c833d4402ef3\"\n2026-11-29T19:49:51.553182Z  INFO serve_inner: rmcp::service: cancelled id=7 reason=\"timeout\"",
    ],
    |b| grade(b, is_tracing),
);
/// logfmt.
pub static LOGFMT: Format = format(
    "logfmt",
    "`key=value` pairs with `time`, `level` and `msg`, as Go's slog, logrus and others write them.",
    &[
        "time=2026-11-29T19:50:39.123Z level=INFO msg=\"Created new transport with session ID: 745b2234a9ff40a4b4512a63d0e76b63\"\ntime=2026-11-29T19:50:40.123Z level=ERROR msg=\"tool failed\" tool=search",
    ],
    |b| grade(b, is_logfmt),
);
/// Elixir's Logger.
pub static ELIXIR: Format = format(
    "elixir",
    "Elixir's Logger: `14:50:39.123 [info] message`. A time of day without date or zone.",
    &["14:50:39.123 [info] POST /mcp\n14:50:39.130 [info] Session not found: 745b2234a9ff40a4b4512a63d0e76b63"],
    |b| grade(b, is_elixir),
);
/// Anything else.
pub static APPLICATION: Format = format(
    "application",
    "Any other application log whose lines begin with a time and a level in some order, or hold messages that are known: \
     the MCP SDKs', systemd's (as `journalctl -o cat` prints them), uvicorn's. Several layouts may be mixed. Times are \
     read where a line's head has one, local times as `--tz` says.",
    &[
        "INFO 2026-11-29 14:50:39 Created new transport with session ID: 745b2234a9ff40a4b4512a63d0e76b63\n2026-11-29T14:50:39Z WARN x: y",
        "Started trailhead-mcp.service - Trailhead MCP server.\nStreamableHTTP session manager started\nProcessing request of type CallToolRequest",
    ],
    grade_any,
);
