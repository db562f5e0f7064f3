//! Checks a bundle against its manifest, to the last byte.

use super::manifest::{MANIFEST_HASH, Manifest};
use super::sha256;
use crate::input::bundle::{MANIFEST, SCHEMA};
use crate::input::tar_zst::{self, Piece, Seal, Tar};
use crate::input::zip::{self, ArchiveError, Member, Zip};
use rustc_hash::FxHashSet;
use std::ops::Range;

/// What was found.
#[derive(Debug, Default)]
pub struct Verified {
    /// Members that are as they were written.
    pub whole: u64,
    /// What differs, one sentence each.
    pub differs: Vec<String>,
    /// The manifest, where it can be read.
    pub manifest: Option<Manifest>,
}

/// Checks the bytes of a bundle.
///
/// # Errors
/// [`ArchiveError::Damaged`] if it is no bundle, [`ArchiveError::Unsafe`] if it is made to harm.
pub fn verify(file: Vec<u8>) -> Result<Verified, ArchiveError> {
    let begins_as_zip = file.starts_with(b"PK");
    if file.starts_with(tar_zst::MAGIC) || (!begins_as_zip && tar_zst::seal(&file) != Seal::None) {
        return verify_tar(&file);
    }
    if !begins_as_zip && memchr::memmem::find(&file, MANIFEST.as_bytes()).is_none() {
        return Err(ArchiveError::Damaged("no ZIP archive and no .tar.zst".to_owned()));
    }
    let mut out = Verified::default();
    let (zip, damage) = match Zip::new(file.clone()) {
        Ok(zip) => (zip, None),
        Err(ArchiveError::Damaged(why)) => (Zip { file, members: vec![] }, Some(why)),
        Err(refused) => return Err(refused),
    };
    if damage.is_none() && zip.find(MANIFEST).is_none() && first_member(&zip.file).is_none() {
        return Err(ArchiveError::Damaged("an archive without the manifest of an evidence bundle".to_owned()));
    }
    out.differs.extend(damage);
    let Some(text) = manifest_text(&zip) else {
        out.differs.push(format!("{MANIFEST}: cannot be found"));
        return Ok(out);
    };
    let Some(manifest) = parse(&text, &mut out)? else { return Ok(out) };
    let before = out.differs.len();
    layout(&zip.file, &text, &manifest, &mut out);
    // Another program packs every member in its own way: then only contents can be compared.
    if !zip.members.is_empty() && out.differs.len() - before > manifest.members.len() {
        out.differs.truncate(before);
        out.differs.push("the archive was packed anew by another program; its contents were compared".to_owned());
        let hash = zip.find(MANIFEST_HASH).and_then(|m| zip.read(m).ok());
        if hash.is_none_or(|h| h.trim_ascii() != sha256(&text).as_bytes()) {
            out.differs.push(format!("{MANIFEST}: its SHA-256 is not what {MANIFEST_HASH} says"));
        }
    }
    if !zip.members.is_empty() {
        let names: Vec<&str> = zip.members.iter().map(|m| m.name.as_str()).collect();
        let read = |name: &str| zip.find(name).map(|m| zip.read(m)).transpose();
        contents(&names, read, &manifest, &mut out);
    }
    Ok(out.told(manifest))
}

impl Verified {
    /// With the manifest, each difference once, and the members counted that none touches.
    fn told(mut self, manifest: Manifest) -> Verified {
        let mut seen = FxHashSet::default();
        self.differs.retain(|d| seen.insert(d.clone()));
        let touched = |name: &str| self.differs.iter().any(|d| d.split_once(": ").is_some_and(|(n, _)| n == name));
        self.whole = manifest.members.iter().filter(|m| !touched(&m.name)).count() as u64;
        self.manifest = Some(manifest);
        self
    }
}

