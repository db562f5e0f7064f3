//! The keys, in one table: the help page and the hints are made from it.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// What a key does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Do {
    /// To the line above.
    Up,
    /// To the line below.
    Down,
    /// A screen up.
    PageUp,
    /// A screen down.
    PageDown,
    /// To the first line.
    First,
    /// To the last line.
    Last,
    /// Into what the cursor is on.
    Open,
    /// Back out.
    Back,
    /// The bodies of the call.
    Bodies,
    /// To the other call of a finding.
    Other,
    /// The list of sessions.
    Sessions,
    /// The list of all calls.
    Calls,
    /// The list of findings.
    Findings,
    /// To the next finding.
    NextFinding,
    /// To the finding before.
    FindingBefore,
    /// Look for a text.
    Search,
    /// To the next place that holds it.
    Next,
    /// To the place before that holds it.
    Before,
    /// Show only what fits.
    Filter,
    /// Messages as sent, or indented.
    Raw,
    /// Mark what the cursor is on.
    Mark,
    /// Take all marks away.
    Unmark,
    /// Save what is marked as a bundle.
    Save,
    /// Draw anew.
    Redraw,
    /// Explain the keys.
    Help,
    /// Leave.
    Quit,
    /// Stop for a while, as the shell's job control has it.
    Suspend,
}

/// A key and what it does.
pub struct Key {
    /// Which keys.
    pub on: &'static [KeyCode],
    /// With the control key.
    pub control: bool,
    /// What they do.
    pub does: Do,
    /// How the help page spells them.
    pub name: &'static str,
    /// What the help page says.
    pub text: &'static str,
}

const fn plain(on: &'static [KeyCode], does: Do, name: &'static str, text: &'static str) -> Key {
    Key { on, control: false, does, name, text }
}

const fn control(on: &'static [KeyCode], does: Do) -> Key {
    Key { on, control: true, does, name: "", text: "" }
}

use KeyCode::Char;

/// Every key.
pub static KEYS: &[Key] = &[
    plain(&[KeyCode::Up, Char('k')], Do::Up, "↑ k", "one line up"),
    plain(&[KeyCode::Down, Char('j')], Do::Down, "↓ j", "one line down"),
    plain(&[KeyCode::PageUp], Do::PageUp, "PgUp", "one screen up (also Ctrl-B)"),
    plain(&[KeyCode::PageDown], Do::PageDown, "PgDn", "one screen down (also Ctrl-F)"),
    plain(&[KeyCode::Home, Char('g')], Do::First, "Home g", "to the first line"),
    plain(&[KeyCode::End, Char('G')], Do::Last, "End G", "to the last line"),
    plain(
        &[KeyCode::Enter, KeyCode::Right, Char('l')],
        Do::Open,
        "Enter →",
        "open: session, its calls, a call's ladder, its bodies",
    ),
    plain(&[KeyCode::Esc, KeyCode::Left, KeyCode::Backspace, Char('h')], Do::Back, "Esc ←", "back"),
    plain(&[Char('b')], Do::Bodies, "b", "headers and bodies of the call, from every vantage point"),
    plain(&[Char('o')], Do::Other, "o", "the finding's other call: whose reply it was, or who got it"),
    plain(&[Char('1')], Do::Sessions, "1", "sessions"),
    plain(&[Char('2')], Do::Calls, "2", "all calls"),
    plain(&[Char('3')], Do::Findings, "3", "findings"),
    plain(&[Char(']')], Do::NextFinding, "]", "the next finding, in its ladder"),
    plain(&[Char('[')], Do::FindingBefore, "[", "the finding before"),
    plain(&[Char('/')], Do::Search, "/", "search; in lists of calls also in their bodies"),
    plain(&[Char('n')], Do::Next, "n", "next place found"),
    plain(&[Char('N')], Do::Before, "N", "place found before"),
    plain(
        &[Char('f')],
        Do::Filter,
        "f",
        "filter a list: words, and column=pattern as in outcome=no-reply tool=entity_*",
    ),
    plain(&[Char('r')], Do::Raw, "r", "bodies as sent, or indented"),
    plain(&[Char(' ')], Do::Mark, "Space", "mark the call (the calls of the session, of the finding)"),
    plain(&[Char('u')], Do::Unmark, "u", "take all marks away"),
    plain(&[Char('s')], Do::Save, "s", "save the marked calls, else those at the cursor, as a bundle"),
    plain(&[Char('?'), KeyCode::F(1)], Do::Help, "?", "these keys"),
    plain(&[Char('q')], Do::Quit, "q", "leave (also Ctrl-C)"),
    control(&[Char('c')], Do::Quit),
    control(&[Char('b')], Do::PageUp),
    control(&[Char('f')], Do::PageDown),
    control(&[Char('l')], Do::Redraw),
    control(&[Char('z')], Do::Suspend),
];

/// What a key does, if anything.
pub fn meaning(key: &KeyEvent) -> Option<Do> {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    KEYS.iter().find(|k| k.control == control && k.on.contains(&key.code)).map(|k| k.does)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_means_two_things() {
        let mut all = vec![];
        for key in KEYS {
            for on in key.on {
                assert!(!all.contains(&(key.control, *on)), "{on:?}");
                all.push((key.control, *on));
            }
        }
        assert_eq!(meaning(&KeyEvent::new(Char('c'), KeyModifiers::CONTROL)), Some(Do::Quit));
        assert_eq!(meaning(&KeyEvent::new(Char('G'), KeyModifiers::SHIFT)), Some(Do::Last));
        assert_eq!(meaning(&KeyEvent::new(Char('x'), KeyModifiers::NONE)), None);
    }
}
