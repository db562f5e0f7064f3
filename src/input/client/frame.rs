//! JSON-RPC frames inside log lines, shared by the formats that print them.

use super::json;
use crate::input::log::{LogContext, RecordSink};
use crate::model::place::{Place, Vantage};
use crate::model::problem::ProblemKind;
use crate::model::record::{LogEvent, LogEventKind, LoggedMessage, Record, When};
use serde_json::value::RawValue;
use std::sync::Arc;

/// Tells of the frame that `text` begins with; what a logger put behind it is left alone. A frame
/// that the log cut is mended and marked as elided; one that cannot be mended is a problem.
pub(super) fn tell(
    text: &str,
    from_client: bool,
    when: Option<When>,
    server: Option<Arc<str>>,
    place: Place,
    out: &mut dyn RecordSink,
) {
    let first = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>().next();
    let (json, elided): (Arc<str>, bool) = match first {
        Some(Ok(raw)) if raw.get().starts_with(['{', '[']) => (Arc::from(raw.get()), false),
        _ => match json::mend(text) {
            Some(mended) if mended.len() > 2 => {
                out.problem(ProblemKind::BadLine, place, "a JSON-RPC message that the log cut; read up to the cut");
                (Arc::from(mended), true)
            }
            _ => {
                out.problem(ProblemKind::BadLine, place, "expected a JSON-RPC message (a JSON object) here");
                return;
            }
        },
    };
    let message = LoggedMessage { place, when, from_client, json, exact: false, elided, server, session: None };
    out.record(Record::Message(Box::new(message)));
}

/// An event of a client's own log with nothing known but its kind and text.
pub(super) fn event(kind: LogEventKind, when: Option<When>, place: Place, text: &str) -> LogEvent {
    LogEvent::new(kind, when, place, Vantage::Client, quotable(text))
}

/// A text cut to what a report can quote.
pub(super) fn quotable(text: &str) -> Arc<str> {
    const QUOTED_BYTES: usize = 400;
    let mut end = text.len().min(QUOTED_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    Arc::from(text.get(..end).unwrap_or_default().trim_end())
}

/// The name that stands between `before` and `after` in an input's file name, in any directory of
/// its path: `mcp-server-parks.log` holds `parks`.
pub(super) fn name_in_path(context: &LogContext<'_>, before: &str, after: &str) -> Option<Arc<str>> {
    context.name.rsplit(['/', '\\', '!']).find_map(|part| {
        let (_, rest) = part.split_once(before)?;
        let name = if after.is_empty() { rest } else { rest.split(after).next()? };
        (!name.is_empty()).then(|| Arc::from(name))
    })
}
