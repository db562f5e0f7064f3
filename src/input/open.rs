//! Opening inputs: files, directories, standard input, in plain or compressed.

use super::ahead::{Ahead, BLOCK_BYTES, HEADROOM_BYTES};
use super::decompress::{Compression, Decompressor};
use super::objects;
use super::packed::Packed;
use super::peeked::{HEAD_BYTES, Peeked, Stream};
use crate::model::problem::Problems;
use std::fs::File;
use std::io::{BufRead, ErrorKind, Read};
use std::path::{Path, PathBuf};

/// Compressions inside each other that are undone.
const LAYERS: usize = 4;
/// Directories inside each other that are entered.
const DEPTH: usize = 32;

/// An input that cannot be read at all. Everything less is a problem of the input.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// There is no such file.
    #[error("{name}: no such file or directory")]
    Missing {
        /// As given.
        name: String,
    },
    /// It is there and cannot be read.
    #[error("{name}: {source}")]
    Unreadable {
        /// As given.
        name: String,
        /// Why.
        source: std::io::Error,
    },
    /// It is a directory with nothing to read in it.
    #[error("{name}: no files in it (hidden ones are left out)")]
    NoFiles {
        /// As given.
        name: String,
    },
    /// It has zero bytes.
    #[error("{name}: the file is empty")]
    Empty {
        /// As given.
        name: String,
    },
    /// It is of no known format.
    #[error(
        "{name}: this is no capture and no log of a known format; `crosswire formats` lists them, --input-format names one"
    )]
    UnknownFormat {
        /// As given.
        name: String,
    },
    /// `--input-format` names a format that does not exist.
    #[error("there is no input format {format:?}; `crosswire formats` lists them")]
    NoSuchFormat {
        /// As given.
        format: String,
    },
    /// It is an archive, and no evidence bundle that can be read.
    #[error(
        "{name}: {why}; of archives only evidence bundles are read here (`crosswire verify` checks one), `crosswire scan` reads any"
    )]
    Bundle {
        /// As given.
        name: String,
        /// What is wrong with it.
        why: String,
    },
    /// A URL stands for nothing that can be read.
    #[error("{0}")]
    Far(String),
    /// `--log-format` gives a string that cannot be compiled.
    #[error("--log-format: {0}")]
    LogFormat(#[from] super::log::format_string::FormatError),
}

impl InputError {
    fn of(name: &str, source: std::io::Error) -> InputError {
        match source.kind() {
            ErrorKind::NotFound => InputError::Missing { name: name.to_owned() },
            _ => InputError::Unreadable { name: name.to_owned(), source },
        }
    }
}

/// An input that was named, not yet opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// As given on the command line, or found in a directory given there.
    pub name: String,
    /// The file; none: standard input.
    pub path: Option<PathBuf>,
    /// It was found in a directory: one of no known format is no input, and no trouble.
    pub found: bool,
    /// It is a member of something, such as the evidence bundle at `path`.
    pub packed: Option<super::packed::Packed>,
}

impl Source {
    /// Can it be opened more than once? Pipes and standard input cannot.
    pub fn can_reopen(&self) -> bool {
        self.packed.is_some()
            || self.path.as_ref().is_some_and(|path| std::fs::metadata(path).is_ok_and(|meta| meta.is_file()))
    }

    /// Opens it, undoes its compression, and reads as much as is needed to tell its format.
    ///
    /// # Errors
    /// [`InputError::Missing`] and [`InputError::Unreadable`]. A failure after the first bytes is
    /// a problem of the input, see [`OpenInput::problems`].
    pub fn open(&self) -> Result<OpenInput, InputError> {
        if let Some(packed) = &self.packed {
            let bytes = packed.opener.open().map_err(|e| InputError::of(&self.name, e))?;
            return Ok(OpenInput::new(self.name.clone(), bytes, packed.modified_ns));
        }
        let Some(path) = &self.path else {
            return Ok(OpenInput::new(self.name.clone(), Box::new(std::io::stdin()), None));
        };
        let opened = File::open(path).and_then(|file| file.metadata().map(|meta| (file, meta)));
        let (file, meta) = opened.map_err(|e| InputError::of(&self.name, e))?;
        if meta.is_dir() {
            return Err(InputError::of(&self.name, ErrorKind::IsADirectory.into()));
        }
        let modified = meta.modified().ok().and_then(|t| t.duration_since(std::time::UNIX_EPOCH).ok());
        let modified_ns = modified.and_then(|d| i64::try_from(d.as_nanos()).ok());
        let mut input = OpenInput::new(self.name.clone(), Box::new(file), modified_ns);
        match input.first_error.take() {
            Some(e) if input.head.is_empty() => Err(InputError::of(&self.name, e)),
            _ => Ok(input),
        }
    }
}

