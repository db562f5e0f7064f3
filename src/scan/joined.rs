//! Several files of a rotated set read as one log, and lines of it as lines of the files.

use super::items::Item;
use super::lot::FileLines;
use super::source::Passed;
use crate::input::OpenInput;
use crate::input::packed::Opener;
use std::io::{self, Read};
use std::sync::Arc;

/// One file of a joined log.
#[derive(Clone, Debug)]
pub struct Part {
    /// Its name.
    pub name: String,
    /// How it is opened.
    pub opener: Arc<dyn Opener>,
    /// When it was last modified, ns since the epoch.
    pub modified_ns: Option<i64>,
    /// Plain bytes before it in the joined log.
    pub at: u64,
    /// Its plain bytes.
    pub bytes: u64,
    /// A line end is put behind it: it ends within a line, and the next file does not go on with it.
    pub is_closed: bool,
    /// Lines of the joined log before its first.
    pub lines: u64,
    /// Its first line goes on from the file before it.
    pub is_torn: bool,
    /// It is stored as it is read.
    pub is_plain: bool,
}

/// A log in one or more files.
#[derive(Clone, Debug)]
pub struct Joined {
    /// The files, oldest first.
    pub parts: Vec<Part>,
}

impl Joined {
    /// Items in order of time as one log.
    pub fn new(items: &[&Item]) -> Joined {
        let (mut at, mut lines, mut is_torn) = (0, 0, false);
        let mut parts = vec![];
        for (n, item) in items.iter().enumerate() {
            let s = &item.survey;
            let next = items.get(n + 1);
            let is_closed = s.ends_open && next.is_some_and(|next| next.survey.begins_record);
            parts.push(Part {
                name: item.name.clone(),
                opener: item.opener.clone(),
                modified_ns: item.modified_ns,
                at,
                bytes: s.bytes,
                is_closed,
                lines,
                is_torn,
                is_plain: s.compressions.is_empty(),
            });
            at += s.bytes + u64::from(is_closed);
            lines += s.lines + u64::from(is_closed);
            is_torn = s.ends_open && !is_closed;
        }
        Joined { parts }
    }

    /// Its plain bytes.
    pub fn bytes(&self) -> u64 {
        self.parts.last().map_or(0, |p| p.at + p.bytes)
    }

    /// When its newest file was last modified, ns since the epoch.
    pub fn modified_ns(&self) -> Option<i64> {
        self.parts.last()?.modified_ns
    }

    /// Which of its lines are in which file.
    pub fn files(&self) -> Vec<FileLines> {
        let of = |p: &Part| FileLines { name: p.name.clone(), lines: p.lines, is_torn: p.is_torn };
        self.parts.iter().map(of).collect()
    }

    /// The bytes from `from` to `to`, opened anew each time; they are counted in `passed`.
    pub fn range(&self, from: u64, to: u64, passed: &Passed) -> Arc<dyn Opener> {
        Arc::new(JoinedOpener { parts: self.parts.clone(), from, to, passed: passed.clone() })
    }
}

#[derive(Debug)]
struct JoinedOpener {
    parts: Vec<Part>,
    from: u64,
    to: u64,
    passed: Passed,
}

impl Opener for JoinedOpener {
    fn open(&self) -> io::Result<Box<dyn Read + Send>> {
        let wanted =
            self.parts.iter().filter(|p| p.at + p.bytes + u64::from(p.is_closed) > self.from && p.at < self.to);
        let mut parts: Vec<Part> = wanted.cloned().collect();
        parts.reverse();
        Ok(Box::new(JoinedRead { parts, at: self.from, to: self.to, open: None, passed: self.passed.clone() }))
    }
}

struct JoinedRead {
    /// What is to come, the next one last.
    parts: Vec<Part>,
    at: u64,
    to: u64,
    open: Option<(Box<dyn Read + Send>, Part)>,
    passed: Passed,
}

impl JoinedRead {
    /// Opens the next part and goes to where reading begins in it.
    fn next_part(&mut self) -> io::Result<bool> {
        let Some(part) = self.parts.pop() else { return Ok(false) };
        let skip = self.at.saturating_sub(part.at);
        if skip > 0
            && part.is_plain
            && let Some(open) = part.opener.open_at(skip)?
        {
            self.open = Some((open, part));
            return Ok(true);
        }
        let mut open = OpenInput::new(part.name.clone(), part.opener.open()?, part.modified_ns);
        io::copy(&mut (&mut open).take(skip), &mut io::sink())?;
        self.open = Some((Box::new(open), part));
        Ok(true)
    }
}

