//! The objects of a journal file: header, entries, entry arrays, data. All integers are little
//! endian, all objects begin at multiples of eight (docs/JOURNAL_FILE_FORMAT.md).

use super::lz4;
use crate::model::limits;
use std::borrow::Cow;
use std::io::Read;

/// The first bytes of every journal file.
pub(super) const SIGNATURE: &[u8] = b"LPKSHHRH";

/// Object types.
const DATA: u8 = 1;
const ENTRY: u8 = 3;
const ENTRY_ARRAY: u8 = 6;

/// Incompatible flags of the header.
const COMPACT: u32 = 1 << 4;
const KNOWN: u32 = 0x1f;

/// Compression flags of a data object.
const XZ: u8 = 1;
const LZ4: u8 = 2;
const ZSTD: u8 = 4;

/// What is used of the header.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    compact: bool,
    size: u64,
    entry_array: u64,
    /// Entries, as the header counts them.
    pub n_entries: u64,
    /// Sequence number id.
    pub seqnum_id: [u8; 16],
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at.checked_add(8)?).and_then(|b| b.try_into().ok()).map(u64::from_le_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at.checked_add(4)?).and_then(|b| b.try_into().ok()).map(u32::from_le_bytes)
}

impl Header {
    /// Reads the header.
    pub fn parse(bytes: &[u8]) -> Result<Header, &'static str> {
        if !bytes.starts_with(SIGNATURE) {
            return Err("no journal file");
        }
        let fields = || {
            Some((
                u32_at(bytes, 12)?,
                bytes.get(72..88)?.try_into().ok()?,
                u64_at(bytes, 88)?,
                u64_at(bytes, 152)?,
                u64_at(bytes, 176)?,
            ))
        };
        let Some((flags, seqnum_id, size, n_entries, entry_array)) = fields() else {
            return Err("the journal file ends inside its header");
        };
        if flags & !KNOWN != 0 {
            return Err("the journal file has features that are not known");
        }
        if size < 184 || size % 8 != 0 {
            return Err("the journal file's header is broken");
        }
        Ok(Header { compact: flags & COMPACT != 0, size, entry_array, n_entries, seqnum_id })
    }
}

/// A journal file in memory.
pub(super) struct File<'a> {
    /// All of it.
    pub bytes: &'a [u8],
    /// Its header.
    pub header: Header,
}

/// An entry without its fields.
#[derive(Clone, Copy, Debug)]
pub(super) struct EntryHead<'a> {
    pub seqnum: u64,
    pub realtime_us: u64,
    pub monotonic_us: u64,
    pub boot_id: &'a [u8],
    pub xor_hash: u64,
    items: &'a [u8],
}

struct Object<'a> {
    kind: u8,
    flags: u8,
    /// All its bytes, its header of 16 included.
    bytes: &'a [u8],
}

impl<'a> File<'a> {
    fn object(&self, offset: u64) -> Option<Object<'a>> {
        let at = usize::try_from(offset).ok().filter(|at| at % 8 == 0 && offset >= self.header.size)?;
        let head = self.bytes.get(at..at.checked_add(16)?)?;
        let size = usize::try_from(u64_at(head, 8)?).ok().filter(|s| *s >= 16)?;
        Some(Object { kind: *head.first()?, flags: *head.get(1)?, bytes: self.bytes.get(at..at.checked_add(size)?)? })
    }

    /// The offsets of all entries in the order they were written, and whether the index was
    /// broken, so that the objects themselves had to be walked.
    pub fn entries(&self) -> (Vec<u64>, bool) {
        let (mut entries, whole) = self.indexed();
        if whole && entries.len() as u64 >= self.header.n_entries {
            return (entries, false);
        }
        // the walk finds entries that the index has lost; the index those behind a broken object
        entries.extend(self.walked());
        entries.sort_unstable();
        entries.dedup();
        entries.sort_by_key(|e| self.entry(*e).map_or(u64::MAX, |h| h.seqnum));
        (entries, true)
    }

    fn indexed(&self) -> (Vec<u64>, bool) {
        let (mut entries, mut next) = (Vec::new(), self.header.entry_array);
        // no file has more entries than room for them: a chain that goes round ends there
        let most = self.bytes.len() / 64 + 1;
        let width = if self.header.compact { 4 } else { 8 };
        while next != 0 {
            let Some(array) = self.object(next).filter(|o| o.kind == ENTRY_ARRAY) else { return (entries, false) };
            let Some(following) = u64_at(array.bytes, 16) else { return (entries, false) };
            for item in array.bytes.get(24..).unwrap_or_default().chunks_exact(width) {
                let offset = match width {
                    4 => u32_at(item, 0).map(u64::from),
                    _ => u64_at(item, 0),
                };
                match offset {
                    None | Some(0) => break,
                    Some(o) if entries.len() < most && self.is_entry(o) => entries.push(o),
                    Some(_) => return (entries, false),
                }
            }
            if following <= next && following != 0 {
                return (entries, false);
            }
            next = following;
        }
        (entries, true)
    }

    fn is_entry(&self, offset: u64) -> bool {
        self.object(offset).is_some_and(|o| o.kind == ENTRY)
    }

    /// Walks the objects one after the other to the first that is none.
    fn walked(&self) -> Vec<u64> {
        let (mut entries, mut at) = (Vec::new(), self.header.size);
        while let Some(o) = self.object(at) {
            if o.kind == 0 || o.kind > 7 {
                break;
            }
            if o.kind == ENTRY {
                entries.push(at);
            }
            at = at.saturating_add((o.bytes.len() as u64).next_multiple_of(8));
        }
        entries
    }

    /// The entry at `offset`.
    pub fn entry(&self, offset: u64) -> Option<EntryHead<'a>> {
        let o = self.object(offset).filter(|o| o.kind == ENTRY)?.bytes;
        Some(EntryHead {
            seqnum: u64_at(o, 16)?,
            realtime_us: u64_at(o, 24)?,
            monotonic_us: u64_at(o, 32)?,
            boot_id: o.get(40..56)?,
            xor_hash: u64_at(o, 56)?,
            items: o.get(64..)?,
        })
    }

    /// The offsets of an entry's data objects.
    pub fn items(&self, entry: &EntryHead<'a>) -> impl Iterator<Item = u64> + use<'a> {
        let compact = self.header.compact;
        entry.items.chunks_exact(if compact { 4 } else { 16 }).filter_map(move |item| match compact {
            true => u32_at(item, 0).map(u64::from),
            false => u64_at(item, 0),
        })
    }

    /// The payload (`NAME=value`) of the data object at `offset`.
    pub fn data(&self, offset: u64) -> Option<Cow<'a, [u8]>> {
        let o = self.object(offset).filter(|o| o.kind == DATA)?;
        let payload = o.bytes.get(if self.header.compact { 72 } else { 64 }..)?;
        match o.flags & (XZ | LZ4 | ZSTD) {
            0 => Some(Cow::Borrowed(payload)),
            XZ => inflate(liblzma::read::XzDecoder::new(payload)),
            LZ4 => lz4::block(payload.get(8..)?, usize::try_from(u64_at(payload, 0)?).ok()?, limits::FIELD_BYTES)
                .map(Cow::Owned),
            ZSTD => inflate(zstd::stream::read::Decoder::new(payload).ok()?),
            _ => None,
        }
    }
}

fn inflate<'a>(from: impl Read) -> Option<Cow<'a, [u8]>> {
    let mut out = Vec::new();
    from.take(limits::FIELD_BYTES as u64).read_to_end(&mut out).ok()?;
    Some(Cow::Owned(out))
}