/// The inputs that `names` stand for: `-` is standard input, a directory every file in it and
/// below in order of their paths (hidden ones left out), an evidence bundle the evidence in it, a URL
/// the objects that it names, all else a file.
///
/// # Errors
/// One for each name that is missing or cannot be listed, or where there are only directories without files; the others are returned all the same.
pub fn expand(names: &[String]) -> (Vec<Source>, Vec<InputError>) {
    let (mut sources, mut errors) = (Vec::new(), Vec::new());
    for name in names {
        if name == "-" {
            sources.push(Source { name: name.clone(), path: None, found: false, packed: None });
            continue;
        }
        if objects::is_url(name) {
            far(name, &mut sources, &mut errors);
            continue;
        }
        match super::bundle::sources(name) {
            Some(Ok(members)) => {
                sources.extend(members);
                continue;
            }
            Some(Err(e)) => {
                errors.push(e);
                continue;
            }
            None => {}
        }
        let path = Path::new(name);
        match std::fs::metadata(path) {
            Ok(meta) if meta.is_dir() => walk(path, 0, &mut sources, &mut errors),
            Ok(_) => {
                sources.push(Source { name: name.clone(), path: Some(path.to_owned()), found: false, packed: None })
            }
            Err(e) => errors.push(InputError::of(name, e)),
        }
    }
    // Nothing found in nothing would look like a clean report.
    if sources.is_empty() && errors.is_empty() {
        errors.extend(names.iter().map(|name| InputError::NoFiles { name: name.clone() }));
    }
    (sources, errors)
}

fn far(url: &str, sources: &mut Vec<Source>, errors: &mut Vec<InputError>) {
    let found = objects::list(url);
    errors.extend(found.troubles.into_iter().map(InputError::Far));
    sources.extend(found.objects.into_iter().map(|(object, found)| {
        let name = object.name.clone();
        let packed = Packed { member: name.clone(), modified_ns: object.facts.modified_ns, opener: object.opener() };
        Source { name, path: None, found, packed: Some(packed) }
    }));
}

fn walk(directory: &Path, depth: usize, sources: &mut Vec<Source>, errors: &mut Vec<InputError>) {
    let name = |path: &Path| path.to_string_lossy().into_owned();
    let listed = std::fs::read_dir(directory).and_then(|entries| entries.collect::<Result<Vec<_>, _>>());
    let mut entries = match listed {
        Ok(entries) => entries,
        Err(e) => return errors.push(InputError::of(&name(directory), e)),
    };
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        if entry.file_name().as_encoded_bytes().starts_with(b".") {
            continue;
        }
        // A link to a directory is not followed: it may lead back up.
        let is_directory = entry.file_type().is_ok_and(|t| t.is_dir());
        if is_directory && depth < DEPTH {
            walk(&path, depth + 1, sources, errors);
        } else if std::fs::metadata(&path).is_ok_and(|meta| meta.is_file()) {
            sources.push(Source { name: name(&path), path: Some(path), found: true, packed: None });
        }
    }
}

/// Where the bytes come from.
enum Bytes {
    Here(Box<Peeked>),
    Ahead(Ahead),
    /// Between the two.
    Moving,
}

/// An input that can be read: plain bytes, whatever it was compressed with.
///
/// Reading never fails: where the source fails or the compressed data is damaged, the bytes end
/// there, and [`problems`](OpenInput::problems) says so.
pub struct OpenInput {
    /// As given on the command line.
    pub name: String,
    /// Last modification, ns since the epoch; none for standard input.
    pub modified_ns: Option<i64>,
    /// What it was compressed with, outermost first.
    pub compressions: Vec<&'static str>,
    head: Vec<u8>,
    first_error: Option<std::io::Error>,
    bytes: Bytes,
    buffer: Vec<u8>,
    buffer_start: usize,
}

impl std::fmt::Debug for OpenInput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenInput").field("name", &self.name).finish_non_exhaustive()
    }
}

