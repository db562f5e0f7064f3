//! A block of the input in memory, out of which records are borrowed.

use crate::input::ahead::HEADROOM_BYTES;
use std::io::{ErrorKind, Read};

/// Bytes asked of the source at a time.
const BLOCK_BYTES: usize = 256 << 10;

/// The unread part of a source, held in one buffer that grows only for a record larger than it.
pub(super) struct Window<R> {
    source: R,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Offset in the source of `buffer[start]`.
    offset: u64,
    ended: bool,
    error: Option<std::io::Error>,
    /// How the source gives its next bytes in a block of their own, if it can.
    blocks: Option<NextBlock<R>>,
    /// What was left of a block when the next one came.
    rest: Vec<u8>,
}

/// See [`crate::input::OpenInput::next_block`].
pub(super) type NextBlock<R> = fn(&mut R, Vec<u8>) -> Result<(Vec<u8>, usize), Vec<u8>>;

impl<R: Read> Window<R> {
    pub(super) fn new(source: R) -> Window<R> {
        Window {
            source,
            buffer: Vec::new(),
            start: 0,
            end: 0,
            offset: 0,
            ended: false,
            error: None,
            blocks: None,
            rest: Vec::new(),
        }
    }

    /// The same, with blocks of the source taken as they are.
    pub(super) fn in_blocks(source: R, next: NextBlock<R>) -> Window<R> {
        Window { blocks: Some(next), ..Window::new(source) }
    }

    /// What is in memory from the current position on.
    pub(super) fn data(&self) -> &[u8] {
        self.buffer.get(self.start..self.end).unwrap_or_default()
    }

    /// `length` bytes from `at` behind the current position, if they are in memory.
    #[inline]
    pub(super) fn slice(&self, at: usize, length: usize) -> Option<&[u8]> {
        let from = self.start.checked_add(at)?;
        let to = from.checked_add(length)?;
        if to > self.end {
            return None;
        }
        self.buffer.get(from..to)
    }

    pub(super) fn source_mut(&mut self) -> &mut R {
        &mut self.source
    }

    /// Position in the source, bytes.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Has the source no more than what is in memory?
    pub(super) fn is_ended(&self) -> bool {
        self.ended
    }

    /// Why the source could not be read to its end.
    pub(super) fn take_error(&mut self) -> Option<std::io::Error> {
        self.error.take()
    }

    /// Brings at least `want` bytes into memory; false if the source ends before.
    #[inline]
    pub(super) fn fill(&mut self, want: usize) -> bool {
        self.end - self.start >= want || self.refill(want)
    }

    /// Takes blocks of the source as they are; what was left of the one before goes in front.
    fn take_blocks(&mut self, next: NextBlock<R>, want: usize) {
        while self.end - self.start < want.min(HEADROOM_BYTES) && !self.ended {
            self.rest.clear();
            self.rest.extend_from_slice(self.buffer.get(self.start..self.end).unwrap_or_default());
            match next(&mut self.source, std::mem::take(&mut self.buffer)) {
                Err(buffer) => {
                    self.buffer = buffer;
                    return;
                }
                Ok((mut block, begin)) if begin < block.len() => {
                    self.start = begin - self.rest.len();
                    if let Some(front) = block.get_mut(self.start..begin) {
                        front.copy_from_slice(&self.rest);
                    }
                    (self.end, self.buffer) = (block.len(), block);
                }
                Ok(_) => {
                    self.ended = true;
                    self.buffer.clone_from(&self.rest);
                    (self.start, self.end) = (0, self.rest.len());
                }
            }
        }
    }

