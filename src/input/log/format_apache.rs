//! Apache `LogFormat` strings (mod_log_config).

use super::assemble::{Field, Unit};
use super::format_string::{FormatError, unquoted};
use super::names;
use super::strftime;
use super::template::{Meaning, Piece, Shape, StampPart, Value};
use super::time::SECOND_NS;

/// The formats that Apache's documentation and distributions name.
pub(super) fn nickname(name: &str) -> Option<&'static str> {
    Some(match name {
        "common" => "%h %l %u %t \"%r\" %>s %b",
        "combined" => "%h %l %u %t \"%r\" %>s %b \"%{Referer}i\" \"%{User-Agent}i\"",
        "combinedio" => "%h %l %u %t \"%r\" %>s %b \"%{Referer}i\" \"%{User-Agent}i\" %I %O",
        "vhost_combined" => "%v:%p %h %l %u %t \"%r\" %>s %O \"%{Referer}i\" \"%{User-Agent}i\"",
        _ => return None,
    })
}

/// The pieces of a format string, or of a whole `LogFormat` directive.
pub(super) fn compile(text: &str) -> Result<Vec<Piece>, FormatError> {
    let directive = unquoted(text, "LogFormat");
    let format = nickname(text).or(directive.as_deref()).unwrap_or(text);
    let mut pieces = Vec::new();
    let mut final_status = false;
    let mut original_status = Vec::new();
    let mut at = 0;
    while let Some(rest) = format.get(at..).filter(|r| !r.is_empty()) {
        if let Some(escaped) = rest.strip_prefix('\\') {
            let c = escaped.chars().next().unwrap_or('\\');
            let literal = match c {
                't' => '\t',
                'n' => '\n',
                other => other,
            };
            Piece::push_literal(&mut pieces, literal.encode_utf8(&mut [0; 4]).as_bytes());
            at += 1 + escaped.chars().next().map_or(0, char::len_utf8);
            continue;
        }
        let Some(directive) = rest.strip_prefix('%') else {
            let len = rest.find(['%', '\\']).unwrap_or(rest.len());
            Piece::push_literal(&mut pieces, rest.get(..len).unwrap_or_default().as_bytes());
            at += len;
            continue;
        };
        let (parsed, used) =
            Directive::parse(directive).ok_or_else(|| FormatError::new(format, at, "an unfinished `%`"))?;
        at += 1 + used;
        if parsed.letter == 's' && !parsed.is_final {
            original_status.push(pieces.len());
        }
        final_status |= parsed.letter == 's' && parsed.is_final;
        if !push(&mut pieces, &parsed) {
            return Err(FormatError::new(format, at, &format!("`%{}` is no directive that is known", parsed.letter)));
        }
    }
    // `%s` is the status before an internal redirect: `%>s` counts.
    for piece in original_status {
        if let Some(Piece::Value(value)) = pieces.get_mut(piece)
            && final_status
        {
            value.meaning = Meaning::Field(Field::Skip);
        }
    }
    Ok(pieces)
}

/// `%…{parameter}X` taken apart.
struct Directive<'a> {
    letter: char,
    parameter: Option<&'a str>,
    /// `>`: of the last request of an internal redirect.
    is_final: bool,
}

impl Directive<'_> {
    /// What follows a `%`, and the bytes it takes.
    fn parse(text: &str) -> Option<(Directive<'_>, usize)> {
        let mut at = 0;
        let (mut parameter, mut is_final) = (None, false);
        loop {
            let rest = text.get(at..)?;
            match rest.bytes().next()? {
                b'>' => is_final = true,
                b'<' | b'!' | b',' | b'0'..=b'9' => {}
                b'{' => {
                    let end = rest.find('}')?;
                    parameter = rest.get(1..end);
                    at += end;
                }
                // `%{NAME}^ti`, `%{NAME}^to`: trailers.
                b'^' => {
                    let letter = rest.chars().nth(2)?;
                    let letter = if matches!(letter, 'i' | 'o') { 'n' } else { letter };
                    return Some((Directive { letter, parameter, is_final }, at + 3));
                }
                _ => {
                    let letter = rest.chars().next()?;
                    return Some((Directive { letter, parameter, is_final }, at + letter.len_utf8()));
                }
            }
            at += 1;
        }
    }
}

