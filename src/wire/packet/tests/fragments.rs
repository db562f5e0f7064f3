//! Fragments in any order, number and state.

use super::{BODY, Bench, ip_carrying, ipv4, ipv6, seen4, seen6, udp, with};
use crate::model::problem::ProblemKind;
use crate::wire::Checksum;
use proptest::prelude::*;

/// Cuts the payload of an IP packet into fragments of at most `size` bytes.
pub(super) fn four(packet: &[u8], size: usize) -> Vec<Vec<u8>> {
    let payload = &packet[20..];
    let mut out = Vec::new();
    for (n, piece) in payload.chunks(size).enumerate() {
        let mut head = packet[..20].to_vec();
        let offset = n * size / 8;
        let more = if (n + 1) * size < payload.len() { 0x2000 } else { 0 };
        head[2..4].copy_from_slice(&((20 + piece.len()) as u16).to_be_bytes());
        head[6..8].copy_from_slice(&(offset as u16 | more).to_be_bytes());
        out.push([&head, piece].concat());
    }
    out
}

pub(super) fn six(packet: &[u8], size: usize) -> Vec<Vec<u8>> {
    let payload = &packet[40..];
    let mut out = Vec::new();
    for (n, piece) in payload.chunks(size).enumerate() {
        let mut head = packet[..40].to_vec();
        let more = u16::from((n + 1) * size < payload.len());
        head[4..6].copy_from_slice(&((8 + piece.len()) as u16).to_be_bytes());
        head[6] = 44;
        let offset = (n * size) as u16 | more;
        let fragment = [&[6, 0][..], &offset.to_be_bytes(), &[0, 0, 0, 5]].concat();
        out.push([&head, &fragment, piece].concat());
    }
    out
}

#[test]
fn a_fragment_that_is_missing_is_counted() {
    let mut bench = Bench::new();
    for packet in four(&ipv4(), 24).into_iter().skip(1) {
        assert_eq!(bench.give(101, &packet, packet.len() as u32), None);
    }
    bench.decoder.finish(&mut bench.problems);
    assert_eq!(bench.kinds(), [(ProblemKind::IncompleteFragments, 1)]);
    assert_eq!(bench.problems.iter().next().unwrap().place.as_deref(), Some("frame 1"));
}

#[test]
fn the_first_of_overlapping_fragments_wins() {
    let mut bench = Bench::new();
    let whole = four(&ipv4(), 32);
    assert_eq!(whole.len(), 2);
    // A liar repeats the second half of the first with other bytes, before the rest comes.
    let mut liar = four(&ipv4(), 16)[1].clone();
    liar[20..].fill(b'x');
    for packet in [&whole[0], &liar] {
        assert_eq!(bench.give(101, packet, packet.len() as u32), None);
    }
    assert_eq!(bench.give(101, &whole[1], whole[1].len() as u32), Some(seen4(0)));
    bench.decoder.finish(&mut bench.problems);
    assert_eq!(bench.kinds(), []);
}

#[test]
fn a_fragment_cut_by_the_snap_length_leaves_the_part_before() {
    let mut bench = Bench::new();
    let pieces = four(&ipv4(), 40);
    assert_eq!(bench.give(101, &pieces[0][..50], 60), None);
    let seen = bench.give(101, &pieces[1], pieces[1].len() as u32).unwrap();
    assert_eq!((seen.payload, seen.wire, seen.checksum), (BODY[..10].to_vec(), BODY.len() as u32, Checksum::Unknown));
}

#[test]
fn a_fragmented_tunnel() {
    let outer = udp(2152, 2152, &with(&[0x30, 0xff, 0, 80, 0, 0, 0, 1], &ipv4()));
    let mut bench = Bench::new();
    let pieces = four(&outer, 56);
    assert_eq!(bench.give(101, &pieces[1], pieces[1].len() as u32), None);
    assert_eq!(bench.give(101, &pieces[0], pieces[0].len() as u32), Some(seen4(0)));
}

#[test]
fn fragments_in_fragments_are_said() {
    let outer = ip_carrying(4, &four(&ipv4(), 24)[0]);
    let mut bench = Bench::new();
    for piece in four(&outer, 24) {
        assert_eq!(bench.give(101, &piece, piece.len() as u32), None);
    }
}

#[test]
fn fragments_are_capped() {
    let mut bench = Bench::new();
    let piece = &four(&ipv4(), 24)[0];
    for id in 0..(crate::model::limits::FRAGMENTED_DATAGRAMS as u16 + 10) {
        let mut piece = piece.clone();
        piece[4..6].copy_from_slice(&id.to_be_bytes());
        bench.give(101, &piece, piece.len() as u32);
    }
    assert_eq!(bench.problems.count(ProblemKind::LimitHit), 10);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn fragments_in_any_order_and_number(
        six in any::<bool>(),
        units in 1..9_usize,
        order in Just((0..24_usize).collect::<Vec<_>>()).prop_shuffle(),
        repeats in prop::collection::vec(0..24_usize, 0..6),
    ) {
        let pieces = if six { super::fragments::six(&ipv6(), units * 8) } else { four(&ipv4(), units * 8) };
        let right = if six { seen6() } else { seen4(0) };
        let mut bench = Bench::new();
        let mut left: Vec<usize> = order.into_iter().filter(|n| *n < pieces.len()).collect();
        let last = left.pop().unwrap();
        for n in left.iter().copied().chain(repeats.into_iter().filter(|n| left.contains(n))) {
            prop_assert_eq!(bench.give(101, &pieces[n], pieces[n].len() as u32), None);
        }
        prop_assert_eq!(bench.give(101, &pieces[last], pieces[last].len() as u32), Some(right));
        bench.decoder.finish(&mut bench.problems);
        prop_assert_eq!(bench.kinds(), vec![]);
    }
}
