//! Reading an object: as a stream that goes on where a connection was cut, or in windows at any place.

use crate::input::archive::Blob;
use crate::input::packed::Opener;
use std::fmt::Debug;
use std::io::{self, Error, ErrorKind, Read};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// How often in turn reading goes on at the same place of an object before it is given up; a store's own client has
/// tried each request several times by then.
const ATTEMPTS: u32 = 4;
/// Before the first of them; it doubles.
const WAIT: Duration = Duration::from_millis(200);
/// Bytes asked for at a place that is not where reading went on.
const FIRST_WINDOW: u64 = 64 << 10;
/// Bytes asked for at most where one window follows the other.
const LAST_WINDOW: u64 = 16 << 20;

/// What makes an object the same one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Its length, bytes.
    pub bytes: u64,
    /// Last modification, ns since the epoch, where the store says it.
    pub modified_ns: Option<i64>,
    /// The entity tag that the store has for its contents.
    pub tag: Option<String>,
}

/// Where the bytes of an object come from.
pub trait Remote: Debug + Send + Sync {
    /// The bytes from `from` up to `to`, or to the end. From 0 to the end nothing but a plain request is made, which any
    /// server understands.
    ///
    /// # Errors
    /// Of the kinds [`ErrorKind::NotFound`], [`ErrorKind::PermissionDenied`], [`ErrorKind::InvalidData`] (it is not what
    /// `facts` say any more) and [`ErrorKind::Unsupported`] where trying again is of no use.
    fn open(&self, facts: &Facts, from: u64, to: Option<u64>) -> io::Result<Box<dyn Read + Send>>;
}

/// An object, or a file of a web server.
#[derive(Debug)]
pub struct Object {
    /// Its URL, as it is shown: without secrets.
    pub name: String,
    /// What it is.
    pub facts: Facts,
    /// More than its name is needed to read it.
    pub has_secret: bool,
    remote: Box<dyn Remote>,
    failure: OnceLock<String>,
}

impl Object {
    /// An object that is reached by `remote`.
    pub fn new(name: String, facts: Facts, has_secret: bool, remote: Box<dyn Remote>) -> Object {
        Object { name, facts, has_secret, remote, failure: OnceLock::new() }
    }

    /// Why reading was given up, if it was. Then what was found says nothing about the object, and is not to be remembered.
    pub fn failure(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
    }

    /// Its bytes from `from` to the end.
    ///
    /// # Errors
    /// If it cannot be had. They do not name it.
    pub fn read(self: &Arc<Object>, from: u64) -> io::Result<Box<dyn Read + Send>> {
        Ok(Box::new(ObjectRead::open(self, from, None)?))
    }

    /// It, to be read at any place.
    pub fn blob(self: &Arc<Object>) -> Arc<dyn Blob> {
        Arc::new(ObjectBlob { object: self.clone(), window: Mutex::default() })
    }

    /// As an input.
    pub fn opener(self: &Arc<Object>) -> Arc<dyn Opener> {
        Arc::new(ObjectOpener(self.clone()))
    }

    fn give_up(&self, e: &Error) -> Error {
        // Of another kind it would be told as a missing file.
        Error::other(self.failure.get_or_init(|| e.to_string()).clone())
    }
}

/// Opens an [`Object`].
#[derive(Debug)]
pub struct ObjectOpener(pub Arc<Object>);

impl Opener for ObjectOpener {
    fn open(&self) -> io::Result<Box<dyn Read + Send>> {
        self.0.read(0)
    }

    fn open_at(&self, at: u64) -> io::Result<Option<Box<dyn Read + Send>>> {
        self.0.read(at).map(Some)
    }
}

/// Part of an object from its beginning to its end, whatever connections it takes.
struct ObjectRead {
    object: Arc<Object>,
    at: u64,
    end: u64,
    to: Option<u64>,
    stream: Option<Box<dyn Read + Send>>,
    attempts: u32,
}

impl ObjectRead {
    /// The request is made at once: whether it can be read at all is better known early.
    fn open(object: &Arc<Object>, from: u64, to: Option<u64>) -> io::Result<ObjectRead> {
        let end = to.unwrap_or(u64::MAX).min(object.facts.bytes);
        let mut out = ObjectRead { object: object.clone(), at: from, end, to, stream: None, attempts: 0 };
        if from < end {
            out.connect()?;
        }
        Ok(out)
    }

    fn connect(&mut self) -> io::Result<()> {
        loop {
            match self.object.remote.open(&self.object.facts, self.at, self.to) {
                Ok(stream) => {
                    self.stream = Some(stream);
                    return Ok(());
                }
                Err(e) => self.wait(e)?,
            }
        }
    }

    /// Waits before the next attempt, if there is to be one.
    fn wait(&mut self, e: Error) -> io::Result<()> {
        use ErrorKind::{InvalidData, NotFound, PermissionDenied, Unsupported};
        let is_final = matches!(e.kind(), NotFound | PermissionDenied | InvalidData | Unsupported);
        if is_final || self.attempts >= ATTEMPTS {
            return Err(self.object.give_up(&e));
        }
        std::thread::sleep(WAIT * (1 << self.attempts));
        self.attempts += 1;
        Ok(())
    }
}

impl Read for ObjectRead {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.at < self.end && !out.is_empty() {
            let Some(stream) = &mut self.stream else {
                self.connect()?;
                continue;
            };
            let left = usize::try_from(self.end - self.at).unwrap_or(usize::MAX);
            let space = out.len().min(left);
            match stream.read(out.get_mut(..space).unwrap_or_default()) {
                Ok(0) => {
                    self.stream = None;
                    let text = format!("the connection ended after {} of {} bytes", self.at, self.object.facts.bytes);
                    self.wait(Error::other(text))?;
                }
                Ok(n) => {
                    self.at += n as u64;
                    self.attempts = 0;
                    return Ok(n);
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => {
                    self.stream = None;
                    let text =
                        format!("the connection failed after {} of {} bytes: {e}", self.at, self.object.facts.bytes);
                    self.wait(Error::new(e.kind(), text))?;
                }
            }
        }
        Ok(0)
    }
}

