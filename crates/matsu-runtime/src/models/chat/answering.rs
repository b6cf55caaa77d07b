//! Models that answer at once, each from the same snapshot; their answers are stored in the order of the roster.

use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::SelectAll;
use matsu_core::clock::Clock;
use matsu_core::history::{Entry, rename_taken_ids};
use matsu_core::id::{ChatId, RunId};
use matsu_core::limits::DRAFT_EVERY;
use matsu_core::ports::provider::Provider;
use matsu_core::ports::store::{AppendEntries, AppendTranscript, NoteSpent, ReadEntries, SaveDraft, Store, StoreError};
use matsu_core::principal::Principal;
use matsu_core::transcript::{Draft, StoredEntry};
use matsu_core::usage::{Spent, Usage};
use tokio::time::Instant;

use super::open_answer::OpenAnswers;
use crate::models::agentic_loop::{AgenticLoopResult, Event, LoopOptions, execute_with_tools};
use crate::polled::Polled;

/// Is called with the name of a model and its event, as it happens.
pub type EventSink<'a> = &'a mut (dyn FnMut(&str, &Event) + Send);

/// How one model's answer ended.
#[derive(Clone, Debug)]
pub struct Answered {
    pub model: String,
    pub result: Arc<AgenticLoopResult>,
    /// Why it could not be stored, if it could not.
    pub unsaved: Option<String>,
}

pub struct Answering<'a> {
    pub store: &'a Arc<dyn Store>,
    pub clock: Clock,
    pub chat_id: &'a ChatId,
    /// Whose chat it is.
    pub owner: &'a Principal,
    /// The number of the line that is answered.
    pub line_seq: i64,
    /// What every one of them is shown: the chat up to that line.
    pub snapshot: &'a [Entry],
    pub speakers: Vec<Arc<dyn Provider>>,
    /// One for each speaker, in the same order.
    pub open_answers: &'a OpenAnswers,
    pub options: LoopOptions,
}

struct ModelTurn {
    name: String,
    changed: bool,
    result: Option<Arc<AgenticLoopResult>>,
}