impl OpenInput {
    /// An input called `name` that reads `source` and undoes its compression.
    pub fn new(name: String, source: Box<dyn Read + Send>, modified_ns: Option<i64>) -> OpenInput {
        let mut peeked = Peeked::new(Stream::Raw { source, error: None });
        // Enough for a magic number; a live stream may give no more for long.
        peeked.fill_head(8);
        let mut compressions = Vec::new();
        while let Some(kind) = Compression::of(&peeked.head).filter(|_| compressions.len() < LAYERS) {
            compressions.push(kind.name());
            let stream = Stream::Decompressed(Box::new(Decompressor::new(peeked, kind)));
            peeked = Peeked::new(stream);
            peeked.fill_head(8);
        }
        if super::capture::CaptureKind::of(&peeked.head).is_none() {
            peeked.fill_head(HEAD_BYTES);
        }
        let first_error = match &mut peeked.stream {
            Stream::Raw { error, .. } if peeked.head.is_empty() => error.take(),
            _ => None,
        };
        let head = peeked.head.clone();
        let bytes = Bytes::Here(Box::new(peeked));
        OpenInput { name, modified_ns, compressions, head, first_error, bytes, buffer: Vec::new(), buffer_start: 0 }
    }

    /// From here on another thread reads, and undoes the compression. For inputs that are worth it, and are read to
    /// their end without anybody waiting for the last bytes of a block.
    pub fn read_ahead(&mut self) {
        self.bytes = match std::mem::replace(&mut self.bytes, Bytes::Moving) {
            Bytes::Here(peeked) => match Ahead::new(*peeked) {
                Ok(ahead) => Bytes::Ahead(ahead),
                Err(peeked) => Bytes::Here(peeked),
            },
            other => other,
        };
    }

    /// The next bytes in a block of their own, in place of `used`, where they are read ahead and none waits here: the
    /// block and where in it they begin, at least [`HEADROOM_BYTES`] behind its own beginning; an empty block at the end.
    ///
    /// # Errors
    /// `used`, if they have to be [read](Read::read).
    pub(super) fn next_block(&mut self, used: Vec<u8>) -> Result<(Vec<u8>, usize), Vec<u8>> {
        match &mut self.bytes {
            Bytes::Ahead(ahead) if self.buffer_start >= self.buffer.len() => {
                let block = ahead.next(used);
                let start = HEADROOM_BYTES.min(block.len());
                Ok((block, start))
            }
            _ => Err(used),
        }
    }

    /// The beginning of its plain bytes: up to 64 KiB, at least 8 unless it is shorter.
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// What kept its bytes from being read to their end, so far.
    pub fn problems(&self) -> Problems {
        match &self.bytes {
            Bytes::Here(peeked) => peeked.problems(),
            Bytes::Ahead(ahead) => ahead.problems(),
            Bytes::Moving => Problems::default(),
        }
    }
}

impl Read for OpenInput {
    #[inline]
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let buffered = self.buffer.get(self.buffer_start..).unwrap_or_default();
        if buffered.is_empty()
            && let Bytes::Here(peeked) = &mut self.bytes
        {
            return peeked.read(out);
        }
        let buffered = if buffered.is_empty() { self.fill_buf()? } else { buffered };
        let n = buffered.len().min(out.len());
        let (Some(to), Some(from)) = (out.get_mut(..n), buffered.get(..n)) else { return Ok(0) };
        to.copy_from_slice(from);
        self.consume(n);
        Ok(n)
    }
}

impl BufRead for OpenInput {
    fn fill_buf(&mut self) -> std::io::Result<&[u8]> {
        if self.buffer_start >= self.buffer.len() {
            self.buffer_start = 0;
            match &mut self.bytes {
                Bytes::Here(peeked) => {
                    self.buffer.resize(BLOCK_BYTES, 0);
                    let n = peeked.read(&mut self.buffer)?;
                    self.buffer.truncate(n);
                }
                Bytes::Ahead(ahead) => {
                    self.buffer = ahead.next(std::mem::take(&mut self.buffer));
                    self.buffer_start = HEADROOM_BYTES;
                }
                Bytes::Moving => {}
            }
        }
        Ok(self.buffer.get(self.buffer_start..).unwrap_or_default())
    }

