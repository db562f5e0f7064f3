//! The format that `--log-format` describes, for the inputs that it is meant for.

use super::format_string::{self, FormatError};
use super::layout;
use super::{Format, Grade, LineReader, LogContext, Reader, RecordSink};
use crate::input::detect::same_file;
use crate::model::options::ReadOptions;
use crate::model::place::{Place, Vantage};
use crate::model::problem::ProblemKind;

/// The format of the described log.
pub static FORMAT: Format = Format {
    name: "log-format",
    vantage: Vantage::Proxy,
    doc: "A log in the layout that --log-format gives: an nginx log_format, an Apache LogFormat, a HAProxy or Envoy \
          format string, or a mapping of JSON keys. Lines that do not fit are tried in the known layouts, and counted \
          where they fit none.",
    samples: &[],
    grade: |_| Grade::No,
    reader: Reader::Lines(new),
};

/// The format string that the user bound to the input of this name (`--input-format NAME:PATH`
/// with `--log-format NAME=STRING`).
pub fn bound<'o>(name: &str, options: &'o ReadOptions) -> Option<&'o str> {
    let format = options.input_formats.iter().find(|(_, path)| same_file(path, name)).map(|(format, _)| format);
    let format = format.or(options.input_format.as_ref())?;
    options.log_formats.iter().find(|(n, _)| n == format).map(|(_, string)| string.as_str())
}

/// Does the bare `--log-format` hold for an input that begins with `head`, whose own format is no
/// more certain than `own`? It does where it reads any of the first lines.
///
/// # Errors
/// The format string cannot be compiled.
pub fn holds(head: &[u8], own: Grade, options: &ReadOptions) -> Result<bool, FormatError> {
    let Some(string) = options.log_format.as_deref().filter(|_| own < Grade::Certain) else {
        return Ok(false);
    };
    let mut format = format_string::compile(string)?;
    Ok(layout::share(head, &mut format).own > 0)
}

fn new(context: &LogContext<'_>) -> Box<dyn LineReader> {
    let string = bound(context.name, context.options).or(context.options.log_format.as_deref()).unwrap_or_default();
    match format_string::compile(string) {
        Ok(format) => format_string::reader(format, context),
        Err(error) => Box::new(Unreadable { input: context.input, what: error.to_string() }),
    }
}

/// Counts the lines of a log whose format string is no good.
struct Unreadable {
    input: u32,
    what: String,
}

impl LineReader for Unreadable {
    fn line(&mut self, _: &[u8], number: u64, out: &mut dyn RecordSink) {
        out.entry(None);
        out.problem(ProblemKind::UnknownLine, Place::line(self.input, number), &self.what);
    }

    fn finish(&mut self, _: &mut dyn RecordSink) {}
}
