//! Frames of every kind, made by another library or by hand, to segments.

mod fragments;
mod tunnels;

use super::Decoder;
use crate::input::capture::Frame;
use crate::model::place::Place;
use crate::model::problem::{ProblemKind, Problems};
use crate::model::time::Time;
use crate::wire::{Checksum, flags};
use etherparse::PacketBuilder;
use proptest::prelude::*;

const BODY: &[u8] = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// What a test looks at in a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    src: String,
    dst: String,
    seq: u32,
    ack: Option<u32>,
    flags: u8,
    payload: Vec<u8>,
    wire: u32,
    scope: u64,
    checksum: Checksum,
}

struct Bench {
    decoder: Decoder,
    problems: Problems,
    number: u64,
}

impl Bench {
    fn new() -> Bench {
        Bench { decoder: Decoder::new(), problems: Problems::default(), number: 0 }
    }

    fn give(&mut self, link_type: u16, data: &[u8], wire_len: u32) -> Option<Seen> {
        self.number += 1;
        let frame = Frame {
            place: Place::frame(0, self.number),
            at: Time::from_us(self.number as i64 * 1000),
            link_type,
            interface: 0,
            data,
            wire_len,
            offset: 0,
        };
        let s = self.decoder.segment(&frame, &mut self.problems)?;
        assert_eq!(s.mark.place, frame.place);
        Some(Seen {
            src: s.src.to_string(),
            dst: s.dst.to_string(),
            seq: s.seq,
            ack: s.ack,
            flags: s.flags,
            payload: s.payload.to_vec(),
            wire: s.wire_len,
            scope: s.scope,
            checksum: s.checksum,
        })
    }

    fn kinds(&self) -> Vec<(ProblemKind, u64)> {
        self.problems.iter().map(|p| (p.kind, p.count)).collect()
    }
}

fn one(link_type: u16, data: &[u8]) -> (Option<Seen>, Vec<(ProblemKind, u64)>) {
    let mut bench = Bench::new();
    let seen = bench.give(link_type, data, data.len() as u32);
    (seen, bench.kinds())
}

/// An IPv4 packet with `BODY` in TCP.
fn ipv4() -> Vec<u8> {
    let mut out = Vec::new();
    PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
        .tcp(40000, 8080, 1000, 5000)
        .ack(77)
        .psh()
        .write(&mut out, BODY)
        .unwrap();
    out
}

fn ipv6() -> Vec<u8> {
    let address = |last| [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last];
    let mut out = Vec::new();
    PacketBuilder::ipv6(address(1), address(2), 64)
        .tcp(40000, 8080, 1000, 5000)
        .ack(77)
        .psh()
        .write(&mut out, BODY)
        .unwrap();
    out
}

fn seen4(scope: u64) -> Seen {
    Seen {
        src: "10.0.0.1:40000".to_owned(),
        dst: "10.0.0.2:8080".to_owned(),
        seq: 1000,
        ack: Some(77),
        flags: flags::ACK | flags::PSH,
        payload: BODY.to_vec(),
        wire: BODY.len() as u32,
        scope,
        checksum: Checksum::Good,
    }
}

fn seen6() -> Seen {
    Seen { src: "[2001:db8::1]:40000".to_owned(), dst: "[2001:db8::2]:8080".to_owned(), ..seen4(0) }
}

fn ethernet(protocol: u16, payload: &[u8]) -> Vec<u8> {
    [&[2; 6][..], &[4; 6], &protocol.to_be_bytes(), payload].concat()
}

fn vlan(ids: &[u16], protocol: u16, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for (n, id) in ids.iter().enumerate() {
        out.extend(id.to_be_bytes());
        out.extend(if n + 1 == ids.len() { protocol } else { 0x8100 }.to_be_bytes());
    }
    out.extend(payload);
    out
}

fn with(front: &[u8], packet: &[u8]) -> Vec<u8> {
    [front, packet].concat()
}

