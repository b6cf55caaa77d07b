//! Passkeys: what comparing them costs, and that no answer and no log repeats one.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::agent_runs::memory;
use crate::home::until;
use crate::http::Http;

use super::stage::{Agent, Stage};

const MIB: u64 = 1024 * 1024;

/// With as much patience as 600 comparisons in a row may need on a busy machine.
fn authenticate(http: &Http, wish: &Value) -> (u16, String) {
    let mut stream = TcpStream::connect(http.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(300))).unwrap();
    let body = wish.to_string();
    let head = format!(
        "POST /api/v1/tools/authenticate HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        http.address,
        http.token,
        body.len()
    );
    stream.write_all((head + &body).as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    (answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0), answer)
}

#[test]
fn six_hundred_agents_at_once_take_little_memory_and_give_it_back() {
    let stage = &Stage::new();
    let passkey = stage.agent("many");
    stage.open_chat("many");
    stage.authenticated("many", &passkey);
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
                let wish = json!({ "agent_id": "many", "passkey": passkey, "project_id": "default" });
                scope.spawn(move || authenticate(stage.http(), &wish))
            })
            .collect();
        for call in calls {
            let (status, said) = call.join().unwrap();
            assert_eq!(status, 200, "{said}");
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
    assert!(!stage.daemon.printed().contains("canary"), "{}", stage.daemon.printed());
}
