//! A repository's own file names a command. Until a person has allowed that file as it is, a run that would use it waits
//! as `input_required`. The question is answered by `matsu allow` alone: no answer over MCP or REST counts.

use matsu_core::job::{JobEnd, JobState};
use matsu_core::limits::TICK;
use matsu_core::receipt::{CONSENT_QUESTION, CheckCommand, Consent};
use matsu_core::run::Question;

use crate::runtime::context::JobContext;
use crate::stop_signal::StopLevel;

use super::run_body::{AgentRuns, outlives, store_unavailable};

/// How the question ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    Allowed,
    Stopped,
    /// This process ends, and the job does not.
    Left,
}

/// What a person types, wherever the terminal is.
fn allow_command(file: &str) -> String {
    let folder = std::path::Path::new(file).parent().map(|folder| folder.display().to_string()).unwrap_or_default();
    CheckCommand::Words(["matsu".to_owned(), "allow".to_owned(), folder].to_vec()).to_string()
}

impl AgentRuns {
    /// Returns when the file is allowed.
    pub(super) async fn consented(&self, cx: &JobContext, consent: &Consent) -> Result<(), JobEnd> {
        let is_parked = cx.job.state == JobState::AwaitingInput;
        if self.host.is_allowed(consent) && !is_parked {
            return Ok(());
        }
        let question = Question {
            id: CONSENT_QUESTION.to_owned(),
            text: format!(
                "{} is new or has changed, and contains settings{}. A person must allow it in a terminal: {}",
                consent.file,
                if consent.command.is_empty() { String::new() } else { format!(" that runs: {}", consent.command) },
                allow_command(&consent.file)
            ),
            options: Vec::new(),
        };
        let text = serde_json::to_string(&question).unwrap_or_default();
        let clock = *cx.runtime().clock();
        let answer = async {
            loop {
                if self.host.is_allowed(consent) {
                    return Asked::Allowed;
                }
                tokio::select! {
                    biased;
                    word = cx.stop.at_least(StopLevel::Shutdown), if outlives(cx) => {
                        return if word == StopLevel::Shutdown { Asked::Left } else { Asked::Stopped };
                    }
                    _ = cx.stop.at_least(StopLevel::Yield) => return Asked::Stopped,
                    () = clock.sleep(TICK) => {}
                }
            }
        };
        match cx.ask_or_leave(&text, answer, |asked| *asked == Asked::Left).await {
            Ok(Asked::Allowed) => Ok(()),
            Ok(Asked::Left) => Err(JobEnd::StillRuns),
            Ok(Asked::Stopped) => Err(cx.stopped()),
            Err(error) => Err(store_unavailable(&error)),
        }
    }
}
