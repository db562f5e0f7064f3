//! HAProxy `log-format` strings (configuration manual §8.2.6 "Custom log format").

use super::assemble::{Field, Unit};
use super::format_string::{FormatError, unquoted};
use super::names;
use super::template::{Meaning, Piece, Shape, StampPart, Value};

/// Directives that only HAProxy has.
const OWN: &[&str] = &[
    "%ci", "%cp", "%tr", "%ft", "%ST", "%TR", "%Tw", "%Tc", "%Tr", "%Ta", "%Tt", "%ts", "%tsc", "%hr", "%hs", "%HM",
    "%HU", "%HP", "%HV", "%HQ", "%fi", "%fp", "%bi", "%bp", "%si", "%sp", "%rt", "%pid", "%ID",
];

/// Is it HAProxy's rather than Apache's?
pub(super) fn is_haproxy(text: &str) -> bool {
    text.starts_with("log-format")
        || ["%[", "%{+", "%{-"].iter().any(|mark| text.contains(mark))
        || OWN.iter().filter(|d| text.contains(**d)).count() >= 2
}

/// The pieces of a format string, or of a whole `log-format` line.
pub(super) fn compile(text: &str) -> Result<Vec<Piece>, FormatError> {
    let bare = text.strip_prefix("log-format").map(str::trim_start);
    let quoted = bare.filter(|b| b.starts_with(['"', '\''])).and_then(|_| unquoted(text, "log-format"));
    let format = quoted.as_deref().or(bare).unwrap_or(text);
    let mut compiler = Compiler {
        pieces: Vec::new(),
        quote_all: false,
        server_named: format.contains("%s ") || format.ends_with("%s"),
    };
    let mut at = 0;
    while let Some(rest) = format.get(at..).filter(|r| !r.is_empty()) {
        if let Some(escaped) = rest.strip_prefix('\\') {
            let c = escaped.chars().next().unwrap_or('\\');
            Piece::push_literal(&mut compiler.pieces, c.encode_utf8(&mut [0; 4]).as_bytes());
            at += 1 + c.len_utf8().min(escaped.len());
            continue;
        }
        let Some(directive) = rest.strip_prefix('%') else {
            let len = rest.find(['%', '\\']).unwrap_or(rest.len());
            Piece::push_literal(&mut compiler.pieces, rest.get(..len).unwrap_or_default().as_bytes());
            at += len;
            continue;
        };
        let used = compiler
            .directive(directive)
            .ok_or_else(|| FormatError::new(format, at, "an unfinished or unknown HAProxy directive"))?;
        at += 1 + used;
    }
    Ok(compiler.pieces)
}

struct Compiler {
    pieces: Vec<Piece>,
    /// `%{+Q}o` was met: every text from here on is in quotes.
    quote_all: bool,
    /// `%s` names the server, so that `%si` need not.
    server_named: bool,
}

impl Compiler {
    /// Compiles what follows a `%`: the bytes it took.
    fn directive(&mut self, text: &str) -> Option<usize> {
        if text.starts_with('%') {
            Piece::push_literal(&mut self.pieces, b"%");
            return Some(1);
        }
        let mut at = 0;
        let mut quote = self.quote_all;
        if let Some(flags) = text.strip_prefix('{') {
            let end = flags.find('}')?;
            let flags = flags.get(..end)?;
            let mut adding = true;
            for c in flags.chars() {
                match c {
                    '+' => adding = true,
                    '-' => adding = false,
                    'Q' => quote = adding,
                    _ => {}
                }
            }
            at += end + 2;
        }
        let rest = text.get(at..)?;
        if let Some(expression) = rest.strip_prefix('[') {
            let end = matching_bracket(expression)?;
            self.value(Shape::Text, Meaning::Field(sample(expression.get(..end)?)), quote);
            return Some(at + end + 2);
        }
        // Names of one to three letters; the longest known one counts.
        for len in (1..=3).rev() {
            let Some(name) = rest.get(..len) else { continue };
            if name == "o" {
                self.quote_all = quote;
                return Some(at + 1);
            }
            // "%b/%s" and the like: a name ends where the longest known one does.
            if let Some((shape, meaning, is_text)) = self.known(name) {
                self.value(shape, meaning, quote && is_text);
                return Some(at + len);
            }
        }
        None
    }

