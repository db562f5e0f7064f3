//! The evidence of a bundle: every input's part, redacted.

use super::cite::{Cited, Scope};
use super::gather::{Caught, Found, Kept, Reading};
use super::lines::{self, Excerpt, Wanted};
use super::redact::{From, Redactor};
use super::{sha256, slice};
use crate::input::bundle::Evidence;
use crate::input::same_file;
use crate::model::exchange::{Exchange, Request, Response};
use crate::model::options::ReadOptions;
use crate::model::place::InputId;
use crate::model::report::Report;
use serde_json::value::RawValue;
use std::net::SocketAddr;
use std::sync::Arc;

/// Characters of an original's name that a member keeps; tar has room for 100 with folder and ending.
const NAME_CHARS: usize = 80;
/// Name of the format of logs that `--log-format` describes.
const DESCRIBED: &str = "log-format";

/// What of the inputs goes into a bundle, not yet redacted.
pub struct Content<'a> {
    report: &'a Report,
    found: &'a [Found],
    options: &'a ReadOptions,
    /// The exchanges.
    pub exchanges: Vec<&'a Caught>,
    excerpts: Vec<Option<Excerpt>>,
}

/// A member of a bundle.
pub type Member = (Evidence, Vec<u8>);

impl<'a> Content<'a> {
    /// Chooses.
    ///
    /// # Errors
    /// If a log cannot be read again.
    pub fn choose(
        report: &'a Report,
        found: &'a [Found],
        options: &'a ReadOptions,
        caught: &'a [Caught],
        cited: &Cited,
        scope: Scope,
    ) -> anyhow::Result<Content<'a>> {
        let mut excerpts: Vec<Option<Excerpt>> = vec![];
        for (input, f) in found.iter().enumerate() {
            let Reading::Log(format) = f.reading else {
                excerpts.push(None);
                continue;
            };
            let lines = cited.lines(input as InputId);
            let wanted = match scope {
                Scope::Cited | Scope::Beside => Wanted::Cited(&lines),
                Scope::Sessions => Wanted::Naming(&lines, &cited.sessions),
                Scope::All => Wanted::All,
            };
            excerpts.push(Some(lines::read(&f.source, format, wanted)?));
        }
        let is_there = |input: InputId, line: u64| {
            let excerpt = excerpts.get(input as usize).and_then(Option::as_ref);
            excerpt.is_some_and(|e| e.holds(line))
        };
        // A line without its packets would look like a call that was lost on the way.
        let beside = match scope {
            Scope::Beside => Cited::beside(report, is_there),
            _ => Cited::default(),
        };
        let wants = |c: &&Caught| cited.wants(c, scope) || beside.wants(c, Scope::Cited);
        let exchanges = caught.iter().filter(wants).collect();
        Ok(Content { report, found, options, exchanges, excerpts })
    }

    /// The text of all logs.
    pub fn log_texts(&self) -> impl Iterator<Item = Vec<u8>> + '_ {
        self.excerpts.iter().flatten().map(Excerpt::text)
    }

    /// The members, redacted. Messages first, because logs may name their hashes.
    pub fn members(&self, redactor: &mut Redactor) -> Vec<Member> {
        let mut wire: Vec<Vec<Caught>> = self.found.iter().map(|_| vec![]).collect();
        for caught in &self.exchanges {
            if let Some(list) = wire.get_mut(caught.exchange.input as usize) {
                list.push(redacted(caught, redactor));
            }
        }
        let mut members = vec![];
        for (input, (f, exchanges)) in self.found.iter().zip(&wire).enumerate() {
            let base = base_name(&f.source.name, redactor);
            match (&f.reading, self.excerpts.get(input).and_then(Option::as_ref)) {
                (Reading::Wire, _) => members.push(self.capture(input, &base, exchanges)),
                (Reading::Log(format), Some(excerpt)) => {
                    members.push(self.log(input, &base, format, excerpt, redactor))
                }
                _ => {}
            }
        }
        members
    }

    fn capture(&self, input: usize, base: &str, exchanges: &[Caught]) -> Member {
        let info = self.report.inputs.get(input);
        let has_frames = info.and_then(|i| i.format.as_deref()).is_none_or(|f| f.starts_with("pcap"));
        let original = slice::Original {
            name: base,
            first: info.and_then(|i| i.first),
            last: info.and_then(|i| i.last),
            has_frames,
        };
        let stem = base.strip_suffix(".pcapng").or(base.strip_suffix(".pcap")).unwrap_or(base);
        let evidence = Evidence {
            name: member_name(input, &format!("{stem}.pcapng")),
            input,
            format: "pcapng".to_owned(),
            ..Evidence::default()
        };
        (evidence, slice::write(&original, exchanges))
    }

    fn log(&self, input: usize, base: &str, format: &str, excerpt: &Excerpt, redactor: &mut Redactor) -> Member {
        let source = self.found.get(input).map_or("", |f| &f.source.name);
        let bound = self.options.input_formats.iter().find(|(_, path)| same_file(path, source)).map(|(name, _)| name);
        let is_described = |name: &str| self.options.log_formats.iter().any(|(n, _)| n == name);
        let said = bound.or(self.options.input_format.as_ref()).filter(|name| is_described(name));
        let format = match said {
            Some(name) => name.clone(),
            None if format == DESCRIBED => String::new(),
            None => excerpt.format.clone(),
        };
        let vantage = self.options.vantages.iter().find(|(_, path)| same_file(path, source)).map(|(v, _)| *v);
        let evidence = Evidence {
            name: member_name(input, base),
            input,
            format,
            vantage,
            modified_ns: excerpt.modified_ns,
            lines: excerpt.runs(),
        };
        (evidence, excerpt.redacted(redactor))
    }
}

