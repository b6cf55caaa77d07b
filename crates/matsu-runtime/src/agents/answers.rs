//! Questions of runs: waiting for the answer, and giving it.

use std::sync::OnceLock;

use async_trait::async_trait;

use matsu_core::change::Topic;
use matsu_core::chat::lines;
use matsu_core::id::{ChatId, JobId, TaskId};
use matsu_core::job::{Job, JobState};
use matsu_core::limits::TICK;
use matsu_core::ports::agent::TraceState;
use matsu_core::ports::store::{AnswerQuestion, ChatCall, ReadAnswer, ReadQuestion};
use matsu_core::principal::Principal;
use matsu_core::receipt::CONSENT_QUESTION;
use matsu_core::run::{Answer, Question, RunInput};

use crate::runtime::Runtime;
use crate::runtime::context::JobContext;
use crate::tasks::{TaskError, Tasks};

use super::{Agents, RunHandle};

/// A question that waits for its answer. Two jobs of a task may ask under the same id: it is known by both.
#[derive(Clone, Debug)]
pub struct OpenQuestion {
    pub job: Job,
    pub question: Question,
}

impl OpenQuestion {
    /// The agent that asks.
    #[must_use]
    pub fn agent(&self) -> Option<String> {
        serde_json::from_str::<RunInput>(&self.job.input_json).ok().map(|input| input.agent)
    }
}

/// The question a parked job has asked.
fn question_of(job: &Job) -> Option<Question> {
    let is_parked = job.state == JobState::AwaitingInput;
    job.progress_json.as_deref().filter(|_| is_parked).and_then(|text| serde_json::from_str(text).ok())
}

/// Returns when an answer has come.
pub async fn answer_to(cx: &JobContext, question: &Question) -> Answer {
    let runtime = cx.runtime();
    let topic = match &cx.job.task_id {
        Some(task) => Some(Topic::task(task)),
        None => serde_json::from_str::<ChatCall>(&cx.job.input_json).ok().map(|call| Topic::chat(&call.chat_id)),
    };
    // Before the first look, or an answer in between would be slept through.
    let subscription = runtime.hub().subscribe(topic.as_slice());
    loop {
        if let Ok(Some(answer)) =
            runtime.store().run(ReadAnswer { job: cx.lease.job_id.clone(), question: question.id.clone() }).await
        {
            return answer;
        }
        tokio::select! {
            biased;
            () = subscription.woken() => {}
            () = runtime.clock().sleep(TICK) => {}
        }
    }
}

fn check(answer: &Answer) -> Result<(), TaskError> {
    if answer.option.is_some() == answer.text.is_some() {
        let given = if answer.option.is_some() { "both" } else { "neither" };
        return Err(TaskError::Invalid(format!("give exactly one of option and text, got {given}")));
    }
    Ok(())
}

/// What is to know that a person has answered a run.
#[async_trait]
pub trait AnswerListener: Send + Sync {
    async fn answered(&self, runtime: &Runtime, run: &RunHandle, answer: &Answer);
}

#[derive(Default)]
struct Listener(OnceLock<Box<dyn AnswerListener>>);

