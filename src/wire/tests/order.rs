//! Whatever the order and number of packets, the events are the same.

use super::{Sent, Talk, json, post, read, sse};
use crate::model::exchange::Peer::{Client, Server};
use crate::model::problem::ProblemKind;
use proptest::prelude::*;

/// Calls on two connections, one of which the client leaves in the middle of a call.
fn talk(sizes: &[usize], pipelined: bool) -> Vec<Sent> {
    let mut sizes = sizes.iter().copied().cycle();
    let mut size = || sizes.next().unwrap_or(100);
    let mut one = Talk::open(40_000, [u32::MAX - 100, 5]);
    if pipelined {
        let both = [post("{\"id\":1}"), post("{\"id\":2}")].concat();
        one.say(Client, &both, size());
        one.say(Server, &[json("{\"r\":1}"), sse(&["{\"r\":2}"])].concat(), size());
    } else {
        for n in 1..4 {
            one.say(Client, &post(&format!("{{\"id\":{n}}}")), size());
            one.wait(20).say(Server, &sse(&["{\"p\":0}", &format!("{{\"r\":{n}}}")]), size());
        }
    }
    one.close(Client);
    let mut two = Talk::open(40_001, [77, 99]);
    two.say(Client, &post("{\"id\":9}"), size()).wait(300).close(Client);
    one.sent.extend(two.sent);
    one.sent.sort_by_key(|sent| sent.at_ms);
    one.sent
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]
    #[test]
    fn packets_in_any_order_within_a_window_and_any_copies(
        sizes in prop::collection::vec(1usize..300, 1..6),
        pipelined in any::<bool>(),
        moves in prop::collection::vec(0u32..12, 1..60),
        copies in prop::collection::vec((0usize..400, 0usize..12), 0..6),
        handshake in any::<bool>(),
    ) {
        let mut sent = talk(&sizes, pipelined);
        let want = read(&sent).by_exchange();
        prop_assert_eq!(want.len(), if pipelined { 3 } else { 4 });
        if !handshake {
            sent.retain(|sent| sent.flags & crate::wire::flags::SYN == 0);
        }
        for (which, later) in copies {
            let which = which % sent.len();
            let copy = sent[which].clone();
            sent.insert((which + later).min(sent.len()), copy);
        }
        let mut keyed: Vec<(u64, Sent)> = sent
            .into_iter()
            .enumerate()
            .map(|(n, sent)| (n as u64 + u64::from(moves[n % moves.len()]), sent))
            .collect();
        keyed.sort_by_key(|(key, _)| *key);
        let moved: Vec<Sent> = keyed.into_iter().map(|(_, sent)| sent).collect();
        let heard = read(&moved);
        prop_assert_eq!(heard.by_exchange(), want);
        prop_assert_eq!(heard.count(ProblemKind::StreamGap), 0);
        prop_assert_eq!(heard.count(ProblemKind::ConflictingOverlap), 0);
    }

    #[test]
    fn packets_in_reverse(sizes in prop::collection::vec(1usize..300, 1..6), pipelined in any::<bool>()) {
        let mut sent = talk(&sizes, pipelined);
        let want = read(&sent).by_exchange();
        sent.reverse();
        prop_assert_eq!(read(&sent).by_exchange(), want);
    }

    #[test]
    fn missing_packets_never_make_wrong_pairs(
        sizes in prop::collection::vec(1usize..200, 1..6),
        pipelined in any::<bool>(),
        missing in prop::collection::vec(any::<bool>(), 1..40),
        rate in 2usize..12,
    ) {
        let sent: Vec<Sent> = talk(&sizes, pipelined)
            .into_iter()
            .enumerate()
            // Without its beginning nothing tells how many requests were pipelined before.
            .filter(|(n, sent)| sent.flags & crate::wire::flags::SYN != 0 || n % rate != 0 || !missing[n % missing.len()])
            .map(|(_, sent)| sent)
            .collect();
        for line in read(&sent).by_exchange() {
            let numbers = |tag: &str| line.split(tag).skip(1).filter_map(|rest| rest.chars().next()).collect::<Vec<_>>();
            for (asked, got) in numbers("\"id\":").into_iter().zip(numbers("\"r\":")) {
                prop_assert_eq!(asked, got, "{}", line);
            }
        }
    }

    #[test]
    fn garbage_is_survived(segments in prop::collection::vec(
        (any::<bool>(), 0u32..400, 0u32..400, any::<u8>(), prop::collection::vec(any::<u8>(), 0..40), 0u32..60), 0..60)) {
        let mut garbage = Vec::new();
        for (n, (client, seq, ack, flags, payload, more)) in segments.into_iter().enumerate() {
            let mut one = Talk::open(40_000, [seq, ack]).sent.remove(0);
            one.from = if client { Client } else { Server };
            (one.seq, one.ack, one.flags, one.at_ms) = (seq.wrapping_sub(100), ack.wrapping_sub(100), flags, n as i64 * 200);
            one.wire_len = payload.len() as u32 + more.saturating_sub(50);
            one.payload = payload;
            garbage.push(one);
        }
        read(&garbage);
    }
}
