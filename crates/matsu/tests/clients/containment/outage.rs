//! A run that calls while no daemon lives: its relay starts none and works in no store itself. A call to its socket is
//! held, and after the time for that it is answered truthfully; a new MCP connection waits for the next daemon.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::at_every_level;
use super::identity::way_back;
use crate::home::until;

const SOON: Duration = Duration::from_secs(20);

/// How long a call is held, and a busy machine's own delay.
const HELD: std::ops::Range<Duration> = Duration::from_secs(28)..Duration::from_secs(50);

#[test]
fn the_relay_of_a_run_starts_no_daemon_and_says_what_is_true() {
    at_every_level(|yard| {
        // Half a minute each, and the same relay and socket at both levels.
        if !yard.is_sealed() {
            return;
        }
        let (call, answered) = (yard.home.signal("call"), yard.home.path("project/answered.txt"));
        // Over MCP and over REST, at the same time.
        let script = format!(
            "echo begun; until [ -e {} ]; do sleep 0.05; done\n{} > mcp.txt 2>&1 &\n{} > rest.txt 2>&1\n\
             cat mcp.txt rest.txt > answered.part; mv answered.part answered.txt; sleep 600",
            call.display(),
            way_back("get_task_status '{}' use_agent '{\"cli_name\":\"script\",\"message\":\"true\"}'"),
            way_back("rest '[[\"GET\",\"/api/v1/tools\",null]]'"),
        );
        let begun = yard.start("project", &script, json!({ "cli_name": "back", "mode": "workspace-write" }));
        let task = begun["task_id"].clone();
        until("it runs", SOON, || {
            let said = yard.call("get_task_status", &json!({ "task_id": task, "tail": 1 }));
            said["tail"].as_str().is_some_and(|tail| tail.contains("begun")).then_some(())
        });
        let (daemon, _) = yard.home.relayed();
        yard.home.run(&["shutdown"]);
        until("the daemon has ended", SOON, || {
            (!std::path::Path::new(&format!("/proc/{daemon}/exe")).exists()).then_some(())
        });
        let began = Instant::now();
        std::fs::write(&call, "").unwrap();
        let said = until("the calls are answered", 3 * HELD.end, || {
            assert!(yard.home.announced().is_none(), "{}: the run started a daemon", yard.show());
            std::fs::read_to_string(&answered).ok()
        });
        println!("{}: after {:?}: {said}", yard.show(), began.elapsed());
        let lines: Vec<Value> = said.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let [rest] = lines.as_slice() else { panic!("{}: only the call over REST is answered: {said}", yard.show()) };
        assert!(rest.to_string().contains("retryable\":true"), "{}: {rest}", yard.show());
        assert_eq!(rest["status"], 503, "{}: {said}", yard.show());
        assert!(began.elapsed() > HELD.start, "{}: {:?}", yard.show(), began.elapsed());
        yard.home.run(&["shutdown", "--runs"]);
    });
}
