//! Tunnels that are looked into, and those that are not.

use super::{ethernet, ip_carrying, ipv4, ipv6, one, seen4, seen6, udp, with};
use crate::model::problem::ProblemKind;

#[test]
fn tunnels() {
    let (four, six) = (ipv4(), ipv6());
    let inner = ethernet(0x0800, &four);
    let plain: Vec<(&str, Vec<u8>)> = vec![
        ("IP in IP", ip_carrying(4, &four)),
        ("EtherIP", ip_carrying(97, &with(&[0x30, 0], &inner))),
        ("MPLS in IP", ip_carrying(137, &with(&[0, 2, 1, 64], &four))),
        ("GRE", ip_carrying(47, &with(&[0, 0, 8, 0], &four))),
        ("GRE, key and all", ip_carrying(47, &with(&[0xb0, 0, 8, 0, 1, 2, 0, 0, 3, 3, 3, 3, 4, 4, 4, 4], &four))),
        ("GRE with Ethernet", ip_carrying(47, &with(&[0, 0, 0x65, 0x58], &inner))),
        (
            "PPTP",
            ip_carrying(
                47,
                &with(&[0x30, 0x81, 0x88, 0x0b, 0, 44, 0, 1, 0, 0, 0, 9, 0, 0, 0, 8, 0xff, 3, 0, 0x21], &four),
            ),
        ),
        ("ERSPAN I", ip_carrying(47, &with(&[0, 0, 0x88, 0xbe], &inner))),
        ("ERSPAN II", ip_carrying(47, &with(&[0x10, 0, 0x88, 0xbe, 0, 0, 0, 1, 0x10, 1, 0, 1, 0, 0, 0, 1], &inner))),
        (
            "ERSPAN III",
            ip_carrying(47, &with(&[0x10, 0, 0x22, 0xeb, 0, 0, 0, 1, 0x20, 1, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0], &inner)),
        ),
        ("GTP-U", udp(2152, 2152, &with(&[0x30, 0xff, 0, 80, 0, 0, 0, 1], &four))),
        ("GTP-U, extended", udp(2152, 2152, &with(&[0x36, 0xff, 0, 88, 0, 0, 0, 1, 0, 7, 0, 0x85, 1, 0, 9, 0], &four))),
        ("GRE in UDP", udp(50000, 4754, &with(&[0, 0, 8, 0], &four))),
        ("MPLS in UDP", udp(50000, 6635, &with(&[0, 2, 1, 64], &four))),
    ];
    for (name, packet) in &plain {
        assert_eq!(one(101, packet), (Some(seen4(0)), vec![]), "{name}");
    }
    let six_cases: Vec<(&str, Vec<u8>)> = vec![
        ("6in4", ip_carrying(41, &six)),
        ("Teredo", udp(3544, 3545, &six)),
        (
            "Teredo with indications",
            udp(3545, 3544, &with(&[[0, 1, 0, 0].as_slice(), &[0; 9], &[0; 8]].concat(), &six)),
        ),
        (
            "AYIYA",
            udp(50000, 5072, &with(&[[0x44, 0x52, 0x11, 41].as_slice(), &[0; 4], &[1; 16], &[2; 20]].concat(), &six)),
        ),
    ];
    for (name, packet) in &six_cases {
        assert_eq!(one(101, packet), (Some(seen6()), vec![]), "{name}");
    }
    let networks: Vec<(&str, Vec<u8>)> = vec![
        ("VXLAN", udp(50000, 4789, &with(&[8, 0, 0, 0, 0, 0, 7, 0], &inner))),
        ("VXLAN of Linux", udp(50000, 8472, &with(&[8, 0, 0, 0, 0, 0, 7, 0], &inner))),
        ("Geneve", udp(50000, 6081, &with(&[1, 0, 0x65, 0x58, 0, 0, 7, 0, 0, 0, 0, 0], &inner))),
        ("NVGRE", ip_carrying(47, &with(&[0x20, 0, 0x65, 0x58, 0, 0, 7, 0x55], &inner))),
    ];
    for (name, packet) in &networks {
        assert_eq!(one(101, packet), (Some(seen4(7)), vec![]), "{name}");
    }
    let closed = [
        ip_carrying(50, &[1; 40]),
        udp(4500, 4500, &[1; 40]),
        udp(51820, 9, &[1, 0, 0, 0, 5]),
        udp(1701, 1701, &[0xc8, 2, 0, 0]),
    ];
    for packet in &closed {
        assert_eq!(one(101, packet), (None, vec![(ProblemKind::Tunnel, 1)]));
    }
}
