//! What an input is: by magic number where there is one, else by what its first lines look like.

use super::archive::tar::is_tar;
use super::capture::CaptureKind;
use super::log::{Format, Grade, described, format_string};
use super::open::InputError;
use super::recorded::RecordedKind;
use super::{client, log};
use crate::model::options::ReadOptions;
use std::path::Path;

/// What an input was found (or said) to be.
#[derive(Clone, Copy)]
pub enum Detected {
    /// A capture.
    Capture(CaptureKind),
    /// Exchanges that something other than a packet capture recorded.
    Recorded(RecordedKind),
    /// A log, and how sure that is; [`Grade::Certain`] where the user said so.
    Log(&'static Format, Grade),
    /// Nothing known.
    Unknown,
    /// It has no bytes.
    Empty,
}

impl std::fmt::Debug for Detected {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Detected::Capture(kind) => write!(f, "Capture({})", kind.name()),
            Detected::Recorded(kind) => write!(f, "Recorded({})", kind.name()),
            Detected::Log(format, grade) => write!(f, "Log({}, {grade:?})", format.name),
            Detected::Unknown => f.write_str("Unknown"),
            Detected::Empty => f.write_str("Empty"),
        }
    }
}

/// A text without the UTF-8 byte order mark that editors and shells of Windows put before it.
pub fn without_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text)
}

/// Tells what an input called `name` is that begins with the plain bytes `head`.
///
/// `--input-format NAME:PATH` decides before `--input-format NAME`, and both before the bytes. A
/// NAME may be one that `--log-format NAME=STRING` defines; a bare `--log-format STRING` is for
/// every log whose own format is not certain, as far as it reads any of the first lines. In the log of a container or a
/// journal the messages are of that format, and the log keeps its own.
///
/// # Errors
/// [`InputError::NoSuchFormat`] where these options name a format that does not exist,
/// [`InputError::LogFormat`] where a format string cannot be compiled.
pub fn detect(name: &str, head: &[u8], options: &ReadOptions) -> Result<Detected, InputError> {
    if head.is_empty() {
        return Ok(Detected::Empty);
    }
    let bound = options.input_formats.iter().find(|(_, path)| same_file(path, name)).map(|(format, _)| format);
    if let Some(string) = described::bound(name, options) {
        format_string::compile(string)?;
        return Ok(match by_content(without_mark(head)) {
            Detected::Log(own, Grade::Certain) if described::lies_within(own, without_mark(head), string)? => {
                Detected::Log(own, Grade::Certain)
            }
            _ => Detected::Log(&described::FORMAT, Grade::Certain),
        });
    }
    if let Some(format) = bound.or(options.input_format.as_ref()) {
        return named(format).ok_or_else(|| InputError::NoSuchFormat { format: format.clone() });
    }
    let head = without_mark(head);
    let found = by_content(head);
    let own = match found {
        Detected::Log(_, grade) => grade,
        Detected::Unknown => Grade::No,
        Detected::Capture(_) | Detected::Recorded(_) | Detected::Empty => return Ok(found),
    };
    match described::holds(head, own, options)? {
        true => Ok(Detected::Log(&described::FORMAT, Grade::Certain)),
        false => Ok(found),
    }
}

/// The format called `name`.
pub fn named(name: &str) -> Option<Detected> {
    let capture = CaptureKind::ALL.into_iter().find(|kind| kind.name() == name).map(Detected::Capture);
    let recorded = || RecordedKind::ALL.into_iter().find(|kind| kind.name() == name).map(Detected::Recorded);
    capture.or_else(recorded).or_else(|| {
        let format = formats().find(|format| format.name == name)?;
        Some(Detected::Log(format, Grade::Certain))
    })
}

/// Every format of a log, in the order that decides ties.
pub fn formats() -> impl Iterator<Item = &'static Format> {
    log::FORMATS.iter().chain(client::FORMATS).copied()
}

fn by_content(head: &[u8]) -> Detected {
    if let Some(kind) = CaptureKind::of(head) {
        return Detected::Capture(kind);
    }
    // Its members may well be logs, but their lines are not its own.
    if is_tar(head) {
        return Detected::Unknown;
    }
    let graded = RecordedKind::ALL.into_iter().map(|kind| (kind.grade(head), kind));
    if let Some((_, kind)) = graded.filter(|(grade, _)| *grade >= Grade::Likely).max_by_key(|(grade, _)| *grade) {
        return Detected::Recorded(kind);
    }
    let mut best = (Grade::No, None);
    for format in formats() {
        let grade = (format.grade)(head);
        if grade > best.0 {
            best = (grade, Some(format));
        }
    }
    best.1.map_or(Detected::Unknown, |format| Detected::Log(format, best.0))
}

/// Do a path in an option and an input's name mean the same file?
pub fn same_file(path: &str, name: &str) -> bool {
    path == name
        || Path::new(path) == Path::new(name)
        || match (std::fs::canonicalize(path), std::fs::canonicalize(name)) {
            (Ok(a), Ok(b)) => a == b,
            _ => false,
        }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::{Detected, detect};
    use crate::input::capture::CaptureKind;
    use crate::input::open::InputError;
    use crate::input::recorded::RecordedKind;
    use crate::model::options::ReadOptions;

    #[test]
    fn magic_numbers_are_proof_and_options_decide_before_them() {
        let none = ReadOptions::default();
        let found = |name: &str, head: &[u8], options: &ReadOptions| detect(name, head, options);
        let head = [0xd4, 0xc3, 0xb2, 0xa1, 2, 0];
        assert!(matches!(found("a", &head, &none), Ok(Detected::Capture(CaptureKind::Pcap))));
        assert!(matches!(found("a", b"", &none), Ok(Detected::Empty)));
        let har = b"{\"log\":{\"version\":\"1.2\",\"creator\":{},\"entries\":[";
        assert!(matches!(found("a", har, &none), Ok(Detected::Recorded(RecordedKind::Har))));
        assert!(matches!(found("a", &[0, 1, 2, 0xff, 0xfe], &none), Ok(Detected::Unknown)));
        let options = ReadOptions {
            input_format: Some("pcap".to_owned()),
            input_formats: vec![("pcapng".to_owned(), "./b".to_owned())],
            ..ReadOptions::default()
        };
        assert!(matches!(found("a", b"x", &options), Ok(Detected::Capture(CaptureKind::Pcap))));
        assert!(matches!(found("./b", &head, &options), Ok(Detected::Capture(CaptureKind::Pcapng))));
        let options = ReadOptions { input_format: Some("nonsense".to_owned()), ..ReadOptions::default() };
        assert!(matches!(found("a", &head, &options), Err(InputError::NoSuchFormat { .. })));
    }
}