impl Agents<'_> {
    /// Sets what is to know of answers. Only the first call counts.
    pub fn listen_to_answers(self, listener: impl AnswerListener + 'static) {
        let _ = self.runtime.part::<Listener>().0.set(Box::new(listener));
    }

    /// A person has answered what a run asked.
    pub(super) async fn answered(self, run: &RunHandle, answer: &Answer) {
        if let Some(listener) = self.runtime.part::<Listener>().0.get() {
            listener.answered(self.runtime, run, answer).await;
        }
    }

    /// Answers a question that one of the task's runs has asked. The job may be left out where only one asks under
    /// that id.
    ///
    /// # Errors
    /// `NotFound` for a foreign task; `NotYours` for a run that answers its own question; `Invalid` if nothing of that
    /// id is being asked, or by several jobs.
    pub async fn answer(
        self,
        owner: &Principal,
        task: &TaskId,
        job: Option<&JobId>,
        answer: &Answer,
    ) -> Result<(), TaskError> {
        Tasks::of(self.runtime).read_own(owner, task).await?;
        check(answer)?;
        if answer.id == CONSENT_QUESTION {
            let message = "only a person can answer this question, in a terminal: run matsu allow in the repository";
            return Err(TaskError::Invalid(message.to_owned()));
        }
        let jobs = Tasks::of(self.runtime).jobs_of(task).await?;
        let is_meant = |asking: &&Job| job.is_none_or(|job| asking.id == *job);
        let asks = |job: &&Job| question_of(job).is_some_and(|question| question.id == answer.id);
        let asking: Vec<&Job> = jobs.iter().filter(is_meant).filter(asks).collect();
        if asking.len() > 1 {
            let ids = asking.iter().map(|job| job.id.as_str()).collect::<Vec<_>>().join(", ");
            let message = format!(
                "{} jobs have a question with the id {}; give the job_id of one: {ids}",
                asking.len(),
                answer.id
            );
            return Err(TaskError::Invalid(message));
        }
        // The answer to a question that was answered before is for the store to compare.
        let job = asking.first().copied().or_else(|| jobs.iter().rfind(is_meant));
        let job = job.ok_or_else(|| TaskError::Invalid("no job of this task has an open question".to_owned()))?;
        if question_of(job).is_some() && self.has_ended(&job.id) {
            return Err(TaskError::Invalid(format!(
                "the run that asked has ended and cannot be answered any more. See how it ended: matsu status {task} \
                 --wait (without a daemon: matsu serve first)"
            )));
        }
        Ok(self
            .runtime
            .store()
            .run(AnswerQuestion {
                job: job.id.clone(),
                answer: answer.clone(),
                chat_line: None,
                now: self.runtime.clock().now(),
            })
            .await?)
    }

    /// Whether the program of a job's run is over, although that need not be stored yet.
    fn has_ended(self, job: &JobId) -> bool {
        let trace = self.runtime.agents().and_then(|host| host.trace(job));
        trace.is_some_and(|trace| trace.state == TraceState::Ended)
    }

    /// Answers what the agent of a chat has asked.
    ///
    /// # Errors
    /// `Invalid` if nothing of that id is being asked.
    pub async fn answer_in_chat(self, chat: &ChatId, answer: &Answer) -> Result<(), TaskError> {
        check(answer)?;
        let asked = self.runtime.store().run(ReadQuestion(chat.clone())).await?;
        let (job, question) =
            asked.ok_or_else(|| TaskError::Invalid("no question is open at the moment".to_owned()))?;
        let words = answer.option.as_deref().or(answer.text.as_deref()).unwrap_or_default();
        let line = lines::answered(self.runtime.session_options().language, &question.text, words);
        let now = self.runtime.clock().now();
        let request = AnswerQuestion { job, answer: answer.clone(), chat_line: Some(line), now };
        Ok(self.runtime.store().run(request).await?)
    }

    /// What the runs of a task ask at the moment, without what was answered already.
    ///
    /// # Errors
    /// As the store's.
    pub async fn open_questions(self, task: &TaskId) -> Result<Vec<OpenQuestion>, TaskError> {
        let jobs = Tasks::of(self.runtime).jobs_of(task).await?;
        self.still_open(&jobs).await
    }

    /// The questions of these jobs that have no answer yet. A job that was answered stays parked until it has a permit
    /// again.
    pub(crate) async fn still_open(self, jobs: &[Job]) -> Result<Vec<OpenQuestion>, TaskError> {
        let mut open = Vec::new();
        for job in jobs {
            if let Some(question) = question_of(job)
                && self
                    .runtime
                    .store()
                    .run(ReadAnswer { job: job.id.clone(), question: question.id.clone() })
                    .await?
                    .is_none()
            {
                open.push(OpenQuestion { job: job.clone(), question });
            }
        }
        Ok(open)
    }
}