fn push(pieces: &mut Vec<Piece>, directive: &Directive<'_>) -> bool {
    let parameter = directive.parameter.unwrap_or_default();
    let (shape, field) = match directive.letter {
        '%' => {
            Piece::push_literal(pieces, b"%");
            return true;
        }
        't' => {
            let Some(piece) = time(directive.parameter) else { return false };
            pieces.push(piece);
            return true;
        }
        'h' | 'a' => (Shape::Word, Field::ClientAddr),
        'r' => (Shape::Text, Field::RequestLine),
        's' => (Shape::Number, Field::Status),
        'B' => (Shape::Number, Field::BodyBytes),
        'b' => (Shape::Number, Field::ClfBytes),
        'O' => (Shape::Number, Field::Bytes),
        'D' => (Shape::Number, Field::Duration(Unit::Ns(1_000))),
        'T' => {
            let unit = match parameter {
                "us" => 1_000,
                "ms" => 1_000_000,
                _ => SECOND_NS,
            };
            (Shape::Number, Field::Duration(Unit::Ns(unit)))
        }
        'm' => (Shape::Word, Field::Method),
        'U' => (Shape::Text, Field::Target),
        'q' => (Shape::Text, Field::Query),
        'X' => (Shape::Word, Field::ConnectionStatus),
        'p' if parameter == "remote" => (Shape::Number, Field::ClientPort),
        'p' | 'P' | 'I' | 'S' | 'k' => (Shape::Number, Field::Skip),
        'i' => (Shape::Text, names::request_header(parameter).unwrap_or(Field::Skip)),
        'o' => (Shape::Text, names::response_header(parameter).unwrap_or(Field::Skip)),
        'e' if parameter == "UNIQUE_ID" => (Shape::Word, Field::RequestId),
        'l' | 'A' | 'H' | 'v' | 'V' | 'L' => (Shape::Word, Field::Skip),
        'u' | 'C' | 'e' | 'n' | 'f' | 'R' | 'x' | 'c' => (Shape::Text, Field::Skip),
        _ => return false,
    };
    pieces.push(Piece::field(shape, field));
    true
}

/// `%t` and `%{format}t`: the start, or with `end:` the end; the format is `sec`, `msec`, `usec`,
/// `msec_frac`, `usec_frac` or one of strftime's.
fn time(parameter: Option<&str>) -> Option<Piece> {
    let Some(parameter) = parameter else {
        return Some(Piece::field(Shape::Time, Field::Start));
    };
    let (start, format) = match parameter.split_once(':') {
        Some(("begin", format)) => (true, format),
        Some(("end", format)) => (false, format),
        _ if parameter == "begin" => (true, ""),
        _ if parameter == "end" => (false, ""),
        _ => (true, parameter),
    };
    let (shape, part) = match format {
        "" => return Some(Piece::field(Shape::Time, if start { Field::Start } else { Field::End })),
        "sec" => (Shape::Number, StampPart::EpochSeconds),
        "msec" => (Shape::Number, StampPart::Epoch(1_000_000)),
        "usec" => (Shape::Number, StampPart::Epoch(1_000)),
        "msec_frac" => (Shape::Number, StampPart::Fraction(3)),
        "usec_frac" => (Shape::Number, StampPart::Fraction(6)),
        format => {
            let items = strftime::compile(format)?;
            (Shape::Strftime(items.clone()), StampPart::Strftime(items))
        }
    };
    Some(Piece::Value(Value { shape, meaning: Meaning::Stamp { start, part } }))
}
