//! A model that is reached over HTTPS: its certificate decides.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::home::Home;

use super::{hears, open, say, serve};

/// Ends with its owner.
struct Model {
    process: Child,
    port: String,
}

impl Model {
    fn start(folder: &Path) -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/model_chats/https_model.py");
        let mut command = Command::new("python3");
        let mut process = command.arg(script).arg(folder).stdout(Stdio::piped()).spawn().unwrap();
        let mut port = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut port).unwrap();
        Self { process, port: port.trim().to_owned() }
    }

    /// A daemon that may ask it.
    fn known_in(&self, home: &Home) {
        let port = &self.port;
        let config = format!(
            "[providers.far]\nwire = \"openai_chat\"\nmodel = \"far\"\nbase_url = \"https://localhost:{port}/v1\"\n"
        );
        std::fs::write(home.path("config.toml"), config).unwrap();
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn a_model_with_a_certificate_of_a_known_authority_answers_and_any_other_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let model = Model::start(folder.path());
    let authority = folder.path().join("ca.pem").display().to_string();

    let trusting = Home::sqlite().with_variable("SSL_CERT_FILE", authority);
    model.known_in(&trusting);
    let daemon = serve(&trusting);
    let chat = open(&daemon, &[]);
    say(&daemon, &chat, "@far are you there?");
    hears(&daemon, &chat, "completed", "safely");

    let other = Home::sqlite();
    model.known_in(&other);
    let daemon = serve(&other);
    let chat = open(&daemon, &[]);
    say(&daemon, &chat, "@far are you there?");
    let refused = hears(&daemon, &chat, "failed", "");
    assert!(refused.to_string().contains("certificate"), "{refused}");
}
