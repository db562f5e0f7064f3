//! Every rule has a test that makes it fire and one that comes near and must not.

/// Makes a test of each function, which the table below names too.
macro_rules! tests {
    ($($(#[$attribute:meta])* $name:ident),* $(,)?) => {
        mod tests {
            $(#[test] $(#[$attribute])* fn $name() { super::$name(); })*
        }
    };
}
pub(crate) use tests;
/// Rule, tests that make it fire, tests that come near.
type Row = (&'static str, &'static [fn()], &'static [fn()]);

/// Rules that packets alone cannot show have their tests in a table beside those of the logs.
const OF_LOGS: &[&str] = &[
    "crossed/at-client",
    "crossed/unplaced",
    "orphaned/never-sent",
    "orphaned/empty-success",
    "orphaned/false-timeout",
];

use crate::{collision, crossed, orphaned, protocol, revisions, seeded, session, stale};

const TABLE: &[Row] = &[
    (
        "crossed/id-collision",
        &[
            collision::first_ends_first,
            collision::no_overlap_on_the_wire,
            collision::number_and_string,
            seeded::ids_collide,
        ],
        &[
            collision::second_ends_first,
            collision::both_answered,
            collision::stateless,
            collision::constant_id_in_sequence,
        ],
    ),
    (
        "crossed/wrong-id",
        &[crossed::ids_exchanged, seeded::ids_swapped],
        &[crossed::server_requests_with_the_same_numbers, orphaned::errors_with_made_up_ids],
    ),
    (
        "crossed/wrong-stream",
        &[crossed::on_another_post_beside_its_own, crossed::on_the_get_stream, seeded::streams_swapped],
        &[crossed::notifications_on_the_get_stream, revisions::replies_on_the_get, revisions::resumed],
    ),
    (
        "crossed/duplicate-reply",
        &[crossed::twice_on_its_own_stream, crossed::again_on_a_later_stream, seeded::copies],
        &[revisions::replayed, crossed::equal_replies_to_equal_questions],
    ),
    (
        "crossed/foreign-body",
        &[crossed::bodies_swapped, crossed::bodies_told_by_shape, seeded::bodies_swapped],
        &[crossed::results_that_name_a_siblings_argument, crossed::plain_text_for_once, revisions::tasks],
    ),
    (
        "crossed/other-session",
        &[crossed::into_another_session, crossed::swapped_between_sessions, revisions::crossed_on_the_gets],
        &[crossed::equal_ids_in_two_sessions],
    ),
    ("orphaned/accepted-only", &[orphaned::only_202], &[orphaned::what_202_is_for, revisions::replies_on_the_get]),
    ("orphaned/lost-at-proxy", &[orphaned::reply_lost_at_the_proxy], &[orphaned::nothing_lost_at_the_proxy]),
    (
        "orphaned/cut-off",
        &[orphaned::reset_by_the_server, orphaned::reset_by_the_caller, orphaned::gateway_errors],
        &[orphaned::closed_after_the_reply, revisions::closing_cancels, revisions::listening],
    ),
    (
        "orphaned/no-reply",
        &[orphaned::ends_without_a_message, orphaned::silent_for_long, seeded::replies_dropped],
        &[orphaned::cancelled, orphaned::input_ends_first, orphaned::session_deleted_meanwhile],
    ),
    (
        "orphaned/late-reply",
        &[orphaned::after_the_caller_closed],
        &[orphaned::half_close_right_after_the_request, orphaned::cancelled],
    ),
    (
        "orphaned/stray-reply",
        &[orphaned::id_of_no_request, orphaned::id_of_no_request_on_a_get_stream],
        &[orphaned::asked_before_the_capture, revisions::batches_with_a_broken_member],
    ),
    (
        "stale/404-window",
        &[stale::call_sent_again, stale::call_lost, stale::used_after_delete],
        &[stale::other_404s, stale::unknown_method, stale::refusals_that_mean_nothing],
    ),
    ("stale/stranded", &[stale::never_starts_anew], &[stale::watched_too_short, stale::other_404s]),
    ("stale/wrong-status", &[stale::other_statuses], &[stale::other_400s]),
    ("stale/reinit-storm", &[stale::session_after_session], &[stale::sessions_that_are_used]),
    (
        "session/shared",
        &[session::two_numberings_side_by_side],
        &[session::one_numbering_from_ten_addresses, session::one_after_the_other],
    ),
    (
        "session/id-reused-in-flight",
        &[collision::both_answered],
        &[collision::same_message_again, collision::constant_id_in_sequence, collision::stateless],
    ),
    ("session/replica-split", &[session::known_by_turns], &[session::answered_while_it_ended]),
    ("session/not-echoed", &[session::never_sent_back], &[session::not_asked_for, revisions::probing]),
    (
        "protocol/schema-mismatch",
        &[protocol::result_breaks_the_schema],
        &[protocol::results_that_need_not_conform, protocol::schema_listed_anew],
    ),
    ("protocol/id-retyped", &[protocol::id_of_another_type], &[protocol::ids_of_every_type_come_back]),
    (
        "protocol/get-stream",
        &[protocol::dropped_again_and_again, protocol::refused_again_and_again],
        &[protocol::get_streams_that_end_rightly],
    ),
];

#[test]
fn every_rule_has_a_test_that_fires_and_one_that_does_not() {
    let of_logs = include_str!("../vantages/of_logs.rs");
    let (_, of_logs) = of_logs.split_once("const TABLE").unwrap();
    for rule in OF_LOGS {
        assert!(of_logs.contains(&format!("(\"{rule}\", ")), "{rule} has no pair of tests beside those of the logs");
    }
    for rule in crosswire::rules::RULES {
        let row = TABLE.iter().find(|(name, ..)| *name == rule.name);
        let tested = row.is_some_and(|(_, fires, near)| !fires.is_empty() && !near.is_empty());
        assert!(tested || OF_LOGS.contains(&rule.name), "{} has no pair of tests in the table", rule.name);
    }
    for (name, ..) in TABLE {
        assert!(crosswire::rules::rule(name).is_some(), "{name} is no rule");
    }
}
