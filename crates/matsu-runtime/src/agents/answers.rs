//! Questions of runs: waiting for the answer, and giving it.

use matsu_core::change::Topic;
use matsu_core::id::{ChatId, TaskId};
use matsu_core::job::{Job, JobState};
use matsu_core::limits::TICK;
use matsu_core::ports::store::ChatCall;
use matsu_core::principal::Principal;
use matsu_core::run::{Answer, Question};

use crate::context::JobContext;
use crate::runtime::Runtime;
use crate::tasks::TaskError;

/// The question a parked job has asked.
#[must_use]
pub fn question_of(job: &Job) -> Option<Question> {
    let is_parked = job.state == JobState::AwaitingInput;
    job.progress_json.as_deref().filter(|_| is_parked).and_then(|text| serde_json::from_str(text).ok())
}

/// Returns when somebody has answered.
pub async fn answer_to(cx: &JobContext, question: &Question) -> Answer {
    let runtime = cx.runtime();
    let topic = match &cx.job.task_id {
        Some(task) => Some(Topic::task(task)),
        None => serde_json::from_str::<ChatCall>(&cx.job.input_json).ok().map(|call| Topic::chat(&call.chat_id)),
    };
    // Before the first look, or an answer in between would be slept through.
    let subscription = runtime.hub().subscribe(topic.as_slice());
    loop {
        if let Ok(Some(answer)) = runtime.store().answer_to(&cx.lease.job_id, &question.id).await {
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
        return Err(TaskError::Invalid("an answer has either option or text".to_owned()));
    }
    Ok(())
}

impl Runtime {
    /// Answers a question that one of the task's runs has asked.
    ///
    /// # Errors
    /// `NotFound` for a foreign task; `Invalid` if nothing of that id is being asked.
    pub async fn answer(&self, owner: &Principal, task: &TaskId, answer: &Answer) -> Result<(), TaskError> {
        self.read(owner, task).await?;
        check(answer)?;
        let jobs = self.jobs_of(task).await?;
        let asking = jobs.iter().find(|job| question_of(job).is_some_and(|question| question.id == answer.id));
        // The answer to a question that was answered before is for the store to compare.
        let job = asking.or(jobs.last()).ok_or_else(|| TaskError::Invalid("nothing is being asked".to_owned()))?;
        Ok(self.store().answer_question(&job.id, answer, self.clock().now()).await?)
    }

    /// Answers what the agent of a chat has asked.
    ///
    /// # Errors
    /// `Invalid` if nothing of that id is being asked.
    pub async fn answer_in_chat(&self, chat: &ChatId, answer: &Answer) -> Result<(), TaskError> {
        check(answer)?;
        let asked = self.store().question_in(chat).await?;
        let (job, _) = asked.ok_or_else(|| TaskError::Invalid("nothing is being asked at the moment".to_owned()))?;
        Ok(self.store().answer_question(&job, answer, self.clock().now()).await?)
    }

    /// What the runs of a task ask at the moment.
    ///
    /// # Errors
    /// As the store's.
    pub async fn open_questions(&self, task: &TaskId) -> Result<Vec<Question>, TaskError> {
        Ok(self.jobs_of(task).await?.iter().filter_map(question_of).collect())
    }
}
