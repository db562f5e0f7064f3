//! Requests of which a server tells in words alone: it says which session it began or refused, and writes no access
//! lines (`uvicorn --no-access-log`).

use super::sightings::{self, NO_TIME};
use crate::mcp::{Rpc, Visit};
use crate::model::exchange::Mark;
use crate::model::place::Vantage;
use crate::model::record::{LogEvent, LogEventKind};

/// What one source, whose events come in order, does with its access lines.
#[derive(Debug, Default)]
pub(super) struct Unlogged {
    /// It writes them: a request that has none is missing in the log, and not to be made up.
    has_lines: bool,
}

impl Unlogged {
    /// Takes the next event; `is_logged`: an access line of its request was found. Without one, and as long as
    /// none was found for any other, the event is all there is of the request.
    pub(super) fn visit(&mut self, event: &LogEvent, is_logged: bool) -> Option<Visit> {
        self.has_lines |= is_logged;
        if self.has_lines || event.vantage != Vantage::Server {
            return None;
        }
        let session = event.session.clone()?;
        let at = event.when.unwrap_or(NO_TIME);
        let mut visit = sightings::blank(event.place, Vantage::Server, at);
        match event.kind {
            LogEventKind::SessionCreated => {
                visit.given = Some(session);
                visit.add_rpc(Rpc::unknown(Some("initialize")));
            }
            // That it has an answer is said, its status is not.
            LogEventKind::SessionRejected => {
                visit.session = Some(session);
                visit.error_text = Some(event.text.clone());
                visit.head = Some(Mark { place: event.place, at: at.at });
                visit.ended = visit.head;
            }
            _ => return None,
        }
        Some(visit)
    }
}

/// Is it a visit that was made of a server's words?
pub fn is_unlogged(visit: &Visit) -> bool {
    visit.method.is_none() && visit.status.is_none() && visit.vantage == Vantage::Server && !visit.place.is_frame
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::model::place::Place;

    fn event(line: u64, kind: LogEventKind) -> LogEvent {
        let text = "Rejected request with unknown or expired session ID: s".into();
        LogEvent { session: Some("s".into()), ..LogEvent::new(kind, None, Place::line(0, line), Vantage::Server, text) }
    }

    #[test]
    fn words_stand_for_requests_until_one_is_logged() {
        let mut unlogged = Unlogged::default();
        let begun = unlogged.visit(&event(1, LogEventKind::SessionCreated), false).unwrap();
        assert!(begun.carries("initialize") && begun.given.is_some() && is_unlogged(&begun));
        let refused = unlogged.visit(&event(2, LogEventKind::SessionRejected), false).unwrap();
        assert!(refused.session.is_some() && refused.error_text.is_some() && refused.status.is_none());
        assert!(unlogged.visit(&event(3, LogEventKind::SessionEnded), false).is_none());
        assert!(unlogged.visit(&event(4, LogEventKind::SessionCreated), true).is_none());
        assert!(unlogged.visit(&event(5, LogEventKind::SessionRejected), false).is_none());
    }
}
