//! When a daemon ends: told to, no longer needed, or asked to make room for another version.

use std::time::Duration;

use anyhow::Result;
use matsu_core::limits::TICK;
use matsu_server::App;
use tokio::signal::unix::{SignalKind, signal};

/// Why it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    Signal(&'static str),
    Idle,
    HandOver { to: String },
}

/// Waits for the first reason to end.
pub async fn wait(app: &App, idle_exit: Option<Duration>) -> Result<Ending> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(tokio::select! {
        _ = terminate.recv() => Ending::Signal("SIGTERM"),
        _ = interrupt.recv() => Ending::Signal("SIGINT"),
        () = idle(app, idle_exit) => Ending::Idle,
        to = room_for_another(app) => Ending::HandOver { to },
    })
}

/// Returns once nobody has been connected for this long and no job is unfinished.
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
    matches!(app.runtime().store().unfinished_jobs().await, Ok(0))
}

/// Claims nothing more once asked, and returns at the first moment without a running job.
async fn room_for_another(app: &App) -> String {
    app.hand_over().asked().await;
    app.runtime().pause_claiming();
    tracing::info!("another version waits for the store; no new job is started");
    while app.runtime().running_jobs() > 0 {
        app.runtime().clock().sleep(Duration::from_millis(50)).await;
    }
    app.hand_over().successor().unwrap_or_default()
}
