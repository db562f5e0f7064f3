//! The files of a capture: one, or a ring of them by size and time, each complete by itself with
//! section header, interfaces and drop counts.
//!
//! Only whole blocks are written, so that a program that is killed leaves a file that can be read to
//! its end. Between two files nothing is lost: packets wait in the kernel's buffer meanwhile.

use crate::drive::record::now_ns;
use crate::model::time::Time;
use crate::wire::write::blocks::{self, Host, Interface, Statistics};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Bytes that wait to be written.
const BUFFER: usize = 256 << 10;
/// How long they wait at most.
const FLUSH: Duration = Duration::from_millis(200);

/// When a new file is begun, and how many are kept.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RingSettings {
    /// A file is at most this large, bytes.
    pub size_bytes: Option<u64>,
    /// A file covers at most this time, ns.
    pub time_ns: Option<u64>,
    /// This many files are kept; none: all.
    pub files: Option<usize>,
}

impl RingSettings {
    /// Is it more than one file?
    pub fn is_ring(&self) -> bool {
        self.size_bytes.is_some() || self.time_ns.is_some()
    }
}

/// An interface that is captured.
#[derive(Clone, Debug, Default)]
pub struct Captured {
    /// Its name.
    pub name: String,
    /// What the system says of it.
    pub description: String,
    /// Link type of its packets.
    pub link: u16,
}

/// What libpcap counts for an interface, since the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drops {
    /// Packets that came.
    pub received: u64,
    /// Packets that the kernel had no room for.
    pub kernel: u64,
    /// Packets that the interface or its driver dropped.
    pub interface: u64,
}

/// What was captured.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Packets written.
    pub packets: u64,
    /// Packets that could not be written.
    pub unwritten: u64,
    /// Why not, the last time.
    pub error: Option<String>,
    /// Files begun.
    pub files: u64,
    /// Counts of each interface.
    pub drops: Vec<Drops>,
}

/// The files being written.
pub struct Ring {
    path: PathBuf,
    settings: RingSettings,
    head: Vec<u8>,
    file: File,
    /// Bytes of the file that are whole blocks.
    good: u64,
    buffer: Vec<u8>,
    buffered: u64,
    flushed: Instant,
    begun: Instant,
    /// Packets in this file.
    in_file: u64,
    kept: VecDeque<PathBuf>,
    /// Counts when this file was begun, and now.
    before: Vec<Drops>,
    now: Vec<Drops>,
    unwritten_before: u64,
    outcome: Outcome,
}

