//! Text from captures and logs made safe to show: nothing in it may move the cursor, change
//! colours, reorder what is read, or flood the page.

use std::borrow::Cow;
use std::fmt::Write;

/// Longest text that a table cell or sentence shows, in characters; the rest is counted.
pub const SHOWN_CHARS: usize = 600;

/// Must this character not reach a terminal or page as it is?
///
/// C0 and C1 controls (ECMA-48; C1 includes the one-byte CSI), DEL, the bidirectional
/// overrides, embeddings and isolates (Unicode UAX #9, "Trojan Source"), line and paragraph
/// separators, zero-width characters that make different names look equal, tag characters.
pub fn is_unsafe(c: char) -> bool {
    matches!(c,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// `text` with every unsafe character written as an escape (`\n`, `\x1b`, `\u{202e}`).
pub fn clean(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        push(&mut out, c);
    }
    Cow::Owned(out)
}

/// As [`clean`], and no more than `max` characters of `text`; what is left out is counted.
pub fn clean_short(text: &str, max: usize) -> Cow<'_, str> {
    match text.char_indices().nth(max) {
        None => clean(text),
        Some((cut, _)) => {
            let (head, tail) = text.split_at(cut);
            Cow::Owned(format!("{}… ({} more characters)", clean(head), tail.chars().count()))
        }
    }
}

/// As [`clean_short`], but line breaks and tabs stay: for blocks of text.
pub fn clean_block(text: &str, max: usize) -> String {
    let cut = text.char_indices().nth(max).map_or(text.len(), |(i, _)| i);
    let (head, tail) = text.split_at(cut);
    let mut out = String::with_capacity(head.len());
    for c in head.replace("\r\n", "\n").chars() {
        match c {
            '\n' | '\t' => out.push(c),
            c => push(&mut out, c),
        }
    }
    if !tail.is_empty() {
        let _ = write!(out, "… ({} more characters)", tail.chars().count());
    }
    out
}

fn push(out: &mut String, c: char) {
    if !is_unsafe(c) {
        out.push(c);
        return;
    }
    // Writing to a String cannot fail.
    let _ = match c {
        '\n' => out.write_str("\\n"),
        '\r' => out.write_str("\\r"),
        '\t' => out.write_str("\\t"),
        c if (c as u32) < 0x100 => write!(out, "\\x{:02x}", c as u32),
        c => write!(out, "\\u{{{:x}}}", c as u32),
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn escapes_what_could_act_on_a_terminal() {
        assert_eq!(clean("plain – text"), "plain – text");
        assert_eq!(clean("\x1b[31mred\u{9b}0m"), "\\x1b[31mred\\x9b0m");
        assert_eq!(clean("a\r\n\tb"), "a\\r\\n\\tb");
        assert_eq!(clean("user\u{202e}txt.exe"), "user\\u{202e}txt.exe");
    }

    #[test]
    fn counts_what_it_leaves_out() {
        assert_eq!(clean_short("abcdef", 4), "abcd… (2 more characters)");
        assert_eq!(clean_short("abcd", 4), "abcd");
        assert_eq!(clean_block("a\nb\x07c", 3), "a\nb… (2 more characters)");
    }

    proptest! {
        #[test]
        fn nothing_unsafe_is_left(text in any::<String>(), max in 0usize..40) {
            prop_assert!(!clean(&text).chars().any(is_unsafe));
            prop_assert!(!clean_short(&text, max).chars().any(is_unsafe));
            prop_assert!(!clean_block(&text, max).chars().any(|c| is_unsafe(c) && c != '\n' && c != '\t'));
        }
    }
}
