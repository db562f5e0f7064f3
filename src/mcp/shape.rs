//! The shape of a result: which key paths it has and of which JSON types. Tools differ in shape
//! even where nothing of the arguments is echoed.

use super::scan::{self, Cursor};
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};

/// Most paths that one shape keeps; a result with more is summarised by its first ones.
const PATHS: usize = 512;
/// Deepest nesting that is looked at.
const DEPTH: usize = 12;

/// Number of an interned shape; equal numbers are equal shapes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ShapeId(pub u32);

/// All shapes met, each once.
#[derive(Debug, Default)]
pub struct Shapes {
    ids: FxHashMap<Box<[u64]>, ShapeId>,
    all: Vec<Box<[u64]>>,
    scratch: Vec<u64>,
}

impl Shapes {
    /// The shape of a `result` (exact JSON text). JSON inside a text block counts as structure,
    /// since many tools return their document as text.
    pub fn of(&mut self, result: &[u8]) -> ShapeId {
        let mut paths = std::mem::take(&mut self.scratch);
        paths.clear();
        walk(&mut Cursor::new(result), 0, 0, &mut paths);
        paths.sort_unstable();
        paths.dedup();
        let id = match self.ids.get(paths.as_slice()) {
            Some(id) => *id,
            None => {
                let id = ShapeId(u32::try_from(self.all.len()).unwrap_or(u32::MAX));
                let shape: Box<[u64]> = paths.as_slice().into();
                self.ids.insert(shape.clone(), id);
                self.all.push(shape);
                id
            }
        };
        self.scratch = paths;
        id
    }

    /// The hashed paths of a shape, sorted.
    pub fn paths(&self, id: ShapeId) -> &[u64] {
        self.all.get(id.0 as usize).map_or(&[], |s| s)
    }
}

/// Goes over one value, its members in the same pass. None: it is no JSON.
fn walk(c: &mut Cursor<'_>, path: u64, depth: usize, out: &mut Vec<u64>) -> Option<()> {
    if depth > DEPTH || out.len() >= PATHS * 8 {
        return c.value().map(drop);
    }
    let kind = match c.peek()? {
        b'{' => 1u8,
        b'[' => 2,
        b'"' => 3,
        b't' | b'f' => 4,
        // A null stands for a value of any type, so it tells nothing.
        b'n' => return word(c.value()?),
        _ => 5,
    };
    let here = step(path, &[kind]);
    if !out.contains_recent(here) {
        out.push(here);
    }
    match kind {
        1 => scan::walk_object(c, &mut |c, key| walk(c, step(here, key), depth + 1, out)),
        2 => scan::walk_array(c, &mut |c| walk(c, here, depth + 1, out)),
        3 => {
            let value = c.value()?;
            if matches!(value.get(1), Some(b'{' | b'[')) {
                inside(value, here, depth, out);
            }
            Some(())
        }
        _ => word(c.value()?),
    }
}

/// JSON inside a string counts as structure; text that only begins like it does not.
fn inside(value: &[u8], here: u64, depth: usize, out: &mut Vec<u64>) {
    let Some(text) = scan::text(value) else { return };
    let before = out.len();
    let mut c = Cursor::new(text.as_bytes());
    if walk(&mut c, step(here, b"json"), depth + 1, out).is_none() || !c.at_end() {
        out.truncate(before);
    }
}

/// A number or a name that JSON knows.
fn word(value: &[u8]) -> Option<()> {
    let known = matches!(value, b"true" | b"false" | b"null");
    (known || std::str::from_utf8(value).ok()?.parse::<f64>().is_ok()).then_some(())
}

fn step(path: u64, name: &[u8]) -> u64 {
    let mut h = FxHasher::default();
    (path, name).hash(&mut h);
    h.finish().rotate_left(23) ^ path
}

/// What a result holds that has nothing but text.
#[derive(Debug)]
pub struct Plain {
    shape: Vec<u64>,
}

