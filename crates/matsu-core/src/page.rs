//! Paging: every list is bounded, ordered and resumable.

use serde::Serialize;

use crate::limits::LIST_PAGE_MAX;

/// Which part of a list is wanted. `after` is the opaque cursor of the page before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageRequest {
    pub after: Option<i64>,
    limit: Option<u32>,
}

impl PageRequest {
    /// At most `limit` rows, and never more than the list's own bound.
    #[must_use]
    pub fn new(after: Option<i64>, limit: Option<u32>) -> Self {
        Self { after, limit }
    }

    #[must_use]
    pub fn limit(&self) -> u32 {
        self.limit.unwrap_or(50).clamp(1, LIST_PAGE_MAX)
    }
}

/// One page, and where the next one starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Page<T> {
    pub items: Vec<T>,
    pub next: Option<i64>,
}
