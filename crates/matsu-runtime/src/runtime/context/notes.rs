//! What a body and the code that watches over it share: progress that waits for its turn, the output so far, and
//! whether the body holds a permit at the moment.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Mend;
use super::meter::{Meter, Spend};

#[derive(Debug, Default)]
pub struct Notes {
    inner: Mutex<Inner>,
    /// Held while a bracket opens and while mends are worked off, so that neither sees half of the other.
    brackets: tokio::sync::Mutex<()>,
    /// Held by the part of the body that has, or is to have, the one inner permit of the job.
    inner_turn: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Inner {
    progress: Option<String>,
    partial_output: Option<String>,
    /// The task's seconds; `None` where they are not limited.
    meter: Option<Meter>,
    /// Waits for descendants that are open; they may be nested.
    lent: u32,
    is_parked: bool,
    /// A run: what its program had printed when it was taken up is stored.
    is_caught_up: bool,
    /// What dropped parts of the body could not undo themselves. An ended job needs none: its end frees everything.
    mends: Vec<Mend>,
}

impl Notes {
    /// Progress that waits for its turn.
    pub fn set_progress(&self, text: String) {
        self.lock().progress = Some(text);
    }

    #[must_use]
    pub fn has_progress(&self) -> bool {
        self.lock().progress.is_some()
    }

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

    pub async fn inner_turn(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.inner_turn.lock().await
    }

    pub(super) fn with_meter<T>(&self, look: impl FnOnce(&mut Option<Meter>) -> T) -> T {
        look(&mut self.lock().meter)
    }

    /// Whether the runtime counts the seconds of the body.
    #[must_use]
    pub fn is_metered(&self) -> bool {
        self.lock().meter.as_ref().is_some_and(Meter::is_counted_by_runtime)
    }

    /// A second of the body's life was spent. One that counts for itself is left alone.
    pub fn spend_second(&self) -> Spend {
        let mut inner = self.lock();
        let meter = inner.meter.as_mut().filter(|meter| meter.is_counted_by_runtime());
        meter.map_or(Spend::Enough, Meter::tick)
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

    pub fn set_caught_up(&self) {
        self.lock().is_caught_up = true;
    }

    #[must_use]
    pub fn is_caught_up(&self) -> bool {
        self.lock().is_caught_up
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