impl Ring {
    /// Begins the (first) file.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn create(
        path: &Path,
        settings: RingSettings,
        interfaces: &[Captured],
        filter: &str,
        snap: u32,
        comment: &str,
    ) -> io::Result<Ring> {
        let read = |file: &str| std::fs::read_to_string(file).unwrap_or_default().trim().to_owned();
        let os = format!("{} {}", read("/proc/sys/kernel/ostype"), read("/proc/sys/kernel/osrelease"));
        let comment = format!("{comment} on {}", read("/proc/sys/kernel/hostname"));
        let mut head = blocks::section(&comment, &Host { hardware: std::env::consts::ARCH, os: os.trim() });
        for i in interfaces {
            let (name, description) = (i.name.as_str(), i.description.as_str());
            head.extend(blocks::interface(&Interface { link: i.link, snap, digits: 9, name, description, filter }));
        }
        let first = if settings.is_ring() { numbered(path, 1) } else { path.to_owned() };
        let file = begin(&first, &head)?;
        Ok(Ring {
            path: path.to_owned(),
            settings,
            good: head.len() as u64,
            head,
            file,
            buffer: vec![],
            buffered: 0,
            flushed: Instant::now(),
            begun: Instant::now(),
            in_file: 0,
            kept: VecDeque::from([first]),
            before: vec![Drops::default(); interfaces.len()],
            now: vec![Drops::default(); interfaces.len()],
            unwritten_before: 0,
            outcome: Outcome { files: 1, ..Outcome::default() },
        })
    }

    /// A packet of an interface, `ns` since 1970.
    ///
    /// # Errors
    /// If the next file cannot be begun; then nothing can be written any more.
    pub fn packet(&mut self, interface: u32, ns: u64, data: &[u8], wire_len: u32) -> io::Result<()> {
        let block = blocks::packet(interface, ns, data, wire_len, "");
        self.turn(block.len() as u64)?;
        self.buffer.extend(block);
        self.buffered += 1;
        self.in_file += 1;
        if self.buffer.len() >= BUFFER {
            self.flush();
        }
        Ok(())
    }

    /// Counts of an interface. New drops are told in the file at once, in case there is no end to it.
    pub fn counted(&mut self, interface: u32, drops: Drops) {
        let Some(now) = self.now.get_mut(interface as usize) else { return };
        let is_news = (drops.kernel, drops.interface) != (now.kernel, now.interface);
        *now = drops;
        if is_news {
            self.tell(interface);
        }
    }

    /// To be called now and then: writes what waits too long, and turns to a new file by time.
    ///
    /// # Errors
    /// As [`packet`](Self::packet).
    pub fn tick(&mut self) -> io::Result<()> {
        if self.flushed.elapsed() >= FLUSH {
            self.flush();
        }
        self.turn(0)
    }

    /// Completes the file.
    pub fn finish(mut self) -> Outcome {
        self.complete();
        self.outcome.drops = self.now;
        self.outcome
    }

    /// Turns to a new file if this one is full.
    fn turn(&mut self, more: u64) -> io::Result<()> {
        if self.in_file == 0 {
            return Ok(());
        }
        let size = self.good + self.buffer.len() as u64 + more;
        let is_large = self.settings.size_bytes.is_some_and(|most| size > most);
        let is_old = self.settings.time_ns.is_some_and(|most| self.begun.elapsed() >= Duration::from_nanos(most));
        if !is_large && !is_old {
            return Ok(());
        }
        self.complete();
        self.outcome.files += 1;
        let next = numbered(&self.path, self.outcome.files);
        self.file = begin(&next, &self.head)?;
        self.good = self.head.len() as u64;
        self.begun = Instant::now();
        self.in_file = 0;
        self.before.clone_from(&self.now);
        self.unwritten_before = self.outcome.unwritten;
        self.kept.push_back(next);
        while self.settings.files.is_some_and(|most| self.kept.len() > most.max(1)) {
            if let Some(oldest) = self.kept.pop_front() {
                // One that somebody took away is gone as well.
                let _ = std::fs::remove_file(oldest);
            }
        }
        Ok(())
    }

    fn complete(&mut self) {
        self.flush();
        for interface in 0..self.now.len() {
            self.tell(interface as u32);
        }
        self.flush();
    }

    /// Puts the counts of an interface into the file, as of this file alone.
    fn tell(&mut self, interface: u32) {
        let (Some(now), Some(before)) = (self.now.get(interface as usize), self.before.get(interface as usize)) else {
            return;
        };
        // Packets that the disk had no room for are of the first interface as well as of any.
        let unwritten = if interface == 0 { self.outcome.unwritten - self.unwritten_before } else { 0 };
        let counts = Statistics {
            started: None,
            received: Some(now.received.saturating_sub(before.received)),
            interface_dropped: Some(now.interface.saturating_sub(before.interface)),
            system_dropped: Some(now.kernel.saturating_sub(before.kernel).saturating_add(unwritten)),
        };
        let ns = u64::try_from(now_ns()).unwrap_or(0);
        self.buffer.extend(blocks::statistics(interface, ns, &counts));
    }

    /// Writes what waits, or nothing of it.
    fn flush(&mut self) {
        self.flushed = Instant::now();
        if self.buffer.is_empty() {
            return;
        }
        match self.file.write_all(&self.buffer) {
            Ok(()) => {
                self.good += self.buffer.len() as u64;
                self.outcome.packets += self.buffered;
            }
            Err(e) => {
                self.outcome.unwritten += self.buffered;
                self.outcome.error = Some(e.to_string());
                // Where this fails too, the file ends in a block that is cut.
                let _ = self.file.set_len(self.good).and_then(|()| self.file.seek(SeekFrom::Start(self.good)));
            }
        }
        self.buffer.clear();
        self.buffered = 0;
    }
}

fn begin(path: &Path, head: &[u8]) -> io::Result<File> {
    let mut file = File::create(path)?;
    file.write_all(head)?;
    Ok(file)
}

