//! The format that `--log-format` describes, for the inputs that it is meant for.

use super::format_string::{self, FormatError};
use super::layout::{self, Layout};
use super::{Format, Grade, LineReader, LogContext, Reader, RecordSink};
use crate::input::detect::same_file;
use crate::model::options::ReadOptions;
use crate::model::place::{Place, Vantage};
use crate::model::problem::ProblemKind;

/// The format of the described log.
pub static FORMAT: Format = Format {
    name: "log-format",
    vantage: Vantage::Proxy,
    carries: false,
    doc: "A log in the layout that --log-format gives: an nginx log_format, an Apache LogFormat, a HAProxy or Envoy \
          format string, or a mapping of JSON keys. Lines that do not fit are tried in the known layouts, and counted \
          where they fit none. In a journal or a container's log each message is tried in it first; such a log keeps its \
          own format.",
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
    let Some(string) = options.log_format.as_deref() else { return Ok(false) };
    let mut format = format_string::compile(string)?;
    Ok(own < Grade::Certain && layout::share(head, &mut format).own > 0)
}

/// Are the lines of a format that was bound to an input that begins with `head` themselves inside
/// `own`, the format of a journal or a container's log? They are where none of the first lines is
/// of the bound format as it stands.
///
/// # Errors
/// The format string cannot be compiled.
pub fn lies_within(own: &Format, head: &[u8], string: &str) -> Result<bool, FormatError> {
    let mut format = format_string::compile(string)?;
    Ok(own.carries && !layout::reads_any(head, &mut format))
}

/// The layout that the user described for the messages of an input, and whether it was bound to it.
pub(super) fn layout(context: &LogContext<'_>) -> Option<(Box<dyn Layout>, bool)> {
    let bound = bound(context.name, context.options);
    let format = format_string::compile(bound.or(context.options.log_format.as_deref())?).ok()?;
    Some((Box::new(format), bound.is_some()))
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

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use crate::input::detect::{Detected, detect};
    use crate::input::log::testing::{Collected, read};
    use crate::model::options::ReadOptions;
    use crate::model::problem::ProblemKind;
    use crate::model::record::When;

    const STRING: &str = "$remote_addr|$msec|\"$request\"|$status|$body_bytes_sent|$http_mcp_session_id|$request_time";
    const LINES: [&str; 3] = [
        "192.0.2.7|1795981839.700|\"POST /mcp HTTP/1.1\"|200|12|abc1|0.250",
        "INFO:     127.0.0.1:38110 - \"POST /mcp HTTP/1.1\" 200 OK",
        "192.0.2.7 said \"POST /mcp HTTP/1.1\" and got 502",
    ];

    /// Each line as a log of containers has it.
    fn carried(by: &str) -> String {
        let one = |line: &&str| match by {
            "docker-json" => format!(
                "{{\"log\":{},\"stream\":\"stdout\",\"time\":\"2026-11-29T19:50:39.8Z\"}}\n",
                serde_json::to_string(&format!("{line}\n")).unwrap()
            ),
            "cri" => format!("2026-11-29T19:50:39.800000000Z stdout F {line}\n"),
            "container-timestamps" => format!("2026-11-29T19:50:39.800000000Z {line}\n"),
            "compose" => format!("web-1  | {line}\n"),
            _ => format!("2026-11-29T19:50:39.800000+0000 web web[7]: {line}\n"),
        };
        LINES.iter().map(one).collect()
    }

    fn told(by: &str, options: &ReadOptions) -> Collected {
        let text = carried(by);
        match detect("web.log", text.as_bytes(), options) {
            Ok(Detected::Log(format, _)) if format.name == by => read(format, text.as_bytes(), options),
            other => panic!("{by}: {other:?}"),
        }
    }

    fn at(when: Option<When>) -> String {
        when.map_or_else(String::new, |w| w.at.to_string())
    }

    const CARRIERS: [&str; 5] = ["docker-json", "cri", "container-timestamps", "compose", "journal-short"];

    #[test]
    fn a_described_line_is_read_inside_the_logs_of_containers_and_journals() {
        let options = ReadOptions { log_format: Some(STRING.to_owned()), ..ReadOptions::default() };
        for by in CARRIERS {
            let out = told(by, &options);
            let line = out.accesses()[0];
            assert_eq!(
                (at(line.start), at(line.end)),
                ("2026-11-29T19:50:39.450Z".into(), "2026-11-29T19:50:39.700Z".into()),
                "{by}"
            );
            assert_eq!((line.status, line.session.as_deref()), (Some(200), Some("abc1")), "{by}");
            assert_eq!((out.entries.len(), out.accesses().len()), (3, 2), "{by}");
            let faults: Vec<_> = out.faults().iter().map(|(kind, line, _)| (*kind, *line)).collect();
            assert_eq!(faults, [(ProblemKind::UnknownLine, 3)], "{by}");
        }
    }

    #[test]
    fn requests_of_no_known_layout_are_counted_inside_containers() {
        for by in CARRIERS {
            let out = told(by, &ReadOptions::default());
            let faults: Vec<_> = out.faults().iter().map(|(kind, line, _)| (*kind, *line)).collect();
            assert_eq!(faults, [(ProblemKind::UnknownLine, 1), (ProblemKind::UnknownLine, 3)], "{by}");
        }
    }

    #[test]
    fn a_format_bound_to_a_container_s_log_is_for_its_messages() {
        let options = ReadOptions {
            log_formats: vec![("mine".to_owned(), STRING.to_owned())],
            input_format: Some("mine".to_owned()),
            ..ReadOptions::default()
        };
        // the name of the input is another in `read`, so the format is bound to all
        for by in CARRIERS {
            assert_eq!(told(by, &options).accesses().len(), 2, "{by}");
        }
        let plain = format!("{}\n", LINES[0]);
        let found = detect("web.log", plain.as_bytes(), &options);
        assert!(matches!(found, Ok(Detected::Log(format, _)) if format.name == "log-format"), "{found:?}");
    }

    #[test]
    fn an_unusable_format_is_said_whatever_the_log_is() {
        let options = ReadOptions { log_format: Some("no directive".to_owned()), ..ReadOptions::default() };
        assert!(detect("web.log", carried("docker-json").as_bytes(), &options).is_err());
    }
}
