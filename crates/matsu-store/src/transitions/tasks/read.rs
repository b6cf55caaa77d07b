//! Reads that change nothing: tasks, jobs, and the orders a node must follow.

use matsu_core::id::TaskId;
use matsu_core::job::{Job, JobState, JobSummary};
use matsu_core::limits::{SEARCH_WORDS_MAX, TASKS_PER_WAIT_MAX};
use matsu_core::page::{Page, PageRequest};
use matsu_core::ports::store::{
    CountTasks, CountUnfinished, JobFilter, JobOrder, ListJobSummaries, ListJobs, ListTasks, Order, OrderKind,
    QueueCount, ReadJob, ReadOrders, ReadSummary, ReadTask, ReadTasks, Request, StoreError, StoreInfo, Summary,
    TaskLookup,
};
use matsu_core::principal::Principal;
use matsu_core::slot::Slot;
use matsu_core::task::{StopMode, Task, TaskStatus};

use crate::sql::{Row, Sql, Transition, Tx, params};
use crate::transitions::paging::page;
use crate::transitions::rows::{self, job_columns, summary_columns, task_columns};
use crate::transitions::unfinished;

const TASK: Sql = Sql::both(concat!("SELECT ", task_columns!(), " FROM tasks WHERE id = $1"));
const TOMBSTONE: Sql = Sql::both("SELECT owner, status, expired_at FROM tombstones WHERE id = $1");
const TASKS: Sql = Sql::each(
    concat!("SELECT ", task_columns!(), " FROM tasks WHERE id = $1"),
    concat!("SELECT ", task_columns!(), " FROM tasks WHERE id = ANY($1) ORDER BY id"),
);
macro_rules! task_list {
    ($owner:literal) => {
        concat!(
            "SELECT ",
            task_columns!(),
            " FROM tasks WHERE ",
            $owner,
            " AND (CAST($2 AS TEXT) IS NULL OR kind = $2) AND (CAST($3 AS TEXT) IS NULL OR status = $3) \
             AND (CAST($4 AS TEXT) IS NULL OR parent_id = $4) AND (CAST($5 AS BIGINT) IS NULL OR finished_at IS NULL \
             OR first_read_at IS NULL OR first_read_at >= $5) \
             AND seq < coalesce(CAST($6 AS BIGINT), 9223372036854775807) ORDER BY seq DESC LIMIT $7"
        )
    };
}
const LIST_TASKS: Sql = Sql::both(task_list!("CAST($1 AS TEXT) IS NULL"));
/// Spelled without an alternative, so that the planners walk the index of one owner and not of all.
const LIST_TASKS_OF_OWNER: Sql = Sql::both(task_list!("owner = $1"));
const LIST_TASKS_OF_PARENT: Sql = Sql::both(task_list!("parent_id = $4 AND (CAST($1 AS TEXT) IS NULL OR owner = $1)"));
macro_rules! has_word {
    ($word:literal, $like:literal) => {
        concat!(
            " AND (CAST(",
            $word,
            " AS TEXT) IS NULL OR title",
            $like,
            $word,
            r" ESCAPE '\' OR EXISTS (SELECT 1 FROM jobs j WHERE j.task_id = tasks.id AND (j.input_json",
            $like,
            $word,
            r" ESCAPE '\' OR j.output_json",
            $like,
            $word,
            r" ESCAPE '\')))"
        )
    };
}
macro_rules! task_search {
    ($like:literal) => {
        concat!(
            "SELECT ",
            task_columns!(),
            " FROM tasks WHERE (CAST($1 AS TEXT) IS NULL OR owner = $1) AND (CAST($2 AS TEXT) IS NULL OR kind = $2) \
             AND (CAST($3 AS TEXT) IS NULL OR status = $3) AND seq < coalesce(CAST($4 AS BIGINT), 9223372036854775807)",
            has_word!("$6", $like),
            has_word!("$7", $like),
            has_word!("$8", $like),
            has_word!("$9", $like),
            " ORDER BY seq DESC LIMIT $5"
        )
    };
}
/// SQLite's LIKE takes upper and lower case of ASCII for the same by itself.
const SEARCH_TASKS: Sql = Sql::each(task_search!(" LIKE "), task_search!(" ILIKE "));
const JOB: Sql = Sql::both(concat!("SELECT ", job_columns!(), " FROM jobs WHERE id = $1"));
macro_rules! job_list {
    ($columns:expr, $task:expr, $seq:literal, $than:literal, $end:literal, $direction:literal) => {
        concat!(
            "SELECT ",
            $columns,
            " FROM jobs WHERE ",
            $task,
            " AND (CAST($2 AS TEXT) IS NULL OR state = $2) AND (CAST($3 AS TEXT) IS NULL OR slot = $3) \
             AND (CAST($6 AS TEXT) IS NULL OR EXISTS \
             (SELECT 1 FROM tasks t WHERE t.id = jobs.task_id AND t.owner = $6)) \
             AND (CAST($7 AS BIGINT) IS NULL OR queued_at >= $7 OR started_at >= $7 OR finished_at >= $7 \
             OR state IN ('running', 'awaiting_auth', 'awaiting_input')) AND ",
            $seq,
            $than,
            " coalesce(CAST($4 AS BIGINT), ",
            $end,
            ") ORDER BY ",
            $seq,
            $direction,
            " LIMIT $5"
        )
    };
}
macro_rules! in_both_orders {
    ($columns:expr, $task:expr, $seq:literal) => {
        [
            Sql::both(job_list!($columns, $task, $seq, " > ", "-1", "")),
            Sql::both(job_list!($columns, $task, $seq, " < ", "9223372036854775807", " DESC")),
        ]
    };
}
/// The ways to list jobs, each along its own index, and in both orders: the oldest first and the newest first.
struct JobLists {
    all: [Sql; 2],
    of_task: [Sql; 2],
    unfinished: [Sql; 2],
    unfinished_of_task: [Sql; 2],
}
macro_rules! job_lists {
    ($columns:expr) => {
        JobLists {
            all: in_both_orders!($columns, "CAST($1 AS TEXT) IS NULL", "seq"),
            of_task: in_both_orders!($columns, "task_id = $1", "seq"),
            // They have an index of their own. `+seq` keeps the planners from walking all of history in its order.
            unfinished: in_both_orders!($columns, concat!("CAST($1 AS TEXT) IS NULL AND ", unfinished!()), "+seq"),
            unfinished_of_task: in_both_orders!($columns, concat!("task_id = $1 AND ", unfinished!()), "+seq"),
        }
    };
}
const LIST_JOBS: JobLists = job_lists!(job_columns!());
const LIST_SUMMARIES: JobLists = job_lists!(summary_columns!());
const QUEUE: Sql = Sql::both(concat!(
    "SELECT slot, state, count(*) FROM jobs WHERE ",
    unfinished!(),
    " AND EXISTS (SELECT 1 FROM tasks t WHERE t.id = jobs.task_id AND t.owner = $1) \
     GROUP BY slot, state ORDER BY slot, state"
));
const FAILED: Sql =
    Sql::both("SELECT count(*) FROM tasks WHERE owner = $1 AND status = 'failed' AND finished_at >= $2");
