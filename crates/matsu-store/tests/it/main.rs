//! The conformance suite: every case by name on every backend, and what only one backend can show.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::disallowed_methods, reason = "a test says what it expects")]
#![allow(clippy::cloned_ref_to_slice_refs, reason = "an array of one reads better in an expectation")]

mod cases;
mod harness;
mod model;
mod postgres_only;
mod sqlite_only;

/// One named test per backend and case: `postgres::fences::a_late_completion_is_refused`.
macro_rules! suite {
    ($backend:ident: $($module:ident { $($case:ident,)* })*) => {
        mod $backend {$(
            mod $module {$(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $case() {
                    let store = crate::harness::TestStore::open(crate::harness::Backend::$backend).await;
                    crate::cases::$module::$case(store).await;
                }
            )*}
        )*}
    };
}

macro_rules! on_every_backend {
    ($($cases:tt)*) => {
        suite! { memory: $($cases)* }
        suite! { sqlite: $($cases)* }
        suite! { postgres: $($cases)* }
    };
}

on_every_backend! {
    tasks {
        a_task_is_stored_as_it_was_given,
        an_unknown_task_is_not_found,
        unfinished_tasks_of_an_owner_are_counted_up_to_a_bound,
        tasks_are_listed_newest_first_in_pages,
        a_list_can_be_filtered,
        a_task_is_found_by_words_of_its_title_its_orders_and_its_results,
        a_child_is_one_deeper_and_bounded,
        pause_holds_queued_jobs_and_resume_lets_them_go,
        a_block_is_not_weakened_to_a_pause,
        a_paused_agent_run_is_taken_up_again_by_a_new_job,
        a_run_that_was_resumed_before_it_ended_goes_on,
        an_abandoned_wait_ends_with_its_day,
        a_resumed_wait_runs_again,
        a_finished_agent_task_expires_with_a_tombstone,
        a_decision_about_changes_is_stored_seen_and_taken_back,
        a_task_starts_when_every_task_before_it_is_over_or_one_has_failed,
        research_never_expires,
        tombstones_go_a_few_at_a_time,
    }
    queue {
        jobs_start_by_priority_then_time_then_insertion,
        one_call_keeps_its_insertion_order,
        a_delayed_job_waits_for_its_time,
        a_clock_set_back_does_not_put_a_job_off,
        enqueue_is_all_or_nothing,
        duplicates_are_named_and_not_queued,
        a_finished_job_frees_its_dedupe_key,
        a_closed_task_takes_no_jobs,
        an_owner_who_enqueues_resumes_his_own_pause,
        system_jobs_need_no_task,
        counts_and_status_follow_the_jobs,
        revisions_grow_and_mark_what_is_worth_a_turn,
        retries_wait_and_then_fail,
        parked_for_login_and_requeued,
        what_is_due_gets_in_line_when_a_claim_says_so,
        a_question_frees_the_permit_and_keeps_the_lease,
        many_claimers_never_get_the_same_job,
        kinds_that_a_node_cannot_run_are_left_alone,
        a_list_leaves_large_texts_where_they_are,
    }
    fences {
        a_late_completion_is_refused,
        a_second_completion_is_refused,
        a_write_after_cancel_is_refused,
        a_late_progress_or_checkpoint_is_refused,
        a_late_reservation_is_refused,
        a_renewal_after_reaping_is_refused,
        a_new_node_cannot_use_an_old_lease,
        a_cancel_that_comes_first_wins,
        a_completion_that_comes_first_wins,
        one_refused_finish_does_not_harm_its_neighbours,
        an_old_lease_beside_a_live_one_is_refused,
    }
    stopping {
        graceful_cancels_the_queue_and_lets_running_jobs_end,
        a_graceful_stop_that_cancels_jobs_is_news,
        immediate_cancels_everything,
        a_stop_is_idempotent_and_only_hardens,
        a_stopped_task_takes_nothing_back,
        a_stop_reaches_the_children,
        a_stop_reaches_below_an_ended_child,
        repeating_a_stop_changes_nothing,
        orders_tell_a_node_what_to_do,
    }
    scarce {
        permits_bound_what_runs_at_once,
        a_wider_slot_gets_more_permits,
        a_lent_permit_serves_a_descendant_and_comes_back,
        a_parked_job_regains_no_second_permit,
        inner_permits_are_bounded_and_end_with_the_job,
        a_job_holds_one_inner_permit_at_a_time,
        the_smallest_limit_of_all_live_nodes_counts,
        a_budget_is_never_exceeded,
        a_spent_budget_is_a_refusal,
        what_was_not_spent_comes_back,
        what_a_job_that_asks_had_set_aside_comes_back,
        turns_keep_their_distance,
        turns_can_be_held_and_are_never_brought_forward,
        a_clock_set_back_does_not_put_turns_off,
        pages_beyond_what_was_set_aside_cannot_be_spent,
    }
    recovery {
        a_dead_nodes_jobs_are_settled_by_kind,
        reaping_twice_changes_nothing,
        a_reaped_job_of_a_stopped_task_is_cancelled,
        partial_output_survives_its_owner,
        slots_are_counted_over_all_nodes,
        a_job_whose_owners_died_runs_alone_and_then_fails,
        a_job_that_survives_alone_is_like_any_other,
        a_new_checkpoint_ends_the_row_of_deaths,
        a_lone_job_waits_with_its_task,
        an_agent_of_a_chat_is_left_and_called_again_if_its_host_stays_away,
    }
    runs {
        output_is_read_in_parts_from_anywhere,
        a_long_output_keeps_its_beginning_and_its_end,
        what_is_stored_says_up_to_where_the_program_was_read,
        a_run_whose_host_stays_away_is_given_up,
        a_late_part_of_output_is_refused,
        a_conversation_belongs_to_one_agent_and_one_task_at_a_time,
        a_question_is_answered_once,
        the_work_of_a_run_whose_job_is_over_is_added_to_it_once,
        a_late_note_does_not_cover_a_question,
        what_a_run_said_goes_with_its_task,
    }
    idempotency {
        an_idempotency_key_returns_the_first_task,
        a_repeated_key_names_the_first_jobs_only,
        a_key_outlives_its_task_for_its_day,
        two_calls_with_one_key_at_once_make_one_task,
    }
    changes {
        every_visible_change_is_recorded_in_order,
        a_commit_wakes_its_topics_and_a_refusal_wakes_none,
        pruned_changes_do_not_move_the_cursor_back,
        what_is_too_old_goes_a_few_at_a_time,
        progress_of_many_jobs_is_one_change_of_their_task,
        concurrent_commits_are_all_seen_by_a_cursor,
    }
    evidence {
        a_claim_leads_back_to_its_page,
        new_evidence_bumps_the_revision,
        a_second_origin_bumps_the_revision,
        evidence_scores_its_claim,
        the_same_few_words_under_two_headings_are_two_claims,
        a_statement_in_nearly_the_same_words_is_one_claim_with_two_origins,
        evidence_and_checkpoint_are_one,
        late_evidence_is_refused,
        evidence_of_a_cancelled_search_is_left_out,
        a_private_page_is_its_owners_alone,
        a_page_read_again_keeps_what_it_still_has,
        the_same_claim_is_kept_once,
        the_same_statement_elsewhere_is_one_claim_with_two_origins,
        a_source_has_one_vote,
    }
    evidence_lists {
        claims_come_in_pages_most_confident_first,
        searches_are_listed_with_what_they_came_to,
        cleaning_a_task_leaves_others_alone,
        a_day_has_its_share,
    }
    corrections {
        one_login_holds_up_many_searches,
        a_finished_login_puts_its_searches_back,
        an_unresolved_login_expires,
        a_search_that_parks_after_its_login_was_resolved_is_found,
        the_newest_rule_counts_and_each_is_logged,
        a_rejected_claim_says_so_and_can_be_restored,
        a_corrected_edge_scores_anew_and_is_one_sample,
        a_rollback_restores_the_exact_version,
        evaluations_are_kept_as_they_were,
    }
    chats {
        an_agent_has_one_open_chat_in_a_project,
        numbers_grow_by_one_for_concurrent_writers,
        what_is_not_acknowledged_comes_again,
        speaking_acknowledges_what_came_over_the_same_connection,
        a_reply_is_awaited_until_a_message_replies,
        an_agent_that_does_not_come_leaves_one_line,
        ending_a_chat_tells_its_session,
    }
    turns {
        a_message_calls_the_agent_once_and_its_answer_acknowledges,
        what_a_job_asks_is_asked_in_its_chat,
        a_turn_that_was_answered_is_not_had_again,
        a_turn_that_was_cut_off_is_had_again_in_the_same_conversation,
        a_turn_under_way_is_read_as_it_was_handed_out,
        a_failed_start_is_tried_again_later_and_then_given_up,
        a_job_that_ends_without_a_word_leaves_a_line,
        who_comes_by_itself_is_not_started_beside,
    }
    sessions {
        a_task_comes_before_a_chat_and_nothing_is_an_end,
        each_run_of_a_task_has_a_session_that_outlives_neither_it_nor_its_successor,
        an_agent_that_comes_again_takes_over_its_dead_session,
        a_token_is_found_by_its_hash_and_lives_while_it_is_used,
        what_has_expired_is_swept_and_its_task_waits_again,
        a_report_ends_the_task_and_can_be_repeated,
        a_report_does_not_undo_what_a_person_decided,
        a_reassigned_task_is_out_of_its_old_agents_hands,
    }
    notifications {
        each_order_to_stop_makes_exactly_one_interrupt,
        a_reassigned_task_interrupts_who_had_it,
        an_interrupt_reaches_one_session_and_no_other,
        given_is_not_acknowledged,
        resuming_voids_what_was_not_delivered_and_notifies_the_rest,
        messages_to_a_busy_agent_make_one_notification,
        old_notifications_are_swept,
        a_write_that_an_interrupt_overtook_leaves_nothing,
        of_an_interrupt_and_a_write_at_once_one_comes_first,
        unread_results_are_listed,
    }
    notify {
        an_end_and_a_question_make_a_notice_for_each_channel_that_wants_it,
        a_notice_is_taken_by_one_node_and_comes_again_if_that_node_dies,
        notices_that_were_tried_as_one_message_stay_that_message,
        a_code_is_used_once_in_its_channel_and_one_node_reads_answers,
    }
    push {
        a_browser_is_one_subscription_of_its_user,
        a_subscription_ends_with_its_token_and_few_are_kept,
    }
    spent {
        a_run_that_is_noted_again_is_counted_once,
        each_owner_reads_its_own_runs_of_a_span,
    }
    schedules {
        a_time_fires_once_over_all_nodes,
        times_that_are_left_out_stand_in_the_history_with_the_reason,
        a_start_that_failed_is_a_failed_task_with_a_notice,
        a_firing_of_a_node_that_died_is_taken_again_and_settled_once,
        schedules_are_their_owners_and_found_by_name,
    }
    webhooks {
        a_delivery_is_stored_once_by_its_key_and_by_its_body,
        a_webhook_starts_at_most_one_task_a_minute_and_few_wait,
        a_delivery_of_a_node_that_died_is_taken_again_and_settled_once,
        webhooks_are_their_owners_and_found_by_name,
    }
    tokens {
        a_token_is_found_by_its_hash_until_it_is_revoked,
        a_live_name_is_taken,
        tokens_are_listed_in_pages_and_revoked_by_their_owner,
        a_user_has_folders_and_tokens_until_it_is_removed,
    }
    transcripts {
        what_was_appended_is_read_back_in_order,
        a_draft_is_replaced_and_goes_with_its_answer,
        a_name_is_the_owners_own_and_taken_only_on_purpose,
        an_ended_chat_takes_nothing_until_it_is_opened_again,
        a_chat_with_models_is_known_to_its_owner_only,
    }
}
