//! The bytes of an input, of which the beginning is looked at before they are read.

use super::decompress::Decompressor;
use crate::model::problem::{ProblemKind, Problems};
use std::io::{ErrorKind, Read};

/// How much of the beginning of an input is looked at to tell what it is, bytes.
pub(super) const HEAD_BYTES: usize = 64 << 10;

/// The bytes of an input and what stopped them.
pub(super) enum Stream {
    Raw { source: Box<dyn Read + Send>, error: Option<std::io::Error> },
    Decompressed(Box<Decompressor<Peeked>>),
}

impl Stream {
    fn read(&mut self, out: &mut [u8]) -> usize {
        match self {
            Stream::Raw { source, error } => loop {
                match source.read(out) {
                    Ok(n) => return n.min(out.len()),
                    Err(e) if e.kind() == ErrorKind::Interrupted => {}
                    Err(e) => {
                        *error = Some(e);
                        return 0;
                    }
                }
            },
            Stream::Decompressed(d) => d.read(out).unwrap_or(0),
        }
    }

    fn problems(&self, problems: &mut Problems) {
        match self {
            Stream::Raw { error: None, .. } => {}
            Stream::Raw { error: Some(e), .. } => {
                problems.add(ProblemKind::ReadError, || "", || format!("the input could not be read on: {e}"));
            }
            Stream::Decompressed(d) => {
                d.source().stream.problems(problems);
                if let Some(fault) = d.fault() {
                    problems.add(ProblemKind::BadCompression, || "", || fault);
                }
            }
        }
    }
}

/// A stream whose beginning was read already.
pub(super) struct Peeked {
    pub(super) head: Vec<u8>,
    taken: usize,
    pub(super) stream: Stream,
}

impl Peeked {
    /// Nothing was read yet.
    pub(super) fn new(stream: Stream) -> Peeked {
        Peeked { head: Vec::new(), taken: 0, stream }
    }

    /// Reads until `want` bytes of the head are there, or the stream ends.
    pub(super) fn fill_head(&mut self, want: usize) {
        while self.head.len() < want {
            let have = self.head.len();
            self.head.resize(HEAD_BYTES.max(want), 0);
            let space = self.head.get_mut(have..).unwrap_or_default();
            let n = self.stream.read(space);
            self.head.truncate(have + n);
            if n == 0 {
                break;
            }
        }
    }

    /// What kept its bytes from being read to their end, so far.
    pub(super) fn problems(&self) -> Problems {
        let mut problems = Problems::default();
        self.stream.problems(&mut problems);
        problems
    }

    fn rest_of_head(&self) -> &[u8] {
        self.head.get(self.taken..).unwrap_or_default()
    }
}

impl Read for Peeked {
    #[inline]
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let rest = self.rest_of_head();
        if rest.is_empty() {
            return Ok(self.stream.read(out));
        }
        let n = rest.len().min(out.len());
        let (Some(to), Some(from)) = (out.get_mut(..n), rest.get(..n)) else { return Ok(0) };
        to.copy_from_slice(from);
        self.taken += n;
        Ok(n)
    }
}