fn member_name(input: usize, base: &str) -> String {
    format!("evidence/{:02}-{base}", input + 1)
}

/// The last part of a path, redacted, without compression and without characters that some system
/// gives a meaning.
pub fn base_name(name: &str, redactor: &mut Redactor) -> String {
    let mut base = name.rsplit(['/', '\\', '!']).next().unwrap_or(name);
    for suffix in [".gz", ".zst", ".xz", ".bz2", ".lz4"] {
        base = base.strip_suffix(suffix).unwrap_or(base);
    }
    let base = redactor.string(base, From::Log);
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') { c } else { '_' };
    let base: String = base.chars().map(plain).take(NAME_CHARS).collect();
    match base.trim_start_matches('.') {
        "" => "input".to_owned(),
        base => base.to_owned(),
    }
}

fn redacted(caught: &Caught, redactor: &mut Redactor) -> Caught {
    if redactor.known().is_off {
        return caught.clone();
    }
    let x = &caught.exchange;
    let exchange = Exchange {
        client: address(x.client, redactor),
        server: address(x.server, redactor),
        request: x.request.as_ref().map(|r| Request {
            method: string(&r.method, redactor),
            target: string(&r.target, redactor),
            headers: headers(&r.headers, redactor),
            ..r.clone()
        }),
        response: x.response.as_ref().map(|r| Response { headers: headers(&r.headers, redactor), ..r.clone() }),
        ..x.clone()
    };
    let messages = caught.messages.iter().map(|m| message(m, redactor)).collect();
    Caught { exchange, messages, hole_after: caught.hole_after }
}

fn message(m: &Kept, redactor: &mut Redactor) -> Kept {
    let is_text = std::str::from_utf8(&m.data).is_ok();
    // What is no text has no words; its length is all that stays.
    let data = if is_text { redactor.text(&m.data, From::Wire) } else { vec![b'.'; m.data.len()] };
    for (old, new) in parts(&m.data).into_iter().zip(parts(&data)) {
        redactor.hash(sha256(old), sha256(new));
    }
    Kept {
        data,
        event: m.event.as_ref().map(|e| redactor.string(e, From::Wire)),
        event_id: m.event_id.as_ref().map(|e| redactor.string(e, From::Wire)),
        ..m.clone()
    }
}

/// The message as sent, and each element of a batch.
fn parts(data: &[u8]) -> Vec<&[u8]> {
    let mut all = vec![data];
    if data.trim_ascii_start().starts_with(b"[") {
        let elements: Vec<&RawValue> = serde_json::from_slice(data).unwrap_or_default();
        all.extend(elements.into_iter().map(|e| e.get().as_bytes()));
    }
    all
}

fn address(address: SocketAddr, redactor: &mut Redactor) -> SocketAddr {
    SocketAddr::new(redactor.address(address.ip()), address.port())
}

fn string(text: &Arc<str>, redactor: &mut Redactor) -> Arc<str> {
    redactor.string(text, From::Wire).into()
}

fn headers(list: &[(Arc<str>, Arc<str>)], redactor: &mut Redactor) -> Vec<(Arc<str>, Arc<str>)> {
    list.iter().map(|(name, value)| (string(name, redactor), string(value, redactor))).collect()
}
