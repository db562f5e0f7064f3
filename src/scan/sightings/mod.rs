//! Keyed sightings as lines of text: what `crosswire map` writes and `crosswire reduce` reads.
//!
//! `key TAB time TAB payload`. The payload says its version, its kind, and for sightings the number of the input
//! in its lot; behind that stands base64 of a zstd frame. `crosswire-map(1)` documents it.

mod base64;
mod blocks;
mod left;
pub mod pack;
pub mod records;

pub use blocks::{Block, BlockWriter, Each, Stretch, payload};
pub use left::Folded;

use super::lot::Lot;
use super::result::UnitResult;
use anyhow::Context;

/// Version of the lines; others are refused.
pub const VERSION: char = '1';
/// zstd's fastest usual level: what is written is read back within minutes.
const LEVEL: i32 = 1;
/// What a payload may unpack to, bytes.
const PAYLOAD_BYTES: usize = 1 << 30;
/// The time of what has none: it sorts first.
pub const NO_TIME: i64 = i64::MIN;

/// What a line holds.
#[derive(Debug)]
pub enum Payload {
    /// What the lot is made of.
    Head(Box<Lot>),
    /// What some lines of one of its inputs say.
    Sightings(u32, Box<Block>),
    /// What is left of a share of its sessions.
    Folded(u32, Box<Folded>),
    /// What came of the lot, where one task had all of it.
    Result(Box<UnitResult>),
}

/// A line that says what a lot is made of.
///
/// # Errors
/// None for what this program writes.
pub fn head(key: &str, lot: &Lot) -> anyhow::Result<String> {
    Ok(line(key, NO_TIME, &format!("{VERSION}h"), &serde_json::to_vec(lot)?))
}

/// A line for what came of a lot.
///
/// # Errors
/// None for what this program writes.
pub fn result(key: &str, result: &UnitResult) -> anyhow::Result<String> {
    Ok(line(key, NO_TIME, &format!("{VERSION}r"), &serde_json::to_vec(result)?))
}

/// A line for what is left of a share of the sessions of a lot: it sorts before the lot's sightings.
pub fn folded(key: &str, share: u32, folded: &Folded) -> String {
    format!("{key}\t{NO_TIME}\t{}", folded.payload(share))
}

fn line(key: &str, ns: i64, lead: &str, plain: &[u8]) -> String {
    format!("{key}\t{ns}\t{lead}{}", coded(plain))
}

fn coded(plain: &[u8]) -> String {
    // Compressing in memory fails only where there is no memory.
    base64::encode(&zstd::bulk::compress(plain, LEVEL).unwrap_or_default())
}

/// A line as its key and what it holds.
///
/// # Errors
/// If it is no such line, or of another version.
pub fn parse(line: &str) -> anyhow::Result<(&str, Payload)> {
    let mut parts = line.split('\t');
    let (Some(key), Some(_), Some(payload), None) = (parts.next(), parts.next(), parts.next(), parts.next()) else {
        anyhow::bail!("no record: expected key, time and payload, separated by tabs");
    };
    let rest = payload.strip_prefix(VERSION).with_context(|| {
        format!(
            "a record of another version: map and reduce must be of one crosswire (this one reads version {VERSION})"
        )
    })?;
    let kind = rest.get(..1).unwrap_or_default();
    let (lead, code) = match kind {
        "s" | "k" => rest.get(1..).and_then(|r| r.split_once('.')).context("a record without the number it is of")?,
        _ => ("", rest.get(1..).unwrap_or_default()),
    };
    let packed = base64::decode(code).context("a record whose payload is no base64")?;
    let plain = zstd::bulk::decompress(&packed, bound(&packed)).context("a record whose payload is damaged")?;
    let payload = match kind {
        "h" => Payload::Head(serde_json::from_slice(&plain).context("the head of a lot cannot be read")?),
        "r" => Payload::Result(serde_json::from_slice(&plain).context("the result of a lot cannot be read")?),
        "s" => {
            let input = lead.parse().context("a record without the number it is of")?;
            let block = Block::read(&plain, input).context("a record of sightings cannot be read")?;
            Payload::Sightings(input, Box::new(block))
        }
        "k" => {
            let share = lead.parse().context("a record without the number it is of")?;
            let folded = Folded::read(&plain).context("a record of what is left of sessions cannot be read")?;
            Payload::Folded(share, Box::new(folded))
        }
        _ => anyhow::bail!("a record of a kind that is not known: {kind:?}"),
    };
    Ok((key, payload))
}

/// How much a frame says that it unpacks to, at most what is allowed.
fn bound(packed: &[u8]) -> usize {
    let said = zstd::zstd_safe::get_frame_content_size(packed).ok().flatten();
    said.and_then(|n| usize::try_from(n).ok()).unwrap_or(PAYLOAD_BYTES).min(PAYLOAD_BYTES)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::{Payload, head, parse};
    use crate::scan::lot::Lot;

    #[test]
    fn what_is_no_record_of_this_version_is_refused() {
        let lot = Lot { key: "abc".into(), need: 7, ..Lot::default() };
        let line = head("00000001-abc", &lot).unwrap();
        let (key, payload) = parse(&line).unwrap();
        assert_eq!(key, "00000001-abc");
        assert!(matches!(payload, Payload::Head(l) if *l == lot));
        for end in 0..line.len() {
            assert!(parse(&line[..end]).is_err(), "{end}");
        }
        let other = line.replacen("\t1h", "\t9h", 1);
        assert!(parse(&other).unwrap_err().to_string().contains("another version"));
    }
}
