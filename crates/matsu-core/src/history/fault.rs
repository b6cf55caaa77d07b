//! Why a transcript is refused: the entry, the item, the reason.

use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct HistoryFault {
    /// The entry, counted from 0; none if the whole is no transcript.
    pub entry: Option<usize>,
    /// The item in it, counted from 0, if one is to blame.
    pub item: Option<usize>,
    pub reason: String,
}

impl HistoryFault {
    pub(crate) fn entry(entry: usize, reason: impl Into<String>) -> Self {
        Self { entry: Some(entry), item: None, reason: reason.into() }
    }

    pub(crate) fn item(entry: usize, item: usize, reason: impl Into<String>) -> Self {
        Self { entry: Some(entry), item: Some(item), reason: reason.into() }
    }

    pub(crate) fn whole(reason: impl Into<String>) -> Self {
        Self { entry: None, item: None, reason: reason.into() }
    }
}

impl fmt::Display for HistoryFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.entry, self.item) {
            (Some(entry), Some(item)) => write!(f, "entry {entry}, item {item}: {}", self.reason),
            (Some(entry), None) => write!(f, "entry {entry}: {}", self.reason),
            (None, _) => f.write_str(&self.reason),
        }
    }
}
