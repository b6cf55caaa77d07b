//! What a client and `matsu mcp` send to each other, copied to files on its way.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::home::Home;

pub struct Wire {
    folder: PathBuf,
}

impl Wire {
    pub fn new(home: &Home) -> Self {
        Self { folder: home.folder().to_owned() }
    }

    /// How a client starts the server: the real one, between two copies of everything.
    pub fn server(&self, home: &Home) -> Value {
        let [said, received] = [self.said(), self.received()].map(|path| quoted(&path));
        let (matsu, data) = (quoted(Path::new(env!("CARGO_BIN_EXE_matsu"))), quoted(&home.data_dir()));
        let mcp = format!("{matsu} --data-dir {data} mcp --tools all --test-jobs");
        let line = format!("tee -a {said} | {mcp} | tee -a {received}");
        json!({ "type": "stdio", "command": "sh", "args": ["-c", line], "env": { "MATSU_SERVER_PORT": "0" } })
    }

    /// Every request of this method, with its answer; `None` as long as there is none.
    pub fn requests(&self, method: &str) -> Vec<(Value, Option<Value>)> {
        let answers = frames(&self.received());
        let answer = |id: &Value| answers.iter().find(|frame| frame["id"] == *id && frame["method"].is_null()).cloned();
        let asked = frames(&self.said()).into_iter().filter(|frame| frame["method"] == method);
        asked.map(|frame| (frame.clone(), answer(&frame["id"]))).collect()
    }

    fn said(&self) -> PathBuf {
        self.folder.join("client-said.jsonl")
    }

    fn received(&self) -> PathBuf {
        self.folder.join("client-received.jsonl")
    }
}

fn frames(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// For a shell.
pub fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}
