//! Formats that the user describes: nginx `log_format`, Apache `LogFormat`, HAProxy `log-format`
//! and Envoy format strings, compiled to a template that reads lines.

use super::LineReader;
use super::LogContext;
use super::assemble::Shared;
use super::json_layout::JsonLayout;
use super::layout::{Layout, LayoutReader, Parsed};
use super::template::Template;
use super::{format_apache, format_envoy, format_haproxy, format_nginx, json_mapping};
use crate::model::place::Place;

/// A format string that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}, at character {at} of the log format `{format}`")]
pub struct FormatError {
    format: String,
    at: usize,
    what: String,
}

impl FormatError {
    pub(super) fn new(format: &str, at: usize, what: &str) -> FormatError {
        FormatError {
            format: format.chars().take(400).collect(),
            at: format.get(..at).map_or(at, |before| before.chars().count()) + 1,
            what: what.to_owned(),
        }
    }
}

/// A compiled format.
pub struct LogFormat(Kind);

enum Kind {
    Template(Template),
    Json(JsonLayout),
}

/// Compiles a format string; `$name` is nginx's, `%NAME%` Envoy's, `%…` Apache's or HAProxy's
/// (told apart by their directives), `json:FIELD=KEY,…` a mapping of JSON keys
/// ([`json_mapping`](super::json_mapping)). A whole directive may be given as it stands in the
/// configuration (`log_format main '…' '…';`, `LogFormat "…" combined`, `log-format …`), and
/// Apache's nicknames `common`, `combined`, `vhost_combined`, `combinedio` stand for their formats.
///
/// # Errors
/// A string without any directive, an unknown or unfinished directive, or one that says neither
/// time nor status nor request.
pub fn compile(format: &str) -> Result<LogFormat, FormatError> {
    let text = format.trim();
    if text.starts_with(json_mapping::PREFIX) || text.starts_with("json!:") {
        return json_mapping::compile(text).map(|layout| LogFormat(Kind::Json(layout)));
    }
    let pieces = if text.starts_with("log_format ") || has_variable(text) {
        format_nginx::compile(text)?
    } else if format_envoy::is_envoy(text) {
        format_envoy::compile(text)?
    } else if format_haproxy::is_haproxy(text) {
        format_haproxy::compile(text)?
    } else if text.contains('%') || format_apache::nickname(text).is_some() {
        format_apache::compile(text)?
    } else {
        return Err(FormatError::new(format, 0, "no `$variable` and no `%` directive found"));
    };
    let template = Template::new(pieces);
    if !template.says_something() {
        return Err(FormatError::new(format, 0, "nothing here tells a time, a status or a request"));
    }
    Ok(LogFormat(Kind::Template(template)))
}

/// A reader for the lines of one input in a compiled format; lines that do not fit it are tried in
/// the known layouts, and counted where they fit none.
pub fn reader(format: LogFormat, context: &LogContext<'_>) -> Box<dyn LineReader> {
    LayoutReader::described(context, Box::new(format))
}

impl Layout for LogFormat {
    fn parse(&mut self, line: &[u8], place: Place, shared: &mut Shared) -> Parsed {
        match &mut self.0 {
            Kind::Template(template) => template.parse(line, place, shared),
            Kind::Json(json) => json.parse(line, place, shared),
        }
    }
}

/// `$name` or `${name}`.
fn has_variable(text: &str) -> bool {
    text.as_bytes().windows(2).any(|w| matches!(w, [b'$', b'{' | b'a'..=b'z' | b'A'..=b'Z' | b'_']))
}

/// The text of a configuration directive, or of quoted parts, put together as the proxy does:
/// words up to the first quote are left out if the text begins with `directive`.
pub(super) fn unquoted(text: &str, directive: &str) -> Option<String> {
    let begins_as_directive = text.get(..directive.len()).is_some_and(|t| t.eq_ignore_ascii_case(directive));
    let text = text.trim_end_matches(';').trim_end();
    let mut rest = match begins_as_directive {
        true => text.get(text.find(['\'', '"'])?..)?,
        false if text.starts_with('\'') && text.len() > 1 => text,
        false => return None,
    };
    let mut out = String::new();
    while let Some(quote) = rest.chars().next().filter(|c| matches!(c, '\'' | '"')) {
        let mut escaped = false;
        let mut end = None;
        for (at, c) in rest.char_indices().skip(1) {
            match c {
                _ if escaped => {
                    if c != quote {
                        out.push('\\');
                    }
                    out.push(c);
                    escaped = false;
                }
                '\\' => escaped = true,
                c if c == quote => {
                    end = Some(at);
                    break;
                }
                c => out.push(c),
            }
        }
        rest = rest.get(end? + 1..)?.trim_start();
    }
    Some(out)
}
