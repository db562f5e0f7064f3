//! Live capture. What needs privileges and libpcap is a program of its own, `crosswire-capture`
//! ([`helper`] finds and runs it); what it writes is written here ([`ring`]), so that it can be tested
//! without either.

pub mod helper;
pub mod ring;

use ring::RingSettings;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What is to be captured; how the helper is told.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Settings {
    /// Interfaces by name; `any` is all of them.
    pub interfaces: Vec<String>,
    /// Capture filter (`pcap-filter(7)`).
    pub filter: Option<String>,
    /// Where to write.
    pub file: PathBuf,
    /// Most bytes kept of a packet.
    pub snap_bytes: u32,
    /// The kernel's buffer for each interface, bytes.
    pub buffer_bytes: u32,
    /// Take in packets for others too.
    pub promiscuous: bool,
    /// Several files.
    pub ring: RingSettings,
    /// Stop after this time, ns.
    pub time_ns: Option<u64>,
}
