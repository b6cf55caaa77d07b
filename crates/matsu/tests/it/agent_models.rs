//! Command lines of agents as models: in chats and in research, without a key.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::api::until;
use crate::home::{Daemon, Home, Ran, run};

/// What such a program answers in research, and in a chat.
const CLAIMS: &str =
    r#"{\"claims\":[{\"passage\":1,\"text\":\"A program states it.\",\"quote\":\"Long polling reduces token use\"}]}"#;

/// A program with the stream of Claude Code, which says what it has used. The shell script decides what it says.
fn claude_like(script: &str) -> String {
    format!(
        "name = \"counted\"\ncommand = \"/bin/sh\"\nargs = [\"-c\", '''cat > /dev/null; {script}''']\n\
         prompt = \"stdin\"\noutput = \"claude\"\n[quota]\npatterns = [\"usage limit\"]\n"
    )
}

/// A shell command that prints the last event of such a stream.
fn result(text: &str, is_error: bool) -> String {
    format!(
        "echo '{{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":{is_error},\"result\":\"{text}\",\
         \"usage\":{{\"input_tokens\":900,\"output_tokens\":100}},\"total_cost_usd\":0.02}}'"
    )
}

/// A home where research asks a program, over one document.
fn research_home(script: &str, more: &str) -> (Home, String) {
    let home = home_with("");
    let folder = home.path("documents");
    std::fs::create_dir(&folder).unwrap();
    let research = format!("[research]\nmodel = \"agent:counted\"\n{more}");
    std::fs::write(home.path("config.toml"), format!("{research}[chat]\nagents = \"counted\"\n")).unwrap();
    std::fs::write(home.path("agents/counted.toml"), claude_like(script)).unwrap();
    let text = "# Notes\n\nLong polling reduces token use compared with plain polling.\n";
    std::fs::write(folder.join("a.md"), text).unwrap();
    let folder = folder.display().to_string();
    (home, folder)
}

fn with_config<'a>(args: &[&'a str], config: &'a str) -> Vec<&'a str> {
    [args, &["--config", config]].concat()
}

/// A task with one search, under way.
fn begin(daemon: &Daemon, folder: &str) -> String {
    let wish = json!({ "kind": "research", "query": "long polling token use", "folders": [folder] });
    let task = daemon.api.post("/api/v1/tasks", &wish)["task_id"].as_str().unwrap().to_owned();
    daemon.api.post(&format!("/api/v1/tasks/{task}/searches"), &json!({ "queries": ["long polling"] }));
    task
}

/// Reads what it is asked and answers with prose around JSON, as programs do.
const READER: &str = r#"
name = "reader"
command = "/bin/sh"
args = ["-c", '''cat > /dev/null; echo 'Here you are: {"claims":[{"passage":1,"text":"A program states it.","quote":"Long polling reduces token use"}]} Done.' ''']
prompt = "stdin"
output = "text"
"#;

/// Answers only if it is started as its definition says: without tools, and with the shape of its answer.
const BARE: &str = r#"
name = "bare"
command = "/bin/sh"
args = ["-c", '''cat > /dev/null; if [ "$1 $2" = "--no-tools --schema" ] && [ "$(cat "$3")" = "$4" ] && [ -n "$4" ]
  then echo '{"claims":[{"passage":1,"text":"A program states it.","quote":"Long polling reduces token use"}]}'
  else echo "was started with $*"; fi''', "bare"]
prompt = "stdin"
output = "text"
[as_model]
args = ["--no-tools"]
schema = { args = ["--schema", "{schema_file}", "{schema}"] }
[connect_back]
args = ["--server", "{matsu}"]
"#;

fn home_with(config: &str) -> Home {
    let home = Home::sqlite();
    matsu_testkit::fake_agents::write(&home.path("agents")).unwrap();
    std::fs::write(home.path("agents/reader.toml"), READER).unwrap();
    std::fs::write(home.path("agents/bare.toml"), BARE).unwrap();
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

#[test]
fn a_command_line_is_started_without_tools_and_with_the_schema_of_its_answer() {
    let home = home_with("[research]\nmodel = \"agent:bare\"\n[chat]\nagents = \"bare\"\n");
    let ran = once(&home, "bare", "hello");
    assert_eq!((ran.code, ran.out.trim()), (0, "was started with --no-tools"), "a chat asks for no shape: {ran:?}");
    let folder = home.path("documents");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("a.md"), "# Notes\n\nLong polling reduces token use compared with plain polling.\n")
        .unwrap();
    let (folder, config) = (folder.display().to_string(), home.path("config.toml").display().to_string());
    let answer: Value = home.run_json(&["research", "long polling token use", "--dir", &folder, "--config", &config]);
    let claims = answer["claims"].as_array().unwrap();
    assert!(claims.iter().any(|claim| claim["text"] == "A program states it."), "{answer}");
}

