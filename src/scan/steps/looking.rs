//! A look at a file, or a stretch of one.

use super::{FileLine, Line, Look};
use crate::scan::Options;
use crate::scan::items::{Looked, Looking};
use crate::scan::source::Passed;
use crate::scan::stretch;

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
    let Some((start, end)) = look.bytes else {
        return Ok(Some(Line::Looked(file, looking.look(&stored))));
    };
    if end == 0 {
        // It is left out; the plan wants to know that it is there.
        return Ok(Some(Line::Looked(file, Looked::default())));
    }
    let blob = stored.place.blob()?;
    let Some((format, head)) = stretch::format_of(&stored.name, &blob, &options.read) else {
        return Ok((start == 0).then(|| Line::Looked(file, looking.look(&stored))));
    };
    let part = stretch::look(&stored.name, stored.modified_ns, &*blob, (format, &head), (start, end), &options.read)?;
    Ok(Some(Line::Part(file, part)))
}
