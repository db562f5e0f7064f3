//! Reads (and decompresses) ahead on a thread of its own, so that the bytes are there when they are wanted.

use super::peeked::Peeked;
use crate::model::problem::Problems;
use std::io::Read;
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

/// Bytes of one block.
pub(super) const BLOCK_BYTES: usize = 256 << 10;
/// Bytes before those of a block, in which who takes it puts what was left of the block before.
pub(super) const HEADROOM_BYTES: usize = 64 << 10;
/// Blocks that wait to be wanted.
const WAITING: usize = 4;

/// The blocks of a stream that another thread reads.
pub(super) struct Ahead {
    blocks: Receiver<Vec<u8>>,
    /// Blocks that were read, to be filled again.
    empty: Sender<Vec<u8>>,
    /// What kept the bytes from being read to their end; comes once, behind the last block.
    problems: Receiver<Problems>,
    known: OnceLock<Problems>,
}

impl Ahead {
    /// Begins to read. None: no thread can be had; the stream is given back.
    pub(super) fn new(stream: Peeked) -> Result<Ahead, Box<Peeked>> {
        let (full, blocks) = sync_channel(WAITING);
        let (empty, used) = channel();
        let (end, problems) = channel();
        let (give, take) = channel::<Peeked>();
        let thread = std::thread::Builder::new().name("read-ahead".to_owned());
        let spawned = thread.spawn(move || {
            if let Ok(stream) = take.recv() {
                read(stream, &full, &used, &end);
            }
        });
        match spawned {
            Err(_) => Err(Box::new(stream)),
            Ok(_) => match give.send(stream) {
                Ok(()) => Ok(Ahead { blocks, empty, problems, known: OnceLock::new() }),
                Err(refused) => Err(Box::new(refused.0)),
            },
        }
    }

    /// The next block in place of `used`, behind [`HEADROOM_BYTES`]; empty at the end.
    pub(super) fn next(&mut self, used: Vec<u8>) -> Vec<u8> {
        // A thread that has come to the end takes nothing back.
        drop(self.empty.send(used));
        self.blocks.recv().unwrap_or_default()
    }

    /// What is known so far of why the bytes end where they do.
    pub(super) fn problems(&self) -> Problems {
        if let Ok(problems) = self.problems.try_recv() {
            return self.known.get_or_init(|| problems).clone();
        }
        self.known.get().cloned().unwrap_or_default()
    }
}

/// Reads to the end, or until nobody wants more.
fn read(mut stream: Peeked, full: &SyncSender<Vec<u8>>, used: &Receiver<Vec<u8>>, end: &Sender<Problems>) {
    loop {
        let mut block = used.try_recv().unwrap_or_default();
        block.resize(HEADROOM_BYTES + BLOCK_BYTES, 0);
        let n = block.get_mut(HEADROOM_BYTES..).map_or(0, |space| stream.read(space).unwrap_or(0));
        block.truncate(HEADROOM_BYTES + n);
        if n == 0 {
            drop(end.send(stream.problems()));
            return;
        }
        if full.send(block).is_err() {
            return;
        }
    }
}