#[test]
fn what_a_program_uses_is_counted_for_the_task_its_report_and_the_sums_of_usage() {
    let (home, folder) = research_home(&result(&CLAIMS.replace('"', "\\\""), false), "");
    let config = home.path("config.toml").display().to_string();
    let _daemon = home.serve_with(&["--config", &config]);
    let answer = home.run_json(&with_config(&["research", "long polling token use", "--dir", &folder], &config));
    let claims = answer["claims"].as_array().unwrap();
    assert!(claims.iter().any(|claim| claim["text"] == "A program states it."), "{answer}");
    let task = answer["task_id"].as_str().unwrap();
    let status = home.run_json(&with_config(&["call", "get_status", &json!({ "task_id": task }).to_string()], &config));
    let tokens = status["budget"]["model_tokens"].as_i64().unwrap_or(0);
    // One call makes claims and one or more write the report; each uses a thousand.
    assert!(tokens >= 2_000 && tokens % 1_000 == 0, "{status}");
    let cost = status["budget"]["model_cost"].as_f64().unwrap();
    assert!((cost - 0.02 * tokens as f64 / 1_000.0).abs() < 1e-6, "{status}");
    let report = home.run(&with_config(&["export", task, "--format", "markdown"], &config)).good();
    assert!(report.out.contains(&format!("used {tokens} tokens, which cost {cost:.4}")), "{report:?}");
    assert_eq!(counted_tokens(&home, &config), tokens);
    // A line in a chat is one more call.
    let ran = once(&home, "counted", "hello");
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(counted_tokens(&home, &config), tokens + 1_000);
}

/// What `matsu usage` has of the program.
fn counted_tokens(home: &Home, config: &str) -> i64 {
    let usage = home.run_json(&with_config(&["usage", "--by", "agent"], config));
    let sum = usage["items"].as_array().unwrap().iter().find(|sum| sum["agent"] == "counted");
    let sum = sum.unwrap_or_else(|| panic!("{usage}"));
    sum["input_tokens"].as_i64().unwrap() + sum["output_tokens"].as_i64().unwrap()
}

/// The status of a task, once it says that it waits for a quota.
fn waits_for_quota(home: &Home, task: &str, config: &str) -> Value {
    let wish = json!({ "task_id": task, "wait": 0 }).to_string();
    until("the wait is named", Duration::from_secs(60), || {
        let status = home.run_json(&with_config(&["call", "get_status", &wish], config));
        status["warnings"].to_string().contains("the model is out of quota until").then_some(status)
    })
}

#[test]
fn a_quota_that_comes_back_is_waited_for() {
    let (home, folder) = research_home("", "");
    // The program sees nothing of the test but the clock.
    let paid = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() + 25;
    let limited = result("usage limit reached, try again in 3 seconds", true);
    let good = result(&CLAIMS.replace('"', "\\\""), false);
    let script = format!("if [ $(date +%s) -ge {paid} ]; then {good}; else {limited}; fi");
    std::fs::write(home.path("agents/counted.toml"), claude_like(&script)).unwrap();
    let config = home.path("config.toml").display().to_string();
    let daemon = home.serve_with(&["--config", &config]);
    let task = begin(&daemon, &folder);
    waits_for_quota(&home, &task, &config);
    let wish = json!({ "task_id": task }).to_string();
    until("the claim is made after all", Duration::from_secs(90), || {
        let found = home.run_json(&with_config(&["call", "get_materials", &wish], &config));
        found["claims"].to_string().contains("A program states it.").then_some(())
    });
}

#[test]
fn a_quota_that_is_gone_for_hours_is_named_and_nothing_fails() {
    let (home, folder) = research_home(&result("usage limit reached, try again in 5 hours", true), "");
    let config = home.path("config.toml").display().to_string();
    let daemon = home.serve_with(&["--config", &config]);
    let task = begin(&daemon, &folder);
    let status = waits_for_quota(&home, &task, &config);
    assert_eq!(
        (status["status"].as_str(), status["searches"][0]["status"].as_str()),
        (Some("exploring"), Some("queued"))
    );
    assert_eq!(status["searches"][0]["error"], Value::Null, "{status}");
    let report = home.run(&with_config(&["export", &task, "--format", "markdown"], &config)).good();
    assert!(report.out.contains("the model is out of quota until"), "{report:?}");
}

#[test]
fn a_program_that_fails_is_named_and_the_search_is_done_without_it() {
    let (home, folder) = research_home(&result("Invalid API key · Please run /login", true), "");
    let config = home.path("config.toml").display().to_string();
    let _daemon = home.serve_with(&["--config", &config]);
    let ran = home.run(&with_config(&["research", "long polling token use", "--dir", &folder], &config)).good();
    assert!(ran.out.contains("without the model agent:counted, which failed"), "{ran:?}");
    assert!(ran.out.contains("Please run /login") && ran.out.contains("Long polling reduces token use"), "{ran:?}");
}

#[test]
fn a_program_that_is_not_installed_is_named_by_the_search_and_by_the_doctor() {
    let (home, folder) = research_home("", "");
    std::fs::write(home.path("config.toml"), "[research]\nmodel = \"agent:absent\"\n").unwrap();
    let config = home.path("config.toml").display().to_string();
    let ran = home.run(&with_config(&["research", "long polling token use", "--dir", &folder], &config)).good();
    assert!(ran.out.contains("without the model agent:absent, which failed"), "{ran:?}");
    assert!(ran.out.contains("Long polling reduces token use"), "{ran:?}");
    let doctor = home.run(&with_config(&["doctor"], &config));
    assert_eq!(doctor.code, 1, "{doctor:?}");
    assert!(doctor.out.contains("agent:absent: matsu-no-such-program is not installed"), "{doctor:?}");
}

#[test]
fn a_program_that_takes_ten_minutes_ends_with_the_time_of_the_search() {
    let (home, folder) = research_home("exec sleep 600", "search_time_max = 4\n");
    let config = home.path("config.toml").display().to_string();
    let _daemon = home.serve_with(&["--config", &config]);
    let began = Instant::now();
    let ran = home.run(&with_config(&["research", "long polling token use", "--dir", &folder], &config));
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    assert!(format!("{}{}", ran.out, ran.err).contains("longer than 4 s"), "{ran:?}");
    assert!(ran.out.contains("Long polling reduces token use"), "what was read counts: {ran:?}");
}
