//! What applications say, as one table of phrases looked for in one pass.

use super::{gunicorn, mcp_messages, node, systemd, traceback, uvicorn};
use crate::model::id::RpcId;
use crate::model::record::LogEventKind;
use aho_corasick::{AhoCorasick, MatchKind};
use std::sync::LazyLock;

/// Where in a message a phrase must stand to be the application's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    /// At its start, after nothing but a head.
    Start,
    /// Anywhere; its reader looks at the surroundings.
    Anywhere,
}

/// What a phrase makes of its line.
#[derive(Clone, Copy)]
pub(super) enum Meaning {
    /// An event; its reader may still refuse.
    Event(LogEventKind, Read),
    /// A line of an access log, see [`super::access`].
    Access,
    /// The level of an error line: an event of its own unless a later phrase says more.
    ErrorLevel,
}

/// Reads what stands around a phrase: the whole message, and where the phrase starts and ends.
pub(super) type Read = for<'t> fn(&'t str, usize, usize) -> Option<Said<'t>>;

/// What a message says beside its kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Said<'t> {
    /// Session.
    pub session: Option<&'t str>,
    /// JSON-RPC id.
    pub rpc_id: Option<RpcId>,
    /// JSON-RPC method.
    pub method: Option<&'t str>,
    /// Tool.
    pub tool: Option<&'t str>,
    /// Duration, ns.
    pub duration_ns: Option<i64>,
    /// Unit, where the message names another than its sender.
    pub unit: Option<&'t str>,
    /// Overrides the phrase's kind.
    pub kind: Option<LogEventKind>,
}

/// One phrase.
pub(super) struct Phrase {
    /// The text, exactly.
    pub text: &'static str,
    /// Where it must stand.
    pub anchor: Anchor,
    /// What it means.
    pub meaning: Meaning,
}

impl Phrase {
    /// A phrase at the start of a message.
    pub const fn start(text: &'static str, kind: LogEventKind, read: Read) -> Phrase {
        Phrase { text, anchor: Anchor::Start, meaning: Meaning::Event(kind, read) }
    }
    /// A phrase anywhere in a message.
    pub const fn anywhere(text: &'static str, kind: LogEventKind, read: Read) -> Phrase {
        Phrase { text, anchor: Anchor::Anywhere, meaning: Meaning::Event(kind, read) }
    }
}

/// Every phrase of every runtime.
static TABLES: &[&[Phrase]] = &[
    mcp_messages::PHRASES,
    systemd::PHRASES,
    uvicorn::PHRASES,
    gunicorn::PHRASES,
    node::PHRASES,
    super::tools::PHRASES,
    traceback::PHRASES,
    super::access::PHRASES,
];

/// The phrases and the automaton that finds them.
pub(super) struct Phrases {
    /// In the automaton's order.
    pub all: Vec<&'static Phrase>,
    /// Leftmost match; of those that begin together the first in the table.
    pub automaton: Option<AhoCorasick>,
}

/// Built once.
pub(super) static PHRASES: LazyLock<Phrases> = LazyLock::new(|| {
    let mut all: Vec<&Phrase> = TABLES.iter().flat_map(|t| t.iter()).collect();
    all.sort_by_key(|p| std::cmp::Reverse(p.text.len()));
    let automaton = AhoCorasick::builder()
        .match_kind(MatchKind::LeftmostFirst)
        .kind(Some(aho_corasick::AhoCorasickKind::DFA))
        .build(all.iter().map(|p| p.text))
        .ok();
    Phrases { all, automaton }
});

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn the_automaton_is_built_and_no_phrase_stands_twice() {
        assert!(PHRASES.automaton.is_some());
        let mut texts: Vec<_> = PHRASES.all.iter().map(|p| p.text).collect();
        texts.sort_unstable();
        assert!(texts.windows(2).all(|w| w[0] != w[1]), "{texts:?}");
        assert!(texts.iter().all(|t| t.len() >= 4));
    }
}
