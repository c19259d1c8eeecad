//! The one suite that every store passes. A store's test file makes an empty store and names it:
//!
//! ```ignore
//! async fn empty(clock: Arc<dyn Clock>) -> UnderTest {
//!     UnderTest::new(MemoryStore::new(clock))
//! }
//!
//! holdpoint_testkit::store_conformance!(empty);
//! ```
//!
//! Each case becomes a test of its own, named after the behaviour. The rules are written down at the memory store.

pub mod appends;
pub mod audit;
pub mod bytes;
pub mod dispatch;
pub mod leases;
pub mod lists;
pub mod notices;
pub mod pauses;
pub mod retention;
pub mod rules;
pub mod sample;
pub mod sessions;
mod trial;

pub use trial::{RunPen, Trial, UnderTest};

/// Makes one test of each case of the suite, for the store that the given async function makes.
///
/// The function takes an `Arc<dyn Clock>` and gives an [`UnderTest`]. The calling crate needs `tokio` with `macros` and
/// `rt-multi-thread`.
#[macro_export]
macro_rules! store_conformance {
    ($make:path) => {
        $crate::store_conformance! { @each $make;
            appends: a_run_begins_at_revision_one;
            appends: each_append_moves_the_revision_on_by_one;
            appends: what_was_written_is_read_back_entry_by_entry;
            appends: an_append_of_many_events_is_one_entry;
            appends: an_append_without_events_is_a_fault;
            appends: loading_after_a_revision_gives_only_what_is_new;
            appends: a_run_that_nobody_began_is_not_there;
            appends: a_run_that_never_began_cannot_go_on;
            appends: a_run_cannot_begin_twice;
            appends: a_stale_writer_is_told_where_the_run_stands;
            appends: a_revision_ahead_of_the_run_is_a_conflict;
            appends: a_run_is_known_only_in_its_session;
            appends: a_refused_append_writes_nothing;
            appends: the_checks_come_in_their_order;
            appends: of_sixty_four_writers_on_one_revision_one_wins;
            appends: writers_that_read_again_all_get_their_turn;
            appends: the_same_run_under_sixty_four_beginnings_begins_once;
            sessions: an_agent_has_one_run_at_a_time_in_a_session;
            sessions: a_run_that_waits_keeps_the_session_busy;
            sessions: another_agent_or_session_is_not_kept_waiting;
            sessions: a_finished_run_makes_room;
            sessions: a_finished_run_makes_room_for_its_own_agent_only;
            sessions: a_finished_run_is_not_reopened_beside_another;
            sessions: of_sixty_four_runs_that_begin_together_one_does;
            sessions: event_numbers_count_events_not_entries;
            sessions: sessions_count_for_themselves;
            sessions: numbers_are_dense_when_runs_of_a_session_write_at_once;
            sessions: runs_are_listed_newest_first;
            sessions: entries_are_listed_in_order_with_their_runs;
            sessions: a_run_is_loaded_whole_from_among_others;
            sessions: an_entry_is_listed_from_its_middle_on;
            sessions: reading_on_from_the_last_number_has_neither_gap_nor_duplicate;
            sessions: names_that_look_alike_are_different_sessions;
            sessions: the_last_numbers_of_many_sessions_are_told_at_once;
            pauses: pauses_that_open_together_share_a_number;
            pauses: each_opening_in_a_session_has_the_next_number;
            pauses: a_pause_keeps_its_number_when_it_is_decided;
            pauses: a_pause_comes_back_as_it_was_written;
            pauses: a_pause_is_of_the_agent_that_asks;
            pauses: a_settled_pause_keeps_what_was_asked;
            pauses: pauses_are_listed_oldest_first;
            pauses: pauses_are_listed_by_status_session_agent_and_tool;
            pauses: pages_follow_without_gap_or_duplicate_while_pauses_open;
            pauses: pauses_of_one_moment_are_paged_exactly;
            pauses: pages_in_any_state_follow_the_order_of_opening;
            pauses: a_page_is_bounded;
            pauses: a_pause_is_never_due_early;
            pauses: due_pauses_come_earliest_first;
            pauses: only_open_pauses_with_a_deadline_are_due;
            pauses: the_next_deadline_is_the_earliest_of_an_open_pause;
            pauses: a_deadline_that_moves_is_due_at_its_new_time;
            pauses: a_decision_and_an_expiry_have_one_winner;
            leases: a_run_may_begin_under_a_lease;
            leases: a_standing_lease_keeps_everybody_from_taking_it;
            leases: a_lease_can_be_taken_over_the_moment_its_time_is_up;
            leases: who_lost_the_lease_is_fenced_off;
            leases: who_gave_the_lease_back_is_fenced_off;
            leases: a_late_holder_may_write_until_somebody_takes_over;
            leases: a_lease_that_was_never_given_out_cannot_be_held;
            leases: who_does_not_move_the_run_writes_beside_the_lease;
            leases: giving_back_lets_others_take_it;
            leases: finishing_ends_the_lease;
            leases: a_lease_is_renewed_from_now;
            leases: renewing_never_shortens_a_lease;
            leases: a_lost_lease_is_not_renewed;
            leases: giving_back_a_lost_lease_hurts_nobody;
            leases: a_run_that_is_not_there_cannot_be_claimed;
            leases: of_sixty_four_claims_one_wins;
            leases: the_stores_clock_decides_about_leases;
            leases: runs_at_work_that_nobody_moves_are_claimable;
            leases: the_run_left_alone_longest_comes_first;
            leases: a_note_on_the_side_does_not_cost_a_run_its_place;
            leases: epochs_only_grow;
            rules: a_rule_stands_in_its_session_as_it_was_made;
            rules: uses_are_counted_over_all_runs;
            rules: a_spent_rule_is_refused;
            rules: a_rule_taken_back_is_refused;
            rules: an_unknown_rule_is_refused;
            rules: a_rule_of_another_session_is_refused;
            rules: a_rule_past_its_time_is_refused;
            rules: a_rule_may_be_used_by_the_append_that_makes_it;
            rules: one_append_cannot_use_a_rule_more_often_than_it_may;
            rules: taking_back_what_is_not_there_changes_nothing;
            rules: a_refused_use_leaves_no_trace;
            rules: a_rule_with_ten_uses_settles_ten_calls_in_a_race;
            lists: a_session_knows_its_owner_and_its_times;
            lists: a_session_is_its_owners_where_a_run_says_so;
            lists: of_two_who_begin_a_session_one_owns_it;
            lists: sessions_are_listed_from_the_last_that_began;
            lists: runs_of_all_sessions_are_listed_from_the_last_id_on;
            lists: runs_are_listed_by_whose_the_session_is;
            lists: rules_of_all_sessions_are_listed_as_long_as_they_stand;
            lists: no_page_is_longer_than_a_page_may_be;
            retention: a_session_is_removed_whole;
            retention: the_audit_and_the_definitions_stay;
            retention: what_is_removed_must_be_older_to_the_millisecond;
            retention: a_session_with_an_unfinished_run_is_kept;
            retention: a_word_in_an_old_session_keeps_it;
            retention: no_more_are_removed_than_asked_for;
            retention: a_session_of_a_removed_name_begins_anew;
            retention: a_run_that_begins_while_its_session_is_removed_is_kept;
            audit: a_note_comes_back_as_it_was_written;
            audit: records_follow_one_another_over_all_sessions;
            audit: a_refused_append_leaves_no_record;
            audit: the_head_is_that_of_the_last_record;
            audit: records_are_read_in_pages;
            audit: the_chain_is_whole_when_many_write_at_once;
            notices: a_notice_waits_from_its_append_on;
            notices: a_notice_is_never_due_early;
            notices: a_refused_append_leaves_no_notice;
            notices: a_notice_that_is_there_is_left_as_it_is;
            notices: who_is_told_twice_in_an_append_has_one_notice;
            notices: a_claimed_notice_is_left_alone_until_its_hold_is_over;
            notices: what_came_of_an_attempt_is_kept;
            notices: a_notice_that_is_tried_again_is_due_at_its_time;
            notices: a_late_answer_changes_nothing;
            notices: a_notice_that_nobody_wrote_is_not_there;
            notices: the_end_of_a_pause_is_told_after_its_opening;
            notices: an_opening_that_was_given_up_holds_up_nothing;
            notices: an_opening_holds_up_only_its_own_pause_and_destination;
            notices: the_notice_that_is_due_longest_comes_first;
            notices: only_what_is_asked_for_is_claimed;
            notices: notices_are_listed_by_destination_and_state_in_pages;
            notices: no_page_of_notices_is_longer_than_a_page_may_be;
            notices: what_is_kept_of_an_attempt_is_bounded;
            notices: of_many_claims_each_notice_goes_to_one;
            dispatch: two_dispatchers_deliver_each_notice_once;
            dispatch: what_was_delivered_and_not_written_down_is_delivered_again_under_the_same_key;
            dispatch: the_end_is_told_with_what_was_kept_of_the_opening;
            bytes: odd_arguments_come_back_byte_for_byte;
            bytes: a_mebibyte_of_arguments_comes_back_byte_for_byte;
            bytes: odd_names_come_back_as_they_were;
            bytes: the_largest_times_and_numbers_come_back;
            bytes: definitions_come_back_and_are_kept_once;
            bytes: an_unknown_definition_is_not_there;
            bytes: what_was_read_does_not_change_with_the_store;
            bytes: the_store_says_what_it_promises;
        }
    };
    (@each $make:path; $($group:ident: $case:ident;)+) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                let trial = $crate::conformance::Trial::new($make).await;
                $crate::conformance::$group::$case(&trial).await;
            }
        )+
    };
}
