//! Whether a run may be queued: one agent, or a list of agents of which the first that is installed begins.

use std::path::Path;

use matsu_core::error_code::ErrorCode;
use matsu_core::limits::AGENTS_PER_CALL_MAX;
use matsu_core::ports::agent::{AgentHost, CheckedRun, RefusedParam, RunRefusal, RunWish, StartError};

use super::super::check::{self, Rules};
use super::{CliHost, not_installed};

impl CliHost {
    fn rules(&self) -> Rules<'_> {
        let machine = self.confiner().layout();
        Rules { machine, roots: &self.options.roots, mode_max: self.options.mode_max }
    }

    /// One agent, or a list that the caller or the repository's own file names.
    pub(super) fn check_wish(&self, wish: RunWish) -> Result<CheckedRun, RunRefusal> {
        let is_list = |fallback: &Vec<String>| !fallback.is_empty();
        if wish.fallback.as_ref().is_some_and(is_list) {
            return self.check_list(wish);
        }
        let (checked, fallback) = self.check_one(wish.clone())?;
        if is_list(&fallback) { self.check_list(RunWish { fallback: Some(fallback), ..wish }) } else { Ok(checked) }
    }

    fn check_one(&self, wish: RunWish) -> Result<(CheckedRun, Vec<String>), RunRefusal> {
        let Some(definition) = self.find(&wish.agent) else {
            let names = self.registry.definitions.keys().cloned().collect::<Vec<_>>().join(", ");
            let message = match self.registry.why_broken(&wish.agent) {
                Some(broken) => format!("the definition of agent {} cannot be read: {broken}", wish.agent),
                None => format!("there is no agent {}; expected one of {names}", wish.agent),
            };
            let received = matsu_core::job::end::clip(&wish.agent, 80);
            let param = RefusedParam { name: "cli_name".to_owned(), expected: names, received };
            return Err(RunRefusal { code: ErrorCode::AgentNotFound, message, param: Some(param) });
        };
        if self.program(definition).is_none() {
            let StartError { code, message } = not_installed(definition);
            return Err(RunRefusal { code, message, param: None });
        }
        let (checked, fallback) = check::check(definition, &self.rules(), wish)?;
        let directory = checked.input.directory.as_deref().map(Path::new);
        let level = self.confiner.admit(checked.input.mode, directory).map_err(|message| RunRefusal {
            code: ErrorCode::ConfinementUnavailable,
            message,
            param: None,
        })?;
        let not_covered = self.confiner.not_covered(level, Some(definition));
        let waits = checked.input.consent.as_ref().filter(|consent| !self.is_allowed(consent)).map(|consent| {
            format!(
                "It waits until a person allows {}{}: matsu allow",
                consent.file,
                if consent.command.is_empty() { String::new() } else { format!(", which runs `{}`", consent.command) }
            )
        });
        let note = match (checked.note.clone(), waits) {
            (Some(note), Some(waits)) => Some(format!("{note} {waits}")),
            (note, waits) => note.or(waits),
        };
        Ok((CheckedRun { confinement: Some(level), not_covered, note, ..checked }, fallback))
    }

    /// Each agent of the list is checked; one that is not installed is left out. What only the first agent knows (model,
    /// effort, flags, environment, conversation) is not asked of the others.
    fn check_list(&self, wish: RunWish) -> Result<CheckedRun, RunRefusal> {
        let mut names = vec![wish.agent.clone()];
        for name in wish.fallback.iter().flatten() {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        if names.len() > AGENTS_PER_CALL_MAX {
            let message = format!("fallback names {} agents; at most {AGENTS_PER_CALL_MAX} are allowed", names.len());
            return Err(RunRefusal { code: ErrorCode::InvalidParams, message, param: None });
        }
        let (mut found, mut missing, mut refusal) = (Vec::new(), Vec::new(), None);
        for (place, agent) in names.into_iter().enumerate() {
            let one = RunWish { agent: agent.clone(), fallback: Some(Vec::new()), ..wish.clone() };
            let has_system = self.find(&agent).is_some_and(|definition| definition.system_prompt.is_some());
            let one = match place {
                0 => one,
                _ => RunWish {
                    model: None,
                    effort: None,
                    args: Vec::new(),
                    env: std::collections::BTreeMap::default(),
                    session: None,
                    resume: false,
                    system_prompt: wish.system_prompt.clone().filter(|_| has_system),
                    ..one
                },
            };
            match self.check_one(one) {
                Ok((checked, _)) => found.push(checked),
                Err(refused) if refused.code == ErrorCode::AgentNotInstalled => {
                    missing.push(agent);
                    refusal.get_or_insert(refused);
                }
                Err(refused) => return Err(refused),
            }
        }
        let mut found = found.into_iter();
        let Some(mut first) = found.next() else {
            let message = format!("none of these agents is installed: {}", missing.join(", "));
            let refused = refusal.unwrap_or(RunRefusal {
                code: ErrorCode::AgentNotInstalled,
                message: String::new(),
                param: None,
            });
            return Err(RunRefusal { message, ..refused });
        };
        first.input.fallback = found.map(|other| other.input).collect();
        first.input.fallback.iter_mut().for_each(|other| other.message.clear());
        if !missing.is_empty() {
            let left_out = format!("Not installed and left out: {}.", missing.join(", "));
            first.note = Some(first.note.map_or_else(|| left_out.clone(), |note| format!("{note} {left_out}")));
        }
        Ok(first)
    }
}
