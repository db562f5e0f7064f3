//! A capture file written by a thread of its own, so that neither a slow nor a full disk holds up
//! what is recorded.
//!
//! What finds no room in the queue or on the disk is counted, and the counts stand in the file
//! (interface statistics), where every reader knows them for packets that are missing.

use crate::drive::record::{Recorder, now_ns, preamble};
use crate::model::limits::SPOOL_BYTES;
use crate::wire::write::blocks::{self, Statistics};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long what was recorded may stay out of the file.
const FLUSH: Duration = Duration::from_millis(200);

/// Gets every block too, such as an analysis that runs along.
pub type Tee = Box<dyn FnMut(&[u8]) + Send>;

#[derive(Default)]
struct Queue {
    blocks: VecDeque<Vec<u8>>,
    bytes: usize,
    counts: Counts,
    ended: bool,
}

/// What became of the packets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets in the file.
    pub written: u64,
    /// Packets that found no room in the queue: the writer was behind.
    pub behind: u64,
    /// Packets that could not be written.
    pub failed: u64,
    /// Why not, the last time.
    pub error: Option<String>,
}

impl Counts {
    /// Packets that are not in the file.
    pub fn lost(&self) -> u64 {
        self.behind.saturating_add(self.failed)
    }
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    came: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The file being written.
pub struct Spool {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Spool {
    /// Begins a capture. At most `room` bytes wait for the disk.
    ///
    /// # Errors
    /// If the beginning cannot be written.
    pub fn begin(
        mut out: Box<dyn Out>,
        comment: &str,
        room: usize,
        mut tee: Option<Tee>,
    ) -> io::Result<(Spool, Recorder)> {
        let head = preamble(comment);
        out.write_all(&head)?;
        if let Some(tee) = &mut tee {
            tee(&head);
        }
        let shared = Arc::new(Shared::default());
        let recorder = Recorder::onto(Box::new(Entrance { shared: shared.clone(), room: room.min(SPOOL_BYTES), tee }));
        let mut writer = Writer { shared: shared.clone(), out, good: head.len() as u64, said: 0, began: ticks() };
        let thread = std::thread::Builder::new().name("recording".into()).spawn(move || writer.run())?;
        Ok((Spool { shared, thread: Some(thread) }, recorder))
    }

    /// The counts so far.
    pub fn counts(&self) -> Counts {
        self.shared.lock().counts.clone()
    }

    /// Writes what is left and gives the final counts.
    pub fn finish(mut self) -> Counts {
        self.end();
        self.counts()
    }

