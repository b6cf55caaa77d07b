//! Settings, and stores that cannot be used: which error is shown, and whether it helps.

use std::path::Path;

use serde_json::{Value, json};

use crate::home::{Backend, Home, Ran, run};
use crate::stores;

/// Value and source of one setting, as `config show` prints them.
fn setting(shown: &Value, key: &str) -> (String, String) {
    let row = shown.as_array().unwrap().iter().find(|row| row["key"] == key).expect("a known setting");
    (row["value"].as_str().unwrap().to_owned(), row["from"].as_str().unwrap().to_owned())
}

#[track_caller]
fn assert_refused(ran: &Ran, words: &[&str]) {
    assert_eq!(ran.code, 1, "{ran:?}");
    for word in words {
        assert!(ran.err.contains(word), "no {word:?} in {ran:?}");
    }
    assert!(!ran.err.contains("panicked"), "{ran:?}");
}

#[test]
fn a_flag_wins_over_the_environment_and_that_over_the_file() {
    let home = Home::sqlite();
    let file = home.path("config.toml");
    std::fs::write(&file, "[slots]\ncpu = 7\nagent_cli = 6\n[store]\nurl = \"memory:\"\n").unwrap();
    let show = |more: &[&str], cpu: Option<&str>| {
        let mut command = home.bare(&["config", "show", "--json", "--config", file.to_str().unwrap()]);
        command.args(more).envs(cpu.map(|cpu| ("MATSU_SLOTS_CPU", cpu)));
        run(command).good().json()
    };
    let plain = show(&[], None);
    assert_eq!(setting(&plain, "slots.cpu"), ("7".to_owned(), file.display().to_string()));
    assert_eq!(setting(&plain, "slots.agent_chat"), ("20".to_owned(), "default".to_owned()));
    let shown = show(&[], Some("9"));
    assert_eq!(setting(&shown, "slots.cpu"), ("9".to_owned(), "environment MATSU_SLOTS_CPU".to_owned()));
    assert_eq!(setting(&shown, "slots.agent_cli").0, "6");
    assert_eq!(setting(&shown, "store.url").0, "memory:");
    let flagged = show(&["--store", "postgres://me:secret@localhost/db"], None);
    assert_eq!(setting(&flagged, "store.url"), ("postgres://me:…@localhost/db".to_owned(), "flag".to_owned()));
}

#[test]
fn the_file_in_the_home_folder_is_read_without_being_named() {
    let home = Home::sqlite();
    std::fs::create_dir_all(home.path(".config/matsu")).unwrap();
    std::fs::write(home.path(".config/matsu/config.toml"), "[wait]\nhold_max = 33\n").unwrap();
    let shown = run(home.bare(&["config", "show"])).good().out;
    let line = shown.lines().find(|line| line.starts_with("wait.hold_max")).unwrap();
    assert!(line.contains("33") && line.contains(".config/matsu/config.toml"), "{line}");
}

#[test]
fn a_long_value_makes_only_its_own_line_long() {
    let home = Home::sqlite();
    let shown = run(home.bare(&["config", "show"])).good().out;
    let line = |key: &str| shown.lines().find(|line| line.starts_with(key)).unwrap();
    assert!(line("agents.read ").len() > 200, "{shown}");
    assert!(line("KEY ").find(" FROM ").is_some_and(|at| at < 90), "{shown}");
    for key in ["server.port ", "wait.hold_max ", "log.level "] {
        assert!(line(key).chars().count() < 140, "{}", line(key));
    }
}

#[test]
fn a_mistake_in_the_settings_is_named_with_what_was_meant() {
    let home = Home::sqlite();
    let with_file = |text: &str| {
        std::fs::write(home.path("config.toml"), text).unwrap();
        run(home.bare(&["config", "show", "--config", home.path("config.toml").to_str().unwrap()]))
    };
    assert_refused(&with_file("[server]\nprot = 1\n"), &["server.prot", "did you mean server.port?"]);
    assert_refused(&with_file("[server]\nport = 99999\n"), &["server.port", "0 to 65535", "config.toml"]);
    let broken = with_file("[server\n");
    assert_refused(&broken, &["config.toml", "TOML"]);
    assert!(!broken.err.ends_with("\n\n"), "no empty line at the end: {broken:?}");
    let missing = run(home.bare(&["tasks", "--config", "/nowhere/config.toml"]));
    assert_refused(&missing, &["/nowhere/config.toml"]);
    let odd = home.bare(&["config", "show"]);
    assert_refused(&run(with_variable(odd, "MATSU_LOG_LEVEL", "loud")), &["MATSU_LOG_LEVEL", "log.level", "debug"]);
}

fn with_variable(mut command: std::process::Command, name: &str, value: &str) -> std::process::Command {
    command.env(name, value);
    command
}

#[test]
fn the_reference_page_is_what_the_program_prints() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/configuration.md");
    let printed = Home::sqlite().run(&["config", "reference"]).good().out;
    let written = std::fs::read_to_string(&page).unwrap_or_default();
    assert_eq!(written, printed, "run: matsu config reference > docs/reference/configuration.md");
}

