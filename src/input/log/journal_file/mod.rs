//! systemd's binary journal files, without libsystemd (systemd, docs/JOURNAL_FILE_FORMAT.md):
//! regular and compact, payloads plain or compressed with zstd, lz4 or xz, files cut short or
//! in use.

mod export;
mod lz4;
mod object;
#[cfg(test)]
mod tests;

pub use export::export;

use super::app::{Cursor, Interpreter};
use super::journal::Entry;
use super::{Format, Grade, LogContext, Reader, RecordSink};
use crate::model::limits;
use crate::model::place::{Place, Vantage};
use crate::model::problem::ProblemKind;
use object::{File, Header};
use std::io::{self, BufRead, Read};

/// The format.
pub static FORMAT: Format = Format {
    name: "journal-file",
    vantage: Vantage::Server,
    carries: true,
    doc: "systemd's own journal files (`/var/log/journal/*/*.journal`), read directly: compact or not, zstd, lz4 or xz \
          payloads, and what there is of files that are cut or still being written. Times are UTC to the microsecond, in \
          file order; `line` is the ordinal of the entry.",
    samples: &[],
    grade: |bytes| if bytes.starts_with(object::SIGNATURE) { Grade::Certain } else { Grade::No },
    reader: Reader::Bytes(read),
};

fn read(context: &LogContext<'_>, input: &mut dyn BufRead, out: &mut dyn RecordSink) -> io::Result<()> {
    let mut bytes = Vec::new();
    input.take(limits::JOURNAL_BYTES as u64).read_to_end(&mut bytes)?;
    if !input.fill_buf()?.is_empty() {
        out.problem(
            ProblemKind::LimitHit,
            Place::line(context.input, 1),
            "journal-bytes: only the beginning of the journal was read",
        );
    }
    read_file(context, &bytes, out);
    Ok(())
}

/// Reads a whole journal file in memory.
pub(super) fn read_file(context: &LogContext<'_>, bytes: &[u8], out: &mut dyn RecordSink) {
    let start = Place::line(context.input, 1);
    let header = match Header::parse(bytes) {
        Ok(header) => header,
        Err(text) => return out.problem(ProblemKind::BadJournal, start, text),
    };
    let file = File { bytes, header };
    let (entries, broken) = file.entries();
    if broken || (entries.len() as u64) < header.n_entries {
        let text = "the journal file is cut or broken: its index holds fewer entries than its header says";
        out.problem(ProblemKind::TruncatedRecord, start, text);
    }
    if entries.is_empty() && header.n_entries == 0 {
        out.problem(ProblemKind::Empty, start, "a journal file without entries");
    }
    let mut interpreter = Interpreter::new(context);
    let mut entry = Entry::default();
    for (i, offset) in entries.into_iter().enumerate() {
        let place = Place::line(context.input, i as u64 + 1);
        tell(&file, offset, place, &mut entry, &mut interpreter, out);
    }
    interpreter.finish(out);
}

fn tell(file: &File<'_>, offset: u64, place: Place, entry: &mut Entry, to: &mut Interpreter, out: &mut dyn RecordSink) {
    entry.clear();
    let Some(head) = file.entry(offset) else {
        out.entry(None);
        return out.problem(ProblemKind::BadJournal, place, "a journal entry that cannot be read");
    };
    entry.set_realtime(i64::try_from(head.realtime_us).unwrap_or(-1));
    let mut bad = false;
    for data in file.items(&head) {
        match file.data(data) {
            Some(payload) => {
                if let Some(eq) = memchr::memchr(b'=', payload.get(..payload.len().min(64)).unwrap_or_default()) {
                    entry.set(payload.get(..eq).unwrap_or_default(), payload.get(eq + 1..).unwrap_or_default());
                }
            }
            None => bad = true,
        }
    }
    if bad {
        out.problem(ProblemKind::BadJournal, place, "a field of a journal entry that cannot be read");
    }
    let cursor = Cursor::Parts {
        seqnum_id: &file.header.seqnum_id,
        seqnum: head.seqnum,
        boot_id: head.boot_id,
        monotonic_us: head.monotonic_us,
        realtime_us: head.realtime_us,
        xor_hash: head.xor_hash,
    };
    entry.tell(place, Some(cursor), to, out);
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod real_file {
    use super::*;
    use crate::input::log::told::{Told, read as read_as};
    use proptest::prelude::*;

    /// A real file, without the zeros that journald allocates ahead.
    fn fixture() -> Vec<u8> {
        static BYTES: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();
        let read = || {
            let path = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/17-real-journald/journal.journal.zst");
            let mut bytes = zstd::decode_all(std::fs::File::open(path).unwrap()).unwrap();
            let used = bytes.iter().rposition(|b| *b != 0).unwrap() + 1;
            bytes.truncate(used.next_multiple_of(8));
            bytes
        };
        BYTES.get_or_init(read).clone()
    }

    #[test]
    fn a_real_file_whole_and_cut_anywhere() {
        let bytes = fixture();
        let whole = read_as(&FORMAT, &bytes);
        assert_eq!(whole.entries.len(), 63);
        assert!(whole.problems.is_empty(), "{:?}", whole.problems);
        let mut last = 0;
        for end in (0..bytes.len() - 8).rev().step_by(997).collect::<Vec<_>>().into_iter().rev() {
            let cut = read_as(&FORMAT, &bytes[..end]);
            assert!(!cut.problems.is_empty(), "{end}");
            let good = cut.entries.iter().flatten().count();
            assert!(good >= last, "{end}");
            last = good;
        }
        assert!(last > 60);
    }

    #[test]
    fn a_file_whose_index_was_not_written_back_is_walked() {
        let mut bytes = fixture();
        bytes[176..184].fill(0); // entry_array_offset
        let got = read_as(&FORMAT, &bytes);
        assert_eq!(got.entries.len(), 63);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn broken_bytes_never_panic(at in proptest::collection::vec((0usize..1 << 23, any::<u8>()), 1..40), low in 0usize..300, to in any::<u8>()) {
            let mut bytes = fixture();
            let len = bytes.len();
            for (i, b) in at {
                bytes[i % len] = b;
            }
            bytes[low] = to;
            let got: Told = read_as(&FORMAT, &bytes);
            prop_assert!(got.entries.len() < 100_000);
        }
    }
}
