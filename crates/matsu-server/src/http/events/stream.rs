//! One stream: subscribe, read from the cursor, then live. A wake-up is a hint; the changes in the store are the truth.

use std::collections::VecDeque;
use std::convert::Infallible;

use axum::response::sse::Event;
use matsu_core::change::Topic;
use matsu_core::limits::{CHANGES_PER_READ_MAX, STORE_RETRY_MAX, STREAM_COUNTS_EVERY, STREAM_PAUSE, STREAM_PING_EVERY};
use matsu_core::ports::store::StoreError;
use matsu_core::wake::Subscription;
use matsu_runtime::tasks::Tasks;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::cursor::Cursor;
use super::rows;
use crate::app::App;
use crate::auth::Caller;
use crate::http::summary::{SummaryBody, summary};
use crate::limits::streams::OpenStream;
use crate::page;
use crate::problem::Problem;

pub struct Stream {
    app: App,
    caller: Caller,
    open: OpenStream,
    subscription: Subscription,
    cursor: Cursor,
    /// Written and not yet sent.
    pending: VecDeque<Event>,
    counts: Option<SummaryBody>,
    counts_due_at: Option<Instant>,
    counted_at: Option<Instant>,
    looked_at: Option<Instant>,
    spoke_at: Instant,
    is_over: bool,
}

impl Stream {
    pub async fn begin(app: App, caller: Caller, open: OpenStream, cursor: Option<Cursor>) -> Result<Self, Problem> {
        let clock = *app.runtime().clock();
        // Before the first read, so that nothing falls between.
        let subscription = app.runtime().hub().subscribe(&[Topic::everything()]);
        let now = clock.now();
        let fresh = Cursor { change: Tasks::of(app.runtime()).change_cursor().await?, at: now };
        let resumed = cursor.filter(|cursor| !cursor.is_too_old(now));
        let mut pending = VecDeque::new();
        let hello = json!({
            "stream_id": open.id,
            "version": app.version(),
            "ui_build": page::build(),
            "now": now.to_string(),
        });
        pending.push_back(event("hello", &hello).id(resumed.unwrap_or(fresh).to_string()));
        if cursor.is_some() && resumed.is_none() {
            pending.push_back(event("reset", &json!({ "reason": "the cursor is too old" })));
        }
        Ok(Self {
            caller,
            open,
            subscription,
            cursor: resumed.unwrap_or(fresh),
            pending,
            counts: None,
            counts_due_at: Some(clock.instant()),
            counted_at: None,
            looked_at: None,
            spoke_at: clock.instant(),
            is_over: false,
            app,
        })
    }

    /// The next event. Dropping the stream while it waits loses nothing: the reader has the cursor.
    pub async fn next(mut self) -> Option<(Result<Event, Infallible>, Self)> {
        let clock = *self.app.runtime().clock();
        loop {
            if let Some(event) = self.pending.pop_front() {
                self.spoke_at = clock.instant();
                return Some((Ok(event), self));
            }
            if self.is_over {
                return None;
            }
            if self.looked_at.is_none() {
                self.look().await;
                continue;
            }
            let ping_at = self.spoke_at + STREAM_PING_EVERY;
            let due_at = self.counts_due_at.map_or(ping_at, |due| due.min(ping_at));
            tokio::select! {
                () = self.app.shutdown().cancelled() => self.end_with("the server is shutting down"),
                () = self.subscription.woken() => self.look().await,
                () = clock.sleep_until(due_at) => self.mark_time().await,
            }
        }
    }

    async fn look(&mut self) {
        let clock = *self.app.runtime().clock();
        if let Some(looked_at) = self.looked_at {
            clock.sleep_until(looked_at + STREAM_PAUSE).await;
        }
        self.looked_at = Some(clock.instant());
        if let Err(error) = self.read_changes().await {
            tracing::debug!(%error, "an event stream waits for the store");
            clock.sleep(STORE_RETRY_MAX).await;
            // No wake-up comes for what was not read.
            self.looked_at = None;
        }
    }

    async fn read_changes(&mut self) -> Result<(), StoreError> {
        let clock = *self.app.runtime().clock();
        let tasks = Tasks::of(self.app.runtime());
        let batch = tasks.changes_since(self.cursor.change, CHANGES_PER_READ_MAX).await?;
        if batch.changes.is_empty() {
            return Ok(());
        }
        let at = clock.now();
        if batch.changes.len() >= CHANGES_PER_READ_MAX as usize {
            self.cursor = Cursor { change: tasks.change_cursor().await?, at };
            let reset = json!({ "reason": "too many changes to send one by one" });
            self.pending.push_back(event("reset", &reset).id(self.cursor.to_string()));
        } else {
            let rows = rows::of(&self.app, &self.open, &batch.changes).await?;
            self.cursor = Cursor { change: batch.cursor, at };
            let mut events: Vec<Event> = rows.iter().map(|(name, body)| event(name, &json!(body))).collect();
            // Only the last one moves the reader on: a client that breaks off in between is sent all of them again.
            if let Some(last) = events.pop() {
                events.push(last.id(self.cursor.to_string()));
            }
            self.pending.extend(events);
        }
        let earliest = self.counted_at.map_or_else(|| clock.instant(), |counted_at| counted_at + STREAM_COUNTS_EVERY);
        self.counts_due_at.get_or_insert(earliest);
        Ok(())
    }

    /// Counts that are due, or a sign of life.
    async fn mark_time(&mut self) {
        let now = self.app.runtime().clock().instant();
        if self.counts_due_at.is_some_and(|due| due <= now) {
            self.counts_due_at = None;
            self.counted_at = Some(now);
            if let Ok(counts) = summary(&self.app, &self.caller).await
                && self.counts.as_ref() != Some(&counts)
            {
                self.pending.push_back(event("counts", &json!(counts)));
                self.counts = Some(counts);
            }
        } else {
            self.pending.push_back(event("ping", &json!({ "now": self.app.runtime().clock().now().to_string() })));
        }
    }

    fn end_with(&mut self, reason: &str) {
        self.pending.push_back(event("bye", &json!({ "reason": reason })));
        self.is_over = true;
    }
}

fn event(name: &str, data: &Value) -> Event {
    Event::default().event(name).data(data.to_string())
}
