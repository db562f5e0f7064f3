//! nginx's `combined`, also with the further fields that people put behind it.

use super::assemble::{Assembly, Field, Shared};
use super::clf::{self, Miss};
use super::layout::{self, Layout, LayoutReader, Parsed};
use super::{Format, Grade, Reader, apache, tail, traefik};
use crate::model::place::{Place, Vantage};

/// The format.
pub(super) static COMBINED: Format = Format {
    name: "nginx-combined",
    vantage: Vantage::Proxy,
    carries: false,
    doc: "nginx's access log in the predefined format `combined`, with or without further fields behind \
          (numbers, quoted texts, key=value). The time is the end of the request, to the second; without \
          $request_time among the further fields there is no start. It shows method, path, status, body bytes, \
          address and user agent, and neither session ids nor bodies. Lines come in order of completion. \
          Apache writes lines of the same form whose time is the start; where a log bears Apache's marks \
          (head bytes counted, `-` for none, times that go back) it is read as apache-combined.",
    samples: &[
        "127.0.0.1 - - [29/Nov/2026:19:38:38 +0000] \"POST /mcp HTTP/1.1\" 200 362 \"-\" \"connector-egress/1.4\"\n\
         127.0.0.1 - - [29/Nov/2026:19:38:38 +0000] \"POST /mcp HTTP/1.1\" 202 0 \"-\" \"connector-egress/1.4\"\n",
        "2001:db8::7 - alice [29/Nov/2026:14:38:39 -0500] \"GET /mcp?x=%22 HTTP/2.0\" 404 153 \"-\" \"a \\x22quoted\\x22 agent\"\n",
        "127.0.0.1 - - [29/Nov/2026:19:53:28 +0000] \"POST /mcp HTTP/1.1\" 200 302 \"-\" \"-\" rt=0.005 uct=\"0.000\" \
         uht=\"0.005\" urt=\"0.005\" sid=\"-\" ssid=\"0597a44cede240ea969db625c1cfec05\"\n",
        "192.0.2.7 - - [29/Nov/2026:19:53:31 +0000] \"\\x16\\x03\\x01\" 400 157 \"-\" \"-\"\n",
    ],
    grade,
    reader: Reader::Lines(|context| LayoutReader::boxed(context, Box::new(Combined))),
};

/// A line of `combined`.
pub(super) struct Combined;

impl Layout for Combined {
    fn parse(&mut self, line: &[u8], place: Place, shared: &mut Shared) -> Parsed {
        let clf = match clf::split(line) {
            Ok(clf) => clf,
            Err(Miss::NotClf) => return Parsed::No,
            Err(Miss::Broken) => return Parsed::Bad("a line of the combined format that breaks off"),
        };
        let mut out = Assembly::default();
        if !clf::fill(&clf, Field::End, Field::BodyBytes, &mut out, shared) {
            return Parsed::Bad("a line of the combined format with a status, time or size that is none");
        }
        tail::read(clf.rest, &mut out, shared);
        Parsed::Access(out.finish(place, shared))
    }
}

fn grade(head: &[u8]) -> Grade {
    let grade = layout::share(head, &mut Combined).grade(Grade::Likely);
    if apache::has_marks(head) || traefik::share(head).own > 0 { grade.min(Grade::Unsure) } else { grade }
}
