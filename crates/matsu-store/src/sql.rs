//! The SQL layer that transitions are written against: statements, parameters, rows, and the open transaction.
//!
//! A transition is an `async fn` over [`Tx`]. On PostgreSQL it really waits; on SQLite every statement is done
//! when it returns, so the whole future is ready at its first poll and can run on a plain thread.

pub mod any;
pub mod postgres;
pub mod row;
pub mod sqlite;
pub mod value;

use std::fmt;

use matsu_core::change::Topic;
use matsu_core::ports::store::{Request, StoreError};

use self::postgres as postgres_statement;
use self::sqlite::{self as sqlite_statement, Prepared};

pub use any::{AnyOutput, AnyTransition};
pub use row::{Columns, Row};
pub use value::Value;
pub(crate) use value::params;

/// One statement, in one or two dialects. Parameters are `$1`, `$2`, … in both.
#[derive(Clone, Copy)]
pub struct Sql {
    sqlite: &'static str,
    postgres: &'static str,
}

impl Sql {
    /// The same words serve both.
    pub const fn both(text: &'static str) -> Self {
        Self { sqlite: text, postgres: text }
    }

    /// Row locks, lists (see [`Tx::rows_of`]) and the like need a word of their own on each.
    pub const fn each(sqlite: &'static str, postgres: &'static str) -> Self {
        Self { sqlite, postgres }
    }

    /// For what only SQLite does.
    pub const fn sqlite(text: &'static str) -> Self {
        Self { sqlite: text, postgres: "" }
    }

    /// For what only PostgreSQL does.
    pub const fn postgres(text: &'static str) -> Self {
        Self { sqlite: "", postgres: text }
    }

    /// For tests that look at its plan.
    #[cfg(test)]
    pub const fn sqlite_text(&self) -> &'static str {
        self.sqlite
    }
}

/// An open transaction, and what will be published when it commits.
pub struct Tx<'c> {
    driver: Driver<'c>,
    topics: Vec<Topic>,
    /// Posted, but not sent yet; see [`Tx::post`].
    posted: Vec<Posted>,
    mark: Mark,
}

/// What PostgreSQL knows a transaction by that is its own: its number may be given out again after a crash.
#[derive(Clone, Copy, Default)]
pub struct Mark {
    pub value: i64,
    /// Whether it was written. Then the commit has happened if it can be read.
    pub is_left: bool,
}

impl Mark {
    /// One that no other transaction has.
    pub fn fresh() -> Result<Self, StoreError> {
        Ok(Self { value: getrandom::u64().map_err(internal)?.cast_signed(), is_left: false })
    }
}

/// A statement whose answer no caller waits for.
pub struct Posted {
    pub sql: &'static str,
    pub params: Vec<Value<'static>>,
}

/// More than this is not put off: all of it must be on its way at once to arrive in order.
const POSTED_MAX: usize = 24;

