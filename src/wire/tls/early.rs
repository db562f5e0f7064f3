//! Early data, which counts only if the server accepts it.

use super::connection::{At, Core};
use crate::model::exchange::{Mark, Peer};
use crate::model::limits;
use crate::model::problem::ProblemKind;

/// Early data of a connection.
pub(super) enum Early {
    /// The server has not answered yet: what came so far, and its length, bytes.
    Held(Vec<(Mark, Vec<u8>)>, usize),
    /// It is read like the rest.
    Accepted,
    /// It was never processed, and is sent again (RFC 8446 §4.2.10).
    Rejected,
}

impl Early {
    pub(super) fn new() -> Early {
        Early::Held(Vec::new(), 0)
    }
}

impl Core {
    pub(super) fn early_data(&mut self, at: &mut At<'_, '_>, text: &[u8]) {
        match &mut self.early {
            Early::Held(pieces, held) if *held + text.len() <= limits::TLS_EARLY_BYTES => {
                *held += text.len();
                pieces.push((at.mark, text.to_vec()));
            }
            Early::Held(..) => {
                at.problem(ProblemKind::LimitHit, 1, || {
                    format!("more than {} bytes of TLS early data before the server's answer", limits::TLS_EARLY_BYTES)
                });
                self.settle_early(at, true);
                self.deliver(at, text);
            }
            Early::Accepted => self.deliver(at, text),
            Early::Rejected => {}
        }
    }

    /// It is known whether early data was accepted. Only the first word counts.
    pub(super) fn settle_early(&mut self, at: &mut At<'_, '_>, accepted: bool) {
        let Early::Held(pieces, _) = &mut self.early else { return };
        let pieces = std::mem::take(pieces);
        self.early = if accepted { Early::Accepted } else { Early::Rejected };
        for (mark, text) in pieces.into_iter().filter(|_| accepted) {
            self.deliver(&mut at.elsewhere(Peer::Client, mark), &text);
        }
    }
}
