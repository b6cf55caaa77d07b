//! A thousand races between messages and waits, with callers that disconnect at random.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::home::until;

use super::stage::Stage;

const MESSAGES: i64 = 1_000;

/// Small numbers that do not repeat soon.
fn chance(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

#[test]
fn a_thousand_races_lose_nothing_and_double_nothing() {
    let stage = Arc::new(Stage::new());
    let (chat, agent) = stage.chatting("worker");
    let all_said = Arc::new(AtomicBool::new(false));
    let person = {
        let (stage, all_said, chat) = (Arc::clone(&stage), Arc::clone(&all_said), chat.clone());
        thread::spawn(move || {
            let mut seed = 7;
            for n in 1..=MESSAGES {
                assert_eq!(stage.say(&chat, &format!("message {n}")), n);
                thread::sleep(Duration::from_micros(chance(&mut seed) % 4_000));
            }
            all_said.store(true, Ordering::SeqCst);
        })
    };
    let mut seed = 11;
    let mut seen = BTreeSet::new();
    let mut after = 0;
    let began = Instant::now();
    while after < MESSAGES {
        assert!(began.elapsed() < Duration::from_secs(240), "only {after} came");
        if chance(&mut seed).is_multiple_of(4) {
            let hang_up = Duration::from_micros(chance(&mut seed) % 6_000);
            agent.call_and_hang_up("get_next_action", json!({ "timeout_seconds": 20, "after_seq": after }), hang_up);
        }
        let said = agent.next(json!({ "timeout_seconds": 20, "after_seq": after }));
        // A caller that disconnected may still be the newest for a moment.
        if said.body["superseded"] == true {
            continue;
        }
        assert_eq!(said.action(), "respond", "{said:?}");
        for seq in said.seqs() {
            assert!(seen.insert(seq), "{seq} came twice to a caller that acknowledges");
            assert_eq!(seq, after + 1, "none is skipped");
            after = seq;
        }
    }
    person.join().unwrap();
    assert!(all_said.load(Ordering::SeqCst));
    assert_eq!(seen.len(), usize::try_from(MESSAGES).unwrap());
    until("no waiter is left", Duration::from_secs(20), || (stage.waiters() == 0.0).then_some(()));
}

#[test]
fn a_tool_that_an_interrupt_overtakes_has_no_side_effect() {
    let stage = Arc::new(Stage::new());
    let (task, agent) = stage.working("worker");
    let chat = stage.open_chat("worker");
    let mut overtaken = 0;
    for n in 0..40 {
        let before = stage.chat(&chat)["last_seq"].as_i64().unwrap();
        let (blocker, id) = (Arc::clone(&stage), task.clone());
        let blocking = thread::spawn(move || blocker.steer(&id, "blocked"));
        let said = agent.call("send_message", json!({ "content": format!("message {n}") }));
        blocking.join().unwrap();
        let after = stage.chat(&chat)["last_seq"].as_i64().unwrap();
        if said.is_notice() {
            overtaken += 1;
            assert_eq!(after, before, "the order came first: nothing was said");
        } else {
            assert_eq!((said.body["ok"].as_bool(), after), (Some(true), before + 1), "{said:?}");
        }
        stage.steer(&task, "running");
    }
    assert!(overtaken > 0, "at least once the order came first");
}
