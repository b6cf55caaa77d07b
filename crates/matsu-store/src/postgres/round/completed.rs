//! The common round: whatever ended was completed, or nothing ended. What becomes of a completed job depends on
//! nothing, so it is written with the locks, and the next jobs are picked, all in one round trip.

use super::*;

/// Answers with those that were running under their lease. Of two leases of one job the first counts here; whatever
/// is not answered is looked at by itself. (A join with the lists takes several times as long.)
const COMPLETE: Sql = Sql::postgres(
    "UPDATE jobs SET state = 'completed', output_json = ($3::text[])[array_position($1::text[], id)], \
     error_code = NULL, error_message = NULL, finished_at = $4, owner_node = NULL WHERE id = ANY($1) \
     AND attempt = ($2::bigint[])[array_position($1::text[], id)] AND state = 'running' \
     RETURNING id, attempt, task_id, slot, (SELECT count(*) FROM reservations WHERE job_id = ANY($1))",
);

pub(super) async fn settle(request: &FinishAndClaim, claim: &Claim, tx: &mut Tx<'_>) -> Result<Settling, StoreError> {
    let (due, lock) = queue::locking(claim, ids(request), request.now);
    let is_due_asked = due.is_some();
    let mut steps: Vec<BoundStatement<'_>> = [lock].into_iter().chain(due).collect();
    if !request.finishes.is_empty() {
        steps.push(BoundStatement { sql: COMPLETE, params: columns(request) });
    }
    steps.push(queue::asking_permits(request, claim));
    steps.push(queue::picking_any(claim));
    let mut answers = tx.rows_of_all(&steps).await?.into_iter();
    let mut next = || answers.next().ok_or_else(not_the_answers);
    let tasks = next()?;
    let due = if is_due_asked { Due::read(&next()?)? } else { Due::default() };
    let completed = if request.finishes.is_empty() { Vec::new() } else { next()? };
    let (permits, picked) = (next()?, rows::jobs(&next()?)?);
    let mut ledger = Ledger::of_locked(&tasks)?;
    let permits = PermitBatch::read(&permits, request, claim, queue::pass_on)?;

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
            None => {
                // What it has set aside was not asked for.
                any_reserved = true;
                settle_moved(tx, &mut ledger, finish, request.now).await?
            }
        });
    }
    give_back(tx, request, &finished, any_reserved).await?;
    let some_left = !picked.iter().all(|job| is_locked(job, &ledger));
    // A task that came between the locks and the picking may be about to be stopped, so its jobs wait for the next
    // round; and what is due comes in its order.
    let picked = if due.is_empty() && !some_left {
        picked
    } else {
        due.wake(tx, &ledger).await?;
        let picking = queue::picking(claim, &ledger);
        rows::jobs(&tx.rows(&picking.sql, &picking.params).await?)?
    };
    Ok(Settling { ledger, finished, slots, permits, picked, some_left })
}

fn is_locked(job: &Job, ledger: &Ledger) -> bool {
    job.task_id.as_ref().is_none_or(|id| ledger.task(id).is_some())
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
