//! The manual pages of section 7, from the tables of rules, formats and report fields.

use super::formats;
use super::options::of_the_wire;
use super::roff::Page;
use crate::model::limits;
use crate::report::clean::clean;
use crate::report::schema::{self, Object, Presence};
use crate::rules::{RULES, Rule};

/// Name with its section, one clause about it, and what writes its page.
pub type Subject = (&'static str, &'static str, fn(&mut Page));

/// Every page of section 7.
pub static PAGES: [Subject; 3] = [
    ("rules.7", "what crosswire can find, and how it decides", rules),
    ("formats.7", "what crosswire can read", inputs),
    ("report.7", "the JSON report of crosswire, field by field", report),
];

/// The parts of every rule's text.
const LEADS: [&str; 4] = ["Evidence:", "Looks like it and is legal:", "Cannot tell:", "What to do:"];

const HOW_DECIDED: &str = "\
A finding names one rule, and cites frames or lines for all that it says. How sure it is follows from independent \
signs: one makes it possible, two probable, and it is certain where what is cited proves it.

Who is at fault follows by elimination: the fault lies between the last vantage point where a call was right and the \
first where it was wrong, and the hops before and behind are cleared. With a vantage point missing, the fault is the \
set of hops that remain.

Severity is high for replies that reached the wrong caller and for calls that were lost without a word, medium for \
calls that failed visibly and for sessions that were stranded, low for what harmed no call.

Where the inputs cannot show how a call ended (no bodies in an access log, a capture that begins or ends mid-call, a \
hole), the call is unobserved; it is never reported as an orphan, nor as clean.

A call has at most one crossed and one orphaned finding about itself.";

fn rules(page: &mut Page) {
    page.section("DESCRIPTION");
    page.paragraphs(HOW_DECIDED, &[]);
    let mut family = "";
    for rule in RULES {
        let own = rule.name.split('/').next().unwrap_or_default();
        if own != family {
            page.section(&own.to_uppercase());
            family = own;
        }
        one_rule(rule, page);
    }
}

fn one_rule(rule: &Rule, page: &mut Page) {
    page.subsection(rule.name);
    page.paragraph(&format!("{}.", rule.says), &[]);
    let faults: Vec<&str> = rule.faults.iter().map(|h| h.name()).collect();
    let faults = if faults.is_empty() { "none; no fault is proved".into() } else { faults.join(", ") };
    page.paragraph(&format!("Can name at fault: {faults}."), &["Can name at fault:"]);
    page.paragraphs(rule.doc, &LEADS);
}

fn inputs(page: &mut Page) {
    page.section("DESCRIPTION");
    page.paragraphs(
        "The format of an input is told from its first bytes; --input-format names one instead, and --log-format \
         describes a log of another layout, also where its lines stand in a journal or a container's log. Inputs may be compressed with gzip, zstd, xz or bzip2, and \
         compression inside compression is undone.\n\n\
         The word behind a name is the vantage point where such an input is taken unless --vantage says otherwise.",
        &[],
    );
    page.section("CAPTURES AND RECORDED EXCHANGES");
    for (name, doc) in of_the_wire() {
        page.subsection(name);
        page.paragraphs(doc, &[]);
    }
    page.section("LOGS AND CLIENT RECORDS");
    for format in formats::all() {
        page.subsection(&format!("{} ({})", format.name, formats::vantage_name(format.vantage)));
        page.paragraphs(format.doc.trim(), &[]);
        for sample in format.samples {
            let lines: Vec<String> = sample.lines().map(|l| clean(l).into_owned()).collect();
            page.example(&lines.join("\n"));
        }
    }
    page.section("LIMITS");
    page.paragraph("Every buffer has a limit; where one is reached, data is passed over and counted as a problem of the kind limit-hit.", &[]);
    for (name, value, doc) in limits::ALL {
        page.term(name, &value.to_string(), doc);
    }
}

fn report(page: &mut Page) {
    page.section("DESCRIPTION");
    page.paragraphs(
        "Keys come in any order. Fields that an input cannot show are null. Later versions may add fields, rules and \
         words; the number behind the slash of `schema` changes only where a reader would break.\n\n\
         Times are RFC 3339 in UTC with as many digits as the input had. Frames are numbered from 1 as in Wireshark, \
         lines from 1.\n\n\
         With --format ndjson each line is one object of those below with a `type`: input, session, call, exchange, \
         window, finding, with -v near, and last the summary with `schema` and `crosswire`.\n\n\
         The JSON Schemas of the documents stand in docs/schema.",
        &[],
    );
    page.section("DOCUMENTS");
    schema::DOCUMENTS.iter().for_each(|o| object(o, page));
    page.section("OBJECTS");
    schema::OBJECTS.iter().for_each(|o| object(o, page));
}

/// More words than this stand in a list.
const IN_A_SENTENCE: usize = 10;

fn object(o: &Object, page: &mut Page) {
    page.subsection(o.name);
    page.paragraph(o.doc, &[]);
    for f in o.fields {
        let note = match f.presence {
            Presence::Always => f.kind.words(),
            Presence::Nullable => format!("{} or null", f.kind.words()),
            Presence::Optional => format!("{}, may be left out", f.kind.words()),
        };
        let words = f.kind.words_of();
        if words.len() > IN_A_SENTENCE {
            page.term(f.name, &note, f.doc);
            page.terms_below(words);
            continue;
        }
        let words: Vec<String> = words.iter().map(|(word, meaning)| format!("{word}: {meaning}")).collect();
        let meaning = if words.is_empty() { f.doc.to_owned() } else { format!("{} {}.", f.doc, words.join("; ")) };
        page.term(f.name, &note, &meaning);
    }
}
