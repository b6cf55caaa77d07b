//! What a run plants in the state of its own program (settings, hooks, plugins, instructions) is gone with it.

use std::time::Duration;

use matsu_testkit::model_server::Reply;
use serde_json::json;

use super::cases::Case;
use super::five::{Bed, RUN_MAX, files_with, for_each};
use super::places::Place;
use crate::home::until;

const SOON: Duration = Duration::from_secs(20);

/// In two parts in every command, so that no conversation contains it.
const PLANTED: &str = "planted-by-a-run-71c3";

/// Names that one or another of the programs reads at its next start.
const NAMES: &[&str] = &[
    "settings.json",
    "config.toml",
    "hooks.json",
    "hooks/x.sh",
    "AGENTS.md",
    "CLAUDE.md",
    "GEMINI.md",
    "QWEN.md",
    "opencode.json",
    "plugins/x.json",
    "plugin/x.js",
    "extensions/x/gemini-extension.json",
    "commands/x.toml",
    "agents/x.md",
    "skills/x/SKILL.md",
    "policies/x.toml",
    "rules/x.rules",
    "projects/x/memory/MEMORY.md",
    "sessions/2026/01/01/hooks.json",
    "tmp/x/settings.json",
    "bin/rg",
    "snapshot/x/config",
    "mcp.json",
];

fn command(bed: &Bed) -> String {
    let (first, second) = PLANTED.split_at(8);
    let folders = bed.case.state.iter().map(|name| bed.home.path(name).display().to_string()).collect::<Vec<_>>();
    format!(
        "for d in {}; do for n in {}; do mkdir -p $d/$n 2>/dev/null && rmdir $d/$n; echo {first}\"\"{second} > $d/$n; done; done; \
         echo {first}\"\"{second} > $HOME/.claude.json; ls -R $HOME | wc -l; echo reached the end",
        folders.join(" "),
        NAMES.join(" ")
    )
}

/// Claude Code asks before a command writes into its own folder, whatever it may do otherwise.
fn allow(bed: &Bed, task: &str) {
    until("it asks or ends", RUN_MAX, || {
        let said = bed.daemon.http().call("get_task_status", &json!({ "task_id": task }));
        let said = &said["result"]["structuredContent"];
        if said["status"] == "input_required" {
            let (job, question) = (&said["question"]["job_id"], &said["question"]["id"]);
            let answer = json!({ "task_id": task, "job_id": job, "question_id": question, "option": "allow" });
            let said = bed.daemon.http().call("answer_question", &answer);
            assert_eq!(said["result"]["structuredContent"]["ok"], true, "{said}");
        }
        (said["status"] != "queued" && said["status"] != "running").then_some(())
    });
}

fn plants(case: &'static Case, place: &Place, is_logged_in: bool) {
    let line = std::sync::Arc::new(std::sync::Mutex::new(String::new()));
    let wanted = std::sync::Arc::clone(&line);
    let bed = Bed::with(case, place, is_logged_in, case.unbound, move |asked| {
        match (case.shell)(&wanted.lock().unwrap(), &asked.tools) {
            Some((name, arguments)) if asked.results.is_empty() => Reply::tool(&name, arguments),
            _ if asked.results.iter().any(|result| result.contains("reached the end")) => Reply::text("it was planted"),
            _ => Reply::text("no shell"),
        }
    });
    *line.lock().unwrap() = command(&bed);
    let begun = bed.begin(json!({ "message": "plant it", "mode": "workspace-write" }));
    let task = begun["task_id"].as_str().unwrap();
    allow(&bed, task);
    bed.completes(task, "it was planted");
    // The folder of a run stays until its end is stored, and is removed right after it.
    until("the folder of the run is removed", SOON, || {
        std::fs::read_dir(bed.home.data_dir().join("runs")).unwrap().next().is_none().then_some(())
    });
    // And its files a little later.
    until("its files are removed", SOON, || {
        let removed = std::fs::read_dir(bed.home.data_dir().join("removed"));
        removed.map_or(true, |mut entries| entries.next().is_none()).then_some(())
    });
    let mut left = files_with(bed.home.folder(), PLANTED);
    // Codex reads its instructions again while it runs, and they are then a part of its own conversation.
    left.retain(|path| !path.contains("/rollout-"));
    if place.is_sealed() {
        assert_eq!(left, Vec::<String>::new(), "{} {}", case.name, place.show());
    } else {
        let gap = "the settings of the agent's own program";
        assert!(begun["not_covered"].to_string().contains(gap), "{} {}: {begun}", case.name, place.show());
    }
}

#[test]
fn what_a_run_plants_in_its_own_state_is_gone_with_it() {
    for_each(
        "hooks and settings that a run writes are removed with the run (sealed), or the reply says that they are not",
        |case, place| {
            plants(case, place, true);
            plants(case, place, false);
        },
    );
}
