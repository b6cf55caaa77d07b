//! The common round: whatever ended was completed, or nothing ended. What becomes of a completed job depends on
//! nothing, so it is written with the locks, and the next jobs are picked, all in one round trip.

use super::*;

/// Answers with those that were running under their lease.
const COMPLETE: Sql = Sql::both(
    "UPDATE jobs SET state = 'completed', output_json = v.output_json, error_code = NULL, error_message = NULL, \
     finished_at = $4, owner_node = NULL FROM unnest($1::text[], $2::bigint[], $3::text[]) \
     AS v(id, attempt, output_json) WHERE jobs.id = ANY($1) AND jobs.id = v.id AND jobs.attempt = v.attempt \
     AND jobs.state = 'running' RETURNING jobs.id, jobs.attempt, jobs.task_id, jobs.slot, \
     (SELECT count(*) FROM reservations WHERE job_id = jobs.id)",
);

pub(super) async fn settle(request: &FinishAndClaim, claim: &Claim, tx: &mut Tx<'_>) -> Result<Settling, StoreError> {
    let [_, lock] = Candidates::locking(claim, ids(request), request.now);
    let mut steps = vec![lock];
    if !request.finishes.is_empty() {
        steps.push(Step { sql: COMPLETE, params: columns(request) });
    }
    steps.push(permits::Hand::asking(request, claim));
    steps.push(claim::picking_any(claim));
    let mut answers = tx.rows_of_all(&steps).await?.into_iter();
    let mut next = || answers.next().ok_or_else(not_the_answers);
    let tasks = next()?;
    let completed = if request.finishes.is_empty() { Vec::new() } else { next()? };
    let (permits, picked) = (next()?, rows::jobs(&next()?)?);
    let mut ledger = Ledger::of_locked(&tasks)?;
    let permits = permits::Hand::read(&permits, request, claim)?;
    let due = Candidates::due_behind(tx, &tasks, claim, request.now).await?;

    let mut done = HashMap::with_capacity(completed.len());
    let mut any_reserved = false;
    for row in &completed {
        let mut c = row.columns();
        done.insert(lease(&mut c)?, (c.opt_text()?.map(TaskId::from_text), c.word(Slot::parse)?));
        any_reserved |= c.int()? > 0;
    }
    let slots = done.values().map(|(_, slot)| *slot).collect();
    let mut finished = Vec::with_capacity(request.finishes.len());
    for finish in &request.finishes {
        finished.push(match done.remove(&finish.lease) {
            Some((task_id, _)) => {
                ledger.moved(task_id.as_ref(), JobState::Running, JobState::Completed);
                Ok(JobState::Completed)
            }
            None => settle_moved(tx, &mut ledger, finish, request.now).await?,
        });
    }
    give_back(tx, request, &finished, any_reserved).await?;
    let picked = behind_locks(tx, &ledger, claim, due, picked).await?;
    Ok(Settling { ledger, finished, slots, permits, picked })
}

/// A task that came between the locks and the picking may be about to be stopped, so its jobs wait for the next
/// round; and what is due comes in its order.
async fn behind_locks(
    tx: &mut Tx<'_>,
    ledger: &Ledger,
    claim: &Claim,
    due: Candidates,
    picked: Vec<Job>,
) -> Result<Vec<Job>, StoreError> {
    let is_locked = |job: &Job| job.task_id.as_ref().is_none_or(|id| ledger.task(id).is_some());
    if due.is_empty() && picked.iter().all(is_locked) {
        return Ok(picked);
    }
    due.pick(tx, ledger, claim).await
}

/// The parameters of `COMPLETE`.
fn columns(request: &FinishAndClaim) -> Vec<Value<'_>> {
    let outputs = request.finishes.iter().map(|finish| match &finish.end {
        JobEnd::Completed { output_json } => Some(output_json.as_str()),
        _ => None,
    });
    vec![
        Value::Texts(leases(request).map(|lease| Some(lease.job_id.as_str())).collect()),
        Value::Ints(leases(request).map(|lease| Some(lease.attempt)).collect()),
        Value::Texts(outputs.collect()),
        request.now.into(),
    ]
}
