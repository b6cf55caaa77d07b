//! Definitions of a user's own: beside the configuration file, documented, and broken ones by name.

use serde_json::json;

use super::{Bench, end_of, start_with};

/// The smallest definition of the book, word for word but for the path.
const SMALLEST: &str = r#"
name = "echo"
command = "/bin/cat"
args = ["-"]
prompt = "stdin"          # stdin | file | argument
output = "text"           # text, or the name of a stream decoder
"#;

#[test]
fn the_documented_example_loads_and_a_broken_file_is_reported_by_name() {
    let bench = Bench::new();
    let folder = bench.home.path(".config/matsu/agents");
    std::fs::write(folder.join("echo.toml"), SMALLEST).unwrap();
    std::fs::write(folder.join("zz-broken.toml"), "name = \"zz\"\ncomand = \"x\"\n").unwrap();
    let mut client = bench.client();
    let said = client.call("list_agents", &json!({}));
    let broken = said["broken"].as_array().unwrap();
    assert_eq!(broken.len(), 1, "{said}");
    assert!(broken[0]["file"].as_str().unwrap().ends_with("zz-broken.toml"), "{said}");
    assert!(broken[0]["error"].as_str().unwrap().contains("comand"), "{said}");
    let task = start_with(&mut client, "hello", json!({ "cli_name": "echo" }));
    assert_eq!(end_of(&mut client, &task)["result"], "hello");
}
