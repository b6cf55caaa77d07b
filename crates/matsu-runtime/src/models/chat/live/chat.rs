//! What one process knows of a chat it answers in. Everything that must not be lost is in the store.

use std::sync::Arc;
use std::time::Duration;

use matsu_core::clock::Clock;
use matsu_core::limits::{RUN_REQUESTS_MAX, RUN_SECONDS_MAX};
use matsu_core::transcript::ChatPlace;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::LiveSettings;
use super::approvals::{Approvals, Careful};
use crate::models::agentic_loop::{AgenticLoopResult, Approver, Event, KeptOutputs, LoopOptions};
use crate::models::chat::open_answer::OpenAnswers;
use crate::models::chat::open_chats::Posted;
use crate::models::chat::standing::WithStanding;

/// How a model's answer to the last line ended.
#[derive(Clone)]
pub struct Spoken {
    pub model: String,
    pub result: Arc<AgenticLoopResult>,
}

pub struct LiveChat {
    /// From before a line is stored until its last answer is.
    pub is_taken: bool,
    /// How often it became free again.
    pub rounds: u64,
    pub cancel: CancellationToken,
    /// The answers under way.
    pub open_answers: OpenAnswers,
    /// The line they answer.
    pub posted_seq: i64,
    /// Messages that are not from a model: errors and notices, until the next line.
    pub notices: Vec<String>,
    /// The models that have answered the last line.
    pub spoken: Vec<Spoken>,
    pub outputs: Arc<KeptOutputs>,
    pub approvals: Arc<Approvals>,
    pub used_at: Instant,
    /// Grows with every change.
    pub version: watch::Sender<u64>,
}

impl LiveChat {
    pub fn new(now: Instant) -> Self {
        Self {
            is_taken: false,
            rounds: 0,
            cancel: CancellationToken::new(),
            open_answers: OpenAnswers::default(),
            posted_seq: 0,
            notices: Vec::new(),
            spoken: Vec::new(),
            outputs: Arc::default(),
            approvals: Arc::default(),
            used_at: now,
            version: watch::Sender::new(0),
        }
    }

    pub fn changed(&self) {
        self.version.send_modify(|version| *version += 1);
    }

    /// A line was stored, and is answered now.
    pub fn begin(&mut self, posted: &Posted) {
        self.notices.clear();
        self.spoken.clear();
        self.open_answers = posted.open_answers.clone();
        self.posted_seq = posted.line.seq;
        self.changed();
    }

    /// What the answers are given besides their tools.
    pub fn options(&self, place: ChatPlace, clock: Clock, settings: &LiveSettings) -> LoopOptions {
        let approvals = Arc::clone(&self.approvals);
        let options =
            LoopOptions { outputs: Arc::clone(&self.outputs), cancel: self.cancel.clone(), ..LoopOptions::new(clock) };
        match place {
            ChatPlace::Terminal | ChatPlace::Page => {
                let standing = Arc::clone(&settings.standing);
                let approver = Arc::new(WithStanding { inner: approvals, standing });
                LoopOptions { approver, ..options.within(settings.limits) }
            }
            // A run has a time and a number of turns of its own.
            ChatPlace::Run => LoopOptions {
                approver: Arc::new(Careful(approvals)) as Arc<dyn Approver>,
                time_max: Duration::from_secs(RUN_SECONDS_MAX.into()),
                iterations_max: RUN_REQUESTS_MAX,
                ..options
            },
        }
    }

    /// Takes in what is not part of the answer itself, and has readers look again.
    pub fn note(&mut self, model: &str, event: &Event) {
        match event {
            Event::Notice(words) => self.notices.push(format!("{model}: {words}")),
            Event::Done(result) => {
                self.notices.extend(result.error.as_ref().map(|error| format!("{model}: {error} ({})", error.code)));
                self.spoken.push(Spoken { model: model.to_owned(), result: Arc::clone(result) });
            }
            _ => {}
        }
        self.changed();
    }

    /// Whether there was something to stop.
    pub fn stop(&mut self) -> bool {
        if self.is_taken {
            self.cancel.cancel();
        }
        self.is_taken
    }
}
