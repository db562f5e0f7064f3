//! Ports for the recording. A connection keeps its client's port; HTTP/2 streams, which are recorded
//! as a connection each, get ports that no open connection of that client has.

use rustc_hash::FxHashSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// The first port that is made up.
const MADE: u16 = 1024;

/// The client's ends of all recorded connections that are open.
#[derive(Clone, Default)]
pub(super) struct Ports(Arc<Mutex<FxHashSet<SocketAddr>>>);

/// An end, taken until this is dropped.
pub(super) struct Port {
    ports: Ports,
    pub(super) end: SocketAddr,
}

impl Ports {
    /// `wanted`, or the next free port of its address.
    pub(super) fn take(&self, wanted: SocketAddr) -> Port {
        let mut used = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut end = wanted;
        // With all taken two connections share one; readers tell them apart by their handshakes.
        for _ in 0..u16::MAX {
            if !used.contains(&end) {
                break;
            }
            end.set_port(end.port().checked_add(1).unwrap_or(MADE));
        }
        used.insert(end);
        Port { ports: self.clone(), end }
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        self.ports.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.end);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn no_two_open_connections_share_an_end() {
        let ports = Ports::default();
        let end: SocketAddr = "10.0.0.1:65535".parse().unwrap();
        let first = ports.take(end);
        let second = ports.take(end);
        let third = ports.take(end);
        assert_eq!([first.end.port(), second.end.port(), third.end.port()], [65535, 1024, 1025]);
        drop(first);
        assert_eq!(ports.take(end).end, end);
    }
}
