//! Calls that wait for a person's decision, by whichever client the person uses. Several may wait at once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use matsu_core::ports::provider::{Danger, ToolSpec};
use tokio::sync::oneshot;

use crate::models::agentic_loop::{Approver, ByDanger, Decision, PendingCall, Policy};

/// A person's decision about a call.
#[derive(Clone, Debug)]
pub struct Approval {
    pub call_id: String,
    /// Whose call; needed only where two models wait with calls of one id.
    pub model: Option<String>,
    pub allow: bool,
    /// The same holds for every later call of the tool in this chat.
    pub always: bool,
    /// It holds for this tool in every chat of the local owner, also in later ones.
    pub remember: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unasked {
    #[error("no call {0} waits for an answer")]
    NoCall(String),
    #[error("several models have a waiting call {0}; name the model")]
    Several(String),
}

#[derive(Default)]
pub struct Approvals(Mutex<State>);

#[derive(Default)]
struct State {
    waiting: Vec<Waiting>,
    said: BTreeMap<String, Policy>,
    last: u64,
}

struct Waiting {
    number: u64,
    call: PendingCall,
    answer: oneshot::Sender<Decision>,
}

impl Approvals {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn waits(&self, model: Option<&str>, call_id: &str) -> bool {
        let state = self.state();
        state.waiting.iter().any(|waiting| waiting.call.id == call_id && model.is_none_or(|m| m == waiting.call.model))
    }

    pub fn is_anybody_asked(&self) -> bool {
        !self.state().waiting.is_empty()
    }

    /// Lets a call run, or not; with `always`, those of the same tool that wait now as well.
    /// Returns the tool's name.
    pub fn decide(&self, approval: Approval) -> Result<String, Unasked> {
        let mut state = self.state();
        let meant = |waiting: &Waiting| {
            waiting.call.id == approval.call_id && approval.model.as_ref().is_none_or(|m| *m == waiting.call.model)
        };
        let found: Vec<usize> =
            state.waiting.iter().enumerate().filter(|(_, waiting)| meant(waiting)).map(|(at, _)| at).collect();
        let at = match found.as_slice() {
            [] => return Err(Unasked::NoCall(approval.call_id)),
            [at] => *at,
            _ => return Err(Unasked::Several(approval.call_id)),
        };
        let decided = state.waiting.remove(at);
        let name = decided.call.name.clone();
        let mut all = vec![decided];
        if approval.always || approval.remember {
            state.said.insert(name.clone(), if approval.allow { Policy::Allow } else { Policy::Deny });
            let (same, others) =
                std::mem::take(&mut state.waiting).into_iter().partition(|waiting| waiting.call.name == name);
            state.waiting = others;
            all.extend::<Vec<Waiting>>(same);
        }
        for waiting in all {
            // The loop that asked may have been stopped meanwhile.
            let _ = waiting.answer.send(decision(approval.allow));
        }
        Ok(name)
    }
}

fn decision(allow: bool) -> Decision {
    if allow { Decision::Granted } else { Decision::Denied("a person refused it".to_owned()) }
}

/// Takes the question back if the asking is given up.
struct Asking<'a> {
    approvals: &'a Approvals,
    number: u64,
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.approvals.state().waiting.retain(|waiting| waiting.number != self.number);
    }
}

/// For chats without a person present: every call that does more than read needs an approval.
pub struct Careful(pub Arc<Approvals>);

#[async_trait]
impl Approver for Careful {
    fn policy(&self, tool: &ToolSpec) -> Policy {
        let own = if tool.danger == Danger::ReadOnly { Policy::Allow } else { Policy::Ask };
        self.0.state().said.get(&*tool.name).copied().unwrap_or(own)
    }

    async fn ask(&self, call: PendingCall) -> Decision {
        self.0.ask(call).await
    }
}

#[async_trait]
impl Approver for Approvals {
    fn policy(&self, tool: &ToolSpec) -> Policy {
        self.state().said.get(&*tool.name).copied().unwrap_or_else(|| ByDanger::of(tool.danger))
    }

    async fn ask(&self, call: PendingCall) -> Decision {
        let (answer, answered) = oneshot::channel();
        let asking = {
            let mut state = self.state();
            state.last += 1;
            let number = state.last;
            state.waiting.push(Waiting { number, call, answer });
            Asking { approvals: self, number }
        };
        let decided = answered.await;
        drop(asking);
        decided.unwrap_or_else(|_| decision(false))
    }
}
