//! Rows, the same for both dialects, and a reader that takes their columns in order.

use matsu_core::clock::Timestamp;
use matsu_core::ports::store::StoreError;
use rusqlite::types::Value as SqliteValue;

use super::internal;

/// One row of a result.
pub enum Row {
    Sqlite(Vec<SqliteValue>),
    Postgres(tokio_postgres::Row),
}

impl Row {
    /// Reads the columns one after the other, in the order of the statement.
    pub fn columns(&self) -> Columns<'_> {
        Columns { row: self, next: 0 }
    }

    /// The first column as a number: counts and the like.
    pub fn only_int(&self) -> Result<i64, StoreError> {
        self.columns().int()
    }

    /// The first column as text.
    pub fn only_text(&self) -> Result<String, StoreError> {
        self.columns().text()
    }

    fn int_at(&self, at: usize) -> Result<Option<i64>, StoreError> {
        match self {
            Self::Sqlite(values) => match values.get(at) {
                Some(SqliteValue::Integer(number)) => Ok(Some(*number)),
                Some(SqliteValue::Null) => Ok(None),
                other => Err(internal(format_args!("column {at} is {other:?}, not a number"))),
            },
            Self::Postgres(row) => row.try_get::<_, Option<i64>>(at).map_err(internal),
        }
    }

    fn text_at(&self, at: usize) -> Result<Option<&str>, StoreError> {
        match self {
            Self::Sqlite(values) => match values.get(at) {
                Some(SqliteValue::Text(text)) => Ok(Some(text)),
                Some(SqliteValue::Null) => Ok(None),
                other => Err(internal(format_args!("column {at} is {other:?}, not text"))),
            },
            Self::Postgres(row) => row.try_get::<_, Option<&str>>(at).map_err(internal),
        }
    }
}

/// Where a reader of a row stands.
pub struct Columns<'r> {
    row: &'r Row,
    next: usize,
}

impl<'r> Columns<'r> {
    /// Goes on behind the first `columns` ones.
    pub fn skip(mut self, columns: usize) -> Self {
        self.next += columns;
        self
    }

    fn step(&mut self) -> usize {
        self.next += 1;
        self.next - 1
    }

    pub fn opt_int(&mut self) -> Result<Option<i64>, StoreError> {
        let at = self.step();
        self.row.int_at(at)
    }

    pub fn int(&mut self) -> Result<i64, StoreError> {
        let at = self.next;
        self.opt_int()?.ok_or_else(|| internal(format_args!("column {at} is null")))
    }

    pub fn count(&mut self) -> Result<u32, StoreError> {
        u32::try_from(self.int()?).map_err(internal)
    }

    fn opt_str(&mut self) -> Result<Option<&'r str>, StoreError> {
        let at = self.step();
        self.row.text_at(at)
    }

    pub fn opt_text(&mut self) -> Result<Option<String>, StoreError> {
        Ok(self.opt_str()?.map(str::to_owned))
    }

    pub fn text(&mut self) -> Result<String, StoreError> {
        let at = self.next;
        self.opt_text()?.ok_or_else(|| internal(format_args!("column {at} is null")))
    }

    pub fn time(&mut self) -> Result<Timestamp, StoreError> {
        self.int().map(Timestamp::from_millis)
    }

    pub fn opt_time(&mut self) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.opt_int()?.map(Timestamp::from_millis))
    }

    /// A word of one of the core's enums.
    pub fn word<T>(&mut self, parse: impl Fn(&str) -> Option<T>) -> Result<T, StoreError> {
        let at = self.next;
        let word = self.opt_str()?.ok_or_else(|| internal(format_args!("column {at} is null")))?;
        parse(word).ok_or_else(|| internal(format_args!("unknown word {word:?}")))
    }

    pub fn opt_word<T>(&mut self, parse: impl Fn(&str) -> Option<T>) -> Result<Option<T>, StoreError> {
        match self.opt_str()? {
            None => Ok(None),
            Some(word) => parse(word).map(Some).ok_or_else(|| internal(format_args!("unknown word {word:?}"))),
        }
    }
}
