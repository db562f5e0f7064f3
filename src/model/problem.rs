//! What could not be read, counted by kind: silence must mean "looked, and clean".

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Every kind of thing that can be wrong with an input. One closed list, so that the manual
/// and the tests can go over all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ProblemKind {
    /// The input has a known header and no records, or zero bytes.
    Empty,
    /// The file ends inside a record or block.
    TruncatedRecord,
    /// Bytes that are no record of the format.
    Garbage,
    /// The operating system could not read on.
    ReadError,
    /// A compressed stream is cut or corrupt.
    BadCompression,
    /// A packet was cut by the capture's snap length.
    CutFrame,
    /// A link type, network or transport protocol that is not read.
    UnreadProtocol,
    /// A packet whose headers do not parse.
    BadPacket,
    /// A checksum that does not fit although its neighbours' do.
    BadChecksum,
    /// IP fragments that were never completed.
    IncompleteFragments,
    /// Packets out of time order.
    TimeOrder,
    /// The capture's own statistics report dropped packets.
    DroppedPackets,
    /// Bytes of a TCP stream that the capture does not hold.
    StreamGap,
    /// Two copies of the same TCP bytes that differ; the first was kept.
    ConflictingOverlap,
    /// A connection whose beginning was not captured.
    MidstreamStart,
    /// A connection of which only one direction was captured.
    OneDirection,
    /// Bytes on a connection that are no HTTP.
    NotHttp,
    /// An HTTP message that breaks the grammar.
    BadHttp,
    /// A content coding that could not be undone.
    BadContentCoding,
    /// A message body that should be JSON-RPC and is not.
    BadJson,
    /// A TLS connection that could not be decrypted: no keys.
    NoKeys,
    /// TLS records that could not be decrypted or parsed.
    BadTls,
    /// HTTP/2 frames or header blocks that could not be read.
    BadHttp2,
    /// WebSocket traffic, which is not read.
    WebSocket,
    /// QUIC traffic, which is not read.
    Quic,
    /// A tunnel that is not looked into.
    Tunnel,
    /// Lines of no known layout.
    UnknownLine,
    /// Lines that belong to a known layout and do not parse.
    BadLine,
    /// Lines longer than the cap, read only in part.
    LongLine,
    /// Times without zone or year that had to be inferred.
    InferredTime,
    /// Records without any time.
    NoTime,
    /// A journal entry or object that could not be read.
    BadJournal,
    /// A message field that the journal export left out because of its size, or a body that a recording does not hold.
    ElidedMessage,
    /// A gap in the numbering or times of a log, or a rotation.
    LogGap,
    /// An archive member that could not be read.
    BadMember,
    /// A named limit (`model/limits.rs`) was reached and data passed over.
    LimitHit,
    /// A parser stopped with an internal error; the rest of the input was read.
    Internal,
}

impl ProblemKind {
    /// The name in kebab-case, as the report spells it.
    pub fn name(self) -> String {
        match serde_json::to_value(self) {
            Ok(serde_json::Value::String(s)) => s,
            _ => String::new(),
        }
    }
}

/// One kind of problem with one input: how often, where first, and what it means.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Problem {
    /// What kind.
    pub kind: ProblemKind,
    /// How often it was met.
    pub count: u64,
    /// The first place: `frame 97`, `line 3`, `byte 4096`.
    #[serde(rename = "where")]
    pub place: Option<String>,
    /// What was expected, what was found, and what to do.
    pub text: Option<String>,
}

/// The problems of one input, one entry a kind.
#[derive(Clone, Debug, Default)]
pub struct Problems(BTreeMap<ProblemKind, Problem>);

impl Problems {
    /// Counts one more of `kind`; `place` and `text` are asked for only the first time.
    pub fn add<P: Into<String>, T: Into<String>>(
        &mut self,
        kind: ProblemKind,
        place: impl FnOnce() -> P,
        text: impl FnOnce() -> T,
    ) {
        self.add_many(kind, 1, place, text);
    }

    /// Counts `count` more of `kind`.
    pub fn add_many<P: Into<String>, T: Into<String>>(
        &mut self,
        kind: ProblemKind,
        count: u64,
        place: impl FnOnce() -> P,
        text: impl FnOnce() -> T,
    ) {
        self.0.entry(kind).and_modify(|p| p.count = p.count.saturating_add(count)).or_insert_with(|| Problem {
            kind,
            count,
            place: Some(place().into()).filter(|s| !s.is_empty()),
            text: Some(text().into()),
        });
    }

    /// Takes over all of `other`, keeping the first place of each kind.
    pub fn merge(&mut self, other: &Problems) {
        for p in other.iter() {
            self.0
                .entry(p.kind)
                .and_modify(|mine| mine.count = mine.count.saturating_add(p.count))
                .or_insert_with(|| p.clone());
        }
    }

    /// How often `kind` was met.
    pub fn count(&self, kind: ProblemKind) -> u64 {
        self.0.get(&kind).map_or(0, |p| p.count)
    }

    /// All entries in order of kind.
    pub fn iter(&self) -> impl Iterator<Item = &Problem> {
        self.0.values()
    }

    /// Was nothing wrong?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'de> Deserialize<'de> for Problems {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Problems, D::Error> {
        let all = Vec::<Problem>::deserialize(d)?;
        Ok(Problems(all.into_iter().map(|p| (p.kind, p)).collect()))
    }
}

impl Serialize for Problems {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_seq(self.0.values())
    }
}