#[test]
fn every_link_type() {
    let four = ipv4();
    let attribute = |kind: u16, value: &[u8], big: bool| {
        let length = (value.len() + 4) as u16;
        let mut out = Vec::new();
        for n in [length, kind] {
            out.extend(if big { n.to_be_bytes() } else { n.to_le_bytes() });
        }
        out.extend(value);
        out.resize(out.len().next_multiple_of(4), 0);
        out
    };
    let nflog = |big| [&[2, 0, 0, 1][..], &attribute(1, &[8, 0, 1, 0], big), &attribute(9, &four, big)].concat();
    let cases: Vec<(&str, u16, Vec<u8>)> = vec![
        ("Ethernet", 1, ethernet(0x0800, &four)),
        ("SNAP", 1, ethernet(60, &with(&[0xaa, 0xaa, 3, 0, 0, 0, 8, 0], &four))),
        ("priority tag", 1, ethernet(0x8100, &vlan(&[0x6000], 0x0800, &four))),
        ("MPLS", 1, ethernet(0x8847, &with(&[0, 1, 0, 64, 0, 2, 1, 64], &four))),
        ("MPLS pseudowire", 1, ethernet(0x8847, &with(&[0, 2, 1, 64, 0, 0, 0, 9], &ethernet(0x0800, &four)))),
        ("PPPoE", 1, ethernet(0x8864, &with(&[0x11, 0, 0, 1, 0, 42, 0, 0x21], &four))),
        ("SLL", 113, with(&[0, 0, 3, 4, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0], &four)),
        ("SLL2", 276, with(&[8, 0, 0, 0, 0, 0, 0, 1, 3, 4, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0], &four)),
        ("raw", 101, four.clone()),
        ("raw BSD", 12, four.clone()),
        ("raw OpenBSD", 14, four.clone()),
        ("IPv4", 228, four.clone()),
        ("null", 0, with(&[2, 0, 0, 0], &four)),
        ("null, other order", 0, with(&[0, 0, 0, 2], &four)),
        ("loop", 108, with(&[0, 0, 0, 2], &four)),
        ("NFLOG", 239, nflog(false)),
        ("NFLOG, big-endian host", 239, nflog(true)),
        ("PPP", 9, with(&[0xff, 3, 0, 0x21], &four)),
        ("PPP, compressed", 9, with(&[0x21], &four)),
        ("PPP in HDLC", 50, with(&[0xff, 3, 0, 0x21], &four)),
        ("pppd", 166, with(&[1, 3, 0, 0x21], &four)),
        ("PPPoE session", 51, with(&[0x11, 0, 0, 1, 0, 42, 0, 0x21], &four)),
        ("Cisco HDLC", 104, with(&[0x0f, 0, 8, 0], &four)),
        ("ENC", 109, with(&[0; 12], &four)),
        ("pflog", 117, with(&[[61].as_slice(), &[0; 63]].concat(), &four)),
        ("FireWire", 138, with(&[[1; 16].as_slice(), &[8, 0]].concat(), &four)),
        ("ARCNET", 7, with(&[1, 2, 240], &four)),
        ("ARCNET of Linux", 129, with(&[1, 2, 0, 0, 212, 0, 0, 1], &four)),
    ];
    for (name, link_type, frame) in &cases {
        assert_eq!(one(*link_type, frame), (Some(seen4(0)), vec![]), "{name}");
        // What Ethernet pads is no payload.
        let padded = with(frame, &[0xee; 9]);
        assert_eq!(one(*link_type, &padded), (Some(seen4(0)), vec![]), "{name}, padded");
    }
    for (link_type, front) in [(101, &[][..]), (229, &[]), (0, &[30, 0, 0, 0]), (108, &[0, 0, 0, 24])] {
        assert_eq!(one(link_type, &with(front, &ipv6())), (Some(seen6()), vec![]), "{link_type}");
    }
    assert_eq!(one(1, &ethernet(0x86dd, &ipv6())), (Some(seen6()), vec![]));
    let (seen, kinds) = one(105, &[0; 60]);
    assert_eq!((seen, kinds), (None, vec![(ProblemKind::UnreadProtocol, 1)]));
}

#[test]
fn vlan_tags_keep_networks_apart() {
    let four = ipv4();
    let scope = |ids: &[u16]| one(1, &ethernet(0x88a8, &vlan(ids, 0x0800, &four))).0.unwrap().scope;
    let scopes = [scope(&[1]), scope(&[2]), scope(&[1, 2]), scope(&[2, 1]), scope(&[1, 2, 3]), scope(&[0x6001, 0])];
    assert!(scopes.iter().all(|s| *s != 0));
    assert_eq!(scopes[0], scopes[5], "priorities and priority tags are no networks");
    for (n, a) in scopes[..5].iter().enumerate() {
        assert!(!scopes[n + 1..5].contains(a));
    }
    let deep = ethernet(0x8100, &vlan(&[1; 40], 0x0800, &four));
    assert_eq!(one(1, &deep), (None, vec![(ProblemKind::Tunnel, 1)]));
}

fn udp(from: u16, to: u16, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    PacketBuilder::ipv4([192, 0, 2, 1], [192, 0, 2, 2], 64).udp(from, to).write(&mut out, payload).unwrap();
    out
}

fn ip_carrying(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let builder = PacketBuilder::ipv4([192, 0, 2, 1], [192, 0, 2, 2], 64);
    builder.write(&mut out, etherparse::IpNumber(protocol), payload).unwrap();
    out
}

#[test]
fn quic_is_counted_once_a_flow_and_other_packets_ignored() {
    let mut bench = Bench::new();
    let long = with(&[0xc3, 0, 0, 0, 1], &[8; 40]);
    let short = with(&[0x43], &[8; 40]);
    let there = udp(50000, 8443, &long);
    let mut back = udp(8443, 50000, &long);
    back[12..20].rotate_left(4);
    for packet in [there, back, udp(50000, 443, &short), udp(50000, 53, &short), udp(1, 2, &[])] {
        assert_eq!(bench.give(101, &packet, packet.len() as u32), None);
    }
    let arp = ethernet(0x0806, &[0; 46]);
    bench.give(1, &arp, arp.len() as u32);
    let icmp = ip_carrying(1, &[8, 0, 0, 0]);
    bench.give(101, &icmp, icmp.len() as u32);
    assert_eq!(bench.kinds(), [(ProblemKind::Quic, 2)]);
    assert_eq!(bench.decoder.ignored(), 7);
}

