//! Settings and definitions of agents that change while a daemon runs: it goes by them, and `config show` names the rest.

use std::time::Duration;

use serde_json::{Value, json};

use crate::api::until;
use crate::home::{Daemon, Home};

/// A change is looked for every second, and read when it has settled.
const SOON: Duration = Duration::from_secs(20);

fn write(home: &Home, name: &str, text: &str) {
    let path = home.path(".config/matsu").join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn agents(daemon: &Daemon) -> Value {
    daemon.api.post("/api/v1/tools/list_agents", &json!({ "probe": false }))
}

fn agent(daemon: &Daemon, name: &str) -> Option<Value> {
    let listed = agents(daemon);
    listed["agents"].as_array().unwrap().iter().find(|agent| agent["name"] == name).cloned()
}

fn in_use(home: &Home, key: &str) -> Value {
    let shown = home.run_json(&["config", "show"]);
    shown.as_array().unwrap().iter().find(|row| row["key"] == key).expect("a known setting")["in_use"].clone()
}

fn definition(command: &str) -> String {
    format!("name = \"quick\"\ncommand = \"{command}\"\nprompt = \"stdin\"\noutput = \"text\"\n")
}

#[test]
fn a_definition_is_there_as_soon_as_its_file_is() {
    let home = Home::sqlite();
    let daemon = home.serve();
    assert_eq!(agent(&daemon, "quick"), None);
    write(&home, "agents/quick.toml", &definition("cat"));
    until("the agent is known", SOON, || agent(&daemon, "quick"));
    write(&home, "agents/quick.toml", &definition("tac"));
    until("the change is known", SOON, || agent(&daemon, "quick").filter(|agent| agent["command"] == "tac"));

    write(&home, "agents/quick.toml", "name = 3");
    let broken = until("the mistake is named", SOON, || agents(&daemon)["broken"].get(0).cloned());
    assert!(broken["file"].as_str().unwrap().ends_with("quick.toml"), "{broken}");
    std::fs::remove_file(home.path(".config/matsu/agents/quick.toml")).unwrap();
    until("it is gone", SOON, || agents(&daemon)["broken"].get(0).is_none().then_some(()));
}

#[test]
fn settings_are_followed_and_what_waits_for_a_start_is_marked() {
    let home = Home::sqlite();
    write(&home, "config.toml", "[agents]\nmode_max = \"read-only\"\n");
    let daemon = home.serve();
    let modes = |daemon: &Daemon| agent(daemon, "codex").unwrap()["modes"].as_array().unwrap().len();
    assert_eq!((modes(&daemon), in_use(&home, "agents.mode_max")), (1, json!("read-only")));
    assert_eq!(daemon.api.get("/api/v1/models")["items"], json!([]));

    std::fs::write(home.path("script.json"), r#"{"replies":[]}"#).unwrap();
    let script = home.path("script.json").display().to_string();
    let text = format!(
        "[agents]\nmode_max = \"full\"\n[slots]\nagent_cli = 3\n[research]\nopenalex = \"http://127.0.0.1:9\"\n\
         [providers.later]\nwire = \"scripted\"\nscript = \"{script}\"\n"
    );
    write(&home, "config.toml", &text);
    until("runs may do more", SOON, || (modes(&daemon) > 1).then_some(()));
    assert_eq!(daemon.api.get("/api/v1/models")["items"][0]["name"], "later");
    let asked = json!({ "query": "moss", "config": { "engines": ["openalex"] } });
    let research = daemon.api.post("/api/v1/tools/create_task", &asked);
    assert!(!research.to_string().contains("there is no engine"), "{research}");
    assert_eq!(in_use(&home, "agents.mode_max"), "full");

    let shown = home.run(&["config", "show"]).good().out;
    let line = |key: &str| shown.lines().find(|line| line.starts_with(key)).unwrap().to_owned();
    assert!(line("slots.agent_cli").contains("until it is started again"), "{shown}");
    assert!(!line("agents.mode_max").contains("the daemon"), "{shown}");
}

#[test]
fn a_file_that_cannot_be_used_changes_nothing_and_is_named() {
    let home = Home::sqlite();
    let daemon = home.serve();
    write(&home, "config.toml", "[agents]\nmode_max = \"full\"\n[chat]\nagents = \"nosuch\"\n");
    until("it is refused", SOON, || {
        let shown = home.run(&["config", "show"]).good();
        shown.err.contains("chat.agents").then_some(())
    });
    let shown = home.run(&["config", "show"]).good().out;
    let row = shown.lines().find(|line| line.starts_with("agents.mode_max ")).expect("a row of the table");
    assert!(shown.starts_with("KEY ") && shown.lines().next().unwrap().ends_with("NOT USED YET"), "{shown}");
    assert!(row.contains(" full ") && row.ends_with("the daemon uses read-only"), "{row}");
    assert_eq!(in_use(&home, "agents.mode_max"), "read-only", "no half of the file is used");
    write(&home, "config.toml", "[agents]\nmode_max = \"full\"\n");
    until("it is used", SOON, || (in_use(&home, "agents.mode_max") == "full").then_some(()));
    assert_eq!(home.run(&["config", "show"]).good().err, "");
    drop(daemon);
}

#[test]
fn a_channel_that_is_added_sends_notices_and_one_that_is_removed_is_gone() {
    let home = Home::sqlite();
    write(&home, "agents/quick.toml", &definition("cat"));
    let settings = "[agents]\nconfine = \"open\"\n";
    write(&home, "config.toml", settings);
    let daemon = home.serve();
    let subscribes_to = || daemon.api.get("/api/v1/push")["channel"].clone();
    assert_eq!(subscribes_to(), Value::Null);

    let notices = home.path("notices");
    let channels = format!(
        "{settings}[notify.mine]\nkind = \"command\"\nread = \"on\"\ncommand = \"cat >> {}\"\n\
         [notify.phone]\nkind = \"push\"\n",
        notices.display()
    );
    write(&home, "config.toml", &channels);
    until("browsers can subscribe", SOON, || (subscribes_to() == "phone").then_some(()));
    let wish = json!({ "cli_name": "quick", "message": "hello", "run_async": true });
    let task = daemon.api.post("/api/v1/tools/use_agent", &wish)["task_id"].as_str().unwrap().to_owned();
    until("its end is reported", SOON, || {
        std::fs::read_to_string(&notices).is_ok_and(|notices| notices.contains(&task)).then_some(())
    });

    write(&home, "config.toml", settings);
    until("the channels are gone", SOON, || (subscribes_to() == Value::Null).then_some(()));
}

#[test]
fn models_that_were_set_up_wrongly_at_the_start_answer_once_they_are_repaired() {
    let home = Home::sqlite();
    let script = home.path("script.json");
    std::fs::write(&script, r#"{"replies":[]}"#).unwrap();
    let provider = format!("[providers.later]\nwire = \"scripted\"\nscript = \"{}\"\n", script.display());
    write(&home, "config.toml", &format!("[chat]\nagents = \"nosuch\"\n{provider}"));
    let daemon = home.serve();
    assert!(!daemon.api.get("/api/v1/models").to_string().contains("later"));
    write(&home, "config.toml", &provider);
    until("the model is there", SOON, || daemon.api.get("/api/v1/models").to_string().contains("later").then_some(()));
}
