//! A look at a file, or a stretch of one.

use super::{FileLine, Line, Look};
use crate::scan::Options;
use crate::scan::items::{Looked, Looking};
use crate::scan::source::Passed;
use crate::scan::stretch;
use anyhow::{Context, anyhow};

/// What is there. Of a file that is not looked at in stretches, the look at the first one is that of the whole, and
/// the others say nothing.
///
/// # Errors
/// Where reading fails: whoever runs this may try again.
pub fn look(look: &Look, options: &Options) -> anyhow::Result<Option<Line>> {
    let never = || false;
    let looking =
        Looking { options: &options.read, folder: options.temporary(), passed: Passed::default(), stop: &never };
    let stored = look.file.stored();
    let file = FileLine { at: None, ..look.file.clone() };
    let there = || stored.place.failure().map_or(Ok(()), |why| Err(anyhow!("{}: {why}", stored.name)));
    let whole = || {
        let looked = looking.look(&stored);
        there()?;
        Ok(Some(Line::Looked(file.clone(), looked)))
    };
    let Some((start, end)) = look.bytes else { return whole() };
    if end == 0 {
        // It is left out; the plan wants to know that it is there.
        return Ok(Some(Line::Looked(file, Looked::default())));
    }
    let blob = stored.place.blob()?;
    let format = stretch::format_of(&stored.name, &blob, &options.read);
    there()?;
    let Some((format, head)) = format else {
        return if start == 0 { whole() } else { Ok(None) };
    };
    let part = stretch::look(&stored.name, stored.modified_ns, &*blob, (format, &head), (start, end), &options.read)
        .with_context(|| stored.name.clone())?;
    Ok(Some(Line::Part(file, part)))
}