#[test]
fn the_sample_file_is_good_with_and_without_its_marks() {
    let home = Home::sqlite();
    let sample = home.run(&["config", "sample"]).good().out;
    let marked = sample.clone();
    // A comment that is a setting has no word before its `=`.
    let is_setting = |line: &&str| {
        line.strip_prefix("# ").is_some_and(|line| {
            line.split(" = ").next().is_some_and(|key| key.len() < line.len() && !key.contains(' '))
        })
    };
    let unmarked: Vec<&str> = sample.lines().map(|line| if is_setting(&line) { &line[2..] } else { line }).collect();
    assert!(unmarked.iter().filter(|line| line.contains(" = ") && !line.starts_with('#')).count() > 50, "{sample}");
    for text in [marked, unmarked.join("\n")] {
        std::fs::write(home.path("sample.toml"), &text).unwrap();
        let file = home.path("sample.toml");
        run(home.bare(&["config", "show", "--config", file.to_str().unwrap()])).good();
    }
}

fn a_newer_store_is_refused(backend: Backend) {
    let home = Home::new(backend);
    home.run(&["migrate"]).good();
    match backend {
        Backend::Sqlite => {
            stores::ask_sqlite(&home.data("matsu.db"), "PRAGMA user_version = 99");
        }
        Backend::Postgres => {
            stores::ask(&home.store, "INSERT INTO matsu_schema (version) VALUES (99)");
        }
    }
    for args in [["tasks"].as_slice(), &["serve", "--port", "0"], &["migrate"]] {
        assert_refused(&home.run(args), &["schema 99", "newer matsu"]);
    }
    let doctor = home.run(&["doctor"]);
    assert_eq!(doctor.code, 1, "{doctor:?}");
    assert!(doctor.out.contains("schema 99"), "{doctor:?}");
}

#[test]
fn a_newer_store_is_refused_on_sqlite() {
    a_newer_store_is_refused(Backend::Sqlite);
}

#[test]
fn a_newer_store_is_refused_on_postgres() {
    a_newer_store_is_refused(Backend::Postgres);
}

#[test]
fn a_folder_that_cannot_be_made_is_named_with_a_way_out() {
    let home = Home::sqlite();
    std::fs::write(home.path("file"), "in the way").unwrap();
    for folder in [home.path("file/data"), "/proc/matsu/data".into()] {
        let folder = folder.to_str().unwrap();
        for command in [["serve", "--port", "0"].as_slice(), &["tasks"]] {
            let ran = run(home.bare(&[command, &["--data-dir", folder]].concat()));
            assert_refused(&ran, &[folder, "--data-dir"]);
        }
    }
}

#[test]
fn a_file_that_is_no_store_is_refused_and_left_alone() {
    let home = Home::sqlite();
    let file = home.path("letter.db");
    let text = "Dear database,\n".repeat(1_000);
    std::fs::write(&file, &text).unwrap();
    let ran = home.run(&["tasks", "--store", &format!("sqlite:{}", file.display())]);
    assert_refused(&ran, &["not a database", file.to_str().unwrap()]);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
}

#[test]
fn a_wrong_option_is_a_wrong_command_line_and_makes_no_folder() {
    let home = Home::sqlite();
    let lang = home.run(&["tasks", "--lang", "xx"]);
    assert!(lang.code == 2 && lang.err.contains("--lang must be one of en, ja, ko, got \"xx\""), "{lang:?}");
    let store = format!("sqlite:{}", home.path("typo/more/x.db").display());
    let typo = home.run(&["tasks", "--store", &store]);
    assert!(typo.code == 2 && typo.err.contains("there is no folder"), "{typo:?}");
    assert!(!home.path("typo").exists(), "nothing was made");
    let said = home.run(&["tasks", "--json", "--store", &store]);
    assert_eq!((said.code, &said.json()["ok"]), (2, &json!(false)), "{said:?}");
}

#[test]
fn an_address_that_is_no_store_is_refused_with_the_kinds_there_are() {
    let home = Home::sqlite();
    let unknown = home.run(&["tasks", "--store", "mysql://x"]);
    assert!(unknown.code == 2 && unknown.err.contains("--store mysql://x"), "{unknown:?}");
    for part in ["sqlite:PATH", "postgres://"] {
        assert!(unknown.err.contains(part), "{unknown:?}");
    }
    let mut from_environment = home.bare(&["tasks", "--data-dir", home.data_dir().to_str().unwrap()]);
    from_environment.env("MATSU_STORE_URL", "mysql://x");
    assert_refused(&run(from_environment), &["sqlite:PATH", "postgres://"]);
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let unknown = home.run(&["tasks", "--store", &format!("postgres://u:geheim@{closed}/db")]);
    assert_refused(&unknown, &["not available"]);
    assert!(!unknown.err.contains("geheim"), "{unknown:?}");
}

#[test]
fn a_worker_on_sqlite_says_what_it_needs() {
    assert_refused(&Home::sqlite().run(&["worker"]), &["postgres://", "matsu serve"]);
}

#[test]
fn errors_are_json_where_json_was_asked_for() {
    let ran = Home::sqlite().run(&["status", "task_nothing", "--json"]);
    assert_eq!(ran.code, 1);
    let error = ran.json();
    assert_eq!(error["ok"], json!(false));
    assert!(error["error"].as_str().unwrap().contains("TASK_NOT_FOUND"), "{error}");
}

#[test]
fn a_wrong_command_line_ends_with_2() {
    let home = Home::sqlite();
    for args in [["dance"].as_slice(), &["status"], &["status", "x", "--timeout", "3"], &["serve", "--port", "x"]] {
        let ran = run(home.bare(args));
        assert_eq!(ran.code, 2, "{ran:?}");
    }
    let help = run(home.bare(&["--help"])).good().out;
    assert!(help.contains("3 a waited-for task failed; 4 a waited-for task was cancelled; 5"), "{help}");
}