#[test]
fn a_packet_left_to_the_network_card() {
    let mut four = ipv4();
    four[2..4].fill(0);
    assert_eq!(one(101, &four).0.unwrap().payload, BODY);
    let mut six = ipv6();
    six[4..6].fill(0);
    assert_eq!(one(101, &six).0.unwrap().payload, BODY);
}

#[test]
fn ipv4_options_and_ipv6_extension_headers() {
    let four = ipv4();
    let mut options = four[..20].to_vec();
    options[0] = 0x46;
    options[3] += 4;
    let packet = [&options[..], &[1; 4], &four[20..]].concat();
    assert_eq!(one(101, &packet), (Some(seen4(0)), vec![]));

    // An authentication header (RFC 4302) in between.
    let mut secured = four[..20].to_vec();
    secured[9] = 51;
    secured[3] += 24;
    let packet = [&secured[..], &[6, 4], &[0; 22], &four[20..]].concat();
    assert_eq!(one(101, &packet), (Some(seen4(0)), vec![]));

    // Hop-by-hop, destination options, an atomic fragment.
    let six = ipv6();
    let mut head = six[..40].to_vec();
    head[6] = 0;
    head[5] += 24;
    let extensions = [[60, 0, 1, 4, 0, 0, 0, 0], [44, 0, 1, 4, 0, 0, 0, 0], [6, 0, 0, 0, 0, 0, 0, 9]].concat();
    let packet = [&head[..], &extensions, &six[40..]].concat();
    assert_eq!(one(101, &packet), (Some(seen6()), vec![]));

    // The packet ends where another header should be.
    head[5] = 8;
    let packet = [&head[..], &[0, 0, 1, 4, 0, 0, 0, 0]].concat();
    assert_eq!(one(101, &packet), (None, vec![(ProblemKind::BadPacket, 1)]));
}

#[test]
fn headers_that_lie() {
    let mut bad = Vec::new();
    for change in [(0, 0x44), (0, 0x95), (3, 19), (32, 0x40), (32, 0xf0)] {
        let mut four = ipv4();
        four.truncate(50);
        four[3] = 50;
        four[change.0] = change.1;
        bad.push(four);
    }
    for packet in &bad {
        assert_eq!(one(101, packet), (None, vec![(ProblemKind::BadPacket, 1)]), "{packet:x?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn a_cut_frame_gives_the_part_before_the_cut(six in any::<bool>(), keep in 0..200_usize) {
        let packet = if six { ethernet(0x86dd, &ipv6()) } else { ethernet(0x0800, &ipv4()) };
        let keep = keep.min(packet.len() - 1);
        let mut bench = Bench::new();
        let seen = bench.give(1, &packet[..keep], packet.len() as u32);
        prop_assert_eq!(bench.kinds(), vec![(ProblemKind::CutFrame, 1)]);
        if let Some(seen) = seen {
            prop_assert!(BODY.starts_with(&seen.payload));
            prop_assert_eq!(seen.wire as usize, BODY.len());
            prop_assert_eq!(packet.len() - keep, BODY.len() - seen.payload.len());
            prop_assert_eq!(seen.checksum, Checksum::Unknown);
        }
    }

    #[test]
    fn no_bytes_panic(
        link in prop::sample::select(vec![0_u16, 1, 7, 9, 50, 51, 101, 104, 108, 109, 113, 117, 129, 138, 166, 239, 276, 9999]),
        frames in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..120), 0..200_u32), 1..8),
    ) {
        let mut bench = Bench::new();
        for (bytes, wire) in &frames {
            bench.give(link, bytes, *wire);
        }
        bench.decoder.finish(&mut bench.problems);
    }

    #[test]
    fn no_damage_panics(
        which in 0..8_usize,
        hits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..5),
    ) {
        let inner = ethernet(0x0800, &ipv4());
        let mut packet = match which {
            0 => ipv4(),
            1 => ipv6(),
            2 => udp(1, 4789, &with(&[8, 0, 0, 0, 0, 0, 7, 0], &inner)),
            3 => ip_carrying(47, &with(&[0x10, 0, 0x22, 0xeb, 0, 0, 0, 1, 0x20, 1, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0], &inner)),
            4 => udp(2152, 2152, &with(&[0x36, 0xff, 0, 88, 0, 0, 0, 1, 0, 7, 0, 0x85, 1, 0, 9, 0], &ipv4())),
            5 => fragments::six(&ipv6(), 24)[0].clone(),
            6 => udp(5072, 5072, &with(&[[0x44, 0x52, 0x11, 41].as_slice(), &[0; 4], &[1; 36]].concat(), &ipv6())),
            _ => fragments::four(&ipv4(), 24)[1].clone(),
        };
        for (at, value) in hits {
            let at = at.index(packet.len());
            packet[at] = value;
        }
        let mut bench = Bench::new();
        bench.give(101, &packet, packet.len() as u32);
        bench.decoder.finish(&mut bench.problems);
    }
}