/// A bundle whose members are zstd frames.
fn verify_tar(file: &[u8]) -> Result<Verified, ArchiveError> {
    let mut out = Verified::default();
    let pieces = tar_zst::pieces(file)?;
    let damaged: Vec<_> = pieces.iter().filter(|p| !p.is_whole).collect();
    let tar = if damaged.is_empty() {
        Tar::new(pieces.iter().flat_map(|p| &p.bytes).copied().collect())
    } else {
        Tar::salvaged(&pieces)
    };
    let seal = tar_zst::seal(file);
    let tar = match tar {
        Err(ArchiveError::Damaged(why)) if seal != Seal::Whole => {
            out.differs.push(why);
            Tar::salvaged(&pieces)?
        }
        other => other?,
    };
    let Some(text) = tar.read(MANIFEST) else {
        if out.differs.is_empty() && damaged.is_empty() {
            return Err(ArchiveError::Damaged("an archive without the manifest of an evidence bundle".to_owned()));
        }
        out.differs.extend(damaged.iter().map(|p| cannot_be_unpacked(&p.place, p.name())));
        let others: Vec<String> = tar.names().map(|n| n.escape_debug().to_string()).collect();
        out.differs.push(format!(
            "{MANIFEST}: can no longer be read, so that nothing else can be checked; still to be unpacked: {}",
            if others.is_empty() { "nothing".to_owned() } else { others.join(", ") }
        ));
        return Ok(out);
    };
    let Some(manifest) = parse(text, &mut out)? else { return Ok(out) };
    let is_cut = !out.differs.is_empty() || !damaged.is_empty();
    for piece in damaged {
        let names =
            if let Some(name) = piece.name() { vec![name] } else { standing_at(&piece.place, &pieces, &manifest) };
        out.differs.extend(names.iter().map(|name| cannot_be_unpacked(&piece.place, Some(name))));
        if names.is_empty() {
            // What is left over of a frame whose head says that it is shorter.
            let before = pieces.iter().rfind(|p| p.place.end <= piece.place.start).and_then(|p| p.name());
            let behind = before.map_or(String::new(), |n| format!(", behind {}", n.escape_debug()));
            out.differs.push(cannot_be_unpacked(&piece.place, None) + &behind);
        }
    }
    match tar.read(MANIFEST_HASH) {
        Some(hash) if hash.trim_ascii() == sha256(text).as_bytes() => {}
        None if is_cut => out.differs.push(format!("{MANIFEST_HASH}: can no longer be read")),
        _ => out.differs.push(format!("{MANIFEST}: its SHA-256 is not what {MANIFEST_HASH} says")),
    }
    let frames: FxHashSet<String> = pieces.iter().filter_map(|p| file.get(p.place.clone())).map(sha256).collect();
    let changed: Vec<_> = manifest.members.iter().filter(|m| !frames.contains(&m.packed_sha256)).collect();
    let is_anew = changed.len() == manifest.members.len();
    if is_anew {
        out.differs.push("the archive was packed anew by another program; its contents were compared".to_owned());
    } else {
        out.differs.extend(changed.iter().map(|m| format!("{}: its bytes in the archive differ", m.name)));
    }
    let read = |name: &str| match tar.read(name) {
        None if is_cut => Err(ArchiveError::Damaged(format!("{name}: can no longer be read"))),
        found => Ok(found.map(<[u8]>::to_vec)),
    };
    let names: Vec<&str> = tar.names().collect();
    contents(&names, read, &manifest, &mut out);
    if seal != Seal::Whole && out.differs.is_empty() {
        out.differs.push(format!(
            "all members are whole, but how {MANIFEST} or {MANIFEST_HASH} are packed, or the SHA-256 at the end of the file, differs"
        ));
    }
    Ok(out.told(manifest))
}

fn cannot_be_unpacked(place: &Range<usize>, name: Option<&str>) -> String {
    let name = name.map_or(String::new(), |n| format!("{}: ", n.escape_debug()));
    format!("{name}bytes {} to {} of the file cannot be unpacked", place.start, place.end - 1)
}

/// The members that crosswire wrote there.
fn standing_at<'a>(place: &Range<usize>, pieces: &[Piece], manifest: &'a Manifest) -> Vec<&'a str> {
    let mut at = pieces.iter().find(|p| p.name() == Some(MANIFEST)).map_or(0, |p| p.place.end);
    let mut out = vec![];
    for m in &manifest.members {
        let end = at.saturating_add(m.packed_bytes as usize);
        if at < place.end && place.start < end {
            out.push(m.name.as_str());
        }
        at = end;
    }
    out
}

