//! Entry for fuzzing.

use super::{KeyStore, TlsParser, TlsSetup};
use crate::model::exchange::{Event, Exchange, ExchangeSink, Mark, Peer};
use crate::model::place::Place;
use crate::model::problem::Problems;
use crate::model::time::Time;
use crate::wire::{Close, Connection, Context, StreamParser};
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;

/// Swallows everything.
struct Nothing;

impl StreamParser for Nothing {
    fn data(&mut self, _: &Connection, _: Peer, _: &[u8], _: Mark, _: &mut Context<'_>) {}
    fn gap(&mut self, _: &Connection, _: Peer, _: Option<u64>, _: Mark, _: &mut Context<'_>) {}
    fn close(&mut self, _: &Connection, _: Peer, _: Close, _: Mark, _: &mut Context<'_>) {}
}

impl ExchangeSink for Nothing {
    fn event(&mut self, _: &Exchange, _: Event<'_>) {}
}

/// Reads `bytes` as a TLS connection. Each step begins with a byte that says which end sends, whether
/// it is data or a hole, and how long it is; a connection with a random of zeros has secrets.
pub fn fuzz(bytes: &[u8]) {
    let keys = KeyStore::new();
    for label in
        ["CLIENT_RANDOM", "CLIENT_HANDSHAKE_TRAFFIC_SECRET", "SERVER_TRAFFIC_SECRET_0", "CLIENT_TRAFFIC_SECRET_0"]
    {
        let zeros = "00".repeat(32);
        keys.read(format!("{label} {zeros} {zeros}").as_bytes());
    }
    let setup = Arc::new(TlsSetup::new(Arc::new(keys)));
    drive(TlsParser::new(setup, Rc::new(|_| Box::new(Nothing))), bytes);
}

/// Feeds any parser with the steps in `bytes`, for fuzzing: see [`fuzz`].
pub fn drive(mut parser: impl StreamParser, mut bytes: &[u8]) {
    let address = |last| SocketAddr::from((Ipv4Addr::new(192, 0, 2, last), 443));
    let connection = Connection {
        input: 0,
        stream: 0,
        client: address(1),
        server: address(2),
        connected: None,
        one_direction: false,
        offset: 0,
        acked: u64::MAX,
    };
    let (mut problems, mut next_exchange) = (Problems::default(), 0);
    let mut context = Context { sink: &mut Nothing, problems: &mut problems, next_exchange: &mut next_exchange };
    let mark = Mark { place: Place::frame(0, 1), at: Time::from_us(0) };
    while let Some((&step, rest)) = bytes.split_first() {
        let from = if step & 1 == 0 { Peer::Client } else { Peer::Server };
        // Short steps in small units, long ones in large.
        let length = usize::from(step >> 3) * if step & 4 == 0 { 4 } else { 256 };
        bytes = rest;
        if step & 2 == 0 {
            let (piece, rest) = bytes.split_at(length.min(bytes.len()));
            parser.data(&connection, from, piece, mark, &mut context);
            bytes = rest;
        } else {
            parser.gap(&connection, from, (length > 0).then_some(length as u64), mark, &mut context);
        }
    }
    parser.close(&connection, Peer::Client, Close::Fin, mark, &mut context);
    parser.close(&connection, Peer::Server, Close::InputEnded, mark, &mut context);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]

        #[test]
        fn survives_anything(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            super::fuzz(&bytes);
        }

        /// Steps that look like records.
        #[test]
        fn survives_records(
            steps in proptest::collection::vec((any::<u8>(), 20u8..25, 0u8..4, proptest::collection::vec(any::<u8>(), 0..90)), 0..12)
        ) {
            let mut bytes = Vec::new();
            for (step, kind, version, body) in steps {
                bytes.extend_from_slice(&[step, kind, 3, version, 0, body.len() as u8]);
                bytes.extend_from_slice(&body);
            }
            super::fuzz(&bytes);
        }
    }
}