impl Default for Plain {
    fn default() -> Plain {
        let mut shapes = Shapes::default();
        let id = shapes.of(br#"{"content":[{"type":"text","text":"a"}],"isError":false,"_meta":{}}"#);
        Plain { shape: shapes.paths(id).to_vec() }
    }
}

impl Plain {
    /// Has a shape no path beyond those of plain text?
    pub fn is_at_most(&self, shape: &[u64]) -> bool {
        shape.iter().all(|p| self.shape.binary_search(p).is_ok())
    }
}

/// Long arrays repeat their elements' paths; looking back a little keeps the list short.
trait Recent {
    fn contains_recent(&self, path: u64) -> bool;
}
impl Recent for Vec<u64> {
    fn contains_recent(&self, path: u64) -> bool {
        self.iter().rev().take(24).any(|p| *p == path)
    }
}

/// What is known of the results of one tool: paths that all of them had, and paths that any had.
#[derive(Clone, Debug, Default)]
pub struct Learnt {
    /// Uncontested replies that this was learnt from.
    pub replies: u32,
    always: Vec<u64>,
    ever: Vec<u64>,
}

/// Uncontested replies needed before a tool's shape counts (the contract's "at least 3").
pub const LEARNT_FROM: u32 = 3;

impl Learnt {
    /// Adds one uncontested reply of the tool.
    pub fn learn(&mut self, shape: &[u64]) {
        if self.replies == 0 {
            self.always = shape.to_vec();
            self.ever = shape.to_vec();
        } else {
            self.always.retain(|p| shape.binary_search(p).is_ok());
            for p in shape {
                if let Err(at) = self.ever.binary_search(p)
                    && self.ever.len() < PATHS * 8
                {
                    self.ever.insert(at, *p);
                }
            }
        }
        self.replies = self.replies.saturating_add(1);
    }

    /// Is enough known to say anything?
    pub fn is_known(&self) -> bool {
        self.replies >= LEARNT_FROM
    }

    /// Has the shape a path that no reply of the tool had? One that only lacks some may be an empty or
    /// short reply of the same tool.
    pub fn lacks_path_of(&self, shape: &[u64]) -> bool {
        shape.iter().any(|p| self.ever.binary_search(p).is_err())
    }

    /// Does a reply of this shape look like the tool's? None: not enough known.
    pub fn fits(&self, shape: &[u64]) -> Option<bool> {
        if !self.is_known() {
            return None;
        }
        let all = self.always.iter().all(|p| shape.binary_search(p).is_ok());
        Some(all && shape.iter().all(|p| self.ever.binary_search(p).is_ok()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_paths_are_one_shape() {
        let mut s = Shapes::default();
        let a = s.of(br#"{"content":[{"type":"text","text":"a"}],"structuredContent":{"x":1,"l":[{"k":1},{"k":2}]}}"#);
        let b = s.of(br#"{"structuredContent":{"l":[{"k":9}],"x":7},"content":[{"text":"zz","type":"text"}]}"#);
        let c = s.of(br#"{"content":[{"type":"text","text":"a"}],"structuredContent":{"y":1}}"#);
        assert_eq!(a, b);
        assert_ne!(a, c);
    }

    #[test]
    fn json_in_text_counts() {
        let mut s = Shapes::default();
        let a = s.of(br#"{"content":[{"type":"text","text":"{\"x\":1}"}]}"#);
        let b = s.of(br#"{"content":[{"type":"text","text":"{\"y\":1}"}]}"#);
        let c = s.of(br#"{"content":[{"type":"text","text":"{y: no json}"}]}"#);
        assert_ne!(a, b);
        assert_ne!(b, c);
    }

    #[test]
    fn optional_keys_are_learnt() {
        let mut s = Shapes::default();
        let mut l = Learnt::default();
        let a = s.of(br#"{"a":1,"b":2}"#);
        let b = s.of(br#"{"a":1}"#);
        let c = s.of(br#"{"c":1}"#);
        l.learn(s.paths(a));
        l.learn(s.paths(b));
        assert_eq!(l.fits(s.paths(a)), None);
        l.learn(s.paths(a));
        assert_eq!(l.fits(s.paths(b)), Some(true));
        assert_eq!(l.fits(s.paths(c)), Some(false));
    }
}
