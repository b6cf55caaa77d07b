//! Command lines of agents as models: in chats and in research, without a key.

use serde_json::Value;

use crate::home::{Home, Ran, run};

/// Reads what it is asked and answers with prose around JSON, as programs do.
const READER: &str = r#"
name = "reader"
command = "/bin/sh"
args = ["-c", '''cat > /dev/null; echo 'Here you are: {"claims":[{"passage":1,"text":"A program states it.","quote":"Long polling reduces token use"}]} Done.' ''']
prompt = "stdin"
output = "text"
"#;

fn home_with(config: &str) -> Home {
    let home = Home::sqlite();
    matsu_testkit::fake_agents::write(&home.path("agents")).unwrap();
    std::fs::write(home.path("agents/reader.toml"), READER).unwrap();
    std::fs::write(home.path("config.toml"), config).unwrap();
    home
}

fn once(home: &Home, model: &str, question: &str) -> Ran {
    std::fs::write(home.path("question"), question).unwrap();
    let mut command = home.command(&["chat", "--once", "--model", model]);
    command.arg("--config").arg(home.path("config.toml"));
    command.stdin(std::fs::File::open(home.path("question")).unwrap());
    run(command)
}

#[test]
fn a_command_line_answers_in_a_chat_and_its_failure_is_named() {
    let home = home_with("[chat]\nagents = \"script,absent\"\n");
    let ran = once(&home, "script", "echo hello from the program; ls; echo token=$MATSU_SESSION_TOKEN");
    assert_eq!((ran.code, ran.out.trim()), (0, "hello from the program\ntoken="), "{ran:?}");
    let failed = once(&home, "script", "echo it went wrong >&2; exit 3");
    assert!(failed.code == 1 && failed.err.contains("exited with code 3: it went wrong"), "{failed:?}");
    let absent = once(&home, "absent", "anything");
    assert!(absent.code == 1 && absent.err.contains("matsu-no-such-program"), "{absent:?}");
    let unset = home_with("");
    let refused = once(&unset, "script", "echo no");
    assert!(refused.code == 1 && !refused.out.contains("no\n"), "without the setting nothing is asked: {refused:?}");
}

#[test]
fn a_command_line_makes_claims_in_research() {
    let home = home_with("[research]\nmodel = \"agent:reader\"\n");
    let folder = home.path("documents");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("a.md"), "# Notes\n\nLong polling reduces token use compared with plain polling.\n")
        .unwrap();
    let (folder, config) = (folder.display().to_string(), home.path("config.toml").display().to_string());
    let answer: Value = home.run_json(&["research", "long polling token use", "--dir", &folder, "--config", &config]);
    let claims = answer["claims"].as_array().unwrap();
    assert!(claims.iter().any(|claim| claim["text"] == "A program states it."), "{answer}");
    let config = home_with("[research]\nmodel = \"agent:unknown\"\n");
    let file = config.path("config.toml").display().to_string();
    let refused = config.run(&["research", "anything", "--config", &file]);
    assert!(refused.code == 1 && refused.err.contains("research.model: there is no agent unknown"), "{refused:?}");
}
