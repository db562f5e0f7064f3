//! Reading a file that grows, as `tail -F` does: to its end, and on when more comes.
//!
//! A reader ends where its file does for good: it was renamed and another stands in its place
//! (logrotate's `create`), it was cut (`copytruncate`), or the watch stops. What was cut before it was
//! read is lost. That a file was cut is known by the bytes that were read last, so also where it has
//! grown beyond them again.

use crate::drive::Stop;
use std::collections::VecDeque;
use std::fs::{File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How often it is looked for more.
const LOOK: Duration = Duration::from_millis(50);
/// How long the old file is still read after another has come in its place: its writer may be slow to
/// notice.
const GRACE: Duration = Duration::from_millis(1500);

/// Bytes by which it is known whether a file was cut.
const TAIL: usize = 256;
/// Files that wait to be read, at most.
const LATER: usize = 64;

/// A file being followed.
pub struct Follow {
    path: PathBuf,
    file: File,
    position: u64,
    stop: Stop,
    replaced: Option<Instant>,
    over: Option<Over>,
    /// The last bytes read, which stand where they stood unless it was cut and grew again.
    tail: Vec<u8>,
    /// Files that came in its place since, in order: they may be replaced again before it is over.
    later: VecDeque<File>,
    ring: Option<Ring>,
}

/// The files of a ring (`live/capture/ring.rs`), one after the other.
#[derive(Clone)]
pub struct Ring {
    folder: PathBuf,
    stem: String,
    number: u64,
    /// Files of an earlier capture.
    others: Vec<std::ffi::OsString>,
}

impl Ring {
    /// The ring that a capture to `path` is about to begin.
    pub fn before(path: &Path) -> Ring {
        let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_owned();
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let names = std::fs::read_dir(&folder).into_iter().flatten().flatten().map(|e| e.file_name());
        Ring { others: names.collect(), folder, stem, number: 0 }
    }

    /// The next file, once it is there.
    fn next(&self) -> Option<PathBuf> {
        let prefix = format!("{}_{:05}_", self.stem, self.number + 1);
        let mut names = std::fs::read_dir(&self.folder).ok()?.flatten().map(|e| e.file_name());
        let name = names.find(|n| n.to_string_lossy().starts_with(&prefix) && !self.others.contains(n))?;
        Some(self.folder.join(name))
    }

    /// Waits for the next file and follows it; none if the watch stops first.
    pub fn follow(mut self, stop: Stop) -> Option<Follow> {
        loop {
            if let Some(path) = self.next() {
                self.number += 1;
                let mut follow = Follow::open(&path, stop).ok()?;
                follow.ring = Some(self);
                return Some(follow);
            }
            if stop.is_set() {
                return None;
            }
            std::thread::sleep(LOOK);
        }
    }
}

/// Why a file ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// Another file has its name.
    Replaced,
    /// It was cut.
    Cut,
    /// The watch stops.
    Stopped,
}

