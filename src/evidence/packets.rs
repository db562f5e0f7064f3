//! The pcapng file of a slice: raw IP packets, with a comment each.

use crate::model::time::Time;
use crate::wire::write::blocks::{self, Host, Interface, LINK_RAW};

/// A pcapng file being written.
pub struct File {
    bytes: Vec<u8>,
    /// Decimal places of the times of each interface.
    interfaces: Vec<u8>,
}

impl File {
    /// The comment says what it is.
    pub fn new(comment: &str) -> File {
        File { bytes: blocks::section(comment, &Host::default()), interfaces: vec![] }
    }

    /// The interface whose times have the resolution of this one.
    fn interface(&mut self, at: Time) -> (u32, u64) {
        let unit = |digits: u8| 10i64.pow(9 - u32::from(digits));
        let digits = at.digits();
        let known = self.interfaces.iter().position(|d| *d == digits);
        let number = known.unwrap_or_else(|| {
            self.bytes.extend(blocks::interface(&Interface { link: LINK_RAW, digits, ..Interface::default() }));
            self.interfaces.push(digits);
            self.interfaces.len() - 1
        });
        (number as u32, u64::try_from(at.ns() / unit(digits)).unwrap_or(0))
    }

    /// One packet, of whose end `cut` bytes were not captured.
    pub fn packet(&mut self, at: Time, packet: &[u8], cut: u32, comment: &str) {
        let (interface, ticks) = self.interface(at);
        self.bytes.extend(blocks::packet(interface, ticks, packet, packet.len() as u32 + cut, comment));
    }

    /// The file.
    pub fn into_bytes(mut self) -> Vec<u8> {
        if self.interfaces.is_empty() {
            // A file without packets says of what kind they would be.
            self.interface(Time::from_us(0));
        }
        self.bytes
    }
}
