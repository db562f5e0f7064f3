//! What is looked at of a line, and kept of it, to find windows in logs that name no session.

use crate::mcp::Visit;
use crate::model::id::SessionId;
use crate::model::place::{InputId, Place};
use crate::model::record::When;
use crate::model::time::Time;
use std::net::IpAddr;
use std::sync::Arc;

/// A line as a window shows it.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The visit it was made of.
    pub exchange: u64,
    /// Whose line it is.
    pub source: InputId,
    /// Where it stands.
    pub place: Place,
    /// When the request began, as far as the line tells.
    pub asked: Time,
    /// When it was answered.
    pub answered: Time,
    /// How exact that is, ns.
    pub error_ns: i64,
    /// Method.
    pub method: Option<Arc<str>>,
    /// Request target.
    pub target: Option<Arc<str>>,
    /// Status.
    pub status: Option<u16>,
    /// A person's note.
    pub comment: Option<Arc<str>>,
    /// Session of the response.
    pub given: Option<SessionId>,
}

/// What is looked at of a line.
#[derive(Clone, Copy)]
pub(super) struct Look<'a> {
    pub exchange: u64,
    pub source: InputId,
    pub place: Place,
    /// When the request began.
    pub at: When,
    pub answered: Time,
    pub peer: Option<IpAddr>,
    pub agent: Option<&'a Arc<str>>,
    pub path: &'a str,
    pub method: Option<&'a Arc<str>>,
    pub target: Option<&'a Arc<str>>,
    pub status: Option<u16>,
    pub comment: Option<&'a Arc<str>>,
    pub given: Option<&'a SessionId>,
    /// It is known to be an `initialize`.
    pub initializes: bool,
}

impl Seen {
    /// Does the log tell when it was, and not only its order?
    pub fn is_timed(&self) -> bool {
        When { at: self.answered, error_ns: self.error_ns }.is_known()
    }
}

impl<'a> Look<'a> {
    pub(super) fn of(v: &'a Visit) -> Look<'a> {
        Look {
            exchange: v.exchange,
            source: v.input,
            place: v.place,
            at: v.at,
            answered: v.answered(),
            peer: v.peer,
            agent: v.user_agent.as_ref(),
            path: v.endpoint_path().unwrap_or_default(),
            method: v.method.as_ref(),
            target: v.target.as_ref(),
            status: v.status,
            comment: v.comment.as_ref(),
            given: v.given.as_ref(),
            initializes: v.carries("initialize"),
        }
    }

    pub(super) fn is_post(&self) -> bool {
        self.method.is_some_and(|m| &**m == "POST")
    }
}

/// Slots of [`Texts`], a power of two.
const SLOTS: usize = 256;

/// Copies of the texts that lines have in common. Lines come from another thread, which counts who holds their texts on
/// and on: two cores that count on the same place wait for each other on every line.
pub(super) struct Texts(Vec<Option<Arc<str>>>);

impl Default for Texts {
    fn default() -> Texts {
        Texts(vec![None; SLOTS])
    }
}

impl Texts {
    fn own(&mut self, text: &Arc<str>) -> Arc<str> {
        let at = text.as_ptr() as usize;
        let Some(slot) = self.0.get_mut((at ^ at >> 9) >> 4 & (SLOTS - 1)) else { return text.clone() };
        match slot {
            Some(kept) if **kept == **text => kept.clone(),
            _ => slot.insert(Arc::from(&**text)).clone(),
        }
    }
}

impl Seen {
    pub(super) fn of(v: &Look<'_>, texts: &mut Texts) -> Seen {
        Seen {
            exchange: v.exchange,
            source: v.source,
            place: v.place,
            asked: v.at.at,
            answered: v.answered,
            error_ns: v.at.error_ns,
            method: v.method.map(|m| texts.own(m)),
            target: v.target.map(|t| texts.own(t)),
            status: v.status,
            comment: v.comment.cloned(),
            given: v.given.cloned(),
        }
    }

    pub(super) fn is_post(&self) -> bool {
        self.method.as_deref() == Some("POST")
    }
}
