//! The chunked transfer coding (RFC 9112 §7.1), one step at a time.

/// Where in a chunked body the next byte lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Chunked {
    /// In the size of a chunk: its digits so far and how many.
    Size(u64, u8),
    /// Behind the size: extensions, up to the line end.
    Extension(u64),
    /// In the data; so many bytes are left.
    Data(u64),
    /// At the line end behind the data.
    DataEnd,
    /// In the trailer section; the bytes of its line so far (up to 2 matter).
    Trailer(u8),
}

/// What a step found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// So many bytes were framing.
    Framing(usize),
    /// The next so many bytes are data (already counted as read).
    Data(usize),
    /// The body ends behind so many bytes.
    End(usize),
    /// This is no chunked coding.
    Broken,
}

impl Chunked {
    /// At the start of a body.
    pub(super) const START: Chunked = Chunked::Size(0, 0);

    /// Looks at the next bytes, of which there is at least one.
    pub(super) fn step(&mut self, bytes: &[u8]) -> Step {
        match self {
            Chunked::Data(left) => {
                let len = usize::try_from(*left).map_or(bytes.len(), |left| left.min(bytes.len()));
                *left -= len as u64;
                if *left == 0 {
                    *self = Chunked::DataEnd;
                }
                Step::Data(len)
            }
            _ => self.framing(bytes),
        }
    }

    fn framing(&mut self, bytes: &[u8]) -> Step {
        for (n, byte) in bytes.iter().enumerate() {
            let used = n + 1;
            *self = match (*self, byte) {
                (Chunked::Size(size, digits), digit) if digit.is_ascii_hexdigit() => {
                    let digit = char::from(*digit).to_digit(16).unwrap_or(0);
                    let Some(size) = size.checked_mul(16) else { return Step::Broken };
                    Chunked::Size(size + u64::from(digit), digits.saturating_add(1))
                }
                (Chunked::Size(_, 0), _) => return Step::Broken,
                (Chunked::Size(size, _), b'\n') | (Chunked::Extension(size), b'\n') => match size {
                    0 => Chunked::Trailer(0),
                    size => {
                        *self = Chunked::Data(size);
                        return Step::Framing(used);
                    }
                },
                (Chunked::Size(size, _), b'\r' | b' ' | b'\t' | b';') => Chunked::Extension(size),
                (Chunked::Size(..), _) => return Step::Broken,
                (Chunked::Extension(size), _) => Chunked::Extension(size),
                (Chunked::DataEnd, b'\r') => Chunked::DataEnd,
                (Chunked::DataEnd, b'\n') => Chunked::START,
                (Chunked::DataEnd, _) => return Step::Broken,
                (Chunked::Trailer(0), b'\n') => return Step::End(used),
                (Chunked::Trailer(_), b'\n') => Chunked::Trailer(0),
                (Chunked::Trailer(0), b'\r') => Chunked::Trailer(0),
                (Chunked::Trailer(_), _) => Chunked::Trailer(1),
                (Chunked::Data(_), _) => return Step::Framing(n),
            };
        }
        Step::Framing(bytes.len())
    }

    /// Passes over missing bytes, if they all lie within one chunk's data.
    pub(super) fn skip(&mut self, bytes: u64) -> bool {
        match self {
            Chunked::Data(left) if *left > bytes => *left -= bytes,
            Chunked::Data(left) if *left == bytes => *self = Chunked::DataEnd,
            _ => return false,
        }
        true
    }
}

/// Does a slice begin with a chunk that is whole, line end included, or with the last chunk?
/// Gives the length of the size line and of the data.
pub(super) fn whole_chunk(bytes: &[u8]) -> Option<(usize, usize)> {
    let (line, size) = size_line(bytes)?;
    match (size, bytes.get(line + size..)?) {
        (0, b"\r\n") => Some((line, 0)),
        (0, _) => None,
        (_, [b'\r', b'\n', ..]) => Some((line, size)),
        _ => None,
    }
}

