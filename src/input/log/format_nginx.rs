//! nginx `log_format` strings.

use super::assemble::Field;
use super::format_string::{FormatError, unquoted};
use super::names;
use super::template::{Piece, Shape};

/// The pieces of a format string, or of a whole `log_format` directive.
pub(super) fn compile(text: &str) -> Result<Vec<Piece>, FormatError> {
    let directive = unquoted(text, "log_format");
    let format = directive.as_deref().unwrap_or(text);
    let mut pieces = Vec::new();
    let mut rest = format;
    while let Some(dollar) = rest.find('$') {
        let (literal, after) = rest.split_at(dollar);
        Piece::push_literal(&mut pieces, literal.as_bytes());
        let after = after.get(1..).unwrap_or_default();
        let at = format.len() - after.len();
        let (name, tail) = match after.strip_prefix('{') {
            Some(braced) => {
                braced.split_once('}').ok_or_else(|| FormatError::new(format, at, "`${` without its `}`"))?
            }
            None => {
                let len = after.bytes().take_while(|c| c.is_ascii_alphanumeric() || *c == b'_').count();
                after.split_at(len)
            }
        };
        if name.is_empty() {
            return Err(FormatError::new(format, at, "`$` without a variable's name"));
        }
        pieces.push(Piece::field(shape(name), names::nginx_variable(name).unwrap_or(Field::Skip)));
        rest = tail;
    }
    Piece::push_literal(&mut pieces, rest.as_bytes());
    Ok(pieces)
}

fn shape(name: &str) -> Shape {
    match name {
        "time_local" | "time_iso8601" => Shape::Time,
        "msec"
        | "request_time"
        | "status"
        | "body_bytes_sent"
        | "bytes_sent"
        | "remote_port"
        | "connection"
        | "connection_requests"
        | "connection_time"
        | "request_length"
        | "pid"
        | "gzip_ratio"
        | "server_port"
        | "content_length"
        | "realip_remote_port" => Shape::Number,
        "upstream_response_time"
        | "upstream_header_time"
        | "upstream_connect_time"
        | "upstream_queue_time"
        | "upstream_first_byte_time"
        | "upstream_session_time"
        | "upstream_status"
        | "upstream_response_length"
        | "upstream_bytes_received"
        | "upstream_bytes_sent" => Shape::Numbers,
        "remote_addr" | "request_method" | "server_protocol" | "scheme" | "request_id" | "server_addr"
        | "request_completion" | "pipe" | "https" | "hostname" | "realip_remote_addr" | "binary_remote_addr" => {
            Shape::Word
        }
        _ => Shape::Text,
    }
}
