//! Captures of every form, whole, cut and damaged, against what they were made from.

use super::build::{self, Made, block, interface, option, packet, packets, pcap, pcapng, put32, section};
use super::bytes::Order;
use super::{CaptureKind, CaptureReader};
use crate::model::problem::{ProblemKind, Problems};
use proptest::prelude::*;

const MICRO: u32 = 0xa1b2_c3d4;
const NANO: u32 = 0xa1b2_3c4d;
const MODIFIED: u32 = 0xa1b2_cd34;

/// Time in ns, link type, interface, bytes, length on the wire.
type Seen = (i64, u16, u32, Vec<u8>, u32);

fn read(bytes: &[u8]) -> (Vec<Seen>, Problems) {
    let kind = CaptureKind::of(bytes).unwrap();
    let mut reader = CaptureReader::new(bytes, kind, 0);
    let mut seen = Vec::new();
    while reader.advance() {
        let f = reader.frame().unwrap();
        seen.push((f.at.ns(), f.link_type, f.interface, f.data.to_vec(), f.wire_len));
    }
    assert!(!reader.advance());
    (seen, reader.stats().problems)
}

fn expected(packets: &[Made]) -> Vec<Seen> {
    packets.iter().map(|p| (p.at_ns(), 1, 0, p.data.clone(), p.wire)).collect()
}

fn kinds(problems: &Problems) -> Vec<(ProblemKind, u64)> {
    problems.iter().map(|p| (p.kind, p.count)).collect()
}

#[test]
fn every_variant_of_classic_files() {
    let packets = packets(20);
    for order in [Order::Little, Order::Big] {
        for magic in [MICRO, NANO, MODIFIED] {
            let (seen, problems) = read(&pcap(order, magic, 0x1400_0001, &packets));
            assert_eq!(seen, expected(&packets), "{order:?} {magic:x}");
            assert!(problems.is_empty());
        }
    }
}

#[test]
fn a_header_alone_is_an_empty_capture() {
    for bytes in [pcap(Order::Big, MICRO, 1, &[]), pcapng(Order::Little, &[]), section(Order::Big)] {
        let (seen, problems) = read(&bytes);
        assert!(seen.is_empty());
        assert_eq!(kinds(&problems), [(ProblemKind::Empty, 1)]);
    }
}

#[test]
fn sections_with_their_own_byte_order_and_interfaces() {
    let made = packets(2);
    let mut bytes = section(Order::Little);
    bytes.extend(interface(Order::Little, 1, &[]));
    bytes.extend(interface(Order::Little, 113, &[option(Order::Little, 9, &[0x80 | 10])]));
    bytes.extend(packet(Order::Little, 1, 1_795_981_315 * 1024 + 512, &made[0], &[]));
    bytes.extend(packet(Order::Little, 0, 1_795_981_315_000_001, &made[1], &[]));
    bytes.extend(section(Order::Big));
    let offset = (-3600_i64).to_be_bytes();
    bytes.extend(interface(Order::Big, 276, &[option(Order::Big, 9, &[9]), option(Order::Big, 14, &offset)]));
    bytes.extend(packet(Order::Big, 0, 1_795_981_315_000_000_007, &made[1], &[]));
    let (seen, problems) = read(&bytes);
    let short: Vec<_> = seen.iter().map(|(at, link, interface, ..)| (*at, *link, *interface)).collect();
    assert_eq!(
        short,
        [(1_795_981_315_500_000_000, 113, 1), (1_795_981_315_000_001_000, 1, 0), (1_795_977_715_000_000_007, 276, 2)]
    );
    assert!(problems.is_empty(), "{problems:?}");
}