    fn consume(&mut self, bytes: usize) {
        self.buffer_start = self.buffer_start.saturating_add(bytes).min(self.buffer.len());
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::{InputError, OpenInput, Source, expand};
    use crate::model::problem::ProblemKind;
    use std::io::{BufRead, Read, Write};

    fn gzip(plain: &[u8]) -> Vec<u8> {
        let mut w = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        w.write_all(plain).unwrap();
        w.finish().unwrap()
    }

    fn open(bytes: Vec<u8>) -> OpenInput {
        OpenInput::new("-".to_owned(), Box::new(std::io::Cursor::new(bytes)), None)
    }

    fn all(input: &mut OpenInput) -> Vec<u8> {
        let mut out = Vec::new();
        input.read_to_end(&mut out).unwrap();
        out
    }

    fn lines(count: usize) -> Vec<u8> {
        (0..count).flat_map(|n| format!("line {n} of a log\n").into_bytes()).collect()
    }

    #[test]
    fn compression_inside_compression() {
        let plain = lines(20_000);
        let coded = gzip(&zstd::stream::encode_all(&plain[..], 1).unwrap());
        let mut input = open(coded);
        assert_eq!(input.compressions, ["gzip", "zstd"]);
        assert_eq!(input.head(), &plain[..64 << 10]);
        assert_eq!(all(&mut input), plain);
        assert!(input.problems().is_empty());
    }

    #[test]
    fn a_cut_file_ends_with_a_problem_and_keeps_what_came_before() {
        let plain = lines(30_000);
        let coded = gzip(&plain);
        let mut input = open(coded[..coded.len() - 9].to_vec());
        assert_eq!(all(&mut input), plain);
        assert_eq!(input.problems().count(ProblemKind::BadCompression), 1);
    }

    #[test]
    fn what_another_thread_reads_is_the_same() {
        let plain = lines(60_000);
        for bytes in [plain.clone(), gzip(&plain)] {
            for cut in [0, 9] {
                let bytes = bytes[..bytes.len() - cut].to_vec();
                let (mut here, mut ahead) = (open(bytes.clone()), open(bytes));
                ahead.read_ahead();
                assert_eq!(all(&mut here), all(&mut ahead));
                let told = |i: &OpenInput| i.problems().count(ProblemKind::BadCompression);
                assert_eq!(told(&ahead), told(&here));
            }
        }
        // Nobody wants the rest.
        let mut input = open(plain);
        input.read_ahead();
        input.read_exact(&mut [0; 10]).unwrap();
    }

    #[test]
    fn a_source_that_fails_on_the_way_ends_with_a_problem() {
        struct Failing(usize);
        impl Read for Failing {
            fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
                if self.0 == 0 {
                    return Err(std::io::Error::other("disk gone"));
                }
                let n = self.0.min(out.len());
                out[..n].fill(b'a');
                self.0 -= n;
                Ok(n)
            }
        }
        let mut input = OpenInput::new("x".to_owned(), Box::new(Failing(100_000)), None);
        assert_eq!(all(&mut input).len(), 100_000);
        assert_eq!(input.problems().count(ProblemKind::ReadError), 1);
    }

    #[test]
    fn lines_and_bytes_may_be_read_in_turn() {
        let plain = lines(40_000);
        let mut input = open(plain.clone());
        let mut first = Vec::new();
        input.read_until(b'\n', &mut first).unwrap();
        let mut next = [0; 5];
        input.read_exact(&mut next).unwrap();
        assert_eq!([&first[..], &next].concat(), &plain[..first.len() + 5]);
        assert_eq!(all(&mut input), &plain[first.len() + 5..]);
    }

    #[test]
    fn directories_are_listed_in_order_and_what_is_missing_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("b")).unwrap();
        for name in ["c.log", "a.log", "b/x.log", ".hidden"] {
            std::fs::write(dir.path().join(name), name).unwrap();
        }
        let top = dir.path().to_str().unwrap().to_owned();
        let missing = format!("{top}/none.pcap");
        let (sources, errors) = expand(&[top.clone(), "-".to_owned(), missing, format!("{top}/c.log")]);
        let names: Vec<_> = sources.iter().map(|s| (s.name.strip_prefix(&top).unwrap_or(&s.name), s.found)).collect();
        assert_eq!(names, [("/a.log", true), ("/b/x.log", true), ("/c.log", true), ("-", false), ("/c.log", false)]);
        assert!(matches!(errors[..], [InputError::Missing { .. }]));
        assert!(matches!(
            Source { name: top.clone(), path: Some(top.into()), found: false, packed: None }.open(),
            Err(InputError::Unreadable { .. })
        ));
        let opened = sources[0].open().unwrap();
        assert_eq!(opened.head(), b"a.log");
        assert!(opened.modified_ns.is_some());
    }

    #[test]
    fn nothing_but_directories_without_files_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
        std::fs::create_dir(path("empty")).unwrap();
        let (sources, errors) = expand(&[path("empty")]);
        assert!(sources.is_empty() && matches!(errors[..], [InputError::NoFiles { .. }]));
        std::fs::write(path("a.log"), "x").unwrap();
        let (sources, errors) = expand(&[path("empty"), path("a.log")]);
        assert!(sources.len() == 1 && errors.is_empty());
    }
}
