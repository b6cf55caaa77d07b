//! The real command lines when their daemon is killed in the middle of a turn, and when everything is.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use matsu_testkit::model_server::{Asked, Reply};
use serde_json::json;

use super::five::{Bed, for_each_of};
use crate::home::{kill, supervisors_in, until};

const SOON: Duration = Duration::from_secs(60);

/// A model that answers nothing before it may.
fn patient(may_answer: &Arc<AtomicBool>) -> impl FnMut(&Asked) -> Reply + Send + 'static {
    let may_answer = Arc::clone(may_answer);
    move |asked: &Asked| {
        while !may_answer.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(20));
        }
        let went_on = asked.messages.iter().any(|text| text.contains("Check what is done already"));
        Reply::text(if went_on { "finished after the restart" } else { "finished in one turn" })
    }
}

fn vendor_session(bed: &Bed, task: &str) -> String {
    until("the conversation has a name", SOON, || {
        let jobs = bed.daemon.http().rest("GET", &format!("/tasks/{task}/jobs"), &json!(null)).json();
        let output: serde_json::Value = serde_json::from_str(jobs["items"][0]["output"].as_str()?).ok()?;
        output["vendor_session"].as_str().map(str::to_owned)
    })
}

#[test]
fn a_turn_ends_although_its_daemon_is_killed_in_the_middle() {
    for_each_of(
        "daemon killed during a turn, the result arrives",
        |_| true,
        |case, place| {
            let may_answer = Arc::new(AtomicBool::new(false));
            let mut bed = Bed::new(case, place, false, patient(&may_answer));
            let task = bed.start(json!({ "message": "the only question" }));
            until("the model is asked", SOON, || (!bed.model.asked().is_empty()).then_some(()));
            kill(bed.daemon.pid());
            bed.serve_again(&[]);
            may_answer.store(true, Ordering::SeqCst);
            bed.completes(&task, "finished in one turn");
        },
    );
}

#[test]
fn a_conversation_is_resumed_after_everything_was_killed() {
    // Only a sealed run is resumed by itself.
    for_each_of(
        "everything killed, conversation resumed",
        |case| ["claude", "codex"].contains(&case.name),
        |case, place| {
            if !place.is_sealed() {
                return;
            }
            let may_answer = Arc::new(AtomicBool::new(false));
            let mut bed = Bed::new(case, place, false, patient(&may_answer));
            let task = bed.start(json!({ "message": "the only question" }));
            until("the model is asked", SOON, || (!bed.model.asked().is_empty()).then_some(()));
            let before = vendor_session(&bed, &task);
            kill(bed.daemon.pid());
            supervisors_in(bed.home.folder()).into_iter().for_each(kill);
            may_answer.store(true, Ordering::SeqCst);
            bed.serve_again(&[("MATSU_TEST_BOOT_ID", "another start of the machine")]);
            bed.completes(&task, "finished after the restart");
            assert_eq!(vendor_session(&bed, &task), before, "{}: another conversation", case.name);
        },
    );
}
