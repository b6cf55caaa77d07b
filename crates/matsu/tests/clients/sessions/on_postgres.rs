//! Agents that are started for chats and tasks, on PostgreSQL: the same as on the embedded store, through the same wires.

use super::stage::Stage;
use super::{started, staying};

#[test]
fn a_message_starts_the_agent_and_the_next_one_resumes_it() {
    started::starts_and_resumes(&Stage::on_postgres(&[]));
}

#[test]
fn a_question_parks_and_its_answer_goes_on() {
    started::answers_what_is_asked(&Stage::on_postgres(&[("MATSU_SLOTS_AGENT_CHAT", "1")]));
}

#[test]
fn it_stays_between_messages_ends_when_idle_and_comes_again() {
    staying::stays_and_comes_again(&Stage::on_postgres(&[("MATSU_SESSIONS_IDLE_END", "4")]));
}

#[test]
fn a_task_for_a_started_agent_runs_reports_and_stops_when_it_is_blocked() {
    staying::works_until_it_is_blocked(&Stage::on_postgres(&[]));
}
