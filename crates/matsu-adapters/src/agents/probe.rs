//! What a program says of itself: its version, and whether it is logged in. No model call is ever made.

use std::collections::BTreeMap;
use std::path::Path;

use matsu_core::job::end::clip;
use matsu_core::limits::PROBE_MAX;
use matsu_core::ports::agent::{LoginCheck, Probe};

use super::definition::Definition;
use super::process::{self, Answered, Ask};

const BYTES_MAX: u64 = 64 * 1024;
const VERSION_CHARS_MAX: usize = 100;

pub async fn probe(
    definition: &Definition,
    program: &Path,
    env: &BTreeMap<String, String>,
    login: LoginCheck,
) -> Probe {
    let ask = async |args: &[String]| {
        process::ask(Ask { program, args, env, directory: None, stdin: None, within: PROBE_MAX, bytes_max: BYTES_MAX })
            .await
    };
    let version = async {
        let answered = ask(&definition.version).await?;
        version_of(&answered)
    };
    let authenticated = async {
        let check = definition.login.as_ref().map(|login| login.check.as_slice()).filter(|check| !check.is_empty())?;
        match (login, ask(check).await) {
            (LoginCheck::Wanted, Some(Answered { code: Some(code), .. })) => Some(code == 0),
            _ => None,
        }
    };
    let authenticated = async { if login == LoginCheck::Wanted { authenticated.await } else { None } };
    let (version, authenticated) = tokio::join!(version, authenticated);
    Probe { installed: true, version, authenticated }
}

/// The first word with a digit and a dot in it, else the first line.
fn version_of(answered: &Answered) -> Option<String> {
    let text = if answered.stdout.trim().is_empty() { &answered.stderr } else { &answered.stdout };
    if answered.code != Some(0) || text.trim().is_empty() {
        return None;
    }
    let is_number = |word: &&str| word.contains('.') && word.chars().any(|c| c.is_ascii_digit());
    let number = text.split_whitespace().find(is_number).map(|word| word.trim_start_matches('v'));
    let line = text.trim().lines().next();
    number.or(line).map(|version| clip(version, VERSION_CHARS_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_the_programs_print() {
        let of =
            |stdout: &str| version_of(&Answered { code: Some(0), stdout: stdout.to_owned(), stderr: String::new() });
        assert_eq!(of("2.1.197 (Claude Code)\n").as_deref(), Some("2.1.197"));
        assert_eq!(of("codex-cli 0.166.0\n").as_deref(), Some("0.166.0"));
        assert_eq!(of("v1.2\n").as_deref(), Some("1.2"));
        assert_eq!(of("nightly\n").as_deref(), Some("nightly"));
        assert_eq!(of(""), None);
    }
}