const ORDERS: Sql = Sql::each(
    "SELECT j.id, j.attempt, j.state, t.status, t.stop_mode FROM jobs j LEFT JOIN tasks t ON t.id = j.task_id \
     WHERE j.id = $1",
    "SELECT j.id, j.attempt, j.state, t.status, t.stop_mode FROM jobs j LEFT JOIN tasks t ON t.id = j.task_id \
     WHERE j.id = ANY($1)",
);
const UNFINISHED: Sql = Sql::both(concat!("SELECT count(*) FROM jobs WHERE ", unfinished!()));
const UNFINISHED_TASKS: Sql = Sql::both(
    "SELECT count(*) FROM (SELECT 1 FROM tasks WHERE owner = $1 AND finished_at IS NULL LIMIT $2) AS open_ones",
);
const COUNTS: Sql = Sql::both("SELECT (SELECT count(*) FROM jobs), (SELECT count(*) FROM tasks)");

/// Jobs of one task that are read where they are asked for.
const QUICK_JOBS_MAX: u32 = 4;

impl Transition for ReadTask {
    const READS: bool = true;

    fn is_quick(&self) -> bool {
        true
    }

    /// A task that was removed between the two statements has left its tombstone, which stays for long.
    fn is_single_statement(&self) -> bool {
        true
    }

