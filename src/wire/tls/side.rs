//! One direction of a connection: which keys it is at, and opening its records.

use super::messages::Messages;
use super::record::{Lost, Record};
use super::session::{Protection, Session, Stage};
use crate::model::limits;
use std::collections::VecDeque;

/// Sequence numbers tried for one record after a hole.
const SEQUENCE_TRIES: u64 = 4096;

/// Sequence numbers tried for one record with the secrets of every connection.
const IDENTIFY_SEQUENCES: u64 = 32;

/// What one trial costs beside its record, in bytes decrypted.
const TRIAL_OVERHEAD_BYTES: usize = 256;

/// Ends of records kept until they are acknowledged.
const UNACKNOWLEDGED: usize = 1024;

/// Records for which the secrets of every connection are tried where the ClientHello is missing.
const IDENTIFY_TRIES: u32 = 4;

/// One direction.
pub(super) struct Side {
    /// 0: from the client, 1: from the server.
    index: usize,
    /// Its handshake messages.
    pub(super) messages: Messages,
    /// The keys in use, where they are known.
    pub(super) active: Option<Protection>,
    /// The stage that it is known to have reached.
    pub(super) stage: Option<Stage>,
    /// Records that may have passed unseen since the last one that was opened.
    pub(super) doubt: u64,
    /// Protected records met.
    pub(super) sealed: u64,
    /// Protected records opened.
    pub(super) opened: u64,
    /// Padding was seen in a record: how long a lost one was cannot be told.
    pub(super) padded: bool,
    /// ChangeCipherSpec messages so far.
    pub(super) changes: u32,
    /// Application data of it was handed over.
    pub(super) delivered: bool,
    /// Application data of it is lost, and the inner parser does not know yet.
    pub(super) pending_gap: bool,
    /// As `pending_gap`, unless the next record that opens shows that only the handshake was hit.
    pub(super) doubtful_gap: bool,
    /// Application data went by for which there are no keys.
    pub(super) unreadable: bool,
    /// How its plaintext lies in its TCP stream.
    pub(super) progress: Progress,
    identify_tries: u32,
}

impl Side {
    pub(super) fn new(index: usize) -> Side {
        Side {
            index,
            messages: Messages::default(),
            active: None,
            stage: None,
            doubt: 0,
            sealed: 0,
            opened: 0,
            padded: false,
            changes: 0,
            delivered: false,
            pending_gap: false,
            doubtful_gap: false,
            unreadable: false,
            progress: Progress::default(),
            identify_tries: 0,
        }
    }

    /// Opens a whole protected record into `out`. `budget`: bytes that may still be decrypted on trial.
    pub(super) fn open(
        &mut self,
        session: &mut Session,
        record: &Record<'_>,
        budget: &mut Budget,
        out: &mut Vec<u8>,
    ) -> bool {
        budget.earn(record.body.len());
        let mut trial = Trial { record, given_up: false, budget, out };
        let mut candidates = self.candidates(session);
        for skipped in 0..=self.doubt.min(SEQUENCE_TRIES) {
            if self.active.as_mut().is_some_and(|active| trial.open(active, skipped)) {
                return self.was_opened(record.body, skipped);
            }
            if let Some(nth) = candidates.iter_mut().position(|next| trial.open(next, skipped)) {
                return self.was_entered(session, record.body, candidates.swap_remove(nth), skipped);
            }
            if trial.given_up {
                break;
            }
        }
        if session.client.is_none() && self.active.is_none() && self.identify_tries < IDENTIFY_TRIES {
            self.identify_tries += 1;
            let most = self.doubt.min(IDENTIFY_SEQUENCES);
            let opens = |next: &mut Protection| (0..=most).find(|skipped| trial.open(next, *skipped));
            if let Some((next, skipped)) = session.identify(self.index, opens) {
                return self.was_entered(session, record.body, next, skipped);
            }
        }
        if !record.found {
            self.pass(record.body, false);
        }
        false
    }

    /// What may follow the keys in use without having been announced.
    fn candidates(&self, session: &mut Session) -> Vec<Protection> {
        if !session.may_be_13() {
            // A ChangeCipherSpec may lie in a hole, or the secret has only come now.
            let unannounced = self.active.is_none() || self.doubt > 0;
            return session.changed(self.index, self.changes.max(1)).filter(|_| unannounced).into_iter().collect();
        }
        let mut candidates = session.successors(self.index, self.stage);
        candidates.extend(self.active.as_ref().and_then(Protection::updated));
        candidates
    }

    fn was_entered(&mut self, session: &mut Session, body: &[u8], next: Protection, skipped: u64) -> bool {
        if session.suite().is_none() {
            session.proven_suite = Some(next.suite);
        }
        // The first record under new keys of TLS 1.2 is Finished, no application data.
        let unimportant = u64::from(matches!(next.stage, Stage::Changed(_)));
        self.enter(Some(next));
        self.was_opened(body, skipped.saturating_sub(unimportant))
    }

