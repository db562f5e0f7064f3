//! What all TLS connections of an input share.

use super::keys::{KeyStore, Secret};
use crate::model::limits;
use rustc_hash::FxHashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// How many TLS connections were met and how many could be read, for a report's first line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TlsCount {
    /// Connections that carried protected records.
    pub connections: u64,
    /// Those of which application data could be read.
    pub readable: u64,
    /// Those of which none could, for want of keys.
    pub no_keys: u64,
    /// Renegotiations within them.
    pub renegotiations: u64,
}

/// Keys and counts that the TLS connections of one input share.
#[derive(Debug, Default)]
pub struct TlsSetup {
    /// The secrets, usually shared by all inputs.
    pub keys: Arc<KeyStore>,
    connections: AtomicU64,
    readable: AtomicU64,
    no_keys: AtomicU64,
    renegotiations: AtomicU64,
    /// Master secrets by session id or ticket, for sessions that are resumed without being logged again.
    resumable: Mutex<Resumable>,
}

#[derive(Default)]
struct Resumable(FxHashMap<Vec<u8>, Secret>);

impl std::fmt::Debug for Resumable {
    /// Never shows a secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Resumable({} sessions)", self.0.len())
    }
}

impl TlsSetup {
    /// With these keys, and nothing counted.
    pub fn new(keys: Arc<KeyStore>) -> TlsSetup {
        TlsSetup { keys, ..TlsSetup::default() }
    }

    /// What was met so far.
    pub fn count(&self) -> TlsCount {
        TlsCount {
            connections: self.connections.load(Ordering::Relaxed),
            readable: self.readable.load(Ordering::Relaxed),
            no_keys: self.no_keys.load(Ordering::Relaxed),
            renegotiations: self.renegotiations.load(Ordering::Relaxed),
        }
    }

    pub(super) fn count_connection(&self) {
        self.connections.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_readable(&self) {
        self.readable.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_no_keys(&self) {
        self.no_keys.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_renegotiation(&self) {
        self.renegotiations.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn remember(&self, session: &[u8], master: &Secret) {
        let mut resumable = self.resumable.lock().unwrap_or_else(PoisonError::into_inner);
        if !session.is_empty() && resumable.0.len() < limits::TLS_RESUMABLE {
            resumable.0.insert(session.to_vec(), Arc::clone(master));
        }
    }

    pub(super) fn recall(&self, session: &[u8]) -> Option<Secret> {
        self.resumable.lock().unwrap_or_else(PoisonError::into_inner).0.get(session).cloned()
    }
}