#[test]
fn blocks_of_other_kinds() {
    for order in [Order::Little, Order::Big] {
        let made = packets(3);
        let mut bytes = section(order);
        bytes.extend(interface(order, 1, &[]));
        // Names, an unknown type, and secrets, of which only the TLS key log is kept.
        bytes.extend(block(order, 4, &[0; 8]));
        bytes.extend(block(order, 0x1234_5678, &[1; 30]));
        for (kind, log) in [(0x544c_534b, &b"CLIENT_RANDOM 00 11\n"[..]), (0x5747_4b4c, b"other")] {
            let mut body = Vec::new();
            put32(order, &mut body, kind);
            put32(order, &mut body, log.len() as u32);
            body.extend(log);
            bytes.extend(block(order, 10, &body));
        }
        // A custom block has a frame number.
        bytes.extend(block(order, 0xbad, &[9; 12]));
        bytes.extend(packet(
            order,
            0,
            1_795_981_315_000_000,
            &made[0],
            &[option(
                order,
                4,
                &match order {
                    Order::Little => 5_u64.to_le_bytes(),
                    Order::Big => 5_u64.to_be_bytes(),
                },
            )],
        ));
        let mut simple = Vec::new();
        put32(order, &mut simple, made[1].data.len() as u32);
        simple.extend(&made[1].data);
        bytes.extend(block(order, 3, &simple));
        // The obsolete packet block: a 16-bit interface, then a drop count.
        let mut obsolete = packet(order, 0, 1_795_981_315_000_009, &made[2], &[]);
        let kind = match order {
            Order::Little => 2_u32.to_le_bytes(),
            Order::Big => 2_u32.to_be_bytes(),
        };
        obsolete[..4].copy_from_slice(&kind);
        bytes.extend(obsolete);
        // Statistics: 3 dropped by the interface, 4 by the system, counted from the beginning.
        for drops in [1_u64, 4] {
            let value = |n: u64| match order {
                Order::Little => n.to_le_bytes(),
                Order::Big => n.to_be_bytes(),
            };
            let mut body = vec![0; 12];
            body.extend(option(order, 5, &value(3)));
            body.extend(option(order, 7, &value(drops)));
            bytes.extend(block(order, 5, &body));
        }

        let mut reader = CaptureReader::new(&bytes[..], CaptureKind::Pcapng, 3);
        let mut seen = Vec::new();
        while reader.advance() {
            let f = reader.frame().unwrap();
            seen.push((f.place.number, f.at.ns() % 1_000_000_000, f.data.to_vec()));
        }
        let data = |n: usize| made[n].data.clone();
        assert_eq!(seen, [(2, 0, data(0)), (3, 0, data(1)), (4, 9000, data(2))]);
        assert_eq!(reader.take_secrets(), [b"CLIENT_RANDOM 00 11\n".to_vec()]);
        let problems = reader.stats().problems;
        assert_eq!(kinds(&problems), [(ProblemKind::DroppedPackets, 7), (ProblemKind::NoTime, 1)]);
    }
}

#[test]
fn a_packet_of_no_interface_is_said() {
    let mut bytes = section(Order::Little);
    let made = packets(1);
    bytes.extend(packet(Order::Little, 4, 0, &made[0], &[]));
    bytes.extend(interface(Order::Little, 1, &[]));
    bytes.extend(packet(Order::Little, 0, 1, &made[0], &[]));
    let (seen, problems) = read(&bytes);
    assert_eq!(seen.len(), 1);
    assert_eq!(kinds(&problems), [(ProblemKind::Garbage, 1)]);
}

#[test]
fn garbage_between_records_is_passed_over() {
    let all = packets(12);
    let junk: Vec<u8> = (0..500_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8 | 0x80).collect();
    for order in [Order::Little, Order::Big] {
        let head = pcap(order, MICRO, 1, &all[..5]);
        let tail = &pcap(order, MICRO, 1, &all[5..])[24..];
        let (seen, problems) = read(&[&head[..], &junk, tail].concat());
        assert_eq!(seen, expected(&all));
        assert_eq!(kinds(&problems), [(ProblemKind::Garbage, 1)]);

        let head = pcapng(order, &all[..5]);
        let empty = pcapng(order, &[]).len();
        let tail = &pcapng(order, &all[5..])[empty..];
        let (seen, problems) = read(&[&head[..], &junk, tail].concat());
        assert_eq!(seen, expected(&all));
        assert_eq!(kinds(&problems), [(ProblemKind::Garbage, 1)]);
    }
}

#[test]
fn a_tail_of_garbage_ends_the_capture() {
    let made = packets(4);
    for bytes in [pcap(Order::Little, NANO, 1, &made), pcapng(Order::Big, &made)] {
        let (seen, problems) = read(&[&bytes[..], &[0xff; 64]].concat());
        assert_eq!(seen, expected(&made));
        assert_eq!(kinds(&problems), [(ProblemKind::Garbage, 1)]);
    }
}

#[test]
fn files_joined_with_cat() {
    let made = packets(6);
    let bytes = [pcap(Order::Little, MICRO, 1, &made[3..]), pcap(Order::Big, NANO, 1, &made[..3])].concat();
    let (seen, problems) = read(&bytes);
    assert_eq!(seen, expected(&[&made[3..], &made[..3]].concat()));
    assert_eq!(kinds(&problems), [(ProblemKind::Garbage, 1)]);
    let bytes = [pcapng(Order::Little, &made[..3]), pcapng(Order::Big, &made[3..])].concat();
    let (seen, problems) = read(&bytes);
    assert_eq!(seen.len(), 6);
    assert!(problems.is_empty());
}

