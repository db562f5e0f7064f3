//! Members of compressed tar archives, which cannot be read where they are: unpacked once into a
//! temporary file without a name, in small compressed pieces, for as long as they are needed.
//!
//! The file has no name so that nothing is left behind however the program ends, and no name of a
//! member ever reaches the file system.

use super::source::{FileOpener, StoredFile};
use crate::input::OpenInput;
use crate::input::archive::tar::{Entry, TarError, TarReader};
use crate::input::packed::Opener;
use crate::model::limits::{SCAN_RATIO, SCAN_RATIO_FREE_BYTES};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// Plain bytes of one piece.
const PIECE_BYTES: usize = 1 << 20;
/// zstd's fastest usual level: the pieces are read back within minutes.
const LEVEL: i32 = 1;

/// One unpacked archive.
#[derive(Debug)]
pub struct Spool {
    file: File,
    /// Members in order, and those of its bytes that the archive lacks.
    pub entries: Vec<(Entry, u64)>,
    pieces: Vec<Vec<(u64, usize)>>,
    /// Why it ends before its end.
    pub fault: Option<String>,
}

/// An archive that is unpacked when a member is first wanted.
#[derive(Debug)]
pub struct Container {
    file: StoredFile,
    opener: FileOpener,
    folder: PathBuf,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    spool: Option<Arc<Spool>>,
    users: usize,
}

impl Container {
    /// An archive and the folder for its temporary file.
    pub fn new(file: StoredFile, opener: FileOpener, folder: PathBuf) -> Container {
        Container { file, opener, folder, held: Mutex::default() }
    }

    /// A member by its number.
    pub fn member(self: &Arc<Container>, index: usize) -> SpooledMember {
        SpooledMember { container: self.clone(), index }
    }

    /// One more will read members: what is unpacked is kept until all of them are done.
    pub fn claim(&self) {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).users += 1;
    }

    /// One of those who claimed it is done.
    pub fn release(&self) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.users = held.users.saturating_sub(1);
        if held.users == 0 {
            held.spool = None;
        }
    }

    /// What is in it, unpacked.
    ///
    /// # Errors
    /// Those of reading it, and of writing the temporary file.
    pub fn spool(&self) -> io::Result<Arc<Spool>> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(spool) = &held.spool {
            return Ok(spool.clone());
        }
        let spool = Arc::new(self.unpack()?);
        held.spool = (held.users > 0).then(|| spool.clone());
        Ok(spool)
    }

    fn unpack(&self) -> io::Result<Spool> {
        let input = OpenInput::new(self.file.name.clone(), self.opener.open()?, self.file.modified_ns);
        let mut tar = TarReader::new(input);
        let mut spool =
            Spool { file: tempfile::tempfile_in(&self.folder)?, entries: vec![], pieces: vec![], fault: None };
        let (mut at, mut plain) = (0u64, 0u64);
        let allowed = SCAN_RATIO_FREE_BYTES.max(self.file.bytes.saturating_mul(SCAN_RATIO));
        let mut block = vec![0; PIECE_BYTES];
        loop {
            let entry = match tar.next_entry() {
                Ok(Some(entry)) => entry,
                Ok(None) => break,
                Err(e) => {
                    spool.fault = Some(fault(&tar, &e));
                    break;
                }
            };
            let mut pieces = vec![];
            loop {
                let n = full(&mut tar, &mut block)?;
                plain += n as u64;
                if n == 0 || plain > allowed {
                    break;
                }
                let packed = zstd::bulk::compress(block.get(..n).unwrap_or_default(), LEVEL)?;
                spool.file.write_all(&packed)?;
                pieces.push((at, packed.len()));
                at += packed.len() as u64;
            }
            spool.entries.push((entry, tar.missing()));
            spool.pieces.push(pieces);
            if plain > allowed {
                spool.fault =
                    Some(format!("it unpacks to more than {SCAN_RATIO} times its size; the rest was passed over"));
                break;
            }
        }
        if spool.fault.is_none() {
            spool.fault = tar.source().problems().iter().find_map(|p| p.text.clone());
        }
        Ok(spool)
    }
}

/// What ends an archive: where it is cut, damage of its compression says more.
fn fault(tar: &TarReader<OpenInput>, error: &TarError) -> String {
    let compression = tar.source().problems().iter().find_map(|p| p.text.clone());
    compression.map_or_else(|| error.to_string(), |text| format!("{error}; {text}"))
}

fn full(from: &mut impl Read, out: &mut [u8]) -> io::Result<usize> {
    let mut have = 0;
    while let Some(space) = out.get_mut(have..).filter(|s| !s.is_empty()) {
        match from.read(space)? {
            0 => break,
            n => have += n,
        }
    }
    Ok(have)
}

/// A member of a [`Container`].
#[derive(Debug)]
pub struct SpooledMember {
    container: Arc<Container>,
    index: usize,
}

impl Opener for SpooledMember {
    fn open(&self) -> io::Result<Box<dyn Read + Send>> {
        let spool = self.container.spool()?;
        Ok(Box::new(SpoolReader { spool, index: self.index, next: 0, piece: vec![], taken: 0 }))
    }
}

struct SpoolReader {
    spool: Arc<Spool>,
    index: usize,
    next: usize,
    piece: Vec<u8>,
    taken: usize,
}

impl Read for SpoolReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.taken >= self.piece.len() {
            let Some((at, bytes)) = self.spool.pieces.get(self.index).and_then(|p| p.get(self.next)).copied() else {
                return Ok(0);
            };
            let mut packed = vec![0; bytes];
            self.spool.file.read_exact_at(&mut packed, at)?;
            self.piece = zstd::bulk::decompress(&packed, PIECE_BYTES)?;
            self.taken = 0;
            self.next += 1;
        }
        let rest = self.piece.get(self.taken..).unwrap_or_default();
        let n = rest.len().min(out.len());
        if let (Some(to), Some(from)) = (out.get_mut(..n), rest.get(..n)) {
            to.copy_from_slice(from);
        }
        self.taken += n;
        Ok(n)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::Container;
    use crate::input::archive::tar::tests::archive;
    use crate::input::packed::Opener;
    use crate::scan::source::{FileOpener, Passed, Place, StoredFile};
    use std::io::Read;
    use std::sync::Arc;

    #[test]
    fn members_of_a_compressed_archive_are_read_in_any_order() {
        let dir = tempfile::tempdir().unwrap();
        let long: Vec<u8> = (0..3_000_000u32).flat_map(|i| [(i % 251) as u8]).collect();
        let tar = archive(&[("../../etc/passwd", b"one"), ("b", &long), ("c", b"")]);
        let path = dir.path().join("x.tar.zst");
        std::fs::write(&path, zstd::stream::encode_all(&tar[..], 1).unwrap()).unwrap();
        let place = Place::Path(path.clone());
        let opener = FileOpener { place: place.clone(), passed: Passed::default() };
        let file = StoredFile { name: "x".into(), place, bytes: 1000, modified_ns: None, found: true };
        let container = Arc::new(Container::new(file, opener, dir.path().to_owned()));
        container.claim();
        for (index, wanted) in [(1, &long[..]), (0, b"one"), (2, b""), (9, b"")] {
            let mut out = vec![];
            container.member(index).open().unwrap().read_to_end(&mut out).unwrap();
            assert!(out == wanted, "member {index}");
        }
        assert_eq!(container.spool().unwrap().entries.len(), 3);
        container.release();
        // Nothing but the archive itself is in the folder: no name of a member reached it.
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
