//! What a person decided about the changes of a run, stored with its task.

use matsu_core::change::ChangeKind;
use matsu_core::ports::store::{SetReview, StoreError};
use matsu_core::task::Task;

use crate::sql::{Sql, Transition, Tx, internal, params};
use crate::transitions::ledger::Ledger;

const STORE: Sql = Sql::both("UPDATE tasks SET review_json = $2 WHERE id = $1");

impl Transition for SetReview {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<Task, StoreError> {
        let mut ledger = Ledger::lock(tx, [self.task_id.clone()]).await?;
        let mut reviews = ledger.existing(&self.task_id)?.reviews.clone();
        reviews.retain(|review| review.job_id != self.job_id);
        reviews.extend(self.review.clone());
        let text = serde_json::to_string(&reviews).map_err(internal)?;
        tx.run(&STORE, params![&self.task_id, Some(&text).filter(|_| !reviews.is_empty())]).await?;
        // Visible, and no news for a model: a person did it.
        ledger.change(&self.task_id, ChangeKind::Progress, |task| task.reviews = reviews);
        let task = ledger.write(tx, self.now).await?.into_iter().next();
        task.ok_or_else(|| internal("a locked task is gone"))
    }
}
