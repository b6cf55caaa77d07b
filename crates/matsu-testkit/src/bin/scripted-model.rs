//! The scripted model server as a program, for scripts and for trying things by hand.
//!
//! `scripted-model [SCRIPT.json] [--port N]`: prints its address, then every request as a line of JSON. Ends with its
//! input. A script is a list of rules: `[{"when": {"last": "hello"}, "reply": {"say": [{"text": "hi"}]}, "times": 1}]`.

use std::io::{Read, Write};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use matsu_testkit::model_server::{ModelServer, Script};

fn main() -> Result<()> {
    let (script, port) = arguments(std::env::args().skip(1))?;
    let mut script = match script {
        Some(path) => {
            let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
            serde_json::from_str(&text).with_context(|| format!("{path} is no script"))?
        }
        None => Script::new(),
    };
    let server = ModelServer::on(port, Box::new(move |asked| script.reply(asked)))?;
    say(&server.url())?;
    let mut printed = 0;
    let ended = std::thread::spawn(|| std::io::stdin().lock().read_to_end(&mut Vec::new()));
    loop {
        let is_last = ended.is_finished();
        // Looked at again now and then, because the input may end while no request comes.
        server.wait_for_count(Duration::from_millis(200), printed + 1);
        for request in server.requests().into_iter().skip(printed) {
            printed += 1;
            say(&serde_json::to_string(&request)?)?;
        }
        if is_last {
            return Ok(());
        }
    }
}

fn say(line: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}

fn arguments(mut args: impl Iterator<Item = String>) -> Result<(Option<String>, u16)> {
    let (mut script, mut port) = (None, 0);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--port" => {
                port = args.next().context("--port wants a number")?.parse().context("--port wants a number")?
            }
            flag if flag.starts_with('-') => {
                bail!("unknown option {flag}; usage: scripted-model [SCRIPT.json] [--port N]")
            }
            path => script = Some(path.to_owned()),
        }
    }
    Ok((script, port))
}