impl Read for JoinedRead {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.at >= self.to || out.is_empty() {
                return Ok(0);
            }
            let Some((open, part)) = &mut self.open else {
                if self.next_part()? {
                    continue;
                }
                return Ok(0);
            };
            let (end, left) = (part.at + part.bytes, self.to - self.at);
            let room = usize::try_from(left.min(end.saturating_sub(self.at))).unwrap_or(usize::MAX).min(out.len());
            let space = out.get_mut(..room).unwrap_or_default();
            let n = if space.is_empty() { 0 } else { open.read(space)? };
            self.at += n as u64;
            if n > 0 {
                self.passed.add(n);
                return Ok(n);
            }
            // It may have become shorter since it was looked at: places behind it stay what they were.
            let is_closed = part.is_closed;
            self.at = self.at.max(end);
            self.open = None;
            if is_closed {
                self.at += 1;
                if let Some(first) = out.first_mut() {
                    *first = b'\n';
                }
                return Ok(1);
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::Joined;
    use crate::input::packed::{Memory, Opener};
    use crate::input::rotation::rotated;
    use crate::model::options::ReadOptions;
    use crate::scan::items::Item;
    use crate::scan::lot::{FileLines, line_of};
    use crate::scan::source::{Passed, Place, StoredFile, Way};
    use crate::scan::survey::survey;
    use std::io::Read;
    use std::sync::Arc;

    fn item(name: &str, text: &[u8]) -> Item {
        let opener: Arc<dyn Opener> = Arc::new(Memory(text.to_vec()));
        let survey = survey(name, None, &opener, &ReadOptions::default(), &|| false);
        let folder = String::new();
        Item {
            name: name.into(),
            folder,
            rotated: rotated(name),
            modified_ns: None,
            opener,
            way: Way::File,
            file: StoredFile {
                name: name.into(),
                place: Place::Path(name.into()),
                bytes: text.len() as u64,
                modified_ns: None,
                found: true,
            },
            container: None,
            survey,
            found: true,
        }
    }

    fn line(second: u32) -> String {
        format!("10.0.0.1 - - [05/Oct/2026:12:00:{second:02} +0000] \"POST /mcp HTTP/1.1\" 200 17 \"-\" \"x/1\"\n")
    }

    fn read(joined: &Joined, from: u64, to: u64) -> String {
        let mut out = String::new();
        joined.range(from, to, &Passed::default()).open().unwrap().read_to_string(&mut out).unwrap();
        out
    }

    #[test]
    fn files_are_one_log_and_lines_keep_their_places() {
        let all: Vec<String> = (0..9).map(line).collect();
        let text = all.concat();
        let gz = |bytes: &[u8]| zstd::stream::encode_all(bytes, 1).unwrap();
        // Cut within a line, at a line's end, and where only the line end is missing.
        let (a, rest) = text.split_at(all[0].len() * 2 + 30);
        let (b, c) = rest.split_at(all[0].len() * 4 - 30);
        let b = b.trim_end();
        let items = [item("l.2.zst", &gz(a.as_bytes())), item("l.1", b.as_bytes()), item("l", c.as_bytes())];
        let joined = Joined::new(&items.iter().collect::<Vec<_>>());
        assert_eq!(joined.bytes(), text.len() as u64);
        assert_eq!(read(&joined, 0, u64::MAX), text);
        for from in (0..text.len()).step_by(37) {
            for to in (from..text.len()).step_by(53) {
                assert_eq!(read(&joined, from as u64, to as u64), text[from..to]);
            }
        }
        let files = joined.files();
        let name = |f: Option<&FileLines>| f.unwrap().name.clone();
        let places: Vec<(String, u64)> = (1..=9).map(|l| line_of(&files, l)).map(|(f, l)| (name(f), l)).collect();
        let wanted = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (1, 4), (2, 1), (2, 2), (2, 3)];
        assert_eq!(places, wanted.map(|(f, l): (usize, u64)| (items[f].name.clone(), l)));
    }
}
