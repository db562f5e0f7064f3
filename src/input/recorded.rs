//! Files of full exchanges that something other than a packet capture recorded: what they are and
//! how they are known. `wire::recorded` reads them.

use super::log::Grade;

/// The formats of recorded exchanges; their vantage is the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordedKind {
    /// HAR 1.2.
    Har,
    /// mitmproxy flows.
    Mitmproxy,
}

impl RecordedKind {
    /// All of them.
    pub const ALL: [RecordedKind; 2] = [RecordedKind::Har, RecordedKind::Mitmproxy];

    /// Its name for `--input-format` and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            RecordedKind::Har => "har",
            RecordedKind::Mitmproxy => "mitmproxy",
        }
    }

    /// Manual text: what it is, which clock its times are of, what it can and cannot show.
    pub const fn doc(self) -> &'static str {
        match self {
            RecordedKind::Har => HAR_DOC,
            RecordedKind::Mitmproxy => MITMPROXY_DOC,
        }
    }

    /// How sure is it that an input that begins with these bytes (up to 64 KiB, cut anywhere) is its own?
    pub fn grade(self, head: &[u8]) -> Grade {
        match self {
            RecordedKind::Har => grade_har(head),
            RecordedKind::Mitmproxy => grade_mitmproxy(head),
        }
    }
}

const HAR_DOC: &str = "HAR 1.2 files, as browsers, debugging proxies and mitmproxy export them: full exchanges with headers and \
bodies. Times are the recorder's clock: the start of each request, and from its timings the response's head and end, \
often to the microsecond or finer than the clock is good for. The events of a stream all bear the time of its end, \
unless the recorder kept theirs. Entries without a status (aborted, unfinished) are told as unanswered with the reason \
that the recorder gives; a stream that it kept no body of is unobserved, not empty. The client's address is not there.";

const MITMPROXY_DOC: &str = "mitmproxy flow files (`mitmdump -w`, `mitmproxy -w`): full exchanges with headers and bodies as the proxy \
saw them, the client's and the server's address, and times of its clock to the microsecond for the beginning and end \
of request and response. The events of a stream all bear the time of its end, and a stream that the proxy passed \
through without keeping it is unobserved, not empty. TCP, UDP, DNS and WebSocket flows are counted and not read.";

fn grade_har(head: &[u8]) -> Grade {
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
    let Some(rest) = text.strip_prefix(b"{") else { return Grade::No };
    let begins = rest.trim_ascii_start().starts_with(b"\"log\"");
    let has = |needle: &[u8]| memchr::memmem::find(head, needle).is_some();
    let own = [&b"\"entries\""[..], b"\"creator\"", b"\"startedDateTime\"", b"\"pages\""];
    match (begins, own.iter().filter(|n| has(n)).count()) {
        (true, 2..) => Grade::Certain,
        (true, 1) | (false, 3..) => Grade::Likely,
        (true, 0) => Grade::Unsure,
        _ => Grade::No,
    }
}

fn grade_mitmproxy(head: &[u8]) -> Grade {
    let digits = head.iter().take_while(|b| b.is_ascii_digit()).count();
    if digits == 0 || digits > 12 || head.get(digits) != Some(&b':') {
        return Grade::No;
    }
    // A dictionary whose first name is a netstring itself.
    let inside = head.get(digits + 1..).unwrap_or_default();
    let colon = inside.iter().take_while(|b| b.is_ascii_digit()).count();
    let length = inside.get(..colon).and_then(|d| std::str::from_utf8(d).ok()).and_then(|d| d.parse::<usize>().ok());
    let Some(length) = length.filter(|l| *l < 64 && inside.get(colon) == Some(&b':')) else { return Grade::No };
    if !matches!(inside.get(colon + 1 + length), Some(b';' | b',')) {
        return Grade::No;
    }
    let has = |needle: &[u8]| memchr::memmem::find(head, needle).is_some();
    let own = [&b"11:server_conn"[..], b"11:client_conn", b"7:request", b"8:response", b"4:type"];
    match own.iter().filter(|n| has(n)).count() {
        0 => Grade::Unsure,
        1 => Grade::Likely,
        _ => Grade::Certain,
    }
}