    fn was_opened(&mut self, body: &[u8], skipped: u64) -> bool {
        if let Some(active) = &mut self.active {
            active.sequence = active.sequence.saturating_add(1);
            active.cipher.passed(body, false);
        }
        self.pending_gap |= std::mem::take(&mut self.doubtful_gap) && skipped > 0;
        self.doubt = 0;
        self.opened += 1;
        true
    }

    /// A protected record went by unopened.
    pub(super) fn pass(&mut self, body: &[u8], lost_end: bool) {
        match &mut self.active {
            Some(active) => {
                active.sequence = active.sequence.saturating_add(1);
                active.cipher.passed(body, lost_end);
            }
            None => self.doubt = self.doubt.saturating_add(1),
        }
    }

    /// A hole may have taken records.
    pub(super) fn lost(&mut self, lost: Lost) {
        let more = match lost {
            Lost::AtMost(records) => records,
            Lost::Unknown => SEQUENCE_TRIES,
        };
        self.doubt = self.doubt.saturating_add(more);
        if let Some(active) = &mut self.active {
            active.cipher.passed(&[], true);
        }
    }

    /// Has it reached the keys of application data?
    pub(super) fn is_past_handshake(&self) -> bool {
        matches!(self.stage, Some(Stage::Application(_) | Stage::Changed(_)))
    }

    /// New keys are in use from the next record on; none: they are not known.
    pub(super) fn enter(&mut self, next: Option<Protection>) {
        if let Some(next) = &next {
            self.stage = Some(next.stage);
        }
        self.active = next;
    }

    /// As [`Side::enter`], where the stage is known though the keys may not be.
    pub(super) fn enter_stage(&mut self, stage: Stage, next: Option<Protection>) {
        self.stage = Some(stage);
        self.active = next;
    }
}

/// How much of the plaintext lies before which byte of the TCP stream: so that an acknowledgment tells
/// how much plaintext the other end had.
#[derive(Default)]
pub(super) struct Progress {
    /// Bytes of plaintext so far, missing ones included as far as they were counted.
    pub(super) carried: u64,
    /// Ends of records: bytes of TCP, bytes of plaintext.
    ends: VecDeque<(u64, u64)>,
    /// Plaintext in what the other end had acknowledged.
    acked: u64,
}

impl Progress {
    /// More plaintext, in a record that ends with byte `end` of the stream.
    pub(super) fn carry(&mut self, bytes: u64, end: u64) {
        self.carried = self.carried.saturating_add(bytes);
        match self.ends.back_mut() {
            Some(last) if last.0 >= end => last.1 = self.carried,
            _ => self.ends.push_back((end, self.carried)),
        }
        if self.ends.len() > UNACKNOWLEDGED
            && let Some((_, carried)) = self.ends.pop_front()
        {
            self.acked = carried;
        }
    }

    /// Plaintext within the first `acked` bytes of the stream.
    pub(super) fn carried_at(&mut self, acked: u64) -> u64 {
        if acked == u64::MAX {
            return u64::MAX;
        }
        while let Some((_, carried)) = self.ends.front().filter(|(end, _)| *end <= acked) {
            self.acked = *carried;
            self.ends.pop_front();
        }
        self.acked
    }
}

/// Trying to open one record.
struct Trial<'a> {
    record: &'a Record<'a>,
    /// There was too little budget for it.
    given_up: bool,
    budget: &'a mut Budget,
    out: &'a mut Vec<u8>,
}

impl Trial<'_> {
    /// Tries the sequence number that comes so many after the next one; if it fits it becomes the current one.
    fn open(&mut self, protection: &mut Protection, skipped: u64) -> bool {
        // The first guess is ordinary work.
        if skipped > 0 && !self.budget.spend(self.record.body.len() + TRIAL_OVERHEAD_BYTES) {
            self.given_up = true;
            return false;
        }
        let sequence = protection.sequence.saturating_add(skipped);
        let opened = protection.cipher.open(sequence, self.record.header, self.record.body, self.out);
        if opened {
            protection.sequence = sequence;
        }
        opened
    }
}

/// Bytes that a connection may still spend on trials: some to begin with, and more with what is read and lost, so
/// that their cost stays in proportion to the input.
pub(super) struct Budget {
    left: usize,
    /// Trials were given up.
    pub(super) is_exhausted: bool,
}

/// What a connection may spend whatever it carries, bytes.
const BUDGET_BYTES: usize = 512 << 10;

impl Budget {
    pub(super) fn new() -> Budget {
        Budget { left: BUDGET_BYTES, is_exhausted: false }
    }

    /// So many bytes of records were read, or lost.
    pub(super) fn earn(&mut self, bytes: usize) {
        self.left = self.left.saturating_add(bytes.saturating_mul(2)).min(limits::TLS_TRIAL_BYTES);
    }

    fn spend(&mut self, bytes: usize) -> bool {
        match self.left.checked_sub(bytes) {
            Some(left) => self.left = left,
            None => {
                self.is_exhausted = true;
                return false;
            }
        }
        true
    }
}
