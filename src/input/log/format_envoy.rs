//! Envoy access-log format strings.

use super::assemble::{Field, Unit};
use super::format_string::FormatError;
use super::names;
use super::strftime;
use super::template::{Meaning, Piece, Shape, StampPart, Value};

/// Is it Envoy's?
pub(super) fn is_envoy(text: &str) -> bool {
    ["%START_TIME", "%REQ(", "%RESPONSE_CODE", "%RESPONSE_FLAGS", "%DOWNSTREAM_", "%UPSTREAM_HOST"]
        .iter()
        .any(|command| text.contains(command))
}

/// The pieces of a format string.
pub(super) fn compile(format: &str) -> Result<Vec<Piece>, FormatError> {
    let format = format.trim_end_matches("\\n").trim_end();
    let mut pieces = Vec::new();
    let mut at = 0;
    while let Some(rest) = format.get(at..).filter(|r| !r.is_empty()) {
        let percent = rest.find('%').unwrap_or(rest.len());
        let literal = rest.get(..percent).unwrap_or_default().replace("\\\"", "\"");
        Piece::push_literal(&mut pieces, literal.as_bytes());
        let Some(command) = rest.get(percent + 1..) else { break };
        at += percent;
        if command.starts_with('%') {
            Piece::push_literal(&mut pieces, b"%");
            at += 2;
            continue;
        }
        let (name, argument, used) =
            split(command).ok_or_else(|| FormatError::new(format, at, "a command without its closing `%`"))?;
        pieces.push(
            piece(name, argument)
                .ok_or_else(|| FormatError::new(format, at, "a time format with an unknown directive"))?,
        );
        at += 1 + used;
    }
    Ok(pieces)
}

/// `NAME`, `NAME(argument)`, `NAME(argument):LENGTH` up to the closing `%`, and the bytes taken.
fn split(command: &str) -> Option<(&str, Option<&str>, usize)> {
    let name_len = command.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))?;
    let (name, after) = command.split_at(name_len);
    let (argument, mut used) = match after.strip_prefix('(') {
        Some(inner) => {
            let end = inner.find(')')?;
            (inner.get(..end), name_len + end + 2)
        }
        None => (None, name_len),
    };
    used += command.get(used..)?.find('%')? + 1;
    Some((name, argument, used))
}

fn piece(name: &str, argument: Option<&str>) -> Option<Piece> {
    let (shape, field) = match name {
        "START_TIME" => return start_time(argument),
        "REQ" => {
            let field = argument.into_iter().flat_map(|a| a.split('?')).find_map(|header| match header {
                ":METHOD" | ":method" => Some(Field::Method),
                ":PATH" | ":path" | "X-ENVOY-ORIGINAL-PATH" | "x-envoy-original-path" => Some(Field::Target),
                header => names::request_header(header),
            });
            (if field == Some(Field::Method) { Shape::Word } else { Shape::Text }, field.unwrap_or(Field::Skip))
        }
        "RESP" => {
            let field = argument.into_iter().flat_map(|a| a.split('?')).find_map(|header| {
                match header.eq_ignore_ascii_case("x-envoy-upstream-service-time") {
                    true => Some(Field::UpstreamDuration(Unit::Ns(1_000_000))),
                    false => names::response_header(header),
                }
            });
            match field {
                Some(field @ Field::UpstreamDuration(_)) => (Shape::Number, field),
                field => (Shape::Text, field.unwrap_or(Field::Skip)),
            }
        }
        "RESPONSE_CODE" => (Shape::Number, Field::Status),
        "RESPONSE_FLAGS" => (Shape::Word, Field::Termination),
        "BYTES_SENT" => (Shape::Number, Field::BodyBytes),
        "DURATION" => (Shape::Number, Field::Duration(Unit::Ns(1_000_000))),
        "UPSTREAM_HOST" => (Shape::Word, Field::Upstream),
        "DOWNSTREAM_REMOTE_ADDRESS"
        | "DOWNSTREAM_DIRECT_REMOTE_ADDRESS"
        | "DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT"
        | "DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT" => (Shape::Word, Field::ClientAddr),
        "DOWNSTREAM_REMOTE_PORT" | "DOWNSTREAM_DIRECT_REMOTE_PORT" => (Shape::Number, Field::ClientPort),
        "STREAM_ID" => (Shape::Word, Field::RequestId),
        "BYTES_RECEIVED" | "REQUEST_DURATION" | "RESPONSE_DURATION" | "RESPONSE_TX_DURATION" | "CONNECTION_ID" => {
            (Shape::Number, Field::Skip)
        }
        "PROTOCOL"
        | "UPSTREAM_LOCAL_ADDRESS"
        | "DOWNSTREAM_LOCAL_ADDRESS"
        | "UPSTREAM_CLUSTER"
        | "REQUESTED_SERVER_NAME"
        | "ROUTE_NAME"
        | "RESPONSE_FLAGS_LONG" => (Shape::Word, Field::Skip),
        _ => (Shape::Text, Field::Skip),
    };
    Some(Piece::field(shape, field))
}

fn start_time(argument: Option<&str>) -> Option<Piece> {
    Some(match argument {
        None => Piece::field(Shape::Time, Field::Start),
        Some(format) => {
            let items = strftime::compile(format)?;
            let meaning = Meaning::Stamp { start: true, part: StampPart::Strftime(items.clone()) };
            Piece::Value(Value { shape: Shape::Strftime(items), meaning })
        }
    })
}
