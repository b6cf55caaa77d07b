//! The command lines of the built-in agents, as a table: what the programs are really given.

use matsu_core::run::{AsModel, Isolation, Mode};

use super::*;
use crate::agents::registry::Registry;

fn input(agent: &str) -> RunInput {
    RunInput {
        agent: agent.to_owned(),
        message: "Summarise README.md".to_owned(),
        system_prompt: Some("待つ".to_owned()),
        model: Some("m".to_owned()),
        effort: None,
        args: Vec::new(),
        env: BTreeMap::new(),
        directory: Some("/ws".to_owned()),
        mode: Mode::ReadOnly,
        isolation: Isolation::None,
        timeout_seconds: 60,
        session: "s".to_owned(),
        resume: false,
        continues: None,
        presence: None,
        check: None,
        retries: 0,
        budget: None,
        resolves: None,
        resolves_on: None,
        tree: matsu_core::run::TreeSetup::default(),
        fallback: Vec::new(),
        consent: None,
        depends_on: Vec::new(),
        not_before: None,
        stall_seconds: None,
        verifies: None,
        as_model: None,
    }
}

fn line(agent: &str, resume: Option<&Resume>, login: Login) -> CommandLine {
    line_of(&input(agent), resume, login)
}

/// The program as a model.
fn model_line(agent: &str, schema: Option<serde_json::Value>) -> CommandLine {
    line_of(&RunInput { as_model: Some(AsModel { schema }), ..input(agent) }, None, Login::User)
}

fn line_of(input: &RunInput, resume: Option<&Resume>, login: Login) -> CommandLine {
    let registry = Registry::load(None);
    let agent = input.agent.as_str();
    let own = [("PATH", "/bin"), ("HOME", "/home/u"), ("LD_PRELOAD", "x"), ("SECRET", "s")];
    let own = own.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    build(&Facts {
        definition: &registry.definitions[agent],
        input,
        prompt: &input.message,
        resume,
        chosen_session: Some("UUID"),
        directory: Path::new("/ws"),
        run: Path::new("/run"),
        home: Path::new("/private"),
        data_dir: Path::new("/data"),
        matsu: Path::new("/bin/matsu"),
        login,
        can_nest: true,
        own: &own,
        token: &Token::new("the-token"),
        marker: "j.1",
    })
}

fn ends_with(line: &CommandLine, args: &[&str]) {
    assert!(line.args.join(" ").ends_with(&args.join(" ")), "{:?}", line.args);
}

fn file<'a>(line: &'a CommandLine, path: &str) -> &'a str {
    let found = line.files.iter().find(|(name, _)| name == Path::new(path));
    &found.unwrap_or_else(|| panic!("{path} in {:?}", line.files)).1
}

#[test]
fn claude_chooses_its_session_and_reads_its_system_prompt_from_a_file() {
    let first = line("claude", None, Login::User);
    let mode = ["--permission-mode", "dontAsk", "--model", "m", "--append-system-prompt-file", "/run/system"];
    let back = ["--mcp-config", "/run/mcp.json", "--allowedTools", "mcp__matsu", "--settings", "/run/settings.json"];
    ends_with(&first, &[&mode[..], &back, &["--session-id", "UUID"]].concat());
    assert_eq!(first.env.get("CLAUDE_CONFIG_DIR"), None, "the user's own login is used where it lies");
    assert_eq!(file(&first, "/run/system"), "待つ");
    let key = line("claude", None, Login::Key);
    assert_eq!(key.env["CLAUDE_CONFIG_DIR"], "/private");
    let resume = Resume { vendor_session: "abc".to_owned(), place: None };
    ends_with(&line("claude", Some(&resume), Login::User), &["--resume", "abc"]);
}

#[test]
fn codex_has_its_sandbox_before_the_word_resume() {
    let resume = Resume { vendor_session: "abc".to_owned(), place: None };
    let again = line("codex", Some(&resume), Login::User);
    ends_with(&again, &["resume", "abc", "-"]);
    let place = |word: &str| again.args.iter().position(|arg| arg == word).unwrap_or_else(|| panic!("{word}"));
    assert!(place("read-only") < place("resume") && place("model_instructions_file=\"/run/system\"") < place("resume"));
}

#[test]
fn gemini_and_qwen_take_their_system_prompt_by_a_variable_that_names_a_file() {
    let gemini = line("gemini", None, Login::Key);
    assert_eq!(
        (gemini.env["GEMINI_SYSTEM_MD"].as_str(), gemini.env["GEMINI_CLI_HOME"].as_str()),
        ("/run/system", "/private")
    );
    let settings: serde_json::Value = serde_json::from_str(file(&gemini, "/private/.gemini/settings.json")).unwrap();
    assert_eq!(settings["security"]["auth"]["selectedType"], "gemini-api-key");
    let qwen = line("qwen", None, Login::User);
    assert_eq!(qwen.env["QWEN_SYSTEM_MD"], "/run/system");
    assert!(file(&qwen, "/run/settings.json").contains("enableManagedAutoMemory"));
}

