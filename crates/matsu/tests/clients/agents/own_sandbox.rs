//! Codex confines its commands with a sandbox of its own. Inside a sealed run it works; where it cannot, it is switched
//! off, and the reply names what that costs.

use std::sync::{Arc, Mutex};

use matsu_testkit::model_server::Reply;
use serde_json::json;

use super::five::{Bed, for_each_of};

/// Tries what only the sandbox of Codex stops (a connection), and what both stop or allow (a file in the directory).
fn command(port: &str) -> String {
    format!(
        "echo x > made.txt && echo wrote; python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {port})); \
         print(\"connec\" + \"ted\")' 2>&1; echo reached the end"
    )
}

/// What a command printed in a run of this mode, and what the reply says is not covered.
fn printed(bed: &Bed, printed: &Mutex<Vec<String>>, mode: &str) -> (String, String) {
    printed.lock().unwrap().clear();
    let begun = bed.begin(json!({ "message": "run it", "mode": mode }));
    bed.completes(begun["task_id"].as_str().unwrap(), "finished");
    (printed.lock().unwrap().join("\n"), begun["not_covered"].to_string())
}

#[test]
fn codex_runs_commands_in_its_own_sandbox_inside_ours_or_the_reply_says_not() {
    for_each_of(
        "its sandbox works inside Matsu's, or is off and the reply says so",
        |case| case.name == "codex",
        |case, place| {
            let results = Arc::new(Mutex::new(Vec::new()));
            let seen = Arc::clone(&results);
            let port = Arc::new(Mutex::new(String::new()));
            let wanted = Arc::clone(&port);
            let bed = Bed::new(case, place, false, move |asked| {
                match (case.shell)(&command(&wanted.lock().unwrap()), &asked.tools) {
                    Some((name, arguments)) if asked.results.is_empty() => Reply::tool(&name, arguments),
                    _ => {
                        seen.lock().unwrap().extend(asked.results.clone());
                        Reply::text("finished")
                    }
                }
            });
            let url = bed.model.url();
            url.rsplit(':').next().unwrap().trim_end_matches('/').clone_into(&mut port.lock().unwrap());
            let made = bed.home.path("work/made.txt");
            for mode in ["read-only", "workspace-write"] {
                let (output, not_covered) = printed(&bed, &results, mode);
                assert!(output.contains("reached the end"), "{} {mode}: {output}", place.show());
                assert_eq!(made.exists(), mode == "workspace-write", "{} {mode}: {output}", place.show());
                let is_off = not_covered.contains("the sandbox of codex");
                assert_eq!(output.contains("connected"), is_off, "{} {mode}: {not_covered}: {output}", place.show());
                // Root may not be mapped a second time, so it has no namespaces inside those of its run.
                let is_root = place.show().ends_with("root");
                assert_eq!(is_off, !place.is_sealed() || is_root, "{} {mode}: {not_covered}", place.show());
                println!("{} {mode}: {output}", place.show());
            }
        },
    );
}
