//! What a body and those who watch over it share: progress that waits for its turn, the output so far, and whether
//! the body holds a permit at the moment.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use matsu_core::limits::PROGRESS_EVERY;

use super::Mend;

#[derive(Debug, Default)]
pub struct Notes {
    inner: Mutex<Inner>,
    /// Held while a bracket opens and while mends are worked off, so that neither sees half of the other.
    brackets: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Inner {
    progress: Option<String>,
    last_progress_at: Option<Instant>,
    partial_output: Option<String>,
    /// Waits for descendants that are open; they may be nested.
    lent: u32,
    is_parked: bool,
    /// What dropped parts of the body could not undo themselves. An ended job needs none: its end frees everything.
    mends: Vec<Mend>,
}

impl Inner {
    fn is_due(&self, now: Instant) -> bool {
        self.last_progress_at.is_none_or(|last| now.saturating_duration_since(last) >= PROGRESS_EVERY)
    }

    fn take_due(&mut self, now: Instant) -> Option<String> {
        if !self.is_due(now) {
            return None;
        }
        let due = self.progress.take()?;
        self.last_progress_at = Some(now);
        Some(due)
    }
}

impl Notes {
    /// Takes note of progress, and returns it if its turn has come.
    pub fn offer_progress(&self, text: String, now: Instant) -> Option<String> {
        let mut inner = self.lock();
        inner.progress = Some(text);
        inner.take_due(now)
    }

    /// Progress that has waited long enough.
    pub fn take_due_progress(&self, now: Instant) -> Option<String> {
        self.lock().take_due(now)
    }

    /// Whatever progress is left, at the end.
    pub fn take_progress(&self) -> Option<String> {
        self.lock().progress.take()
    }

    /// It could not be written; newer progress is not replaced by it.
    pub fn put_back_progress(&self, text: String) {
        self.lock().progress.get_or_insert(text);
    }

    pub fn set_partial_output(&self, text: String) {
        self.lock().partial_output = Some(text);
    }

    pub fn take_partial_output(&self) -> Option<String> {
        self.lock().partial_output.take()
    }

    /// The number of open waits for descendants after this one.
    pub fn lend(&self) -> u32 {
        let mut inner = self.lock();
        inner.lent += 1;
        inner.lent
    }

    /// How many loans are still open.
    pub fn regain(&self) -> u32 {
        let mut inner = self.lock();
        inner.lent = inner.lent.saturating_sub(1);
        inner.lent
    }

    #[must_use]
    pub fn lent(&self) -> u32 {
        self.lock().lent
    }

    pub async fn brackets(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.brackets.lock().await
    }

    pub fn add_mend(&self, mend: Mend) {
        self.lock().mends.push(mend);
    }

    /// `true`: it was there, and is the caller's now.
    #[must_use]
    pub fn take_mend(&self, mend: Mend) -> bool {
        let mends = &mut self.lock().mends;
        let before = mends.len();
        mends.retain(|other| *other != mend);
        mends.len() < before
    }

    #[must_use]
    pub fn take_mends(&self) -> Vec<Mend> {
        std::mem::take(&mut self.lock().mends)
    }

    #[must_use]
    pub fn has_mends(&self) -> bool {
        !self.lock().mends.is_empty()
    }

    pub fn set_parked(&self, is_parked: bool) {
        self.lock().is_parked = is_parked;
    }

    #[must_use]
    pub fn is_parked(&self) -> bool {
        self.lock().is_parked
    }

    #[must_use]
    pub fn holds_permit(&self) -> bool {
        let inner = self.lock();
        inner.lent == 0 && !inner.is_parked
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