pub enum Driver<'c> {
    Sqlite(&'c mut rusqlite::Connection),
    Postgres(&'c deadpool_postgres::ClientWrapper),
}

impl<'c> Tx<'c> {
    pub fn new(driver: Driver<'c>) -> Self {
        Self::marked(driver, Mark::default())
    }

    pub fn marked(driver: Driver<'c>, mark: Mark) -> Self {
        Self { driver, topics: Vec::new(), posted: Vec::new(), mark }
    }

    /// The mark, which the caller writes into a row.
    pub fn leave_mark(&mut self) -> i64 {
        self.mark.is_left = true;
        self.mark.value
    }

    pub fn mark(&self) -> Mark {
        self.mark
    }

    /// All rows of one statement.
    pub async fn rows(&mut self, sql: &Sql, params: &[Value<'_>]) -> Result<Vec<Row>, StoreError> {
        match &mut self.driver {
            Driver::Sqlite(connection) => sqlite_statement::rows(connection, sql.sqlite, params),
            Driver::Postgres(client) => {
                let posted = std::mem::take(&mut self.posted);
                postgres_statement::rows(client, &posted, sql.postgres, params).await
            }
        }
    }

    /// The first row, if any.
    pub async fn row(&mut self, sql: &Sql, params: &[Value<'_>]) -> Result<Option<Row>, StoreError> {
        Ok(self.rows(sql, params).await?.into_iter().next())
    }

    /// The rows of a statement whose `$1` is one of `list`: once per item on SQLite, where that is cheaper than a
    /// list, and once with an array on PostgreSQL. The other parameters start at `$2`.
    pub async fn rows_of(&mut self, sql: &Sql, list: &[&str], rest: &[Value<'_>]) -> Result<Vec<Row>, StoreError> {
        match &mut self.driver {
            Driver::Sqlite(connection) => {
                let mut found = Vec::with_capacity(list.len());
                let mut statement = Prepared::new(connection, sql.sqlite)?;
                for item in list {
                    statement.rows(&with_first(Value::Text(item), rest), &mut found)?;
                }
                Ok(found)
            }
            Driver::Postgres(_) if list.is_empty() => Ok(Vec::new()),
            Driver::Postgres(client) => {
                let params = with_first(Value::List(list.to_vec()), rest);
                let posted = std::mem::take(&mut self.posted);
                postgres_statement::rows(client, &posted, sql.postgres, &params).await
            }
        }
    }

    /// As [`Tx::rows_of`], for statements without rows.
    pub async fn run_of(&mut self, sql: &Sql, list: &[&str], rest: &[Value<'_>]) -> Result<(), StoreError> {
        match &mut self.driver {
            Driver::Sqlite(connection) => {
                let mut statement = Prepared::new(connection, sql.sqlite)?;
                for item in list {
                    statement.run(&with_first(Value::Text(item), rest))?;
                }
                Ok(())
            }
            Driver::Postgres(_) if list.is_empty() => Ok(()),
            Driver::Postgres(client) => {
                let params = with_first(Value::List(list.to_vec()), rest);
                let posted = std::mem::take(&mut self.posted);
                postgres_statement::run(client, &posted, sql.postgres, &params).await.map(drop)
            }
        }
    }

    /// How many rows the statement touched.
    pub async fn run(&mut self, sql: &Sql, params: &[Value<'_>]) -> Result<u64, StoreError> {
        match &mut self.driver {
            Driver::Sqlite(connection) => sqlite_statement::run(connection, sql.sqlite, params),
            Driver::Postgres(client) => {
                let posted = std::mem::take(&mut self.posted);
                postgres_statement::run(client, &posted, sql.postgres, params).await
            }
        }
    }

    /// The same statement for each set of parameters, in order. One round trip on PostgreSQL.
    pub async fn run_each(&mut self, sql: &Sql, sets: &[Vec<Value<'_>>]) -> Result<Vec<u64>, StoreError> {
        match &mut self.driver {
            Driver::Sqlite(connection) => {
                let mut statement = Prepared::new(connection, sql.sqlite)?;
                sets.iter().map(|params| statement.run(params)).collect()
            }
            Driver::Postgres(client) => {
                let posted = std::mem::take(&mut self.posted);
                postgres_statement::run_each(client, &posted, sql.postgres, sets).await
            }
        }
    }

    /// The same statement for each set of parameters, where the answer is not needed. On PostgreSQL it travels with the
    /// next statement, or with the end of the transition, and costs no round trip of its own.
    pub async fn post(&mut self, sql: &Sql, sets: &[Vec<Value<'_>>]) -> Result<(), StoreError> {
        let kept = match &self.driver {
            Driver::Postgres(_) if self.posted.len() + sets.len() <= POSTED_MAX => {
                sets.iter().map(|params| params.iter().map(Value::kept).collect()).collect::<Option<Vec<_>>>()
            }
            Driver::Postgres(_) | Driver::Sqlite(_) => None,
        };
        match kept {
            Some(kept) => self.posted.extend(kept.into_iter().map(|params| Posted { sql: sql.postgres, params })),
            None => drop(self.run_each(sql, sets).await?),
        }
        Ok(())
    }

    /// As [`Tx::post`], for rows that are given as columns: once per row on SQLite, once with arrays on PostgreSQL. The
    /// other parameters come after the columns.
    pub async fn post_of(&mut self, sql: &Sql, columns: &[Value<'_>], rest: &[Value<'_>]) -> Result<(), StoreError> {
        let sets: Vec<Vec<Value<'_>>> = match &self.driver {
            Driver::Sqlite(_) => value::rows(columns).map(|row| row.chain(rest.iter().cloned()).collect()).collect(),
            Driver::Postgres(_) if value::rows(columns).len() == 0 => Vec::new(),
            Driver::Postgres(_) => vec![columns.iter().chain(rest).cloned().collect()],
        };
        self.post(sql, &sets).await
    }

    /// The driver, where it has a way of its own.
    pub fn driver(&self) -> &Driver<'c> {
        &self.driver
    }

    /// What was posted and has not been sent: it goes with the end of the transaction.
    pub fn take_posted(&mut self) -> Vec<Posted> {
        std::mem::take(&mut self.posted)
    }

    /// Statements whose parameters need nothing of each other's answers, in order. One round trip on PostgreSQL.
    pub async fn rows_of_all(&mut self, steps: &[BoundStatement<'_>]) -> Result<Vec<Vec<Row>>, StoreError> {
        match &mut self.driver {
            Driver::Sqlite(connection) => {
                steps.iter().map(|step| sqlite_statement::rows(connection, step.sql.sqlite, &step.params)).collect()
            }
            Driver::Postgres(client) => {
                let posted = std::mem::take(&mut self.posted);
                let steps = steps.iter().map(|step| (step.sql.postgres, step.params.as_slice()));
                postgres_statement::rows_of_all(client, &posted, steps).await
            }
        }
    }

    /// Subscribers of `topic` are woken after the commit.
    pub fn publish(&mut self, topic: Topic) {
        if !self.topics.contains(&topic) {
            self.topics.push(topic);
        }
    }

    pub fn into_topics(self) -> Vec<Topic> {
        self.topics
    }
}

fn with_first<'a>(first: Value<'a>, rest: &[Value<'a>]) -> Vec<Value<'a>> {
    let mut params = Vec::with_capacity(rest.len() + 1);
    params.push(first);
    params.extend_from_slice(rest);
    params
}

/// A statement with its parameters.
pub struct BoundStatement<'a> {
    pub sql: Sql,
    pub params: Vec<Value<'a>>,
}

/// Jobs that a quick transition moves at most.
pub const QUICK_MAX: usize = 8;

/// One change of state, as a value: what is asked for, and how it is done inside a transaction. It may be run
/// again from the start when PostgreSQL asks for that.
pub trait Transition: Request {
    /// It writes nothing: a connection for reading does, and the guard of a session lets it pass.
    const READS: bool = false;

    /// Reads or writes a handful of rows by their keys. On SQLite it runs on the caller's thread if no other write is
    /// under way: handing it to another thread would take several times as long as the work.
    fn is_quick(&self) -> bool {
        false
    }

    /// A read of one statement, or whose later statements find the same at any later time. On SQLite it needs no
    /// transaction around it.
    fn is_single_statement(&self) -> bool {
        false
    }

    /// Writes a lot that is not looked at again soon. SQLite's cache would keep it all, up to its bound.
    fn is_bulk(&self) -> bool {
        false
    }

    fn run(&self, tx: &mut Tx<'_>) -> impl Future<Output = Result<Self::Output, StoreError>> + Send;
}

/// A defect: the data is not what the code believes.
pub fn internal(error: impl fmt::Display) -> StoreError {
    StoreError::Internal(error.to_string())
}
