//! Where in which input a thing was seen.

use serde::Serialize;

/// Number of an input in the report's `inputs` list, from 0.
pub type InputId = u32;

/// A place in an input: a frame of a capture or a line of a log, both counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// Which input.
    pub input: InputId,
    /// Frame number (captures, as Wireshark counts) or line number (logs), from 1.
    pub number: u64,
    /// Whether `number` counts frames or lines.
    pub is_frame: bool,
}

impl Place {
    /// A frame of a capture.
    pub const fn frame(input: InputId, number: u64) -> Place {
        Place { input, number, is_frame: true }
    }
    /// A line of a log (for a binary journal: the entry's ordinal).
    pub const fn line(input: InputId, number: u64) -> Place {
        Place { input, number, is_frame: false }
    }
    /// The frame number, if it is one.
    pub const fn as_frame(self) -> Option<u64> {
        if self.is_frame { Some(self.number) } else { None }
    }
    /// The line number, if it is one.
    pub const fn as_line(self) -> Option<u64> {
        if self.is_frame { None } else { Some(self.number) }
    }
}

/// Where an input was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Vantage {
    /// The client's own record.
    Client,
    /// A proxy's log.
    Proxy,
    /// The server's log, journal or container output.
    Server,
    /// Packets (or full exchanges recorded in their place).
    Wire,
}

/// Which side of a proxy a capture shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// Between client and proxy.
    Front,
    /// Between proxy and server.
    Back,
}

/// A part of the path that can be at fault or cleared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Hop {
    /// The MCP client.
    Client,
    /// A reverse proxy between them.
    Proxy,
    /// The MCP server.
    Server,
    /// The network between two of them.
    Network,
}
impl Hop {
    /// Its name as the report spells it.
    pub const fn name(self) -> &'static str {
        match self {
            Hop::Client => "client",
            Hop::Proxy => "proxy",
            Hop::Server => "server",
            Hop::Network => "network",
        }
    }
}
