//! What can be found, one rule a file. A rule's `doc` is its manual page.
//!
//! A rule looks at the joined world and claims findings; it never changes what another sees, but
//! for the contract's "at most one crossed and one orphaned finding a call", which [`claim::Claims`]
//! keeps: rules earlier in [`RULES`] come first.

pub mod batch;
pub mod claim;
pub mod crossed;
pub mod fault;
pub mod orphaned;
pub mod protocol;
pub mod server_log;
pub mod session;
pub mod stale;

use crate::join::World;
use crate::model::place::Hop;
use claim::Claims;

/// One rule.
pub struct Rule {
    /// `family/name`.
    pub name: &'static str,
    /// What a finding of it says, one clause.
    pub says: &'static str,
    /// Hops that it can name as at fault.
    pub faults: &'static [Hop],
    /// Manual text: evidence it needs, legal look-alikes, what it cannot tell, what to do.
    pub doc: &'static str,
    /// Claims its findings.
    pub check: fn(&World, &mut Claims<'_>),
}

/// Every rule. Order decides which of two claims about the same call stands.
pub static RULES: &[&Rule] = &[
    &crossed::id_collision::RULE,
    &crossed::wrong_id::RULE,
    &crossed::wrong_stream::RULE,
    &crossed::duplicate_reply::RULE,
    &crossed::foreign_body::RULE,
    &crossed::other_session::RULE,
    &crossed::at_client::RULE,
    &crossed::unplaced::RULE,
    &orphaned::accepted_only::RULE,
    &orphaned::lost_at_proxy::RULE,
    &orphaned::cut_off::RULE,
    &orphaned::no_reply::RULE,
    &orphaned::false_timeout::RULE,
    &orphaned::late_reply::RULE,
    &orphaned::never_sent::RULE,
    &orphaned::empty_success::RULE,
    &orphaned::stray_reply::RULE,
    &stale::window_404::RULE,
    &stale::stranded::RULE,
    &stale::wrong_status::RULE,
    &stale::reinit_storm::RULE,
    &session::shared::RULE,
    &session::reused_in_flight::RULE,
    &session::replica_split::RULE,
    &session::not_echoed::RULE,
    &protocol::schema_mismatch::RULE,
    &protocol::id_retyped::RULE,
    &protocol::get_stream::RULE,
];

/// The rule of a name.
pub fn rule(name: &str) -> Option<&'static Rule> {
    RULES.iter().find(|r| r.name == name).copied()
}

/// Checks every rule.
pub fn check(world: &World) -> claim::Checked {
    let mut claims = Claims::new(world);
    for rule in RULES {
        claims.rule = rule.name;
        (rule.check)(world, &mut claims);
    }
    let mut checked = claims.finish();
    server_log::complete(world, &mut checked.findings);
    checked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_every_rule_is_documented() {
        let mut names: Vec<_> = RULES.iter().map(|r| r.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), RULES.len());
        for r in RULES {
            assert!(r.name.contains('/') && !r.says.is_empty(), "{}", r.name);
            for part in ["Evidence:", "Looks like it and is legal:", "Cannot tell:", "What to do:"] {
                assert!(r.doc.contains(part), "{} lacks {part}", r.name);
            }
        }
    }
}
