//! Running one statement on SQLite. Statements are cached by their text.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use matsu_core::ports::store::StoreError;
use rusqlite::types::Value as SqliteValue;
use rusqlite::{CachedStatement, Connection, ErrorCode};

use crate::sql::{Row, Value, internal};

/// A statement taken from the cache once, for any number of uses.
pub struct Prepared<'c> {
    statement: CachedStatement<'c>,
    /// For each parameter of SQLite's the place of its value: it numbers `$1`, `$2`, … by first appearance.
    places: Rc<[usize]>,
}

thread_local! {
    /// Texts are constants, so an address is a name.
    static PLACES: RefCell<HashMap<*const u8, Rc<[usize]>>> = RefCell::default();
}

impl<'c> Prepared<'c> {
    pub fn new(connection: &'c Connection, sql: &'static str) -> Result<Self, StoreError> {
        let statement = connection.prepare_cached(sql).map_err(error)?;
        let known = PLACES.with_borrow(|known| known.get(&sql.as_ptr()).cloned());
        let places = match known {
            Some(places) => places,
            None => places_of(&statement, sql)?,
        };
        Ok(Self { statement, places })
    }

    pub fn rows(&mut self, params: &[Value<'_>], found: &mut Vec<Row>) -> Result<(), StoreError> {
        self.bind(params)?;
        let columns = self.statement.column_count();
        let mut rows = self.statement.raw_query();
        while let Some(row) = rows.next().map_err(error)? {
            let values = (0..columns).map(|at| row.get::<_, SqliteValue>(at)).collect::<Result<Vec<_>, _>>();
            found.push(Row::Sqlite(values.map_err(error)?));
        }
        Ok(())
    }

    pub fn run(&mut self, params: &[Value<'_>]) -> Result<u64, StoreError> {
        self.bind(params)?;
        self.statement.raw_execute().map(|changed| changed as u64).map_err(error)
    }

    fn bind(&mut self, params: &[Value<'_>]) -> Result<(), StoreError> {
        for (at, place) in self.places.iter().enumerate() {
            let value = params.get(*place).ok_or_else(|| internal(format_args!("parameter {at} has no value")))?;
            self.statement.raw_bind_parameter(at + 1, value).map_err(error)?;
        }
        Ok(())
    }
}

fn places_of(statement: &CachedStatement<'_>, sql: &'static str) -> Result<Rc<[usize]>, StoreError> {
    let place = |index| {
        let number = statement.parameter_name(index).and_then(|name| name[1..].parse::<usize>().ok());
        number.and_then(|number| number.checked_sub(1)).ok_or_else(|| internal("a parameter has no number"))
    };
    let places: Rc<[usize]> = (1..=statement.parameter_count()).map(place).collect::<Result<_, _>>()?;
    PLACES.with_borrow_mut(|known| known.insert(sql.as_ptr(), Rc::clone(&places)));
    Ok(places)
}

pub fn rows(connection: &Connection, sql: &'static str, params: &[Value<'_>]) -> Result<Vec<Row>, StoreError> {
    let mut found = Vec::new();
    Prepared::new(connection, sql)?.rows(params, &mut found)?;
    Ok(found)
}

pub fn run(connection: &Connection, sql: &'static str, params: &[Value<'_>]) -> Result<u64, StoreError> {
    Prepared::new(connection, sql)?.run(params)
}

/// What the caller can do about it decides the variant.
pub fn error(error: rusqlite::Error) -> StoreError {
    match error.sqlite_error_code() {
        Some(
            ErrorCode::DiskFull
            | ErrorCode::ReadOnly
            | ErrorCode::SystemIoFailure
            | ErrorCode::DatabaseBusy
            | ErrorCode::DatabaseLocked
            | ErrorCode::CannotOpen
            | ErrorCode::OutOfMemory,
        ) => StoreError::Unavailable(error.to_string()),
        _ => internal(error),
    }
}