/// Reads the manifest; what cannot be read is told.
fn parse(text: &[u8], out: &mut Verified) -> Result<Option<Manifest>, ArchiveError> {
    let manifest: Manifest = match serde_json::from_slice(text) {
        Ok(manifest) => manifest,
        Err(e) => {
            out.differs.push(format!("{MANIFEST}: cannot be read: {e}"));
            return Ok(None);
        }
    };
    if manifest.schema != SCHEMA {
        out.differs.push(format!("{MANIFEST}: its schema is {}, expected {SCHEMA}", manifest.schema));
    }
    let mut names = FxHashSet::default();
    for member in &manifest.members {
        if zip::leads_out(&member.name) || !names.insert(member.name.to_lowercase()) {
            let name = member.name.escape_debug();
            return Err(ArchiveError::Unsafe(format!(
                "{name}: the manifest names it twice, or with a path that leads out"
            )));
        }
    }
    Ok(Some(manifest))
}

/// The manifest stands first in what crosswire writes; its length is in its header.
fn first_member(file: &[u8]) -> Option<&[u8]> {
    let head = file.get(..30)?;
    let length = u32::from_le_bytes(head.get(18..22)?.try_into().ok()?) as usize;
    let start = 30 + MANIFEST.len();
    (file.get(30..start)? == MANIFEST.as_bytes()).then(|| file.get(start..start.checked_add(length)?))?
}

fn manifest_text(zip: &Zip) -> Option<Vec<u8>> {
    let listed = zip.find(MANIFEST).and_then(|m| zip.packed(m).and_then(|r| zip::unpack(m, zip.file.get(r)?).ok()));
    listed.or_else(|| first_member(&zip.file).map(<[u8]>::to_vec))
}

/// Compares with what crosswire would have written for this manifest, byte by byte.
fn layout(file: &[u8], text: &[u8], manifest: &Manifest, out: &mut Verified) {
    let hash = format!("{}\n", sha256(text));
    let stored = |name: &str, data: &[u8]| {
        let mut crc = flate2::Crc::new();
        crc.update(data);
        let bytes = data.len() as u32;
        Member { name: name.to_owned(), method: 0, crc: crc.sum(), packed: bytes, bytes, offset: 0 }
    };
    let mut members = vec![(stored(MANIFEST, text), sha256(text))];
    for m in &manifest.members {
        let (name, method, crc) = (m.name.clone(), m.method, m.crc32);
        let member = Member { name, method, crc, packed: m.packed_bytes, bytes: m.bytes, offset: 0 };
        members.push((member, m.packed_sha256.clone()));
    }
    members.push((stored(MANIFEST_HASH, hash.as_bytes()), sha256(hash.as_bytes())));
    let mut at = 0usize;
    let mut placed = vec![];
    for (mut member, packed_sha256) in members {
        member.offset = at as u32;
        let header = member.local_header();
        if file.get(at..at.saturating_add(header.len())) != Some(&header) {
            out.differs.push(format!("{}: its header in the archive differs", member.name));
        }
        at = at.saturating_add(header.len());
        let end = at.saturating_add(member.packed as usize);
        if file.get(at..end).map(sha256).as_ref() != Some(&packed_sha256) {
            out.differs.push(format!("{}: its bytes in the archive differ", member.name));
        }
        at = end;
        placed.push(member);
    }
    let directory = zip::directory(&placed, at as u32);
    let rest = file.get(at..).unwrap_or_default();
    if !rest.starts_with(&directory) {
        out.differs.push("the archive's directory differs".to_owned());
    } else if rest.len() > directory.len() {
        out.differs.push(format!("{} bytes stand behind the archive", rest.len() - directory.len()));
    }
}

/// Compares each member's bytes, wherever the archive's own directory says that it is.
fn contents(
    names: &[&str],
    read: impl Fn(&str) -> Result<Option<Vec<u8>>, ArchiveError>,
    manifest: &Manifest,
    out: &mut Verified,
) {
    for m in &manifest.members {
        match read(&m.name) {
            Ok(None) => out.differs.push(format!("{}: is missing", m.name)),
            Ok(Some(bytes)) if sha256(&bytes) == m.sha256 => {}
            Ok(Some(_)) => out.differs.push(format!("{}: its SHA-256 differs", m.name)),
            Err(e) => out.differs.push(e.to_string()),
        }
    }
    for name in names {
        let is_known = matches!(*name, MANIFEST | MANIFEST_HASH) || manifest.members.iter().any(|m| m.name == *name);
        if !is_known {
            out.differs.push(format!("{}: is not in the manifest", name.escape_debug()));
        }
    }
}