    fn end(&mut self) {
        self.shared.lock().ended = true;
        self.shared.came.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        self.end();
    }
}

/// A file that can be cut back to its last whole block.
pub trait Out: Write + Send {
    /// Cuts it to this many bytes, and goes on there.
    ///
    /// # Errors
    /// Those of the operating system; a pipe cannot.
    fn cut(&mut self, bytes: u64) -> io::Result<()>;
}

impl Out for File {
    fn cut(&mut self, bytes: u64) -> io::Result<()> {
        self.set_len(bytes)?;
        self.seek(SeekFrom::Start(bytes)).map(drop)
    }
}

/// Where blocks come in; each write is one block.
struct Entrance {
    shared: Arc<Shared>,
    room: usize,
    tee: Option<Tee>,
}

impl Write for Entrance {
    fn write(&mut self, block: &[u8]) -> io::Result<usize> {
        if let Some(tee) = &mut self.tee {
            tee(block);
        }
        let mut queue = self.shared.lock();
        if queue.ended || queue.bytes.saturating_add(block.len()) > self.room {
            queue.counts.behind += 1;
        } else {
            queue.bytes += block.len();
            queue.blocks.push_back(block.to_vec());
        }
        drop(queue);
        self.shared.came.notify_one();
        Ok(block.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Writer {
    shared: Arc<Shared>,
    out: Box<dyn Out>,
    /// Bytes of the file that are whole blocks.
    good: u64,
    /// Lost packets that the file tells of.
    said: u64,
    began: u64,
}

impl Writer {
    fn run(&mut self) {
        loop {
            let mut queue = self.shared.lock();
            while queue.blocks.is_empty() && !queue.ended {
                queue = self.shared.came.wait_timeout(queue, FLUSH).map_or_else(|e| e.into_inner().0, |(q, _)| q);
            }
            let blocks = std::mem::take(&mut queue.blocks);
            let ended = queue.ended && blocks.is_empty();
            drop(queue);
            if ended {
                self.tell();
                let _ = self.out.flush();
                return;
            }
            for block in &blocks {
                self.block(block);
            }
            let lost = self.shared.lock().counts.lost();
            if lost > self.said {
                self.tell();
            }
        }
    }

    fn block(&mut self, block: &[u8]) {
        let result = self.put(block);
        let mut queue = self.shared.lock();
        queue.bytes = queue.bytes.saturating_sub(block.len());
        match result {
            Ok(()) => queue.counts.written += 1,
            Err(e) => {
                queue.counts.failed += 1;
                queue.counts.error = Some(e.to_string());
            }
        }
    }

    /// Writes a block, or nothing of it.
    fn put(&mut self, block: &[u8]) -> io::Result<()> {
        match self.out.write_all(block) {
            Ok(()) => {
                self.good += block.len() as u64;
                Ok(())
            }
            Err(e) => self.out.cut(self.good).and(Err(e)),
        }
    }

    /// Says in the file what is missing in it.
    fn tell(&mut self) {
        let counts = self.shared.lock().counts.clone();
        let block = blocks::statistics(
            0,
            ticks(),
            &Statistics {
                started: Some(self.began),
                received: Some(counts.written.saturating_add(counts.lost())),
                interface_dropped: None,
                system_dropped: Some(counts.lost()),
            },
        );
        if self.put(&block).is_ok() {
            self.said = counts.lost();
        }
    }
}

fn ticks() -> u64 {
    u64::try_from(now_ns()).unwrap_or(0)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
mod tests {
    use super::*;
    use crate::input::capture::{CaptureKind, CaptureReader};
    use crate::model::exchange::Peer;
    use crate::model::problem::ProblemKind;
    use std::sync::mpsc;

    /// A disk with room for so many bytes that may be made larger.
    #[derive(Clone)]
    struct Disk(Arc<Mutex<(Vec<u8>, usize)>>);

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let mut disk = self.0.lock().unwrap();
            let room = disk.1.saturating_sub(disk.0.len()).min(bytes.len());
            if room == 0 && !bytes.is_empty() {
                return Err(io::ErrorKind::StorageFull.into());
            }
            disk.0.extend(&bytes[..room]);
            Ok(room)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Out for Disk {
        fn cut(&mut self, bytes: u64) -> io::Result<()> {
            self.0.lock().unwrap().0.truncate(bytes as usize);
            Ok(())
        }
    }

    fn ends() -> (std::net::SocketAddr, std::net::SocketAddr) {
        ("10.0.0.1:4000".parse().unwrap(), "10.0.0.2:80".parse().unwrap())
    }

    fn read(bytes: &[u8]) -> (u64, u64) {
        let mut reader = CaptureReader::new(bytes, CaptureKind::Pcapng, 0);
        let mut packets = 0;
        while reader.advance() {
            packets += u64::from(reader.frame().is_some());
        }
        let problems = reader.stats().problems;
        assert!(problems.iter().all(|p| p.kind == ProblemKind::DroppedPackets), "{problems:?}");
        (packets, problems.count(ProblemKind::DroppedPackets))
    }

    #[test]
    fn a_full_disk_loses_packets_and_says_how_many() {
        let disk = Disk(Arc::new(Mutex::new((vec![], 3000))));
        let (spool, recorder) = Spool::begin(Box::new(disk.clone()), "test", 1 << 20, None).unwrap();
        let tap = recorder.open(ends().0, ends().1);
        for _ in 0..100 {
            tap.data(Peer::Client, &[b'x'; 500]);
        }
        while spool.counts().written + spool.counts().lost() < 103 {
            std::thread::sleep(Duration::from_millis(5));
        }
        let lost = spool.counts().lost();
        assert!(lost > 90, "{lost}");
        assert!(spool.counts().error.is_some());
        // There is room again, and the recording goes on.
        disk.0.lock().unwrap().1 = 1 << 20;
        tap.data(Peer::Client, b"after");
        let counts = spool.finish();
        assert_eq!((counts.lost(), counts.written), (lost, 104 - lost));
        assert_eq!(read(&disk.0.lock().unwrap().0), (104 - lost, lost));
    }

    #[test]
    fn a_writer_that_is_behind_loses_packets_and_says_how_many() {
        struct Slow(Disk, mpsc::Receiver<()>);
        impl Write for Slow {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                if !self.0.0.lock().unwrap().0.is_empty() {
                    // Until the test lets go; then every write goes through at once.
                    let _ = self.1.recv();
                }
                self.0.write(bytes)
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        impl Out for Slow {
            fn cut(&mut self, bytes: u64) -> io::Result<()> {
                self.0.cut(bytes)
            }
        }
        let disk = Disk(Arc::new(Mutex::new((vec![], 1 << 20))));
        let (go, wait) = mpsc::channel();
        let (spool, recorder) = Spool::begin(Box::new(Slow(disk.clone(), wait)), "test", 5000, None).unwrap();
        let tap = recorder.open(ends().0, ends().1);
        for _ in 0..100 {
            tap.data(Peer::Client, &[b'x'; 500]);
        }
        assert!(spool.counts().behind > 80, "{:?}", spool.counts());
        drop(go);
        let counts = spool.finish();
        assert_eq!(counts.written + counts.behind, 103);
        assert_eq!(read(&disk.0.lock().unwrap().0), (counts.written, counts.behind));
    }

    #[test]
    fn a_tee_gets_what_the_file_gets() {
        let disk = Disk(Arc::new(Mutex::new((vec![], 1 << 20))));
        let (send, receive) = mpsc::channel();
        let tee: Tee = Box::new(move |block| send.send(block.to_vec()).unwrap());
        let (spool, recorder) = Spool::begin(Box::new(disk.clone()), "test", 1 << 20, Some(tee)).unwrap();
        recorder.open(ends().0, ends().1).fin(Peer::Client);
        drop(recorder);
        spool.finish();
        let teed: Vec<u8> = receive.iter().flatten().collect();
        assert!(disk.0.lock().unwrap().0.starts_with(&teed));
        assert_eq!(read(&teed), (4, 0));
    }
}
