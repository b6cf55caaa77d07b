//! Where a reader of events stands, as text. Opaque to the reader.

use matsu_core::change::ChangeCursor;
use matsu_core::clock::Timestamp;
use matsu_core::limits::CHANGES_KEPT;
use std::fmt;

use crate::problem::Problem;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    pub change: ChangeCursor,
    /// When it was handed out: changes are kept for a time, and an older cursor may point before what is left.
    pub at: Timestamp,
}

impl Cursor {
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let refused = || Problem::invalid("cursor must be the id of an event of this server");
        let numbers: Vec<i64> = text.split('.').map(str::parse).collect::<Result<_, _>>().map_err(|_| refused())?;
        let [transaction, row, at] = numbers[..] else { return Err(refused()) };
        Ok(Self { change: ChangeCursor { transaction, row }, at: Timestamp::from_millis(at) })
    }

    pub fn is_too_old(&self, now: Timestamp) -> bool {
        now.since(self.at) >= CHANGES_KEPT / 2
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.change.transaction, self.change.row, self.at.as_millis())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comes_back_as_it_went_out() {
        let change = ChangeCursor { transaction: 7, row: 9 };
        let cursor = Cursor { change, at: Timestamp::from_millis(5) };
        assert_eq!(Cursor::parse(&cursor.to_string()).unwrap(), cursor);
        for odd in ["", "1", "1.2", "1.2.x", "1.2.3.4"] {
            assert!(Cursor::parse(odd).is_err(), "{odd}");
        }
    }
}
