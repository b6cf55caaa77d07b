//! When a daemon ends: by a signal, no longer needed, or at the request of another version.

use std::time::Duration;

use anyhow::Result;
use matsu_core::limits::TICK;
use matsu_core::ports::store::{CountUnfinished, HasWebhooks, NextScheduleAt};
use matsu_server::App;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Why it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    Signal(&'static str),
    /// `matsu shutdown`.
    Asked,
    Idle,
    HandOver {
        to: String,
    },
}

/// The signals that end a daemon. They count from when this is made: one may come as soon as the daemon has announced itself.
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    pub fn listen() -> Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }
}

/// Waits for the first reason to end.
pub async fn wait(app: &App, signals: &mut Signals, idle_exit: Option<Duration>) -> Ending {
    tokio::select! {
        _ = signals.terminate.recv() => Ending::Signal("SIGTERM"),
        _ = signals.interrupt.recv() => Ending::Signal("SIGINT"),
        () = asked(app) => Ending::Asked,
        () = idle(app, idle_exit) => Ending::Idle,
        to = other_version_asks(app) => Ending::HandOver { to },
    }
}

/// A reply to the request itself goes out within this time.
const LAST_REPLY: Duration = Duration::from_millis(200);

async fn asked(app: &App) {
    app.end().cancelled().await;
    app.runtime().clock().sleep(LAST_REPLY).await;
}

/// Returns once no client has been connected for this long and nothing is unfinished.
async fn idle(app: &App, after: Option<Duration>) {
    let Some(after) = after else { return std::future::pending().await };
    let clock = app.runtime().clock();
    loop {
        clock.sleep(TICK.min(after)).await;
        if is_idle(app, after).await {
            return;
        }
    }
}

/// Whether a daemon could end now. A store that does not answer is no reason to end.
pub async fn is_idle(app: &App, after: Duration) -> bool {
    let Some(since) = app.presence().idle_since() else { return false };
    if app.runtime().clock().instant() - since < after {
        return false;
    }
    let store = app.runtime().store();
    // A schedule is fired by the daemon only.
    answers(app) == 0
        && matches!(store.run(CountUnfinished).await, Ok(0))
        && matches!(store.run(NextScheduleAt).await, Ok(None))
        // And a webhook is listened at by the daemon only.
        && matches!(store.run(HasWebhooks).await, Ok(false))
}

/// Answers of models under way.
fn answers(app: &App) -> usize {
    app.chats().map_or(0, matsu_runtime::models::chat::LiveChats::answering)
}

/// A client that asked within this time counts as connected.
const STILL_THERE: Duration = Duration::from_secs(1);

/// Claims nothing more once asked, and returns at the first moment in which nothing runs that would end with this
/// process; runs of agents are taken over by the next one. If the process that asked is gone, everything goes on as
/// before.
async fn other_version_asks(app: &App) -> String {
    let clock = app.runtime().clock();
    loop {
        app.hand_over().asked().await;
        let held_back = HeldBack::new(app);
        while let Some((version, age)) = app.hand_over().successor(clock.instant()) {
            if app.runtime().bound_jobs() == 0 && answers(app) == 0 && age < STILL_THERE {
                held_back.for_good();
                return version;
            }
            clock.sleep(Duration::from_millis(50)).await;
        }
        tracing::info!("the other version no longer asks for the store; new jobs are claimed again");
    }
}

/// Nothing is claimed while this lives; dropped in whatever way, claiming goes on.
struct HeldBack<'a> {
    app: &'a App,
    is_for_good: bool,
}

impl<'a> HeldBack<'a> {
    fn new(app: &'a App) -> Self {
        app.runtime().pause_claiming();
        tracing::info!("another version asks for the store; no new job is claimed");
        Self { app, is_for_good: false }
    }

    fn for_good(mut self) {
        self.is_for_good = true;
    }
}

impl Drop for HeldBack<'_> {
    fn drop(&mut self) {
        if !self.is_for_good {
            self.app.runtime().resume_claiming();
        }
    }
}
