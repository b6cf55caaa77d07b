//! A model that is reached over HTTPS: its certificate decides.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::home::{Home, Ran, run};

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

/// What one line of `matsu chat` gets.
fn asked(home: &Home) -> Ran {
    let question = home.path("question");
    std::fs::write(&question, "are you there?").unwrap();
    let mut command = home.command(&["chat", "--once", "--model", "far"]);
    command.arg("--config").arg(home.path("config.toml")).stdin(std::fs::File::open(question).unwrap());
    run(command)
}

#[test]
fn a_model_with_a_certificate_of_a_known_authority_answers_and_any_other_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let model = Model::start(folder.path());
    let authority = folder.path().join("ca.pem").display().to_string();

    let trusting = Home::sqlite().with_variable("SSL_CERT_FILE", authority);
    model.known_in(&trusting);
    let answer = asked(&trusting);
    assert_eq!((answer.code, answer.out.trim()), (0, "safely"), "{answer:?}");

    let other = Home::sqlite();
    model.known_in(&other);
    let refused = asked(&other);
    assert!(refused.code == 1 && refused.err.contains("certificate"), "{refused:?}");
}
