//! Blocks of a pcapng file, little-endian (draft-ietf-opsawg-pcapng §4).

/// LINKTYPE_ETHERNET.
pub const LINK_ETHERNET: u16 = 1;
/// LINKTYPE_RAW: packets begin with the IP header.
pub const LINK_RAW: u16 = 101;
/// A text in an option is cut to this, bytes.
const OPTION_BYTES: usize = 4096;

/// What a Section Header Block says of the host; empty texts are left out.
#[derive(Clone, Debug, Default)]
pub struct Host<'a> {
    /// `shb_hardware`.
    pub hardware: &'a str,
    /// `shb_os`.
    pub os: &'a str,
}

/// Section Header Block (§4.1), of unknown length.
pub fn section(comment: &str, host: &Host<'_>) -> Vec<u8> {
    let mut body = vec![0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0];
    body.extend([0xff; 8]);
    text(&mut body, 1, comment);
    text(&mut body, 2, host.hardware);
    text(&mut body, 3, host.os);
    text(&mut body, 4, concat!("crosswire ", env!("CARGO_PKG_VERSION")));
    option(&mut body, 0, b"");
    block(0x0a0d_0d0a, &body)
}

/// What an Interface Description Block says; empty texts are left out.
#[derive(Clone, Debug, Default)]
pub struct Interface<'a> {
    /// Link type of its packets.
    pub link: u16,
    /// Most bytes kept of a packet; 0: all.
    pub snap: u32,
    /// Fractional digits of a second in its times.
    pub digits: u8,
    /// `if_name`.
    pub name: &'a str,
    /// `if_description`.
    pub description: &'a str,
    /// The capture filter, `if_filter`.
    pub filter: &'a str,
}

/// Interface Description Block (§4.2).
pub fn interface(i: &Interface<'_>) -> Vec<u8> {
    let mut body = i.link.to_le_bytes().to_vec();
    body.extend([0; 2]);
    body.extend(i.snap.to_le_bytes());
    text(&mut body, 2, i.name);
    text(&mut body, 3, i.description);
    option(&mut body, 9, &[i.digits]);
    if !i.filter.is_empty() {
        // A leading zero: the filter is a libpcap string.
        option(&mut body, 11, &[b"\0", i.filter.as_bytes()].concat());
    }
    option(&mut body, 0, b"");
    block(1, &body)
}

/// Enhanced Packet Block (§4.3). `ticks` are units of the interface since 1970; an empty comment is
/// left out.
pub fn packet(interface: u32, ticks: u64, data: &[u8], wire_len: u32, comment: &str) -> Vec<u8> {
    let mut body = Vec::with_capacity(data.len() + 40);
    body.extend(interface.to_le_bytes());
    body.extend(time(ticks));
    body.extend((data.len() as u32).to_le_bytes());
    body.extend(wire_len.to_le_bytes());
    body.extend(data);
    pad(&mut body);
    if !comment.is_empty() {
        text(&mut body, 1, comment);
        option(&mut body, 0, b"");
    }
    block(6, &body)
}

/// What an Interface Statistics Block counts, since the beginning of the capture.
#[derive(Clone, Copy, Debug, Default)]
pub struct Statistics {
    /// When the capture began, in units of the interface (`isb_starttime`).
    pub started: Option<u64>,
    /// Packets that came (`isb_ifrecv`).
    pub received: Option<u64>,
    /// Packets that the interface dropped (`isb_ifdrop`).
    pub interface_dropped: Option<u64>,
    /// Packets that the operating system, or the writer, had no room for (`isb_osdrop`).
    pub system_dropped: Option<u64>,
}

/// Interface Statistics Block (§4.6).
pub fn statistics(interface: u32, ticks: u64, counts: &Statistics) -> Vec<u8> {
    let mut body = interface.to_le_bytes().to_vec();
    body.extend(time(ticks));
    if let Some(started) = counts.started {
        option(&mut body, 2, &time(started));
    }
    for (code, count) in [(4, counts.received), (5, counts.interface_dropped), (7, counts.system_dropped)] {
        if let Some(count) = count {
            option(&mut body, code, &count.to_le_bytes());
        }
    }
    option(&mut body, 0, b"");
    block(5, &body)
}

fn time(ticks: u64) -> [u8; 8] {
    let [a, b, c, d] = ((ticks >> 32) as u32).to_le_bytes();
    let [e, f, g, h] = (ticks as u32).to_le_bytes();
    [a, b, c, d, e, f, g, h]
}

fn text(out: &mut Vec<u8>, code: u16, value: &str) {
    if !value.is_empty() {
        option(out, code, value.as_bytes());
    }
}

fn option(out: &mut Vec<u8>, code: u16, value: &[u8]) {
    let value = value.get(..value.len().min(OPTION_BYTES)).unwrap_or_default();
    out.extend(code.to_le_bytes());
    out.extend((value.len() as u16).to_le_bytes());
    out.extend(value);
    pad(out);
}

fn pad(out: &mut Vec<u8>) {
    out.resize(out.len().next_multiple_of(4), 0);
}

fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let length = (body.len() + 12) as u32;
    let mut out = Vec::with_capacity(body.len() + 12);
    out.extend(kind.to_le_bytes());
    out.extend(length.to_le_bytes());
    out.extend(body);
    out.extend(length.to_le_bytes());
    out
}
