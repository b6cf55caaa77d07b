//! Codes by which a person answers a question from a message, and which node reads them.

use matsu_core::id::{JobId, TaskId};
use matsu_core::notify::{AnswerCode, CodeUse};
use matsu_core::ports::store::{LeaseReplies, PutCodes, SetReplyPosition, StoreError, UseCode};

use crate::sql::{Sql, Transition, Tx, params};

const PUT: Sql = Sql::both(
    "INSERT INTO answer_codes (hash, channel, task_id, job_id, question_id, choice, created_at) \
     VALUES ($1, $2, $3, $4, $5, $6, $7)",
);
/// The first of several nodes that get the same code.
const USE: Sql = Sql::both(
    "UPDATE answer_codes SET used_at = $3 WHERE hash = $1 AND channel = $2 AND created_at > $4 AND used_at IS NULL \
     RETURNING task_id, job_id, question_id, choice",
);
const IS_KNOWN: Sql = Sql::both("SELECT 1 FROM answer_codes WHERE hash = $1 AND channel = $2 AND used_at IS NOT NULL");
/// From a node that is dead, or has not come back for so long.
const LEASE: Sql = Sql::both(
    "UPDATE notify_channels SET reader_node = $2, reader_until = $3 \
     WHERE name = $1 AND (reader_node IS NULL OR reader_node = $2 OR reader_until <= $4 \
     OR reader_node NOT IN (SELECT id FROM nodes WHERE role <> 'left')) RETURNING position",
);
const SET_POSITION: Sql = Sql::both("UPDATE notify_channels SET position = $2 WHERE name = $1");

impl Transition for PutCodes {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<(), StoreError> {
        for code in &self.codes {
            let (job, question) = (&code.job_id, &code.question_id);
            let row = params![&code.hash, &code.channel, &code.task_id, job, question, &code.option, self.now];
            tx.run(&PUT, row).await?;
        }
        Ok(())
    }
}

impl Transition for UseCode {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<CodeUse, StoreError> {
        let first = tx.row(&USE, params![&self.hash, &self.channel, self.now, self.made_after]).await?;
        if let Some(row) = first {
            let mut c = row.columns();
            return Ok(CodeUse::First(AnswerCode {
                hash: self.hash.clone(),
                channel: self.channel.clone(),
                task_id: TaskId::from_text(c.text()?),
                job_id: JobId::from_text(c.text()?),
                question_id: c.text()?,
                option: c.text()?,
            }));
        }
        let is_known = tx.row(&IS_KNOWN, params![&self.hash, &self.channel]).await?.is_some();
        Ok(if is_known { CodeUse::Repeated } else { CodeUse::Unknown })
    }
}

impl Transition for LeaseReplies {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<Option<Option<String>>, StoreError> {
        let row = tx.row(&LEASE, params![&self.channel, &self.node, self.until, self.now]).await?;
        row.map(|row| row.columns().opt_text()).transpose()
    }
}

impl Transition for SetReplyPosition {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<(), StoreError> {
        tx.run(&SET_POSITION, params![&self.channel, &self.position]).await.map(drop)
    }
}
