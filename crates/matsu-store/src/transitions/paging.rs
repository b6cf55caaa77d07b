//! Lists in pages.

use matsu_core::page::{Page, PageRequest};

/// One row more than wanted was read: it shows whether there is a next page.
pub fn page<T>(mut items: Vec<T>, request: &PageRequest, seq: impl Fn(&T) -> i64) -> Page<T> {
    let limit = request.limit() as usize;
    let more = items.len() > limit;
    items.truncate(limit);
    Page { next: if more { items.last().map(seq) } else { None }, items }
}