    async fn run(&self, tx: &mut Tx<'_>) -> Result<TaskLookup, StoreError> {
        if let Some(row) = tx.row(&TASK, params![&self.0]).await? {
            return Ok(TaskLookup::Found(Box::new(rows::task(&row)?)));
        }
        let Some(row) = tx.row(&TOMBSTONE, params![&self.0]).await? else {
            return Err(StoreError::NotFound { what: "task", id: self.0.to_string() });
        };
        let mut c = row.columns();
        let owner = Principal::from_text(c.text()?);
        Ok(TaskLookup::Expired { owner, status: c.word(TaskStatus::parse)?, expired_at: c.time()? })
    }
}

impl Transition for ReadTasks {
    const READS: bool = true;

    fn is_quick(&self) -> bool {
        self.0.len() <= TASKS_PER_WAIT_MAX
    }

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Vec<Task>, StoreError> {
        let mut ids: Vec<&str> = self.0.iter().map(TaskId::as_str).collect();
        ids.sort_unstable();
        ids.dedup();
        tx.rows_of(&TASKS, &ids, params![]).await?.iter().map(rows::task).collect()
    }
}

impl Transition for ListTasks {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Page<Task>, StoreError> {
        let filter = &self.filter;
        if !filter.words.is_empty() {
            return search(self, tx).await;
        }
        let list = match (&filter.parent, &filter.owner) {
            (Some(_), _) => &LIST_TASKS_OF_PARENT,
            (None, Some(_)) => &LIST_TASKS_OF_OWNER,
            (None, None) => &LIST_TASKS,
        };
        let rows = tx
            .rows(
                list,
                params![
                    filter.owner.as_ref(),
                    filter.kind.map(|kind| kind.as_str()),
                    filter.status.map(|status| status.as_str()),
                    filter.parent.as_ref(),
                    filter.open_or_unread_since,
                    self.page.after,
                    self.page.limit() + 1,
                ],
            )
            .await?;
        let tasks = rows.iter().map(rows::task).collect::<Result<Vec<_>, _>>()?;
        Ok(page(tasks, &self.page, |task| task.seq))
    }
}

async fn search(list: &ListTasks, tx: &mut Tx<'_>) -> Result<Page<Task>, StoreError> {
    let filter = &list.filter;
    let mut patterns = [const { None }; SEARCH_WORDS_MAX];
    for (pattern, word) in patterns.iter_mut().zip(&filter.words) {
        *pattern = Some(pattern_of(word));
    }
    let [first, second, third, fourth] = &patterns;
    let rows = tx
        .rows(
            &SEARCH_TASKS,
            params![
                filter.owner.as_ref(),
                filter.kind.map(|kind| kind.as_str()),
                filter.status.map(|status| status.as_str()),
                list.page.after,
                list.page.limit() + 1,
                first.as_ref(),
                second.as_ref(),
                third.as_ref(),
                fourth.as_ref(),
            ],
        )
        .await?;
    let tasks = rows.iter().map(rows::task).collect::<Result<Vec<_>, _>>()?;
    Ok(page(tasks, &list.page, |task| task.seq))
}

/// Anywhere in a text. What LIKE would take for more than itself stands for itself.
fn pattern_of(word: &str) -> String {
    let plain = word.replace('\\', r"\\").replace('%', r"\%").replace('_', r"\_");
    format!("%{plain}%")
}

impl Transition for ReadJob {
    const READS: bool = true;

    fn is_quick(&self) -> bool {
        true
    }

    fn is_single_statement(&self) -> bool {
        true
    }

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Job, StoreError> {
        let row = tx.row(&JOB, params![&self.0]).await?;
        rows::job(&row.ok_or_else(|| StoreError::NotFound { what: "job", id: self.0.to_string() })?)
    }
}

impl Transition for ListJobs {
    const READS: bool = true;

    /// A few jobs of one task, however large their texts are, take less time than to be read by another thread.
    fn is_quick(&self) -> bool {
        self.filter.task_id.is_some() && self.page.limit() <= QUICK_JOBS_MAX
    }

    fn is_single_statement(&self) -> bool {
        true
    }

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Page<Job>, StoreError> {
        let rows = list_jobs(tx, &LIST_JOBS, &self.filter, &self.page).await?;
        Ok(page(rows::jobs(&rows)?, &self.page, |job| job.seq))
    }
}

