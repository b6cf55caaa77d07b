//! Keys that a program prints reach no result, no log, no error and no reader.

use serde_json::json;

use super::{Bench, end_of, start_with};

const KEY: &str = "canary-key-0123456789";
const OWN: &str = "canary-own-0123456789";

/// A bench whose daemon has a key that the scripted agents inherit.
fn with_key() -> (Bench, crate::stdio::Client) {
    let bench = Bench::new();
    let mut command = bench.home.command(&["mcp", "--tools", "all", "--root", bench.root.to_str().unwrap()]);
    command.env("SECRET_KEY", KEY).env("MATSU_LOG_LEVEL", "debug");
    let client = crate::stdio::Client::shaken(command);
    (bench, client)
}

fn log_of(bench: &Bench, task: &str) -> String {
    let output = bench.home.command(&["logs", task, "--json"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_key_that_a_program_prints_in_pieces_is_in_no_result() {
    let (bench, mut client) = with_key();
    let script = r#"printf 'a %s b ' "$SECRET_KEY"; printf '%.10s' "$SECRET_KEY"; sleep 0.5
        printf '%s' "$SECRET_KEY" | cut -c 11- | tr -d '\n'; echo " end $MATSU_SESSION_TOKEN.""#;
    let task = start_with(&mut client, script, json!({}));
    let end = end_of(&mut client, &task);
    let result = end["result"].as_str().unwrap();
    let mark = "[redacted: SECRET_KEY]";
    assert!(result.starts_with(&format!("a {mark} b {mark} end ")), "{result}");
    assert!(!end.to_string().contains("canary-key"), "{end}");
    let token = result.split(" end ").nth(1).unwrap();
    assert!(token.starts_with("[redacted: ") || token.starts_with('.'), "{token}");
    assert!(!log_of(&bench, &task).contains("canary-key"));
}

#[test]
fn a_key_in_an_error_is_neither_shown_nor_logged() {
    let (bench, mut client) = with_key();
    // Longer than what is kept of a stream: the first line of the tail may begin inside a key.
    let script = r#"i=0; while [ $i -lt 300 ]; do echo "$SECRET_KEY$GOOD" >&2; i=$((i + 1)); done
        echo "refused: $SECRET_KEY" >&2; echo "$SECRET_KEY"; exit 3"#;
    let task = start_with(&mut client, script, json!({ "env": { "GOOD": "yes" } }));
    let end = end_of(&mut client, &task);
    assert_eq!(end["status"], "failed", "{end}");
    for text in [end.to_string(), log_of(&bench, &task)] {
        assert!(!text.contains("canary-key") && !text.contains("0123456789"), "{text}");
    }
    let log = std::fs::read_to_string(bench.home.data_dir().join("daemon.log")).unwrap();
    assert!(!log.contains("canary-key"), "{log}");
}

#[test]
fn the_owners_token_is_in_no_result() {
    let (bench, mut client) = with_key();
    let token = std::fs::read_to_string(bench.home.data_dir().join("token")).unwrap().trim().to_owned();
    let task = start_with(&mut client, &format!("echo it is {token}; echo {OWN}"), json!({}));
    let end = end_of(&mut client, &task);
    assert!(!end.to_string().contains(&token), "{end}");
    assert!(end["result"].as_str().unwrap().contains(OWN), "only what is known as a secret is hidden: {end}");
}