/// An object read at any place. Windows grow as long as one follows the other, so that an archive's directory costs
/// little, and a long member few requests.
#[derive(Debug)]
struct ObjectBlob {
    object: Arc<Object>,
    window: Mutex<Window>,
}

#[derive(Default)]
struct Window {
    read: Option<ObjectRead>,
    bytes: u64,
}

impl Debug for Window {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Window").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl Blob for ObjectBlob {
    fn length(&self) -> u64 {
        self.object.facts.bytes
    }

    fn read_at(&self, at: u64, out: &mut [u8]) -> io::Result<usize> {
        let mut window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        if at >= self.length() || out.is_empty() {
            return Ok(0);
        }
        let follows = window.read.as_ref().is_some_and(|r| r.at == at);
        let is_used_up = window.read.as_ref().is_none_or(|r| r.at >= r.end);
        if !follows || is_used_up {
            window.bytes = if follows { (window.bytes * 4).min(LAST_WINDOW) } else { FIRST_WINDOW };
            let end = at.saturating_add(window.bytes).min(self.length());
            window.read = None;
            window.read = Some(ObjectRead::open(&self.object, at, Some(end))?);
        }
        window.read.as_mut().map_or(Ok(0), |r| r.read(out))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::input::archive::Range;

    /// Gives `each` bytes a connection, and then an error or an early end; fails altogether after `connections`.
    #[derive(Debug)]
    struct Flaky {
        bytes: Vec<u8>,
        each: usize,
        is_error: bool,
        left: Mutex<usize>,
        asked: Asked,
    }

    struct Piece(io::Cursor<Vec<u8>>, bool);

    impl Read for Piece {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            match self.0.read(out)? {
                0 if self.1 => Err(Error::other("reset")),
                n => Ok(n),
            }
        }
    }

    impl Remote for Flaky {
        fn open(&self, _: &Facts, from: u64, to: Option<u64>) -> io::Result<Box<dyn Read + Send>> {
            self.asked.lock().unwrap().push((from, to));
            let mut left = self.left.lock().unwrap();
            *left = left.checked_sub(1).ok_or_else(|| Error::new(ErrorKind::PermissionDenied, "denied"))?;
            let end = to.map_or(self.bytes.len(), |to| to as usize).min(from as usize + self.each);
            Ok(Box::new(Piece(io::Cursor::new(self.bytes[from as usize..end].to_vec()), self.is_error)))
        }
    }

    type Asked = Arc<Mutex<Vec<(u64, Option<u64>)>>>;

    fn object(bytes: &[u8], each: usize, is_error: bool, connections: usize) -> (Arc<Object>, Asked) {
        let asked = Asked::default();
        let left = Mutex::new(connections);
        let remote = Flaky { bytes: bytes.to_vec(), each, is_error, left, asked: asked.clone() };
        let facts = Facts { bytes: bytes.len() as u64, ..Facts::default() };
        (Arc::new(Object::new("s3://b/k".into(), facts, false, Box::new(remote))), asked)
    }

    #[test]
    fn a_cut_connection_is_gone_on_with_where_it_was() {
        let bytes: Vec<u8> = (0..1000u32).map(|n| n as u8).collect();
        for is_error in [true, false] {
            let (object, asked) = object(&bytes, 400, is_error, 9);
            let mut out = vec![];
            object.read(0).unwrap().read_to_end(&mut out).unwrap();
            assert_eq!(out, bytes);
            assert_eq!(*asked.lock().unwrap(), [(0, None), (400, None), (800, None)]);
            assert_eq!(object.failure(), None);
        }
    }

    #[test]
    fn what_is_given_up_is_an_error_and_known() {
        let (object, _) = object(&[7; 1000], 400, true, 2);
        let mut out = vec![];
        let e = object.read(0).unwrap().read_to_end(&mut out).unwrap_err();
        assert_eq!((out.len(), e.to_string().as_str(), e.kind()), (800, "denied", ErrorKind::Other));
        assert_eq!(object.failure(), Some("denied"));
    }

    #[test]
    fn nothing_is_asked_for_an_object_without_bytes() {
        let (object, asked) = object(&[], 1, true, 0);
        assert_eq!(object.read(0).unwrap().read(&mut [0; 9]).unwrap(), 0);
        assert!(asked.lock().unwrap().is_empty());
    }

    #[test]
    fn windows_grow_while_they_follow_each_other() {
        let bytes: Vec<u8> = (0..3_000_000u32).map(|n| (n % 251) as u8).collect();
        let (object, asked) = object(&bytes, usize::MAX >> 1, true, 99);
        let blob = object.blob();
        let mut out = vec![];
        Range::new(blob.clone(), 0, u64::MAX).read_to_end(&mut out).unwrap();
        assert!(out == bytes);
        let mut few = [0; 4];
        assert_eq!(blob.read_at(2_999_998, &mut few).unwrap(), 2);
        assert_eq!(blob.read_at(3_000_000, &mut few).unwrap(), 0);
        let k = |n: u64| n << 10;
        let wanted = [(0, k(64)), (k(64), k(320)), (k(320), k(1344)), (k(1344), 3_000_000), (2_999_998, 3_000_000)];
        assert_eq!(*asked.lock().unwrap(), wanted.map(|(a, b)| (a, Some(b))));
    }
}
