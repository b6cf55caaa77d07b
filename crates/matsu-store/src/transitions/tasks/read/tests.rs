//! How the lists are read: along an index, never through all of history.

use super::*;

/// The first line of SQLite's plan.
fn plan(sql: &Sql) -> String {
    let connection = crate::sqlite::connection::in_memory().unwrap();
    let explain = format!("EXPLAIN QUERY PLAN {}", sql.sqlite_text());
    let mut statement = connection.prepare(&explain).unwrap();
    // A plan needs no values, so none are bound.
    let mut rows = statement.raw_query();
    rows.next().unwrap().expect("a plan has a line").get(3).unwrap()
}

#[test]
fn lists_follow_the_index_that_is_theirs() {
    for (list, wanted) in [
        (&LIST_JOBS.all[0], "SEARCH jobs USING INTEGER PRIMARY KEY (rowid>?)"),
        (&LIST_JOBS.all[1], "SEARCH jobs USING INTEGER PRIMARY KEY (rowid<?)"),
        (&LIST_SUMMARIES.of_task[0], "SEARCH jobs USING INDEX jobs_by_task (task_id=? AND seq>?)"),
        (&LIST_SUMMARIES.of_task[1], "SEARCH jobs USING INDEX jobs_by_task (task_id=? AND seq<?)"),
        (&LIST_JOBS.unfinished[0], "SCAN jobs USING INDEX jobs_unfinished"),
        (&LIST_SUMMARIES.unfinished_of_task[0], "SEARCH jobs USING INDEX jobs_unfinished (task_id=?)"),
        (&QUEUE, "SCAN jobs USING INDEX jobs_unfinished"),
        (&FAILED, "SEARCH tasks USING COVERING INDEX tasks_failed (owner=? AND finished_at>?)"),
        (&LIST_TASKS, "SEARCH tasks USING INTEGER PRIMARY KEY (rowid<?)"),
        (&LIST_TASKS_OF_OWNER, "SEARCH tasks USING INDEX tasks_by_owner (owner=? AND seq<?)"),
        (&LIST_TASKS_OF_PARENT, "SEARCH tasks USING INDEX tasks_by_parent (parent_id=? AND rowid<?)"),
    ] {
        assert_eq!(plan(list), wanted);
    }
}
