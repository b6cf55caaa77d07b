//! `wait.wake = "resume"`: a session that has ended is resumed with its news, once; one that lives never is.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::agent_runs::program;
use crate::home::{Home, kill, until};
use crate::stdio::Client;

const SOON: Duration = Duration::from_secs(60);

/// A command line named as Claude Code is. With a session to resume it notes how it was started; else it is a session of a
/// person: its hook says so, and it stays until it is ended.
fn claude(home: &Home) -> PathBuf {
    let (folder, woken) = (home.path("programs"), home.path("woken"));
    std::fs::create_dir_all(&folder).unwrap();
    let matsu = env!("CARGO_BIN_EXE_matsu");
    let script = format!(
        "#!/bin/sh\nif [ \"$2\" = --resume ]; then printf '%s|' \"$@\" \"$PWD\" >> '{woken}'; cat >> '{woken}'; \
         echo >> '{woken}'; exit 0; fi\n\
         printf '{{\"session_id\":\"%s\",\"cwd\":\"%s\",\"hook_event_name\":\"UserPromptSubmit\"}}' \"$1\" \"$PWD\" | \
         '{matsu}' --data-dir '{data}' hook prompt\necho ready > \"$PWD/ready-$1\"\nwhile :; do sleep 1; done\n",
        woken = woken.display(),
        data = home.data_dir().display(),
    );
    program(&folder.join("claude"), &script);
    folder
}

struct Session(Child);

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A person's session in a project.
fn session(home: &Home, programs: &Path, project: &Path, name: &str) -> Session {
    let mut command = home.of_its_user(programs.join("claude"));
    command.envs(home.settings()).arg(name).current_dir(project);
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let ready = project.join(format!("ready-{name}"));
    until("its hook has reported it", SOON, || ready.exists().then_some(()));
    Session(child)
}

/// Gives work away from a project, and forgets it.
fn give_away(home: &Home, project: &Path) -> String {
    let mut command: Command = home.command(&["mcp", "--tools", "agents", "--root", "."]);
    command.current_dir(project);
    let mut client = Client::shaken(command);
    let said = client.call("use_agent", &json!({ "cli_name": "script", "message": "echo x", "run_async": true }));
    let task = said["task_id"].as_str().unwrap_or_else(|| panic!("{said}")).to_owned();
    client.kill();
    task
}

/// The whole lines: of the last one a part may be written.
fn woken(home: &Home) -> Vec<String> {
    let text = std::fs::read_to_string(home.path("woken")).unwrap_or_default();
    text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')).map(str::to_owned).collect()
}

fn has_ended(home: &Home, task: &str) -> bool {
    let listed = home.run(&["tasks"]);
    listed["items"].as_array().unwrap().iter().any(|one| one["task_id"] == task && one["finished_at"] != Value::Null)
}

#[test]
fn a_session_that_has_ended_is_resumed_once_and_a_living_one_never() {
    let mut home = Home::new();
    matsu_testkit::fake_agents::write(&home.path(".config/matsu/agents")).unwrap();
    let programs = claude(&home);
    home.set("PATH", &format!("{}:{}", programs.display(), std::env::var("PATH").unwrap()));
    home.set("MATSU_WAIT_WAKE", "resume");
    home.set("MATSU_WAIT_WAKE_AFTER", "1");
    let daemon = home.serve();
    let (ended, lives) = (home.path("ended"), home.path("lives"));
    for folder in [&ended, &lives] {
        std::fs::create_dir_all(folder).unwrap();
    }
    drop(session(&home, &programs, &ended, "s-ended"));
    let living = session(&home, &programs, &lives, "s-lives");
    // Its session lives, so nothing resumes it.
    let task = give_away(&home, &lives);
    until("it has ended", SOON, || has_ended(&home, &task).then_some(()));
    let other = give_away(&home, &ended);
    let first = until("the session is resumed", SOON, || woken(&home).first().cloned());
    let place = ended.canonicalize().unwrap().display().to_string();
    assert!(first.starts_with(&format!("-p|--resume|s-ended|{place}|Matsu: work that you gave to Matsu")), "{first}");
    assert!(first.contains(&other) && !first.contains(&task), "{first}");

    // A daemon that starts again does not wake for the same result.
    drop(daemon);
    let _daemon = home.serve();
    let next = give_away(&home, &ended);
    until("it is resumed for the next result", SOON, || (woken(&home).len() == 2).then_some(()));
    let lines = woken(&home);
    assert!(lines[1].contains(&next) && !lines[1].contains(&other), "{lines:?}");
    let noted = std::fs::read_to_string(home.data_dir().join("wakes.jsonl")).unwrap();
    assert_eq!(noted.lines().count(), 2, "each is counted: {noted}");

    // The living one was never resumed, though its result was unread all the while; when it ends, it is.
    kill(living.0.id());
    drop(living);
    until("now it is resumed", SOON, || (woken(&home).len() == 3).then_some(()));
    assert!(woken(&home)[2].contains("s-lives") && woken(&home)[2].contains(&task), "{:?}", woken(&home));
}

#[test]
fn without_the_setting_nothing_is_noted_and_nothing_resumed() {
    let home = Home::new();
    matsu_testkit::fake_agents::write(&home.path(".config/matsu/agents")).unwrap();
    let programs = claude(&home);
    let _daemon = home.serve();
    let project = home.path("project");
    std::fs::create_dir_all(&project).unwrap();
    drop(session(&home, &programs, &project, "s-1"));
    assert!(!home.data_dir().join("parents").exists());
}
