//! What a run's own words, its exit code and how it was ended mean together. Pure.
//!
//! With a stream the final event must say success and the exit code must be 0: of the two, each lies alone.

use matsu_core::clock::Timestamp;
use matsu_core::error_code::ErrorCode;
use matsu_core::job::end::clip;
use matsu_core::ports::agent::Verdict;

use super::decoders::Outcome;
use super::definition::Definition;
use super::quota::{self, Quota};

/// How much of a program's own message an error repeats.
const MESSAGE_CHARS_MAX: usize = 600;

/// How the program ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exit {
    pub code: Option<i32>,
    pub signal: Option<i32>,
}

/// `outcome` is absent for a program whose output is plain text.
pub fn of(
    definition: &Definition,
    outcome: Option<&Outcome>,
    hopeless: Option<&str>,
    exit: Exit,
    stderr_tail: &str,
    now: Timestamp,
) -> Verdict {
    if let Some(why) = hopeless {
        return failure(definition, ErrorCode::AgentTurnLimit, why.to_owned());
    }
    match (outcome, exit.code) {
        (Some(Outcome::Success(_)) | None, Some(0)) => Verdict::Success,
        (Some(Outcome::Failed(message)), _) => {
            let words = format!("{}: {}", definition.name, clip(message, MESSAGE_CHARS_MAX));
            match quota::read(definition.quota.as_ref(), message, now) {
                Some(quota) => out_of_quota(quota, words),
                None => failure(definition, ErrorCode::AgentApiError, words),
            }
        }
        (Some(Outcome::Missing), Some(0)) => {
            let message = format!("{} exited with code 0 but sent no final event", definition.name);
            failure(definition, ErrorCode::AgentNoResult, message)
        }
        (_, code) => {
            let message = match (code, exit.signal) {
                (Some(code), _) => format!("{} exited with code {code}", definition.name),
                (None, Some(signal)) => format!("{} was ended by signal {signal}", definition.name),
                (None, None) => format!("{} ended; its exit status is unknown", definition.name),
            };
            match quota::read(definition.quota.as_ref(), stderr_tail, now) {
                Some(quota) => out_of_quota(quota, message),
                None => failure(definition, ErrorCode::AgentExit, message),
            }
        }
    }
}

fn out_of_quota(quota: Quota, message: String) -> Verdict {
    match quota {
        Quota::Until(until) => Verdict::Quota { until: Some(until), message },
        Quota::Later => Verdict::Quota { until: None, message },
        Quota::Spent => Verdict::Failure { code: ErrorCode::AgentQuota, message, retryable: false },
    }
}

fn failure(definition: &Definition, code: ErrorCode, message: String) -> Verdict {
    let lower = message.to_lowercase();
    let is_transient = definition.transient.iter().any(|words| lower.contains(&words.to_lowercase()));
    Verdict::Failure { code, message, retryable: is_transient || code.is_retryable() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_the_event_nor_the_exit_code_is_believed_alone() {
        let text = "name = \"x\"\ncommand = \"x\"\nprompt = \"stdin\"\noutput = \"claude\"\n";
        let definition = Definition::parse(text, |_| None).unwrap();
        let code = |outcome: Option<Outcome>, code: Option<i32>| {
            let exit = Exit { code, signal: code.is_none().then_some(9) };
            match of(&definition, outcome.as_ref(), None, exit, "", Timestamp::default()) {
                Verdict::Success => "success".to_owned(),
                Verdict::Failure { code, message, .. } => format!("{code} {message}"),
                Verdict::Quota { message, .. } => message,
            }
        };
        let good = || Some(Outcome::Success("x".to_owned()));
        assert_eq!(code(good(), Some(0)), "success");
        assert_eq!(code(good(), Some(1)), "AGENT_EXIT x exited with code 1");
        assert_eq!(code(Some(Outcome::Failed("401".to_owned())), Some(0)), "AGENT_API_ERROR x: 401");
        assert!(code(Some(Outcome::Missing), Some(0)).starts_with("AGENT_NO_RESULT"));
        assert_eq!(code(Some(Outcome::Missing), None), "AGENT_EXIT x was ended by signal 9");
        assert_eq!(code(None, Some(0)), "success");
        assert_eq!(code(None, Some(3)), "AGENT_EXIT x exited with code 3");
    }
}
