//! Identifiers: one newtype per noun, a printed prefix, and enough randomness that none can be guessed.
//!
//! The first ten characters carry the time, so that fresh ids land side by side in a B-tree; the other
//! sixteen are 80 random bits. An id is opaque to callers: nothing but `mint` looks inside.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::clock::Timestamp;

/// Crockford's base 32 in lower case: no letter that is read as a digit.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// Ten characters of time (48 bits) and sixteen of randomness (80 bits).
fn mint(prefix: &str, now: Timestamp) -> String {
    let mut random = [0_u8; 10];
    // Without the operating system's randomness an id could be guessed, and a handle is a key: better to stop.
    #[expect(clippy::expect_used, reason = "a process without entropy must not create guessable ids")]
    getrandom::fill(&mut random).expect("the operating system gives randomness");
    let time = now.as_millis().max(0).cast_unsigned();
    let mut text = String::with_capacity(prefix.len() + 26);
    text.push_str(prefix);
    for shift in (0..10).rev() {
        text.push(char::from(ALPHABET[((time >> (shift * 5)) & 31) as usize]));
    }
    let bits = random.iter().fold(0_u128, |bits, byte| (bits << 8) | u128::from(*byte));
    for shift in (0..16).rev() {
        text.push(char::from(ALPHABET[((bits >> (shift * 5)) & 31) as usize]));
    }
    text
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident = $prefix:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// A fresh id.
            #[must_use]
            pub fn mint(now: Timestamp) -> Self { Self(mint($prefix, now)) }

            /// An id from a caller. It need not exist.
            #[must_use]
            pub fn from_text(text: impl Into<String>) -> Self { Self(text.into()) }

            #[must_use]
            pub fn as_str(&self) -> &str { &self.0 }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { f.write_str(&self.0) }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { f.write_str(&self.0) }
        }
    )*};
}

ids! {
    /// Work that starts by itself.
    ScheduleId = "sched_";
    /// One time of a schedule.
    FiringId = "fire_";
    /// An address that other services send to. Part of that address.
    WebhookId = "hook_";
    /// What another service has sent to a webhook.
    DeliveryId = "dlv_";
    /// A browser that gets notices.
    SubscriptionId = "sub_";
    /// What a handle names.
    TaskId = "task_";
    /// One run of one process on one store; new at every start.
    NodeId = "node_";
    /// One start of an agent's program. A program that is started again is another run.
    RunId = "run_";
    /// A named bearer token; not the secret.
    TokenId = "tok_";
    /// Finds the full record of an error in the log.
    ErrorId = "err_";
    /// One entry of a transcript.
    EntryId = "entry_";
    /// A tool call that the model gave no usable id of its own.
    CallId = "call_";
    /// Where agents work; usually a name that a person chose.
    ProjectId = "project_";
    /// The name of a worker; usually one that a person chose.
    AgentId = "agent_";
    /// An agent's presence; not the token.
    SessionId = "sess_";
    /// A conversation of people with an agent, or with models.
    ChatId = "chat_";
    /// One thing said in a chat.
    MessageId = "m_";
    /// A notice to a person.
    NoticeId = "no_";
    /// Something an agent must learn.
    NotificationId = "n_";
    /// One schedulable piece of a task. Searches print as `s_…`, all other jobs as `j_…`.
    JobId = "j_";
    /// A page that was read: from the web, from an engine, from a folder.
    PageId = "p_";
    /// A passage of a page.
    FragmentId = "f_";
    /// A statement that a search found, with the passage it stands in.
    ClaimId = "c_";
    /// What a passage says about a claim.
    EdgeId = "e_";
    /// A page that needs a login by a person.
    AuthItemId = "iq_";
    /// A person's word about a domain.
    RuleId = "dor_";
    /// One line of the feedback log.
    FeedbackId = "fb_";
    /// One corrected judgement.
    SampleId = "nlc_";
    /// One stored evaluation of a judge.
    EvaluationId = "eval_";
}

impl AgentId {
    /// A run without a name of its own: it has its program's, in a form that no person can choose.
    #[must_use]
    pub fn of_program(name: &str) -> Self {
        Self(format!("{PROGRAM}{name}"))
    }

    #[must_use]
    pub fn is_program(&self) -> bool {
        self.0.starts_with(PROGRAM)
    }
}

const PROGRAM: &str = "run:";

impl JobId {
    /// A fresh id for a search, which clients know as the search's own id.
    #[must_use]
    pub fn mint_search(now: Timestamp) -> Self {
        Self(mint("s_", now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_unique_prefixed_and_ordered_by_time() {
        let early = TaskId::mint(Timestamp::from_millis(1_000));
        let late = TaskId::mint(Timestamp::from_millis(2_000));
        assert!(early < late);
        assert!(early.as_str().starts_with("task_"));
        assert_eq!(early.as_str().len(), 31);
        assert_ne!(early, TaskId::mint(Timestamp::from_millis(1_000)));
    }

    #[test]
    fn all_random_bits_are_used() {
        let mut seen = std::collections::HashSet::new();
        for _ in 0..2_000 {
            seen.insert(JobId::mint(Timestamp::from_millis(5)).as_str()[12..16].to_owned());
        }
        assert!(seen.len() > 1_800, "the first random characters hardly ever repeat, saw {}", seen.len());
    }
}
