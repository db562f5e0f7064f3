//! What an exchange may be. Whoever decides what stays asks here, the rules look closer.

use crate::mcp::Visit;
use crate::model::id::SessionId;
use crate::model::time::Time;

/// A `tools/call`, as far as a log tells.
pub(super) fn may_be_call(visit: &Visit) -> bool {
    let unnamed = || !visit.place.is_frame && visit.rpc.iter().any(|r| r.method.is_none());
    visit.carries("tools/call") || unnamed()
}

/// A call without a body, and when it ended.
pub(super) fn may_hang(v: &Visit) -> Option<(SessionId, Time)> {
    let hung = v.is_post() && v.status == Some(200) && v.bytes == Some(0);
    Some((v.session.clone().filter(|_| hung)?, v.asked.plus_ns(v.duration_ns?)))
}

/// What all words in which servers refuse a session have in them.
const WORDS: [&str; 2] = ["session", "not initialized"];

/// Could the answer mean that the session is not known? Of most statuses the words decide.
pub(super) fn may_refuse(visit: &Visit) -> bool {
    let said = || {
        let replies = visit.replies.iter().filter_map(|r| r.error_text.as_deref());
        replies
            .chain(visit.error_text.as_deref())
            .map(str::to_ascii_lowercase)
            .any(|t| WORDS.iter().any(|w| t.contains(w)))
    };
    visit.session.is_some() && (matches!(visit.status, Some(400 | 404)) || said())
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