impl Follow {
    /// Begins at the beginning of the file.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn open(path: &Path, stop: Stop) -> io::Result<Follow> {
        let file = File::open(path)?;
        Ok(Follow {
            path: path.to_owned(),
            file,
            position: 0,
            stop,
            replaced: None,
            over: None,
            tail: vec![],
            later: VecDeque::new(),
            ring: None,
        })
    }

    /// Waits until the file is there; none if the watch stops first.
    pub fn once(path: &Path, stop: &Stop) -> Option<Follow> {
        loop {
            if let Ok(follow) = Follow::open(path, stop.clone()) {
                return Some(follow);
            }
            if stop.is_set() {
                return None;
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Why it ended; none while it has not.
    pub fn over(&self) -> Option<Over> {
        self.over
    }

    /// What comes after this file under its name; none if the watch stops first.
    pub fn next(mut self) -> Option<Follow> {
        if self.over == Some(Over::Cut) {
            let mut next = Follow { position: 0, over: None, replaced: None, tail: vec![], ..self };
            next.file.seek(SeekFrom::Start(0)).ok()?;
            return Some(next);
        }
        if let Some(ring) = self.ring {
            return ring.follow(self.stop);
        }
        if let Some(file) = self.later.pop_front() {
            return Some(Follow { file, position: 0, over: None, replaced: None, tail: vec![], ..self });
        }
        Follow::once(&self.path, &self.stop)
    }

    /// Are the bytes that were read last not there any more?
    fn is_cut(&self) -> io::Result<bool> {
        let mut now = [0; TAIL];
        let Some(now) = now.get_mut(..self.tail.len()) else { return Ok(false) };
        match self.file.read_exact_at(now, self.position - self.tail.len() as u64) {
            Ok(()) => Ok(now != self.tail),
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(true),
            Err(e) => Err(e),
        }
    }

    /// Is it over, now that there is nothing more to read?
    fn look(&mut self) -> io::Result<Option<Over>> {
        let own = self.file.metadata()?;
        if let Some(ring) = &self.ring {
            // A file is complete before the next is begun; what came in between is read first.
            let is_seen = self.replaced.is_some();
            if ring.next().is_some() {
                self.replaced.get_or_insert_with(Instant::now);
            }
            return Ok(is_seen.then_some(Over::Replaced));
        }
        if let Ok(there) = File::open(&self.path)
            && let Ok(meta) = there.metadata()
        {
            let newest = self.later.back().and_then(|f| f.metadata().ok());
            if !is_same(newest.as_ref().unwrap_or(&own), &meta) && self.later.len() < LATER {
                self.later.push_back(there);
            }
        }
        let is_replaced = !self.later.is_empty();
        if is_replaced && self.replaced.get_or_insert_with(Instant::now).elapsed() >= GRACE {
            return Ok(Some(Over::Replaced));
        }
        Ok(None)
    }
}

fn is_same(a: &Metadata, b: &Metadata) -> bool {
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

impl Read for Follow {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.over.is_some() || out.is_empty() {
                return Ok(0);
            }
            let stopped = self.stop.is_set();
            if self.is_cut()? {
                self.over = Some(Over::Cut);
                return Ok(0);
            }
            let n = self.file.read(out)?;
            if n > 0 {
                self.position += n as u64;
                self.tail.extend_from_slice(out.get(..n).unwrap_or_default());
                self.tail.drain(..self.tail.len().saturating_sub(TAIL));
                return Ok(n);
            }
            self.over = if stopped { Some(Over::Stopped) } else { self.look()? };
            if self.over.is_none() {
                std::thread::sleep(LOOK);
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::io::Write;

    fn read(follow: &mut Follow, n: usize) -> String {
        let mut bytes = vec![0; n];
        follow.read_exact(&mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_file_that_is_renamed_is_read_to_its_end_and_then_the_new_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        std::fs::write(&path, "one\n").unwrap();
        let mut follow = Follow::open(&path, Stop::default()).unwrap();
        assert_eq!(read(&mut follow, 4), "one\n");
        let mut old = File::options().append(true).open(&path).unwrap();
        std::fs::rename(&path, folder.path().join("log.1")).unwrap();
        std::fs::write(&path, "three\n").unwrap();
        old.write_all(b"two\n").unwrap();
        assert_eq!(read(&mut follow, 4), "two\n");
        assert_eq!(follow.read(&mut [0; 9]).unwrap(), 0);
        assert_eq!(follow.over(), Some(Over::Replaced));
        assert_eq!(read(&mut follow.next().unwrap(), 6), "three\n");
    }

    #[test]
    fn a_file_that_is_replaced_before_its_turn_is_read_all_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        std::fs::write(&path, "one").unwrap();
        let mut follow = Follow::open(&path, Stop::default()).unwrap();
        let rotating = std::thread::spawn(move || {
            for (n, text) in ["two", "six"].iter().enumerate() {
                std::fs::rename(&path, path.with_extension(n.to_string())).unwrap();
                std::fs::write(&path, text).unwrap();
                std::thread::sleep(8 * LOOK);
            }
        });
        let mut all = vec![];
        for _ in 0..3 {
            all.push(read(&mut follow, 3));
            if all.len() < 3 {
                assert_eq!((follow.read(&mut [0; 9]).unwrap(), follow.over()), (0, Some(Over::Replaced)));
                follow = follow.next().unwrap();
            }
        }
        rotating.join().unwrap();
        assert_eq!(all, ["one", "two", "six"]);
    }

    #[test]
    fn a_file_that_is_cut_is_read_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        std::fs::write(&path, "one and more\n").unwrap();
        let mut follow = Follow::open(&path, Stop::default()).unwrap();
        assert_eq!(read(&mut follow, 13), "one and more\n");
        let mut writer = File::options().append(true).open(&path).unwrap();
        writer.set_len(0).unwrap();
        writer.write_all(b"two\n").unwrap();
        assert_eq!(follow.read(&mut [0; 9]).unwrap(), 0);
        assert_eq!(follow.over(), Some(Over::Cut));
        let mut follow = follow.next().unwrap();
        assert_eq!(read(&mut follow, 4), "two\n");
        // Cut, and as long as before when it is looked at again.
        writer.set_len(0).unwrap();
        writer.write_all(b"six\nand more\n").unwrap();
        assert_eq!((follow.read(&mut [0; 9]).unwrap(), follow.over()), (0, Some(Over::Cut)));
        assert_eq!(read(&mut follow.next().unwrap(), 13), "six\nand more\n");
    }

    #[test]
    fn the_files_of_a_ring_come_one_after_the_other() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name);
        std::fs::write(file("c_00001_20250101000000.pcapng"), "old").unwrap();
        let ring = Ring::before(&file("c.pcapng"));
        std::fs::write(file("c_00001_20260101000000.pcapng"), "one").unwrap();
        let mut follow = ring.follow(Stop::default()).unwrap();
        assert_eq!(read(&mut follow, 3), "one");
        std::fs::write(file("c_00002_20260101000000.pcapng"), "two").unwrap();
        assert_eq!((follow.read(&mut [0; 9]).unwrap(), follow.over()), (0, Some(Over::Replaced)));
        let mut follow = follow.next().unwrap();
        assert_eq!(read(&mut follow, 3), "two");
        assert_eq!(follow.path(), file("c_00002_20260101000000.pcapng"));
    }

    #[test]
    fn it_waits_for_more_and_ends_when_stopped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        std::fs::write(&path, "").unwrap();
        let stop = Stop::default();
        let mut follow = Follow::open(&path, stop.clone()).unwrap();
        let writer = std::thread::spawn(move || std::fs::write(path, "late").unwrap());
        assert_eq!(read(&mut follow, 4), "late");
        writer.join().unwrap();
        stop.set();
        assert_eq!((follow.read(&mut [0; 9]).unwrap(), follow.over()), (0, Some(Over::Stopped)));
        assert!(follow.next().is_none_or(|f| f.stop.is_set()));
    }
}