    fn value(&mut self, shape: Shape, meaning: Meaning, quoted: bool) {
        let quote: &[u8] = if quoted { b"\"" } else { b"" };
        Piece::push_literal(&mut self.pieces, quote);
        self.pieces.push(Piece::Value(Value { shape, meaning }));
        Piece::push_literal(&mut self.pieces, quote);
    }

    /// Shape and meaning of a named directive, and whether `+Q` puts it in quotes.
    fn known(&self, name: &str) -> Option<(Shape, Meaning, bool)> {
        let ms = Unit::Ns(1_000_000);
        let field = |shape, field, is_text| Some((shape, Meaning::Field(field), is_text));
        match name {
            "ci" => field(Shape::Word, Field::ClientAddr, true),
            "cp" => field(Shape::Number, Field::ClientPort, false),
            "tr" | "trg" | "trl" | "t" | "T" | "tl" => field(Shape::Time, Field::Start, false),
            "Ts" => Some((Shape::Number, Meaning::Stamp { start: true, part: StampPart::EpochSeconds }, false)),
            "ms" => Some((Shape::Number, Meaning::Stamp { start: true, part: StampPart::Fraction(3) }, false)),
            "Ta" | "Tt" | "Tu" => field(Shape::Number, Field::Duration(ms), false),
            "s" => field(Shape::Word, Field::Upstream, true),
            "si" if !self.server_named => field(Shape::Word, Field::Upstream, true),
            "ST" => field(Shape::Number, Field::Status, false),
            "B" => field(Shape::Number, Field::Bytes, false),
            "ts" | "tsc" => field(Shape::Word, Field::Termination, false),
            "r" => field(Shape::Text, Field::RequestLine, true),
            "HM" => field(Shape::Word, Field::Method, true),
            "HU" | "HP" | "HPO" => field(Shape::Text, Field::Target, true),
            "HQ" => field(Shape::Text, Field::Query, true),
            "ID" => field(Shape::Text, Field::RequestId, true),
            "hr" => Some((Shape::Captures, Meaning::Captures { response: false }, false)),
            "hs" => Some((Shape::Captures, Meaning::Captures { response: true }, false)),
            "b" | "f" | "ft" | "H" | "HV" | "fi" | "bi" | "si" | "CC" | "CS" | "hrl" | "hsl" | "sslc" | "sslv" => {
                field(Shape::Text, Field::Skip, true)
            }
            "U" | "TR" | "Tw" | "Tc" | "Tr" | "Tq" | "Td" | "Th" | "Ti" | "ac" | "fc" | "bc" | "sc" | "rc" | "sq"
            | "bq" | "lc" | "rt" | "fp" | "bp" | "sp" | "pid" => field(Shape::Number, Field::Skip, false),
            _ => None,
        }
    }
}

/// Where the bracket that is already open closes.
fn matching_bracket(text: &str) -> Option<usize> {
    let mut depth = 1usize;
    for (at, c) in text.char_indices() {
        match c {
            '[' => depth += 1,
            ']' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

/// What a sample expression fetches.
fn sample(expression: &str) -> Field {
    let fetch = expression.split(',').next().unwrap_or_default().trim().to_ascii_lowercase();
    let response = fetch.starts_with("res.") || fetch.contains(".res.") || fetch.starts_with("shdr");
    if let Some((name, argument)) = fetch.trim_end_matches(')').split_once('(') {
        let header = argument.split(',').next().unwrap_or_default().trim().trim_matches(['"', '\'']);
        return match name {
            "capture.req.hdr" => Field::Captured,
            "capture.res.hdr" => Field::CapturedGiven,
            "var" => names::common(argument.rsplit('.').next().unwrap_or_default().as_bytes())
                .filter(|f| !matches!(f, Field::Start | Field::End | Field::Duration(_)))
                .unwrap_or(Field::Skip),
            _ if response => names::response_header(header).unwrap_or(Field::Skip),
            _ if name.contains("hdr") => names::request_header(header).unwrap_or(Field::Skip),
            _ => Field::Skip,
        };
    }
    match &*fetch {
        "method" | "capture.req.method" => Field::Method,
        "url" | "path" | "pathq" | "base" | "capture.req.uri" => Field::Target,
        "query" => Field::Query,
        "status" | "txn.status" => Field::Status,
        "src" | "fc_src" => Field::ClientAddr,
        "src_port" | "fc_src_port" => Field::ClientPort,
        "unique-id" => Field::RequestId,
        "req.body" => Field::RequestBody,
        "res.body" => Field::ResponseBody,
        "txn.sess_term_state" => Field::Termination,
        _ => Field::Skip,
    }
}
