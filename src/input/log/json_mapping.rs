//! The user's own mapping of JSON keys: `--log-format 'json:end=ts,status=http.code,…'`.

use super::assemble::{Assembly, Field, Unit};
use super::format_string::FormatError;
use super::json_layout::JsonLayout;
use super::names;
use super::time::SECOND_NS;

/// What a mapping's text begins with.
pub const PREFIX: &str = "json:";

/// Every name that may stand left of `=`.
pub const FIELDS: &[&str] = &[
    "start",
    "end",
    "duration",
    "upstream-duration",
    "request",
    "method",
    "target",
    "query",
    "status",
    "upstream-status",
    "bytes",
    "body-bytes",
    "client",
    "client-port",
    "upstream",
    "session",
    "session-given",
    "user-agent",
    "request-id",
    "termination",
    "request-body",
    "response-body",
    "rpc-method",
    "rpc-tool",
];

/// Compiles `json:FIELD=KEY[@UNIT],…`. KEY is the dotted path of a JSON key, exactly as written;
/// UNIT (`s`, `ms`, `us`, `ns`) belongs to durations. FIELD is one of [`FIELDS`]. A key that is not
/// mapped keeps its common meaning unless `json!:` is written, which takes the mapped keys alone.
///
/// # Errors
/// A field or unit of no known name, or a part that is no `FIELD=KEY`.
pub(super) fn compile(text: &str) -> Result<JsonLayout, FormatError> {
    let (only_mapped, list) = match (text.strip_prefix("json!:"), text.strip_prefix(PREFIX)) {
        (Some(list), _) => (true, list),
        (_, Some(list)) => (false, list),
        _ => return Err(FormatError::new(text, 0, "a mapping begins with `json:`")),
    };
    let mut map: Vec<(Box<[u8]>, Field)> = Vec::new();
    for part in list.split(',').map(str::trim).filter(|p| !p.is_empty()) {
        let at = text.find(part).unwrap_or(0);
        let (name, key) = part.split_once('=').ok_or_else(|| FormatError::new(text, at, "expected FIELD=KEY"))?;
        let (key, unit) = match key.rsplit_once('@') {
            Some((key, unit)) if !key.is_empty() => (key, Some(unit)),
            _ => (key, None),
        };
        let unit = match unit {
            None => Unit::Guess,
            Some("s") => Unit::SuffixOr(SECOND_NS),
            Some("ms") => Unit::SuffixOr(1_000_000),
            Some("us" | "µs") => Unit::SuffixOr(1_000),
            Some("ns") => Unit::SuffixOr(1),
            Some(_) => return Err(FormatError::new(text, at, "a unit is s, ms, us or ns")),
        };
        let field = field(name, unit).ok_or_else(|| {
            FormatError::new(text, at, &format!("no field of this name; there are {}", FIELDS.join(", ")))
        })?;
        map.push((key.as_bytes().into(), field));
    }
    if map.is_empty() {
        return Err(FormatError::new(text, 0, "a mapping without any FIELD=KEY"));
    }
    // A field that is mapped is no longer guessed from another key.
    let mapped: Vec<_> = map.iter().map(|(_, f)| std::mem::discriminant(f)).collect();
    let names = move |path: &[u8]| match map.iter().find(|(key, _)| **key == *path) {
        Some((_, field)) => Some(*field),
        None if only_mapped => None,
        None => names::common(path).filter(|f| !mapped.contains(&std::mem::discriminant(f))),
    };
    Ok(JsonLayout::new(names, &[], |out: &mut Assembly, _| {
        out.has_time() || out.record.status.is_some() || out.record.method.is_some()
    }))
}

fn field(name: &str, unit: Unit) -> Option<Field> {
    Some(match name {
        "start" => Field::Start,
        "end" | "time" => Field::End,
        "duration" => Field::Duration(unit),
        "upstream-duration" => Field::UpstreamDuration(unit),
        "request" => Field::RequestLine,
        "method" => Field::Method,
        "target" | "path" | "uri" => Field::Target,
        "query" => Field::Query,
        "status" => Field::Status,
        "upstream-status" => Field::UpstreamStatus,
        "bytes" => Field::Bytes,
        "body-bytes" => Field::BodyBytes,
        "client" => Field::ClientAddr,
        "client-port" => Field::ClientPort,
        "upstream" => Field::Upstream,
        "session" => Field::Session,
        "session-given" => Field::SessionGiven,
        "user-agent" => Field::UserAgent,
        "request-id" => Field::RequestId,
        "termination" => Field::Termination,
        "request-body" => Field::RequestBody,
        "response-body" => Field::ResponseBody,
        "rpc-method" => Field::RpcMethod,
        "rpc-tool" => Field::RpcTool,
        _ => return None,
    })
}
