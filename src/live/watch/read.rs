//! Reading one input as it grows, into its window.

use super::follow::{Follow, Over};
use super::window::Window;
use crate::drive::Stop;
use crate::input::Detected;
use crate::input::capture::bpf::Filter;
use crate::input::capture::{CaptureKind, CaptureReader, Frame};
use crate::input::detect;
use crate::model::limits::LINE_BYTES;
use crate::model::options::ReadOptions;
use crate::model::place::Place;
use crate::model::problem::Problems;
use crate::wire::packet::Decoder;
use crate::wire::tls::{KeyStore, TlsSetup};
use crate::wire::{Wire, WireOptions};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How much of the beginning is looked at, at most, to tell what an input is, bytes.
const HEAD: usize = 64 << 10;

/// A window that one thread fills and another reads.
pub type Shared = Arc<Mutex<Window>>;

/// The window, whatever happened to another thread.
pub fn lock(window: &Shared) -> MutexGuard<'_, Window> {
    window.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a watched input is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A capture.
    Capture(CaptureKind),
    /// Lines.
    Log,
}

/// Tells what a file is, as far as it can be watched.
///
/// # Errors
/// A sentence for the user.
pub fn kind(path: &Path, options: &ReadOptions) -> Result<Option<Kind>, String> {
    let name = path.to_string_lossy();
    let mut head = vec![];
    let file = std::fs::File::open(path).map_err(|e| format!("{name}: {e}"))?;
    file.take(HEAD as u64).read_to_end(&mut head).map_err(|e| format!("{name}: cannot be read: {e}"))?;
    match detect(&name, &head, options).map_err(|e| e.to_string())? {
        Detected::Capture(kind) => Ok(Some(Kind::Capture(kind))),
        Detected::Log(format, _) if format.name == "journal-file" => {
            Err(format!("{name}: a .journal file cannot be followed; `journalctl -f -o json | crosswire watch -` can"))
        }
        Detected::Log(..) => Ok(Some(Kind::Log)),
        Detected::Empty => Ok(None),
        Detected::Unknown => Err(format!("{name}: no known format; --input-format NAME says what it is")),
        Detected::Recorded(kind) => Err(format!("{name}: a {} file does not grow record by record", kind.name())),
    }
}

/// Follows a file until the watch stops.
pub fn follow(mut file: Follow, options: &ReadOptions, window: &Shared, stop: &Stop) {
    let mut packets = Packets::new(options);
    // What the first file is the others are too; an empty one is waited for.
    let kind = loop {
        match kind(file.path(), options) {
            Ok(Some(kind)) => break kind,
            // A log whose first lines are odd is one all the same.
            Err(_) => break Kind::Log,
            Ok(None) if stop.is_set() => return,
            Ok(None) => std::thread::sleep(std::time::Duration::from_millis(50)),
        }
    };
    loop {
        match kind {
            Kind::Capture(kind) => packets.read(&mut file, kind, window),
            Kind::Log => lines(&mut file, window),
        }
        if file.over() == Some(Over::Stopped) {
            return;
        }
        let Some(next) = file.next() else { return };
        file = next;
        lock(window).new_file();
    }
}

/// Reads a stream to its end, such as standard input or what a proxy records.
pub fn stream(source: impl Read, kind: Option<Kind>, options: &ReadOptions, window: &Shared) {
    let mut source = BufReader::with_capacity(HEAD, source);
    let kind = kind.or_else(|| {
        let head = source.fill_buf().unwrap_or_default();
        matches!(detect("-", head, options), Ok(Detected::Capture(_)))
            .then(|| CaptureKind::of(head).map(Kind::Capture))
            .flatten()
    });
    match kind {
        Some(Kind::Capture(kind)) => Packets::new(options).read(&mut source, kind, window),
        _ => lines(&mut source, window),
    }
}

fn lines(source: &mut dyn Read, window: &Shared) {
    let mut source = BufReader::new(source);
    let mut line = vec![];
    loop {
        line.clear();
        // The rest of a line beyond the cap becomes one of its own, which no format takes for its.
        match (&mut source).take(LINE_BYTES as u64).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {
                let text = line.strip_suffix(b"\n").unwrap_or(&line);
                lock(window).line(text.strip_suffix(b"\r").unwrap_or(text));
            }
        }
    }
}

/// The packets of one input, over all its files: a connection may go on in the next.
struct Packets {
    decoder: Decoder,
    wire: Wire,
    tls: Arc<TlsSetup>,
    problems: [Problems; 1],
    dropped_before: u64,
    filter: Option<Filter>,
}

impl Packets {
    fn new(options: &ReadOptions) -> Packets {
        let keys = KeyStore::new();
        for log in options.keylogs.iter().filter_map(|path| std::fs::read(path).ok()) {
            keys.read(&log);
        }
        let tls = Arc::new(TlsSetup::new(Arc::new(keys)));
        let filter = options.filter.as_deref().map(Filter::new);
        let wire = Wire::new(WireOptions { tls: tls.clone() });
        Packets { decoder: Decoder::new(), wire, tls, problems: [Problems::default()], dropped_before: 0, filter }
    }

    fn read(&mut self, source: &mut dyn Read, kind: CaptureKind, window: &Shared) {
        let before = lock(window).records;
        let mut reader = CaptureReader::new(source, kind, 0);
        let mut dropped = 0;
        while reader.advance() {
            for secrets in reader.take_secrets() {
                self.tls.keys.read(&secrets);
            }
            let mut kept = lock(window);
            dropped = reader.dropped();
            kept.dropped(self.dropped_before + dropped);
            let Some(frame) = reader.frame() else { continue };
            let place = Place::frame(0, before + frame.place.number);
            let frame = Frame { place, ..frame };
            let [own] = &mut self.problems;
            let is_wanted = self.filter.as_ref().is_none_or(|f| f.accepts(&frame));
            if let Some(segment) = self.decoder.segment(&frame, own).filter(|_| is_wanted) {
                self.wire.segment(segment, &mut *kept, &mut self.problems);
            }
            kept.packet(frame.at, place.number);
        }
        self.dropped_before += dropped;
    }
}
