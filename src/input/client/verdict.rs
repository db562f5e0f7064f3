//! What a client's error text says became of the call.
//!
//! The texts are those of Claude Code (2.1), of the TypeScript and Python SDKs, and of the HTTP
//! stacks below them (undici, Node sockets, Chromium, httpx).

use crate::model::record::ClientOutcome;

/// What is known of the call from an error text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It ended so.
    Ended(ClientOutcome),
    /// The client has stopped showing it; it still runs.
    StillRunning,
    /// The client refused to make the call: nothing was ever sent.
    NeverMade,
}

/// How a text begins (after what [`unwrapped`] takes off), what else it must hold, and what it
/// says; all in lower case, the first that fits decides. Only beginnings count: a phrase inside a
/// tool's own error ("the upstream API timed out") says nothing of this call's transport.
const TEXTS: &[(&str, &str, Verdict)] = &[
    ("mcp server \"", "moved to the background", Verdict::StillRunning),
    ("tool ", "moved to the background", Verdict::StillRunning),
    ("<tool_use_error>", "", Verdict::NeverMade),
    ("no such tool available", "", Verdict::NeverMade),
    ("inputvalidationerror", "", Verdict::NeverMade),
    ("claude requested permissions to use", "", Verdict::NeverMade),
    ("permission to use ", "denied", Verdict::NeverMade),
    ("mcp server \"", "sent no response or progress", Verdict::Ended(ClientOutcome::Timeout)),
    ("mcp server \"", "timed out", Verdict::Ended(ClientOutcome::Timeout)),
    ("mcp server \"", "never answered", Verdict::Ended(ClientOutcome::Lost)),
    ("mcp server \"", "ended with no answer", Verdict::Ended(ClientOutcome::Lost)),
    ("no response or progress", "", Verdict::Ended(ClientOutcome::Timeout)),
    ("its answer stream ended with no answer", "", Verdict::Ended(ClientOutcome::Lost)),
    ("mcp error -32001: ", "tim", Verdict::Ended(ClientOutcome::Timeout)),
    ("request timed out", "", Verdict::Ended(ClientOutcome::Timeout)),
    ("request '", "timed out", Verdict::Ended(ClientOutcome::Timeout)),
    ("timed out", "", Verdict::Ended(ClientOutcome::Timeout)),
    ("net::err_timed_out", "", Verdict::Ended(ClientOutcome::Timeout)),
    ("headers timeout error", "", Verdict::Ended(ClientOutcome::Timeout)),
    ("body timeout error", "", Verdict::Ended(ClientOutcome::Timeout)),
    ("the operation timed out", "", Verdict::Ended(ClientOutcome::Timeout)),
    ("the operation was aborted due to timeout", "", Verdict::Ended(ClientOutcome::Timeout)),
    ("mcp error -32000: ", "closed", Verdict::Ended(ClientOutcome::Lost)),
    ("connection closed", "", Verdict::Ended(ClientOutcome::Lost)),
    ("client closed", "", Verdict::Ended(ClientOutcome::Lost)),
    ("not connected", "", Verdict::Ended(ClientOutcome::Lost)),
    ("connection error", "", Verdict::Ended(ClientOutcome::Lost)),
    ("read econnreset", "", Verdict::Ended(ClientOutcome::Lost)),
    ("connect econnrefused", "", Verdict::Ended(ClientOutcome::Lost)),
    ("write epipe", "", Verdict::Ended(ClientOutcome::Lost)),
    ("socket hang up", "", Verdict::Ended(ClientOutcome::Lost)),
    ("other side closed", "", Verdict::Ended(ClientOutcome::Lost)),
    ("terminated", "", Verdict::Ended(ClientOutcome::Lost)),
    ("fetch failed", "", Verdict::Ended(ClientOutcome::Lost)),
    ("network error", "", Verdict::Ended(ClientOutcome::Lost)),
    ("net::err_", "", Verdict::Ended(ClientOutcome::Lost)),
    ("server disconnected", "", Verdict::Ended(ClientOutcome::Lost)),
    ("[request interrupted by user", "", Verdict::Ended(ClientOutcome::Aborted)),
    ("the user doesn't want to take this action", "", Verdict::Ended(ClientOutcome::Aborted)),
    ("the user doesn't want to proceed with this tool use", "", Verdict::Ended(ClientOutcome::Aborted)),
    ("user rejected tool use", "", Verdict::Ended(ClientOutcome::Aborted)),
    ("interrupted by user", "", Verdict::Ended(ClientOutcome::Aborted)),
    ("this operation was aborted", "", Verdict::Ended(ClientOutcome::Aborted)),
    ("the operation was aborted", "", Verdict::Ended(ClientOutcome::Aborted)),
    ("request was aborted", "", Verdict::Ended(ClientOutcome::Aborted)),
    ("request cancelled", "", Verdict::Ended(ClientOutcome::Aborted)),
];

/// How much of an error text is looked at, bytes.
const LOOKED_AT_BYTES: usize = 600;

/// What an error text says; anything unknown is an answer that says "error".
pub(super) fn of_error(text: &str) -> Verdict {
    let mut end = text.len().min(LOOKED_AT_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let text = text.get(..end).unwrap_or_default().trim_start().to_ascii_lowercase();
    let bare = unwrapped(&text);
    let fits = |(begin, holds, _): &&(&str, &str, Verdict)| {
        (text.starts_with(begin) || bare.starts_with(begin)) && text.contains(holds)
    };
    TEXTS.iter().find(fits).map_or(Verdict::Ended(ClientOutcome::Error), |(_, _, v)| *v)
}

/// The text without the names of error classes before it (`Error: TypeError: fetch failed`).
fn unwrapped(text: &str) -> &str {
    let mut rest = text;
    while let Some((name, tail)) = rest.split_once(": ") {
        let is_class = name.ends_with("error") && name.bytes().all(|b| b.is_ascii_alphanumeric());
        if !is_class {
            break;
        }
        rest = tail;
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_real_clients() {
        let ended = |t| match of_error(t) {
            Verdict::Ended(o) => Some(o),
            _ => None,
        };
        for (text, outcome) in [
            (
                "MCP server \"parks\" tool \"get_park\" sent no response or progress for 300s; aborting.",
                ClientOutcome::Timeout,
            ),
            ("MCP server \"parks\" tool \"get_park\" timed out after 60s", ClientOutcome::Timeout),
            ("MCP error -32001: Request timed out", ClientOutcome::Timeout),
            ("MCP server \"parks\" never answered tool \"get_park\". The outcome is unknown", ClientOutcome::Lost),
            ("MCP error -32000: Connection closed", ClientOutcome::Lost),
            ("TypeError: fetch failed", ClientOutcome::Lost),
            ("read ECONNRESET", ClientOutcome::Lost),
            ("[Request interrupted by user for tool use]", ClientOutcome::Aborted),
            ("MCP error -32602: Unknown park", ClientOutcome::Error),
            ("The upstream weather service timed out", ClientOutcome::Error),
            ("Error: access has been denied", ClientOutcome::Error),
            ("Error: TypeError: fetch failed", ClientOutcome::Lost),
            ("", ClientOutcome::Error),
        ] {
            assert_eq!(ended(text), Some(outcome), "{text}");
        }
        assert_eq!(
            of_error("Tool x is still running after 120s. It was moved to the background as task b1"),
            Verdict::StillRunning
        );
        assert_eq!(
            of_error("<tool_use_error>Error: No such tool available: mcp__a__b</tool_use_error>"),
            Verdict::NeverMade
        );
    }
}
