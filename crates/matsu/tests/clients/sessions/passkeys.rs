//! Passkeys: what comparing them costs, and that no answer and no log repeats one.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::json;

use crate::agent_runs::memory;
use crate::home::until;

use super::stage::{Agent, Stage};

const MIB: u64 = 1024 * 1024;

#[test]
fn six_hundred_agents_at_once_take_little_memory_and_give_it_back() {
    let stage = Stage::new();
    let (_, first) = stage.chatting("worker");
    let passkey = stage.agent("many");
    stage.open_chat("many");
    drop(first);
    let pid = stage.daemon.pid();
    let before = memory::now(pid);
    let (most, over) = (std::sync::atomic::AtomicU64::new(before), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                most.fetch_max(memory::resident(pid), Ordering::Relaxed);
                thread::sleep(Duration::from_millis(5));
            }
        });
        let calls: Vec<_> = (0..600)
            .map(|_| {
                let wire = Agent { http: stage.http().clone(), token: None };
                let wish = json!({ "agent_id": "many", "passkey": passkey, "project_id": "default" });
                scope.spawn(move || wire.call("authenticate", wish))
            })
            .collect();
        for call in calls {
            let said = call.join().unwrap();
            let code = said.body["error_code"].as_str().unwrap_or("");
            assert!(said.body["ok"] == true || code == "SESSION_CONFLICT" || code == "NOTHING_TO_DO", "{said:?}");
        }
        over.store(true, Ordering::Relaxed);
    });
    let peak = most.load(Ordering::Relaxed).saturating_sub(before);
    println!("600 at once: {} KiB more at the peak", peak / 1024);
    assert!(peak < 50 * MIB, "600 at once took {} KiB", peak / 1024);
    let after = until("the memory is given back", Duration::from_secs(20), || {
        let grown = memory::resident(pid).saturating_sub(before);
        (grown < 25 * MIB).then_some(grown)
    });
    println!("afterwards: {} KiB more", after / 1024);
}

#[test]
fn a_malformed_passkey_is_repeated_nowhere() {
    let stage = Stage::with(&[("MATSU_LOG_LEVEL", "debug")]);
    let wire = Agent { http: stage.http().clone(), token: None };
    for passkey in
        [json!(["canary-passkey-1"]), json!({ "key": "canary-passkey-2" }), json!("canary-passkey-3".repeat(20))]
    {
        let said = wire.call("authenticate", json!({ "agent_id": "a", "passkey": passkey, "project_id": "default" }));
        assert_eq!(said.code(), "INVALID_PARAMS", "{said:?}");
        assert!(said.text.contains("passkey") && !said.text.contains("canary"), "{said:?}");
        assert!(!said.body.to_string().contains("canary"), "{said:?}");
    }
    assert!(!stage.daemon.said().contains("canary"), "{}", stage.daemon.said());
}