#[test]
fn a_length_that_swallows_the_rest_is_no_end() {
    let made = packets(40);
    let mut bytes = pcap(Order::Little, MICRO, 1, &made);
    // The second record says that it is longer than the file.
    bytes[24 + 17 + 8..24 + 17 + 12].copy_from_slice(&100_000_u32.to_le_bytes());
    let (seen, problems) = read(&bytes);
    assert_eq!(seen.len(), 39);
    assert_eq!(kinds(&problems), [(ProblemKind::Garbage, 1)]);
}

#[test]
fn time_that_runs_back_is_counted_and_order_kept() {
    let mut made = packets(5);
    made[2].seconds -= 2;
    made[4].ns = made[3].ns - 900_000;
    let (seen, problems) = read(&pcap(Order::Little, NANO, 1, &made));
    assert_eq!(seen, expected(&made));
    assert_eq!(kinds(&problems), [(ProblemKind::TimeOrder, 1)]);
}

#[test]
fn a_packet_larger_than_the_buffer() {
    let mut made = packets(3);
    made[1].data = vec![5; 900_000];
    made[1].wire = 900_000;
    assert_eq!(read(&pcapng(Order::Little, &made)).0, expected(&made));
    let mut bytes = pcap(Order::Little, MICRO, 1, &made);
    bytes[16..20].copy_from_slice(&0_u32.to_le_bytes());
    assert_eq!(read(&bytes).0, expected(&made));
}

/// Our records against those of an independent reader.
fn by_pcap_parser(bytes: &[u8]) -> Vec<Vec<u8>> {
    use pcap_parser::{Block, PcapBlockOwned, PcapError};
    let mut reader = pcap_parser::create_reader(1 << 20, bytes).unwrap();
    let mut out = Vec::new();
    loop {
        match reader.next() {
            Ok((used, block)) => {
                match &block {
                    PcapBlockOwned::Legacy(b) => out.push(b.data.to_vec()),
                    PcapBlockOwned::NG(Block::EnhancedPacket(b)) => out.push(b.data[..b.caplen as usize].to_vec()),
                    _ => {}
                }
                reader.consume(used);
            }
            Err(PcapError::Incomplete(_)) => reader.refill().unwrap(),
            Err(_) => return out,
        }
    }
}

fn any_packets() -> impl Strategy<Value = Vec<Made>> {
    let made = (0..3_u32, 0..1_000_000_u32, prop::collection::vec(any::<u8>(), 0..90), 0..2_000_u32).prop_map(
        |(seconds, us, data, more)| Made {
            seconds: 1_795_981_315 + seconds,
            ns: us * 1000,
            wire: data.len() as u32 + more,
            data,
        },
    );
    prop::collection::vec(made, 0..12)
}

fn any_capture() -> impl Strategy<Value = (Vec<Made>, Vec<u8>)> {
    (any_packets(), 0..8_usize).prop_map(|(made, form)| {
        let order = if form % 2 == 0 { Order::Little } else { Order::Big };
        let bytes = match form / 2 {
            0 => pcap(order, MICRO, 1, &made),
            1 => pcap(order, NANO, 1, &made),
            2 => pcap(order, MODIFIED, 1, &made),
            _ => pcapng(order, &made),
        };
        (made, bytes)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_cut_gives_a_prefix((made, bytes) in any_capture(), cut in 0.0..1.0_f64) {
        let length = 4 + ((bytes.len() - 4) as f64 * cut) as usize;
        let (seen, problems) = read(&bytes[..length]);
        prop_assert!(expected(&made).starts_with(&seen));
        let quiet = [ProblemKind::TimeOrder, ProblemKind::Empty];
        if problems.iter().all(|p| quiet.contains(&p.kind)) {
            // Cut between records: every whole one was seen.
            let rest = read(&bytes).0.len() - seen.len();
            prop_assert!(rest == 0 || length < bytes.len());
        }
    }

    #[test]
    fn damage_never_panics_and_never_invents_much(
        (_, mut bytes) in any_capture(),
        hits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let kind = CaptureKind::of(&bytes).unwrap();
        for (at, value) in hits {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        let mut reader = CaptureReader::new(&bytes[..], kind, 0);
        let mut count = 0;
        while reader.advance() {
            count += 1;
        }
        prop_assert!(count <= bytes.len() / 16);
    }

    #[test]
    fn agrees_with_an_independent_reader((_, bytes) in any_capture()) {
        let modified_big = bytes.starts_with(&build::pcap(Order::Big, MODIFIED, 1, &[])[..4]);
        prop_assume!(!modified_big);
        let ours: Vec<Vec<u8>> = read(&bytes).0.into_iter().map(|(_, _, _, data, _)| data).collect();
        prop_assert_eq!(ours, by_pcap_parser(&bytes));
    }
}