#[test]
fn opencode_gets_everything_in_one_file() {
    let opencode = line("opencode", None, Login::User);
    let config: serde_json::Value = serde_json::from_str(file(&opencode, "/run/opencode.json")).unwrap();
    assert_eq!(config["permission"]["*"], "deny");
    assert_eq!(config["instructions"], serde_json::json!(["/run/system"]));
    assert_eq!(config["share"], "disabled");
    assert!(opencode.args.join(" ").contains("--title Summarise README.md --dir /ws"), "{:?}", opencode.args);
}

/// Where each program finds its way back, and by what name it is given the token's variable.
#[test]
fn each_finds_its_way_back_and_the_token_is_in_the_environment_alone() {
    for (agent, path, words) in [
        ("claude", Some("/run/mcp.json"), "${MATSU_SESSION_TOKEN}"),
        ("codex", None, "env_vars=[\"MATSU_SESSION_TOKEN\"]"),
        ("gemini", Some("/run/system.json"), "${MATSU_SESSION_TOKEN}"),
        ("gemini", Some("/private/.gemini/settings.json"), "${MATSU_SESSION_TOKEN}"),
        ("qwen", Some("/run/settings.json"), "${MATSU_SESSION_TOKEN}"),
        ("opencode", Some("/run/opencode.json"), "{env:MATSU_SESSION_TOKEN}"),
    ] {
        let line = line(agent, None, Login::Key);
        assert_eq!(line.env["MATSU_SESSION_TOKEN"], "the-token", "{agent}");
        let said = path.map_or_else(|| line.args.join(" "), |path| file(&line, path).to_owned());
        assert!(said.contains("/bin/matsu") && said.contains("/data") && said.contains(words), "{agent}: {said}");
        assert!(!line.args.join(" ").contains("the-token"), "{agent}");
        assert!(!line.files.iter().any(|(_, text)| text.contains("the-token")), "{agent}");
    }
}

#[test]
fn no_environment_but_what_is_named() {
    for agent in ["claude", "codex", "gemini", "qwen", "opencode"] {
        let line = line(agent, None, Login::User);
        assert!(!line.env.contains_key("SECRET") && !line.env.contains_key("LD_PRELOAD"), "{agent}");
        assert_eq!((line.env["PATH"].as_str(), line.env["TMPDIR"].as_str()), ("/bin", "/run/tmp"), "{agent}");
        assert!(!line.args.iter().any(|arg| arg.contains("Summarise README.md") && agent != "opencode"), "{agent}");
    }
}

#[test]
fn as_a_model_each_is_started_without_tools() {
    for (agent, words) in [
        ("claude", "--tools  --session-id"),
        ("codex", "-c features.shell_tool=false"),
        ("gemini", "--policy /run/no-tools.toml"),
    ] {
        let (model, run) = (model_line(agent, None).args.join(" "), line(agent, None, Login::User).args.join(" "));
        assert!(model.contains(words) && !run.contains(words), "{agent}: {model}");
    }
    assert!(file(&model_line("gemini", None), "/run/no-tools.toml").contains("decision = \"deny\""));
    let json = |agent, path| serde_json::from_str::<serde_json::Value>(file(&model_line(agent, None), path)).unwrap();
    let permission = &json("opencode", "/run/opencode.json")["permission"];
    assert!(permission.as_object().unwrap().values().all(|value| value == "deny"), "{permission}");
    let settings = json("qwen", "/run/settings.json");
    let tools = &settings["tools"];
    assert_eq!((&tools["core"][0], &tools["shell"]["enableInteractiveShell"]), (&"none".into(), &false.into()));
    assert_eq!(
        settings["mcpServers"]["matsu"]["command"], "false",
        "the user's own server of this name is not started"
    );
}

#[test]
fn as_a_model_none_finds_its_way_back() {
    for agent in ["claude", "codex", "gemini", "qwen", "opencode"] {
        let line = model_line(agent, None);
        assert_eq!(line.env.get("MATSU_SESSION_TOKEN"), None, "{agent}");
        let texts = line.files.iter().map(|(_, text)| text).chain(&line.args).chain(line.env.values());
        assert!(!texts.into_iter().any(|text| text.contains("/bin/matsu")), "{agent}: {line:?}");
    }
}

/// What looks like a placeholder inside the schema stays as it is.
#[test]
fn a_schema_goes_in_as_text_or_as_a_file() {
    let schema = serde_json::json!({ "type": "object", "title": "{run}" });
    let claude = model_line("claude", Some(schema.clone()));
    let at = claude.args.iter().position(|arg| arg == "--json-schema").unwrap();
    assert_eq!(claude.args[at + 1], schema.to_string());
    let codex = model_line("codex", Some(schema.clone()));
    ends_with(&codex, &["--output-schema", "/run/schema.json", "-"]);
    assert_eq!(file(&codex, "/run/schema.json"), schema.to_string());
    for agent in ["claude", "codex"] {
        let plain = model_line(agent, None);
        assert!(!plain.args.iter().any(|arg| arg.ends_with("-schema")), "{agent}: {:?}", plain.args);
        assert!(!plain.files.iter().any(|(path, _)| path.ends_with("schema.json")), "{agent}");
    }
}
