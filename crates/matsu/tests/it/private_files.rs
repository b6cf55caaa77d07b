//! The data directory is for its user alone: every file in it, whatever was done with it, and also if the folder was
//! there before.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use serde_json::json;

use crate::api::{noop, until};
use crate::home::Home;
use crate::model_chats;

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

/// Everything below a folder that others may do something with. What a run puts into the temporary folder that is its
/// own is not Matsu's; the folder itself is closed.
fn open_to_others(folder: &Path, found: &mut Vec<String>, seen: &mut usize) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        *seen += 1;
        if !kind.is_symlink() && mode(&path) & 0o077 != 0 {
            found.push(format!("{} {:o}", path.display(), mode(&path)));
        }
        let is_of_run = path.file_name().is_some_and(|name| name == "tmp");
        if kind.is_dir() && !is_of_run {
            open_to_others(&path, found, seen);
        }
    }
}

#[test]
fn every_file_in_the_data_directory_is_closed_to_others() {
    let home = model_chats::home();
    let data = home.data_dir();
    fs::create_dir_all(&data).unwrap();
    // As an older version, or the user, may have left them.
    fs::set_permissions(&data, Permissions::from_mode(0o755)).unwrap();
    for name in ["documents.db", "notes.txt"] {
        fs::write(home.data(name), "").unwrap();
        fs::set_permissions(home.data(name), Permissions::from_mode(0o644)).unwrap();
    }
    let documents = home.path("documents");
    fs::create_dir_all(&documents).unwrap();
    fs::write(documents.join("a.md"), "# Waiting\nLong polling holds a request open until something happens.\n")
        .unwrap();
    let home = home.with_variable("MATSU_RESEARCH_FOLDERS", documents.display().to_string());

    let agents = home.path("agents");
    fs::create_dir_all(&agents).unwrap();
    let definition = "name = \"sh\"\ncommand = \"/bin/sh\"\nargs = [\"-s\"]\nprompt = \"stdin\"\noutput = \"text\"\n[modes.read-only]\n";
    fs::write(agents.join("sh.toml"), definition).unwrap();
    let config = fs::read_to_string(home.path("config.toml")).unwrap();
    let roots = format!("[agents]\nroots = \"{}\"\n", documents.display());
    fs::write(home.path("config.toml"), format!("{config}{roots}")).unwrap();

    let daemon = model_chats::serve(&home);
    let chat = model_chats::open(&daemon, &["echo"]);
    model_chats::say(&daemon, &chat, "@echo hello");
    model_chats::hears(&daemon, &chat, "completed", "You said");
    let wish =
        json!({ "cli_name": "sh", "message": "umask 0; touch ~/open; echo under way; sleep 60", "run_async": true });
    let run = daemon.api.post("/api/v1/tools/use_agent", &wish);
    let run = run["task_id"].as_str().unwrap_or_else(|| panic!("{run}")).to_owned();
    until("the run says something", Duration::from_secs(30), || {
        daemon.api.task(&run).to_string().contains("under way").then_some(())
    });
    let task = daemon.api.submit(vec![noop()]);
    daemon.api.ended(&task, Duration::from_secs(30));
    home.run(&["research", "What does long polling hold open?", "--dir", documents.to_str().unwrap()]).good();
    home.run(&["backup", home.data("copy.db").to_str().unwrap()]).good();
    home.run(&["open", "--print"]).good();
    until("the index is written", Duration::from_secs(30), || home.data("documents.db-wal").exists().then_some(()));

    assert_eq!(mode(&data), 0o700, "the folder itself");
    let (mut found, mut seen) = (Vec::new(), 0);
    open_to_others(&data, &mut found, &mut seen);
    assert!(seen >= 12, "only {seen} files: nothing was done");
    assert!(found.is_empty(), "others may reach {found:#?}");
}

#[test]
fn a_folder_that_all_users_share_is_no_data_directory() {
    let home = Home::sqlite();
    let shared = home.path("shared");
    fs::create_dir(&shared).unwrap();
    fs::set_permissions(&shared, Permissions::from_mode(0o1777)).unwrap();
    let mut command = home.bare(&["serve", "--port", "0"]);
    command.arg("--data-dir").arg(&shared);
    let refused = crate::home::run(command);
    assert!(refused.code == 1 && refused.err.contains("all users share"), "{refused:?}");
    assert_eq!(mode(&shared), 0o1777);
}

#[test]
fn what_connect_writes_is_for_its_user() {
    let home = Home::sqlite();
    let file = home.path(".claude.json");
    fs::write(&file, "{\"login\": \"secret\"}\n").unwrap();
    fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
    home.run(&["connect", "claude", "--yes"]).good();
    assert_eq!(mode(&file), 0o640, "what was there keeps its permissions");
    fs::remove_file(&file).unwrap();
    home.run(&["connect", "--undo"]).good();
    home.run(&["connect", "claude", "--yes"]).good();
    assert_eq!(mode(&file), 0o600, "what is new is closed to others from the start");
}