    #[cold]
    fn refill(&mut self, want: usize) -> bool {
        if let Some(next) = self.blocks {
            self.take_blocks(next, want);
            if self.end - self.start >= want {
                return true;
            }
        }
        if self.start + want > self.buffer.len() {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
            // Twice what is wanted, so that bytes are moved once at most for each byte gone past.
            let room = (2 * want).max(BLOCK_BYTES).next_multiple_of(BLOCK_BYTES);
            if self.buffer.len() < room {
                self.buffer.resize(room, 0);
            }
        }
        while self.end - self.start < want && !self.ended {
            let Some(space) = self.buffer.get_mut(self.end..) else { break };
            match self.source.read(space) {
                Ok(0) => self.ended = true,
                Ok(n) => self.end += n.min(space.len()),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => {
                    self.error = Some(e);
                    self.ended = true;
                }
            }
        }
        self.end - self.start >= want
    }

    /// Goes forward by `bytes`, which are in memory.
    #[inline]
    pub(super) fn consume(&mut self, bytes: usize) {
        let step = bytes.min(self.end - self.start);
        self.start += step;
        self.offset += step as u64;
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::{BLOCK_BYTES, HEADROOM_BYTES, Window};

    /// Hands out at most three bytes a read.
    struct Drip<'a>(&'a [u8]);
    impl std::io::Read for Drip<'_> {
        fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
            let n = self.0.len().min(out.len()).min(3);
            out[..n].copy_from_slice(&self.0[..n]);
            self.0 = &self.0[n..];
            Ok(n)
        }
    }

    #[test]
    fn fills_over_many_small_reads_and_knows_where_it_is() {
        let bytes: Vec<u8> = (0..=255).cycle().take(1000).collect();
        let mut window = Window::new(Drip(&bytes));
        assert!(window.fill(10));
        assert_eq!(window.slice(0, 10).unwrap(), &bytes[..10]);
        window.consume(7);
        assert!(window.fill(100));
        assert_eq!(window.slice(1, 99).unwrap(), &bytes[8..107]);
        assert!(window.fill(900));
        window.consume(900);
        assert_eq!(window.offset(), 907);
        assert!(!window.fill(94));
        assert_eq!(window.data(), &bytes[907..]);
        assert!(window.is_ended());
        window.consume(94);
        assert_eq!(window.offset(), 1000);
    }

    /// Gives blocks, and waits with the last of them for somebody who reads.
    struct Blocks {
        left: Vec<u8>,
        of: usize,
    }
    impl std::io::Read for Blocks {
        fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
            let n = self.left.len().min(out.len()).min(self.of);
            out[..n].copy_from_slice(&self.left[..n]);
            self.left.drain(..n);
            Ok(n)
        }
    }
    impl Blocks {
        fn next(&mut self, used: Vec<u8>) -> Result<(Vec<u8>, usize), Vec<u8>> {
            if self.left.len() % 7 == 3 {
                return Err(used);
            }
            let n = self.left.len().min(self.of);
            let mut block = vec![0xEE; if n == 0 { 0 } else { HEADROOM_BYTES }];
            block.extend(self.left.drain(..n));
            Ok((block, if n == 0 { 0 } else { HEADROOM_BYTES }))
        }
    }

    #[test]
    fn blocks_are_taken_as_they_are_and_nothing_between_them_is_lost() {
        let bytes: Vec<u8> = (0..=250).cycle().take(400_000).collect();
        for of in [1000, 4096, 70_000, 300_000] {
            for record in [1, 16, 999, 5000, 65_535, 65_536, 65_537, 150_000] {
                let mut window = Window::in_blocks(Blocks { left: bytes.clone(), of }, Blocks::next);
                let mut at = 0;
                while window.fill(record) {
                    assert_eq!(window.slice(0, record).unwrap(), &bytes[at..at + record], "{of} {record} {at}");
                    window.consume(record);
                    at += record;
                }
                assert_eq!(window.data(), &bytes[at..], "{of} {record}");
                assert_eq!(window.offset(), at as u64);
            }
        }
    }

    #[test]
    fn grows_for_one_large_record() {
        let bytes = vec![7; 3 * BLOCK_BYTES + 5];
        let mut window = Window::new(&bytes[..]);
        assert!(window.fill(2 * BLOCK_BYTES + 1));
        assert!(window.fill(3 * BLOCK_BYTES + 5));
        assert!(!window.fill(3 * BLOCK_BYTES + 6));
    }
}
