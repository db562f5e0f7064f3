//! What is to be looked at.

use super::{FileLine, Line, Look};
use crate::input::objects;
use crate::input::rotation::rotated;
use crate::scan::Options;
use crate::scan::plan::Plan;
use crate::scan::source::StoredFile;
use crate::scan::walk;
use anyhow::{bail, ensure};

/// Looks for all files of the options' paths, or for those that are `given` instead; large ones that may be
/// logs in stretches of `split` bytes.
pub fn list(options: &Options, given: Vec<FileLine>, split: u64) -> Vec<Line> {
    let mut plan = Plan::default();
    let (mut files, mut out) = (vec![], vec![]);
    if given.is_empty() {
        let listing = walk::list(&options.paths, options.out.as_deref());
        out.extend(listing.troubles.into_iter().map(Line::Trouble));
        let (secret, open): (Vec<_>, Vec<_>) = listing.files.into_iter().partition(|f| f.place.has_secret());
        out.extend(secret.iter().map(|f| Line::Trouble(secret_of(&f.name))));
        files.extend(open);
    }
    let at: Vec<FileLine> = given;
    files.extend(at.iter().map(FileLine::stored));
    files.sort_by(|a: &StoredFile, b| a.name.cmp(&b.name));
    files.dedup_by(|a, b| a.name == b.name);
    // Those that are left out are named again by the plan, which sees all.
    let all: Vec<FileLine> = files.iter().map(FileLine::of).collect();
    let kept = plan.wanted(files, options);
    let is_kept = |f: &FileLine| kept.binary_search_by(|k| k.name.cmp(&f.name)).is_ok();
    for file in all {
        if !is_kept(&file) {
            out.push(Line::Look(Look { file, bytes: Some((0, 0)) }));
            continue;
        }
        let file = FileLine { at: at.iter().find(|f| f.name == file.name).and_then(|f| f.at.clone()), ..file };
        if file.bytes <= split || split == 0 || !may_be_log(&file.name) {
            out.push(Line::Look(Look { file, bytes: None }));
            continue;
        }
        let mut start = 0;
        while start < file.bytes {
            let end = (start + split).min(file.bytes);
            out.push(Line::Look(Look { file: file.clone(), bytes: Some((start, end)) }));
            start = end;
        }
    }
    out
}

/// A line of plain text: a name, or a name and two bytes, separated by tabs.
///
/// # Errors
/// If it is no such line, or there is no such file.
pub fn given(line: &str) -> anyhow::Result<Look> {
    let mut parts = line.split('\t');
    let name = parts.next().unwrap_or_default();
    let file = if objects::is_url(name) { object(name)? } else { on_disk(name)? };
    let mut number = || {
        parts.next().filter(|p| !p.is_empty()).map(|p| {
            p.parse::<u64>()
                .map_err(|_| anyhow::anyhow!("{line:?}: expected a name, or a name and two numbers of bytes"))
        })
    };
    let (start, end) = (number().transpose()?, number().transpose()?);
    let bytes = start.or(end).map(|_| (start.unwrap_or(0), end.unwrap_or(file.bytes).min(file.bytes)));
    Ok(Look { file, bytes })
}

fn on_disk(name: &str) -> anyhow::Result<FileLine> {
    let meta = std::fs::metadata(name).map_err(|e| anyhow::anyhow!("{name}: {e}"))?;
    let modified = meta.modified().ok().and_then(|t| t.duration_since(std::time::UNIX_EPOCH).ok());
    let modified_ns = modified.and_then(|d| i64::try_from(d.as_nanos()).ok());
    Ok(FileLine { name: name.to_owned(), bytes: meta.len(), modified_ns, tag: None, found: false, at: None })
}

fn object(url: &str) -> anyhow::Result<FileLine> {
    let found = objects::list(url);
    if let Some(why) = found.troubles.into_iter().next() {
        bail!(why);
    }
    let mut named = found.objects.into_iter().filter(|(_, is_found)| !is_found);
    let Some((object, _)) = named.next() else {
        bail!("{}: expected the URL of one object; `crosswire map list` lists those of a prefix", objects::shown(url));
    };
    ensure!(!object.has_secret, secret_of(&object.name));
    Ok(FileLine::of(&StoredFile::of(object, false)))
}

/// Whoever does a task knows only the lines it is given, and these hold no secrets.
fn secret_of(name: &str) -> String {
    format!(
        "{name}: what the URL has beside this is not passed on from step to step; `crosswire scan` reads it, or name a copy"
    )
}

/// Captures and archives have names by which they are not cut; what a name hides is found by the look.
fn may_be_log(name: &str) -> bool {
    let of = rotated(name);
    let file = of.stem.rsplit('/').next().unwrap_or_default();
    let is_other = |end: &str| matches!(end, "pcap" | "pcapng" | "cap" | "tar" | "tgz" | "zip" | "har" | "journal");
    of.compression.is_none() && !file.split('.').skip(1).any(is_other)
}
