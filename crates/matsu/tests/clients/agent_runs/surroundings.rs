//! Where a run is and what it sees: directory, environment, system prompt.

use serde_json::json;

use super::{Bench, end_of, start, start_with};

#[test]
fn a_run_is_in_its_directory_inside_the_roots_and_never_where_the_daemon_is() {
    let bench = Bench::new();
    std::fs::create_dir_all(bench.root.join("docs")).unwrap();
    std::os::unix::fs::symlink("/", bench.root.join("everything")).unwrap();
    let root = bench.root.canonicalize().unwrap();
    let mut client = bench.client();
    let task = start(&mut client, "pwd -P");
    assert_eq!(end_of(&mut client, &task)["result"], format!("{}\n", root.display()));
    let arguments = json!({ "cli_name": "script", "message": "pwd -P", "working_directory": "docs" });
    let said = client.call("use_agent", &arguments);
    assert_eq!(
        (&said["result"], &said["working_directory"]),
        (&json!(format!("{}/docs\n", root.display())), &json!("docs"))
    );
    let said =
        client.call("use_agent", &json!({ "cli_name": "script", "message": "pwd", "working_directory": "everything" }));
    assert_eq!(said["error_code"], "FORBIDDEN", "a link is resolved first: {said}");
    let mut rootless = crate::stdio::Client::legacy(&bench.home, &[]);
    let said = rootless.call("use_agent", &json!({ "cli_name": "script", "message": "pwd -P; ls -A | wc -l" }));
    let result = said["result"].as_str().unwrap();
    assert!(result.contains("/scratch/") && result.ends_with("\n0\n"), "{said}");
    assert!(said["message"].as_str().unwrap().contains("scratch directory"), "{said}");
}

#[test]
fn the_environment_is_an_allow_list_and_no_loader_passes_in_any_letter_case() {
    let bench = Bench::new();
    let mut command = bench.home.command(&["mcp", "--tools", "all", "--root", bench.root.to_str().unwrap()]);
    command.env("SECRET_KEY", "canary-key").env("OTHER_SECRET", "canary-other").env("LD_LIBRARY_PATH", "/nowhere");
    let mut client = crate::stdio::Client::shaken(command);
    let task = start_with(&mut client, "env", json!({ "env": { "GOOD": "yes" } }));
    let end = end_of(&mut client, &task);
    let seen = end["result"].as_str().unwrap();
    // That it has the key can be seen, and the key cannot.
    assert!(seen.contains("GOOD=yes") && seen.contains("SECRET_KEY=[redacted: SECRET_KEY]"), "{seen}");
    assert!(seen.contains("PATH=") && !seen.contains("canary-key"), "{seen}");
    assert!(!seen.contains("canary-other") && !seen.contains("LD_LIBRARY_PATH"), "{seen}");
    for name in ["LD_PRELOAD", "ld_preload", "X_BASE_URL", "PATH", "OTHER_SECRET"] {
        let arguments = json!({ "cli_name": "script", "message": "env", "env": { name: "canary-value" } });
        let said = client.call("use_agent", &arguments);
        assert_eq!(said["error_code"], "INVALID_PARAMS", "{said}");
        assert!(said["error"].as_str().unwrap().contains(name) && !said.to_string().contains("canary-value"), "{said}");
    }
    let log = std::fs::read_to_string(bench.home.data_dir().join("daemon.log")).unwrap();
    assert!(!log.contains("canary"), "secrets are not logged");
}

#[test]
fn the_longest_system_prompt_arrives_in_any_script_and_in_no_process_list() {
    let bench = Bench::new();
    let mut client = bench.client();
    for letter in ["x", "待"] {
        let system = letter.repeat(100_000);
        let script = "wc -c < \"$SYSTEM_FILE\"; tr '\\0' '\\n' < /proc/$$/cmdline | wc -c";
        let arguments = json!({ "cli_name": "script", "message": script, "system_prompt": system });
        let said = client.call("use_agent", &arguments);
        let numbers: Vec<usize> = said["result"]
            .as_str()
            .unwrap_or_else(|| panic!("{said}"))
            .split_whitespace()
            .map(|n| n.parse().unwrap())
            .collect();
        assert_eq!(numbers[0], system.len());
        assert!(numbers[1] < 1_000, "the command line stays short: {numbers:?}");
    }
}
