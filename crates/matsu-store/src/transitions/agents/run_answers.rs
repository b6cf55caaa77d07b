//! Answers to the questions of parked runs.

use matsu_core::change::ChangeKind;
use matsu_core::error_code::ErrorCode;
use matsu_core::id::TaskId;
use matsu_core::ports::store::{AnswerQuestion, ReadAnswer, StoreError};
use matsu_core::run::{Answer, Question};

use crate::sql::{Sql, Transition, Tx, internal, params};
use crate::transitions::chats::turns;
use crate::transitions::ledger::Ledger;

const PARKED: Sql = Sql::both("SELECT task_id, progress_json FROM jobs WHERE id = $1 AND state = 'awaiting_input'");
const ANSWER: Sql = Sql::both(
    "INSERT INTO run_answers (job_id, question, answer_json, answered_at) VALUES ($1, $2, $3, $4) \
     ON CONFLICT (job_id, question) DO NOTHING",
);
const ANSWERED: Sql = Sql::both("SELECT answer_json FROM run_answers WHERE job_id = $1 AND question = $2");

impl Transition for AnswerQuestion {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<(), StoreError> {
        let answer_json = serde_json::to_string(&self.answer).map_err(internal)?;
        // The same answer twice is harmless, also after the run has gone on.
        if let Some(row) = tx.row(&ANSWERED, params![&self.job, &self.answer.id]).await? {
            let same = row.only_text()? == answer_json;
            return if same { Ok(()) } else { Err(refused("this question has been answered already")) };
        }
        let row = tx.row(&PARKED, params![&self.job]).await?;
        let row = row.ok_or_else(|| refused("no question is open at the moment"))?;
        let mut c = row.columns();
        let task_id = c.opt_text()?.map(TaskId::from_text);
        let question = c.opt_text()?.and_then(|text| serde_json::from_str::<Question>(&text).ok());
        let question = question.ok_or_else(|| refused("no question is open at the moment"))?;
        if question.id != self.answer.id {
            return Err(refused(&format!("question {} is not open; the open one is {}", self.answer.id, question.id)));
        }
        if let Some(option) = &self.answer.option
            && !question.options.is_empty()
            && !question.options.contains(option)
        {
            return Err(refused(&format!("option must be one of {}", question.options.join(", "))));
        }
        let mut ledger = Ledger::lock(tx, task_id.clone()).await?;
        if tx.run(&ANSWER, params![&self.job, &self.answer.id, &answer_json, self.now]).await? == 0 {
            return Err(refused("this question has been answered already"));
        }
        match &task_id {
            Some(id) => ledger.change(id, ChangeKind::Progress, |_| {}),
            None => turns::answered(tx, &self.job, self.chat_line.as_deref(), self.now).await?,
        }
        ledger.write(tx, self.now).await?;
        Ok(())
    }
}

fn refused(message: &str) -> StoreError {
    StoreError::Refused { code: ErrorCode::InvalidParams, message: message.to_owned() }
}

impl Transition for ReadAnswer {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Option<Answer>, StoreError> {
        let Some(row) = tx.row(&ANSWERED, params![&self.job, &self.question]).await? else { return Ok(None) };
        serde_json::from_str(&row.only_text()?).map(Some).map_err(internal)
    }
}
