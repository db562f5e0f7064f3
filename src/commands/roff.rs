//! Manual text as roff, for man(7) pages.

use std::fmt::Write;

/// A page under construction.
pub struct Page {
    text: String,
    /// A heading was written last: what follows needs no paragraph of its own.
    after_heading: bool,
}

impl Page {
    /// Begins a page: its name, section and one clause that says what it is.
    pub fn new(name: &str, section: u8, clause: &str) -> Page {
        let title = name.to_uppercase();
        let mut page = Page { text: format!("{}\n", title_line(&title, section)), after_heading: false };
        page.section("NAME");
        page.line(&format!("{} \\- {}", escape(name), escape(clause)));
        page
    }

    /// Goes on after roff that was made elsewhere.
    pub fn after(roff: String) -> Page {
        Page { text: roff, after_heading: false }
    }

    /// The finished page.
    pub fn finish(self) -> String {
        self.text
    }

    /// A heading.
    pub fn section(&mut self, name: &str) {
        self.line(&format!(".SH {}", quoted(name)));
        self.after_heading = true;
    }

    /// A heading below a heading.
    pub fn subsection(&mut self, name: &str) {
        self.line(&format!(".SS {}", quoted(name)));
        self.after_heading = true;
    }

    /// A paragraph; one that begins with one of `leads` has that in bold.
    pub fn paragraph(&mut self, text: &str, leads: &[&str]) {
        self.begin();
        let lead = leads.iter().find_map(|lead| Some((lead, text.strip_prefix(lead)?)));
        match lead {
            Some((lead, rest)) => self.line(&format!("\\fB{}\\fR{}", escape(lead), escape(rest))),
            None => self.text_line(text),
        }
    }

    /// Paragraphs of a manual text: blank lines part them, indented lines are examples.
    pub fn paragraphs(&mut self, text: &str, leads: &[&str]) {
        for block in text.split("\n\n").map(|b| b.trim_matches('\n')).filter(|b| !b.is_empty()) {
            if block.lines().all(|l| l.starts_with(' ')) {
                self.example(&block.lines().map(str::trim_start).collect::<Vec<_>>().join("\n"));
            } else {
                self.paragraph(&block.replace('\n', " "), leads);
            }
        }
    }

    /// Lines that stay as they are.
    pub fn example(&mut self, text: &str) {
        self.begin();
        self.line(".RS 4\n.nf");
        text.lines().for_each(|l| self.text_line(l));
        self.line(".fi\n.RE");
    }

    /// A term with what it means.
    pub fn term(&mut self, term: &str, note: &str, meaning: &str) {
        let note = if note.is_empty() { String::new() } else { format!("  ({})", escape(note)) };
        self.line(&format!(".TP\n\\fB{}\\fR{note}", escape(term)));
        self.text_line(meaning);
    }

    /// Other pages, named `page(7)`.
    pub fn see_also(&mut self, pages: &[String]) {
        self.section("SEE ALSO");
        let pages =
            pages.iter().filter_map(|p| p.split_once('(')).map(|(name, rest)| (name, rest.trim_end_matches(')')));
        let lines: Vec<String> = pages.map(|(name, section)| format!(".BR {} ({section})", escape(name))).collect();
        self.line(&lines.join(" ,\n"));
    }

    /// Terms below the last term.
    pub fn terms_below(&mut self, terms: &[(&str, &str)]) {
        self.line(".RS");
        terms.iter().for_each(|(term, meaning)| self.term(term, "", meaning));
        self.line(".RE");
    }

    fn begin(&mut self) {
        if !self.after_heading {
            self.line(".PP");
        }
        self.after_heading = false;
    }

    fn text_line(&mut self, text: &str) {
        let text = escape(text);
        self.line(if text.is_empty() { "\\&" } else { &text });
    }

    fn line(&mut self, roff: &str) {
        let _ = writeln!(self.text, "{roff}");
        self.after_heading = false;
    }
}

/// When the texts last changed in substance; a page says when, and must not change by being made.
const DATE: &str = "2026-11-29";

/// The line that begins a page.
pub fn title_line(title: &str, section: u8) -> String {
    format!(".TH {} {section} {DATE} \"crosswire {}\" crosswire", quoted(title), env!("CARGO_PKG_VERSION"))
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", escape(text).replace('"', "\\(dq"))
}

/// Text in which roff sees no command.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    if text.starts_with(['.', '\'']) {
        out.push_str("\\&");
    }
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\e"),
            '-' => out.push_str("\\-"),
            '`' => out.push_str("\\(ga"),
            '\'' => out.push_str("\\(aq"),
            '^' => out.push_str("\\(ha"),
            '~' => out.push_str("\\(ti"),
            '\t' => out.push_str("    "),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_is_a_command() {
        assert_eq!(escape(".TH a-b \\fB 'c`"), "\\&.TH a\\-b \\efB \\(aqc\\(ga");
        let mut page = Page::new("a", 7, "b");
        page.paragraphs("One: two\nthree.\n\n  .so /etc/passwd\n\n.PP", &["One:"]);
        assert!(
            page.finish().ends_with(
                ".PP\n\\fBOne:\\fR two three.\n.PP\n.RS 4\n.nf\n\\&.so /etc/passwd\n.fi\n.RE\n.PP\n\\&.PP\n"
            )
        );
    }
}