impl Transition for ListJobSummaries {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Page<JobSummary>, StoreError> {
        let rows = list_jobs(tx, &LIST_SUMMARIES, &self.filter, &self.page).await?;
        let jobs = rows.iter().map(rows::summary).collect::<Result<Vec<_>, _>>()?;
        Ok(page(jobs, &self.page, |job| job.seq))
    }
}

async fn list_jobs(
    tx: &mut Tx<'_>,
    lists: &JobLists,
    filter: &JobFilter,
    page: &PageRequest,
) -> Result<Vec<Row>, StoreError> {
    let unfinished = filter.state.is_some_and(|state| !state.is_finished());
    let list = match (&filter.task_id, unfinished) {
        (None, false) => &lists.all,
        (Some(_), false) => &lists.of_task,
        (None, true) => &lists.unfinished,
        (Some(_), true) => &lists.unfinished_of_task,
    };
    let list = match filter.order {
        JobOrder::OldestFirst => &list[0],
        JobOrder::NewestFirst => &list[1],
    };
    tx.rows(
        list,
        params![
            filter.task_id.as_ref(),
            filter.state.map(|state| state.as_str()),
            filter.slot.map(|slot| slot.as_str()),
            page.after,
            page.limit() + 1,
            filter.owner.as_ref(),
            filter.moved_since,
        ],
    )
    .await
}

impl Transition for ReadOrders {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Vec<Order>, StoreError> {
        let ids: Vec<&str> = self.0.iter().map(|lease| lease.job_id.as_str()).collect();
        let mut found = std::collections::HashMap::new();
        for row in tx.rows_of(&ORDERS, &ids, params![]).await? {
            let mut c = row.columns();
            let id = c.text()?;
            let attempt = c.int()?;
            let state = c.word(JobState::parse)?;
            found.insert(id, (attempt, state, c.opt_word(TaskStatus::parse)?, c.opt_word(StopMode::parse)?));
        }
        let orders = self.0.iter().filter_map(|lease| {
            let kind = match found.get(lease.job_id.as_str()) {
                Some((attempt, state, _, _)) if *attempt != lease.attempt || !state.is_held() => OrderKind::Abort,
                Some((_, _, _, Some(_))) => OrderKind::EndSoon,
                Some((_, _, Some(status), None)) if status.is_held() => OrderKind::Yield,
                Some(_) => return None,
                None => OrderKind::Abort,
            };
            Some(Order { lease: lease.clone(), kind })
        });
        Ok(orders.collect())
    }
}

impl Transition for ReadSummary {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<Summary, StoreError> {
        let mut queue = Vec::new();
        for row in tx.rows(&QUEUE, params![&self.owner]).await? {
            let mut c = row.columns();
            queue.push(QueueCount { slot: c.word(Slot::parse)?, state: c.word(JobState::parse)?, jobs: c.int()? });
        }
        let failed = tx.row(&FAILED, params![&self.owner, self.failed_since]).await?;
        let failed = failed.ok_or_else(|| crate::sql::internal("no count"))?.only_int()?;
        Ok(Summary { queue, failed })
    }
}

/// Counts rows, for the administrator of the store.
pub struct ReadInfo {
    pub backend: &'static str,
    pub location: String,
    pub schema_version: i64,
}

impl Request for ReadInfo {
    type Output = StoreInfo;
}

impl Transition for ReadInfo {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<StoreInfo, StoreError> {
        let row = tx.row(&COUNTS, params![]).await?.ok_or_else(|| crate::sql::internal("no counts"))?;
        let mut c = row.columns();
        Ok(StoreInfo {
            backend: self.backend,
            location: self.location.clone(),
            schema_version: self.schema_version,
            jobs: c.int()?,
            tasks: c.int()?,
        })
    }
}

impl Transition for CountUnfinished {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<i64, StoreError> {
        let row = tx.row(&UNFINISHED, params![]).await?.ok_or_else(|| crate::sql::internal("no count"))?;
        row.only_int()
    }
}

impl Transition for CountTasks {
    const READS: bool = true;

    async fn run(&self, tx: &mut Tx<'_>) -> Result<u32, StoreError> {
        let row = tx.row(&UNFINISHED_TASKS, params![&self.owner, self.max]).await?;
        row.map_or(Ok(0), |row| row.columns().count())
    }
}

#[cfg(test)]
mod tests;