/// `name.pcapng` as `name_00001_20261129194155.pcapng`, as Wireshark names them.
fn numbered(path: &Path, number: u64) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let at = Time::from_ns(now_ns(), 9).utc().map(|t| t.format("%Y%m%d%H%M%S").to_string()).unwrap_or_default();
    let end = path.extension().map(|e| format!(".{}", e.to_string_lossy())).unwrap_or_default();
    path.with_file_name(format!("{stem}_{number:05}_{at}{end}"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;
    use crate::input::capture::{CaptureKind, CaptureReader};
    use crate::model::problem::{ProblemKind, Problems};

    fn ring(folder: &Path, settings: RingSettings) -> Ring {
        let lo = Captured { name: "lo".into(), description: String::new(), link: 1 };
        Ring::create(&folder.join("c.pcapng"), settings, &[lo], "tcp", 262_144, "test").unwrap()
    }

    /// Numbers in the packets of all files, in order of the files' names, and their problems.
    fn read(folder: &Path) -> (Vec<Vec<u32>>, Vec<Problems>) {
        let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
        paths.sort();
        let read = |path: &PathBuf| {
            let bytes = std::fs::read(path).unwrap();
            let mut reader = CaptureReader::new(&bytes[..], CaptureKind::Pcapng, 0);
            let mut numbers = vec![];
            while reader.advance() {
                if let Some(frame) = reader.frame() {
                    numbers.push(u32::from_be_bytes(frame.data[..4].try_into().unwrap()));
                }
            }
            (numbers, reader.stats().problems)
        };
        paths.iter().map(read).unzip()
    }

    fn send(ring: &mut Ring, numbers: std::ops::Range<u32>) {
        for n in numbers {
            ring.packet(0, u64::from(n), &[&n.to_be_bytes()[..], &[0; 96]].concat(), 100).unwrap();
        }
    }

    #[test]
    fn rotation_loses_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let mut ring = ring(folder.path(), RingSettings { size_bytes: Some(2000), ..RingSettings::default() });
        send(&mut ring, 0..200);
        let outcome = ring.finish();
        let (files, problems) = read(folder.path());
        assert!(files.len() > 10 && files.len() as u64 == outcome.files, "{}", files.len());
        assert_eq!((files.concat(), outcome.packets), ((0..200).collect(), 200));
        assert!(problems.iter().all(Problems::is_empty));
        let sizes = std::fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().metadata().unwrap().len());
        // The counts at the end come on top.
        assert!(sizes.max().unwrap() < 2200);
    }

    #[test]
    fn a_ring_keeps_the_last_files() {
        let folder = tempfile::tempdir().unwrap();
        let settings = RingSettings { size_bytes: Some(2000), files: Some(3), ..RingSettings::default() };
        let mut ring = ring(folder.path(), settings);
        send(&mut ring, 0..200);
        ring.finish();
        let files = read(folder.path()).0;
        assert_eq!(files.len(), 3);
        let all = files.concat();
        assert_eq!(all, (200 - all.len() as u32..200).collect::<Vec<_>>());
    }

    #[test]
    fn by_time() {
        let folder = tempfile::tempdir().unwrap();
        let mut ring = ring(folder.path(), RingSettings { time_ns: Some(1), ..RingSettings::default() });
        send(&mut ring, 0..3);
        ring.tick().unwrap();
        // An empty file is not turned over.
        ring.tick().unwrap();
        ring.finish();
        assert_eq!(read(folder.path()).0, [vec![0], vec![1], vec![2], vec![]]);
    }

    #[test]
    fn drops_are_told_in_the_file_they_happened_in() {
        let folder = tempfile::tempdir().unwrap();
        let mut ring = ring(folder.path(), RingSettings { size_bytes: Some(2000), ..RingSettings::default() });
        send(&mut ring, 0..2);
        ring.counted(0, Drops { received: 7, kernel: 5, interface: 1 });
        ring.counted(0, Drops { received: 9, kernel: 6, interface: 1 });
        send(&mut ring, 2..25);
        ring.counted(0, Drops { received: 32, kernel: 6, interface: 1 });
        assert_eq!(ring.finish().drops, [Drops { received: 32, kernel: 6, interface: 1 }]);
        let dropped: Vec<u64> = read(folder.path()).1.iter().map(|p| p.count(ProblemKind::DroppedPackets)).collect();
        assert_eq!(dropped, [7, 0]);
    }

    #[test]
    fn what_is_in_the_file_at_any_moment_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let mut ring = ring(folder.path(), RingSettings::default());
        for n in 0..50 {
            send(&mut ring, n * 100..(n + 1) * 100);
            // As if it were killed now.
            let (files, problems) = read(folder.path());
            assert!(problems[0].iter().all(|p| p.kind == ProblemKind::Empty), "{problems:?}");
            assert!(files[0].len() as u32 <= (n + 1) * 100);
        }
        assert!(read(folder.path()).0[0].len() > 1000);
    }
}
