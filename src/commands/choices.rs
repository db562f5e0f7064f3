//! Arguments whose values have names: completions offer them, and help stays short.

use super::options::of_the_wire;
use crate::input::{client, log};
use crate::rules::RULES;
use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use std::ffi::OsStr;

/// Takes any text, and offers these to completions.
#[derive(Clone)]
pub struct Suggest(pub fn() -> Vec<&'static str>);

impl TypedValueParser for Suggest {
    type Value = String;

    fn parse_ref(&self, c: &clap::Command, arg: Option<&clap::Arg>, value: &OsStr) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(c, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new((self.0)().into_iter().map(PossibleValue::new)))
    }
}

/// Takes what `parse` takes, and offers `names` to completions.
#[derive(Clone)]
pub struct OneOf<T> {
    /// Gives the value of a name, or says what is expected.
    pub parse: fn(&str) -> Result<T, String>,
    /// Every name.
    pub names: fn() -> Vec<&'static str>,
}

impl<T: Clone + Send + Sync + 'static> TypedValueParser for OneOf<T> {
    type Value = T;

    fn parse_ref(&self, c: &clap::Command, arg: Option<&clap::Arg>, value: &OsStr) -> Result<T, clap::Error> {
        self.parse.parse_ref(c, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new((self.names)().into_iter().map(PossibleValue::new)))
    }
}

/// The names of all formats that can be read.
pub fn formats() -> Vec<&'static str> {
    let captures = of_the_wire().map(|(name, _)| name);
    captures.chain(log::FORMATS.iter().chain(client::FORMATS).map(|f| f.name)).collect()
}

/// Patterns of all rules of a family.
const FAMILIES: [&str; 5] = ["crossed/*", "orphaned/*", "stale/*", "session/*", "protocol/*"];

/// Every family as a pattern, and every rule.
pub fn rule_patterns() -> Vec<&'static str> {
    FAMILIES.into_iter().chain(RULES.iter().map(|r| r.name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::glob::glob;

    #[test]
    fn every_rule_has_a_family_and_every_family_a_rule() {
        for rule in RULES {
            assert_eq!(FAMILIES.iter().filter(|f| glob(f, rule.name)).count(), 1, "{}", rule.name);
        }
        assert!(FAMILIES.iter().all(|f| RULES.iter().any(|r| glob(f, r.name))));
    }
}