impl Answering<'_> {
    pub async fn run(self, send: EventSink<'_>) -> Vec<Answered> {
        let mut streams = Polled::new(SelectAll::new());
        for (at, speaker) in self.speakers.iter().enumerate() {
            let stream = execute_with_tools(Arc::clone(speaker), self.snapshot, self.options.clone());
            streams.stream().push(stream.map(move |event| (at, event)).boxed());
        }
        let turn =
            |speaker: &Arc<dyn Provider>| ModelTurn { name: speaker.name().to_owned(), changed: false, result: None };
        let mut turns: Vec<ModelTurn> = self.speakers.iter().map(turn).collect();
        let (mut answered, mut saving) = (Vec::new(), Saving::new(self.clock));
        loop {
            tokio::select! {
                next = streams.next() => match next {
                    None => return answered,
                    Some((at, event)) => {
                        let Some(turn) = turns.get_mut(at) else { continue };
                        self.open_answers.take(at, &event, self.clock.now());
                        turn.changed = true;
                        send(&turn.name, &event);
                        saving.wish();
                        if let Event::Done(result) = event {
                            turn.result = Some(Arc::clone(&result));
                            let store = async {
                                self.note_spent(at, &result).await;
                                // It may have to wait for those before it; till then it is safe as a draft.
                                self.save_drafts(&mut turns, &mut saving, send).await;
                                self.store_finished(&mut turns, &mut answered).await;
                            };
                            streams.beside(store).await;
                        }
                    }
                },
                () = saving.due() => streams.beside(self.save_drafts(&mut turns, &mut saving, send)).await,
            }
        }
    }

    /// An agent's program that answers is a run of it, for the sums of `matsu usage`.
    async fn note_spent(&self, at: usize, result: &AgenticLoopResult) {
        let Some((speaker, agent)) = self.speakers.get(at).and_then(|speaker| Some((speaker, speaker.agent()?))) else {
            return;
        };
        let now = self.clock.now();
        #[expect(clippy::cast_precision_loss, reason = "a cost has few digits")]
        let cost_usd = result.cost_micros.map(|micros| micros as f64 / 1e6);
        let (input_tokens, output_tokens) = (result.usage.input_tokens, result.usage.output_tokens);
        let spent = Spent {
            run_id: RunId::mint(now),
            owner: self.owner.clone(),
            at: now,
            agent: agent.to_owned(),
            model: Some(speaker.maker().model),
            project: None,
            usage: Some(Usage { input_tokens, output_tokens, cost_usd }),
        };
        if let Err(error) = self.store.run(NoteSpent(spent)).await {
            tracing::warn!(%error, agent, "the cost of an answer could not be stored");
        }
    }

    async fn save_drafts(&self, turns: &mut [ModelTurn], saving: &mut Saving, send: EventSink<'_>) {
        for (at, turn) in turns.iter_mut().enumerate().filter(|(_, turn)| turn.changed) {
            turn.changed = false;
            let draft = match &turn.result {
                Some(result) => Some(Draft { model: turn.name.clone(), entries: result.history_delta.clone() }),
                None => self.open_answers.draft(at),
            };
            let Some(draft) = draft else { continue };
            let saved = self.store.run(SaveDraft { id: self.chat_id.clone(), draft, now: self.clock.now() }).await;
            if let Err(error) = saved
                && saving.is_first_failure()
            {
                let words = format!("the answer so far cannot be saved now: {error}");
                send(&turn.name, &Event::Notice(words));
            }
        }
        saving.done();
    }

    /// Stores the complete answers, in order, up to the first model that still answers.
    async fn store_finished(&self, turns: &mut [ModelTurn], answered: &mut Vec<Answered>) {
        while let Some(turn) = turns.get_mut(answered.len())
            && let Some(result) = turn.result.clone()
        {
            turn.changed = false;
            let unsaved = self.store_answer(&turn.name, &result).await.err().map(|error| error.to_string());
            answered.push(Answered { model: turn.name.clone(), result, unsaved });
        }
    }

    async fn store_answer(&self, model: &str, result: &AgenticLoopResult) -> Result<(), StoreError> {
        let since = ReadEntries { id: self.chat_id.clone(), after_seq: self.line_seq, rows_max: u32::MAX };
        let since = self.store.run(since).await?;
        let since = since.into_iter().map(|StoredEntry { entry, .. }| entry);
        let before: Vec<Entry> = self.snapshot.iter().cloned().chain(since).collect();
        // Two models that answered at once may have given their calls the same ids.
        let entries = rename_taken_ids(result.history_delta.clone(), &before, self.clock.now());
        let finishes = Some(model.to_owned());
        let now = self.clock.now();
        self.store
            .run(AppendTranscript(AppendEntries { chat_id: self.chat_id.clone(), entries, finishes, now }))
            .await?;
        Ok(())
    }
}

/// At most one save in an interval, and always one after the last change.
struct Saving {
    clock: Clock,
    last: Option<Instant>,
    wished: bool,
    failed: bool,
}

impl Saving {
    fn new(clock: Clock) -> Self {
        Self { clock, last: None, wished: false, failed: false }
    }

    fn wish(&mut self) {
        self.wished = true;
    }

    async fn due(&self) {
        if !self.wished {
            std::future::pending::<()>().await;
        }
        let next = self.last.map_or_else(|| self.clock.instant(), |last| last + DRAFT_EVERY);
        self.clock.sleep_until(next).await;
    }

    fn done(&mut self) {
        self.wished = false;
        self.last = Some(self.clock.instant());
    }

    fn is_first_failure(&mut self) -> bool {
        !std::mem::replace(&mut self.failed, true)
    }
}
