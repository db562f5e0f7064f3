//! What an exchange may be. Whoever decides what stays asks here, the rules look closer.

use super::groups::GroupKey;
use super::quiet::is_clean_line;
use super::two_logs::CANCEL_NS;
use crate::mcp::Visit;
use crate::model::time::Time;

/// A `tools/call`, as far as a log tells.
pub fn may_be_call(visit: &Visit) -> bool {
    let unnamed = || !visit.place.is_frame && visit.rpc.iter().any(|r| r.method.is_none());
    visit.carries("tools/call") || unnamed()
}

/// When calls ended that look as if they had hung, and whose they were: a notification of the same session, or
/// client, taken about then may have cancelled one.
#[derive(Default)]
pub(super) struct Hangs(Vec<(Time, GroupKey)>);

impl Hangs {
    /// Those of `lines`.
    pub(super) fn of<'v>(lines: impl Iterator<Item = (Option<u16>, Time, GroupKey)> + 'v) -> Hangs {
        let hung = lines.filter(|(status, ..)| matches!(status, None | Some(200 | 499)));
        let mut all: Vec<(Time, GroupKey)> = hung.map(|(_, end, key)| (end, key)).collect();
        all.sort_unstable_by_key(|(end, _)| *end);
        Hangs(all)
    }

    /// Adds those of the first `done` lines, which are in order, and of those soon behind them; what ended long before
    /// them is left out.
    pub(super) fn add(&mut self, lines: &[Visit], done: usize) {
        let Some(last) = done.checked_sub(1).and_then(|n| lines.get(n)).map(Visit::answered) else { return };
        let soon = lines.partition_point(|v| v.answered() <= last.plus_ns(2 * CANCEL_NS)).max(done);
        let odd = lines.iter().take(soon).filter(|v| v.is_post() && !is_clean_line(v));
        let new = Hangs::of(odd.filter_map(|v| Some((v.status, v.asked.plus_ns(v.duration_ns?), GroupKey::of(v)))));
        let first = lines.first().map_or(last, Visit::answered).plus_ns(-2 * CANCEL_NS);
        self.0.retain(|(end, _)| *end >= first);
        self.0.extend(new.0);
        self.0.sort_unstable_by_key(|(end, _)| *end);
    }

    /// Are there none?
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// May what `key` sent at a time have cancelled one?
    pub(super) fn may_be_cancelled(&self, key: &GroupKey, at: Time) -> bool {
        let from = self.0.partition_point(|(end, _)| *end < at.plus_ns(-CANCEL_NS));
        let near = self.0.get(from..).unwrap_or_default().iter();
        near.take_while(|(end, _)| *end <= at.plus_ns(CANCEL_NS)).any(|(_, k)| k == key)
    }
}

/// What all words in which servers refuse a session have in them.
const WORDS: [&str; 2] = ["session", "not initialized"];

/// Could the answer mean that the session is not known? Of most statuses the words decide.
pub(super) fn may_refuse(visit: &Visit) -> bool {
    refuses(visit).is_some()
}

/// What a refusal can be about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refuses {
    /// The session, by its status or in words.
    Session,
    /// The one request, unless nothing is answered on the session any more: a 400 that says nothing.
    Perhaps,
}

/// What a visit that [may refuse](may_refuse) its session refuses.
pub(super) fn refuses(visit: &Visit) -> Option<Refuses> {
    let said = || {
        let replies = visit.replies.iter().filter_map(|r| r.error_text.as_deref());
        replies
            .chain(visit.error_text.as_deref())
            .map(str::to_ascii_lowercase)
            .any(|t| WORDS.iter().any(|w| t.contains(w)))
    };
    visit.session.as_ref()?;
    match visit.status {
        Some(404) => Some(Refuses::Session),
        _ if said() => Some(Refuses::Session),
        Some(400) => Some(Refuses::Perhaps),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::place::{Place, Vantage};
    use crate::model::record::When;

    fn refuses(status: u16, said: Option<&str>) -> bool {
        let at = When { at: Time::from_ns(0, 0), error_ns: 0 };
        let mut visit = Visit::new(0, Place::line(0, 1), Vantage::Proxy, at);
        visit.session = Some("s".into());
        (visit.status, visit.error_text) = (Some(status), said.map(Into::into));
        may_refuse(&visit)
    }

    #[test]
    fn the_status_or_the_words_can_mean_the_session() {
        assert!(
            [(404, None), (400, None), (500, Some("Session not found")), (503, Some("Server not initialized"))]
                .into_iter()
                .all(|(status, said)| refuses(status, said))
        );
        assert!(
            ![(200, None), (405, None), (429, Some("slow down")), (502, None), (504, None)]
                .into_iter()
                .any(|(status, said)| refuses(status, said))
        );
    }
}