/// Length of the size line that a slice begins with, and the size it names.
pub(super) fn size_line(bytes: &[u8]) -> Option<(usize, usize)> {
    let line = bytes.get(..bytes.len().min(256))?;
    let end = memchr::memchr(b'\n', line)?;
    let digits = line.get(..end)?.strip_suffix(b"\r")?;
    let digits = digits.split(|byte| *byte == b';').next()?.trim_ascii_end();
    if digits.is_empty() || digits.len() > 8 || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let size = usize::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    Some((end + 1, size))
}

#[cfg(test)]
mod tests {
    use super::{Chunked, Step, size_line, whole_chunk};
    use proptest::prelude::*;

    /// Data, and how many bytes lie behind the end; none if broken or unfinished.
    fn read(pieces: &[&[u8]]) -> Option<(Vec<u8>, usize)> {
        let (mut chunked, mut data) = (Chunked::START, Vec::new());
        let mut end = None;
        for piece in pieces {
            let mut rest = *piece;
            while !rest.is_empty() {
                if let Some(behind) = &mut end {
                    *behind += rest.len();
                    break;
                }
                let used = match chunked.step(rest) {
                    Step::Framing(used) => used,
                    Step::Data(len) => {
                        data.extend_from_slice(&rest[..len]);
                        len
                    }
                    Step::End(used) => {
                        end = Some(0);
                        used
                    }
                    Step::Broken => return None,
                };
                rest = &rest[used..];
            }
        }
        Some((data, end?))
    }

    #[test]
    fn chunks() {
        let read = |text: &str| read(&[text.as_bytes()]).map(|(d, n)| (String::from_utf8_lossy(&d).into_owned(), n));
        let some = |data: &str, behind| Some((data.to_owned(), behind));
        assert_eq!(read("3\r\nabc\r\n0\r\n\r\nHTTP"), some("abc", 4));
        assert_eq!(
            read("3;a=\"b\"\r\nabc\r\nA ; x\r\n0123456789\r\n00\r\nT: x\r\nU: y\r\n\r\n"),
            some("abc0123456789", 0)
        );
        assert_eq!(read("3\nabc\n0\n\n"), some("abc", 0));
        for wrong in ["x\r\n", "\r\n", "3\r\nabcd\r\n0\r\n\r\n", "11111111111111111\r\n", "-1\r\n"] {
            assert_eq!(read(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn missing_bytes_within_a_chunk() {
        let mut chunked = Chunked::Data(10);
        assert!(chunked.skip(4) && chunked == Chunked::Data(6));
        assert!(!chunked.skip(7));
        assert!(chunked.skip(6) && chunked == Chunked::DataEnd);
        assert!(!chunked.skip(1));
    }

    #[test]
    fn chunks_that_prove_themselves() {
        assert_eq!(whole_chunk(b"3\r\nabc\r\n"), Some((3, 3)));
        assert_eq!(whole_chunk(b"3\r\nabc\r\n5\r\n"), Some((3, 3)));
        assert_eq!(whole_chunk(b"0\r\n\r\n"), Some((3, 0)));
        for no in ["3\r\nabcd\r\n", "3\r\nab", "abc", "0\r\n", "0\r\n\r\nx", "123456789\r\n"] {
            assert_eq!(whole_chunk(no.as_bytes()), None, "{no:?}");
        }
        assert_eq!(size_line(b"1f4;x=y\r\ndata"), Some((9, 500)));
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_data(
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 0..5),
            cuts in prop::collection::vec(0usize..400, 0..8),
        ) {
            let mut coded = Vec::new();
            for chunk in &chunks {
                coded.extend_from_slice(format!("{:x};ext\r\n", chunk.len()).as_bytes());
                coded.extend_from_slice(chunk);
                coded.extend_from_slice(b"\r\n");
            }
            coded.extend_from_slice(b"0\r\nTrailer: x\r\n\r\nbehind");
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut % (coded.len() + 1)).collect();
            cuts.extend([0, coded.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|w| &coded[w[0]..w[1]]).collect();
            prop_assert_eq!(read(&pieces), Some((chunks.concat(), 6)));
        }
    }
}
