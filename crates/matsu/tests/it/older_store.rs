//! Stores of earlier versions: nothing has to be done to go on with them.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use matsu_core::secret;
use serde_json::{Value, json};

use crate::api::{Api, noop};
use crate::home::{Home, run};

/// The schema of the first version.
const FIRST_SCHEMA: u32 = 11;

/// The schema as it was, from the same files that made it.
fn first_store(path: &Path) -> rusqlite::Connection {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../matsu-store/migrations/sqlite");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let connection = rusqlite::Connection::open(path).unwrap();
    for file in &files[..FIRST_SCHEMA as usize] {
        connection.execute_batch(&std::fs::read_to_string(file).unwrap()).unwrap();
    }
    connection.pragma_update(None, "user_version", FIRST_SCHEMA).unwrap();
    connection
}

#[test]
fn the_token_of_an_older_store_is_the_owners_and_goes_on_working() {
    let home = Home::sqlite();
    std::fs::create_dir(home.data_dir()).unwrap();
    let store = first_store(&home.data("matsu.db"));
    let (own, named) = ("the-owner's-secret-of-an-older-version", "a-named-secret-of-an-older-version");
    for (id, name, secret) in [("tok_1", "local", own), ("tok_2", "laptop", named)] {
        let values = rusqlite::params![id, name, secret::hash(secret)];
        let sql =
            "INSERT INTO tokens (id, name, principal, secret_hash, created_at) VALUES (?1, ?2, 'user:local', ?3, 1)";
        store.execute(sql, values).unwrap();
    }
    drop(store);
    // As an older version, or the user, may have left them.
    std::fs::set_permissions(home.data_dir(), std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::write(home.data("token"), format!("{own}\n")).unwrap();
    std::fs::set_permissions(home.data("token"), std::fs::Permissions::from_mode(0o600)).unwrap();

    let daemon = home.serve();
    let task = daemon.api.submit(vec![noop()]);
    for secret in [own, named] {
        let api = Api { token: secret.to_owned(), ..daemon.api.clone() };
        assert_eq!(api.send("GET", &format!("/api/v1/tasks/{task}"), None).unwrap().status, 200, "{secret}");
        assert_eq!(api.send("GET", "/api/v1/nodes", None).unwrap().status, 200, "an admin's, as it was: {secret}");
    }
    assert_eq!(std::fs::read_to_string(home.data("token")).unwrap().trim(), own, "no other one was made");
    let listed = home.run_json(&["token", "list"]);
    let laptop = listed["items"].as_array().unwrap().iter().find(|token| token["name"] == "laptop").unwrap();
    assert_eq!((&laptop["role"], &laptop["expires_at"]), (&json!("admin"), &json!(null)), "{laptop}");
    let folder = std::fs::metadata(home.data_dir()).unwrap().permissions().mode() & 0o777;
    assert_eq!(folder, 0o700, "the folder is for its user alone");
}

/// Written by `scripts/store-fixture.sh`, with what must be found in it.
const WRITTEN_BY: &str = "30ef273";

#[test]
fn a_store_that_an_earlier_commit_wrote_is_migrated_and_everything_is_found() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/testdata");
    let expected = std::fs::read_to_string(folder.join(format!("store-{WRITTEN_BY}.json"))).unwrap();
    let expected: Value = serde_json::from_str(&expected).unwrap();
    // The results grow old, and must not be swept away before they are looked for.
    let home = Home::sqlite().with_variable("MATSU_KEEP_RESULTS", "3650");
    std::fs::create_dir(home.data_dir()).unwrap();
    let unpacked =
        Command::new("gzip").arg("-dc").arg(folder.join(format!("store-{WRITTEN_BY}.db.gz"))).output().unwrap();
    assert!(unpacked.status.success(), "{unpacked:?}");
    std::fs::write(home.data("matsu.db"), &unpacked.stdout).unwrap();
    std::fs::write(home.data("token"), expected["token"].as_str().unwrap()).unwrap();
    std::fs::set_permissions(home.data("token"), std::fs::Permissions::from_mode(0o600)).unwrap();

    let daemon = home.serve();
    assert_eq!(daemon.api.token, expected["token"].as_str().unwrap(), "the owner's token stays");
    let tasks = expected["tasks"].as_array().unwrap();
    assert!(tasks.len() >= 3, "{expected}");
    for task in tasks {
        let id = task["task_id"].as_str().unwrap();
        let found = daemon.api.get(&format!("/api/v1/tasks/{id}"));
        assert_eq!((&found["status"], &found["kind"]), (&task["status"], &task["kind"]), "{found}");
        let result = run(home.command(&["result", id]));
        assert_eq!(result.code == 0, task["status"] == "completed", "{result:?}");
    }
    let research = tasks.iter().find(|task| task["kind"] == "research").unwrap()["task_id"].clone();
    let materials = daemon.api.post("/api/v1/tools/get_materials", &json!({ "task_id": research }));
    assert!(!materials["claims"].as_array().unwrap().is_empty(), "{materials}");
    let messages = daemon.api.get(&format!("/api/v1/chats/{}/messages", expected["chat_id"].as_str().unwrap()));
    assert_eq!(
        messages["items"].as_array().unwrap().len(),
        usize::try_from(expected["messages"].as_u64().unwrap()).unwrap()
    );
    let tokens = home.run_json(&["token", "list"]);
    assert!(tokens["items"].as_array().unwrap().iter().any(|token| token["name"] == "laptop"), "{tokens}");
    let task = daemon.api.submit(vec![noop()]);
    assert_eq!(daemon.api.ended(&task, std::time::Duration::from_secs(30))["status"], "completed", "and work goes on");
}
