//! A binary journal in systemd's export format (systemd, docs/JOURNAL_EXPORT_FORMATS.md).

use super::object::{File, Header};
use crate::input::log::app::Cursor;

/// Its entries in order, each in export format with the empty line behind it; an entry that cannot be
/// read is empty. None if it is no journal file.
pub fn export(bytes: &[u8]) -> Option<Vec<Vec<u8>>> {
    let file = File { bytes, header: Header::parse(bytes).ok()? };
    let (entries, _) = file.entries();
    Some(entries.into_iter().map(|offset| entry(&file, offset).unwrap_or_default()).collect())
}

fn entry(file: &File<'_>, offset: u64) -> Option<Vec<u8>> {
    let head = file.entry(offset)?;
    let cursor = Cursor::Parts {
        seqnum_id: &file.header.seqnum_id,
        seqnum: head.seqnum,
        boot_id: head.boot_id,
        monotonic_us: head.monotonic_us,
        realtime_us: head.realtime_us,
        xor_hash: head.xor_hash,
    };
    let mut out = format!(
        "__CURSOR={}\n__REALTIME_TIMESTAMP={}\n__MONOTONIC_TIMESTAMP={}\n",
        cursor.text(),
        head.realtime_us,
        head.monotonic_us
    )
    .into_bytes();
    for payload in file.items(&head).filter_map(|data| file.data(data)) {
        let Some(eq) = memchr::memchr(b'=', &payload) else { continue };
        let (name, value) = (payload.get(..eq)?, payload.get(eq + 1..)?);
        let is_plain = std::str::from_utf8(value).is_ok_and(|v| !v.chars().any(|c| c.is_control() && c != '\t'));
        out.extend_from_slice(name);
        if is_plain {
            out.push(b'=');
        } else {
            out.push(b'\n');
            out.extend((value.len() as u64).to_le_bytes());
        }
        out.extend_from_slice(value);
        out.push(b'\n');
    }
    out.push(b'\n');
    Some(out)
}
