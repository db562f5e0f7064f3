//! Any keys at any size: the screen is as high and no wider than the terminal, and nothing panics.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use crosswire::browse::{Browser, Then, keys::KEYS};
use crosswire::model::options::{AnalyzeOptions, ReadOptions};
use crosswire::model::report::Report;
use crosswire::report::RenderOptions;
use crosswire::report::view::View;
use proptest::prelude::*;
use std::sync::OnceLock;

fn report() -> &'static Report {
    static REPORT: OnceLock<Report> = OnceLock::new();
    REPORT.get_or_init(|| {
        let input = |case: &str, name: &str| super::fixture(case).join(name).to_str().unwrap().to_owned();
        let inputs = [
            input("02-crossed-id-collision", "backend.pcap"),
            input("04-stale-404-window", "front.pcap"),
            input("04-stale-404-window", "client.jsonl"),
        ];
        let options = AnalyzeOptions { exchanges: true, bodies: true, details: true, ..AnalyzeOptions::default() };
        crosswire::analyze::run(&inputs, &ReadOptions::default(), &options).unwrap()
    })
}

#[derive(Clone, Debug)]
enum Act {
    Press(KeyEvent),
    Resize(usize, usize),
}

fn act() -> impl Strategy<Value = Act> {
    let known = (0..KEYS.len(), 0usize..3).prop_map(|(n, which)| {
        let key = &KEYS[n];
        let modifiers = if key.control { KeyModifiers::CONTROL } else { KeyModifiers::NONE };
        Act::Press(KeyEvent::new(key.on[which % key.on.len()], modifiers))
    });
    let typed = any::<char>().prop_map(|c| Act::Press(KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE)));
    let enter = Just(Act::Press(KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE)));
    let size = (1usize..160, 1usize..50).prop_map(|(w, h)| Act::Resize(w, h));
    prop_oneof![6 => known, 2 => typed, 3 => enter, 1 => size]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn any_keys(acts in prop::collection::vec(act(), 1..60), ascii in any::<bool>()) {
        let view = View::new(report());
        let mut size = (80, 24);
        let options = RenderOptions { ascii, ..RenderOptions::default() };
        let mut browser = Browser::new(&view, options, size);
        for act in acts {
            match act {
                Act::Resize(w, h) => {
                    size = (w, h);
                    browser.resize(size);
                }
                Act::Press(key) => {
                    if let Then::Save(path, calls) = browser.key(&key) {
                        prop_assert!(!calls.is_empty() && !path.exists());
                    }
                }
            }
            let lines = browser.draw();
            prop_assert_eq!(lines.len(), size.1);
            for line in &lines {
                prop_assert!(line.width() <= size.0, "{} > {}: {}", line.width(), size.0, line.text());
                prop_assert!(!ascii || line.text().is_ascii(), "{}", line.text());
            }
        }
    }
}
