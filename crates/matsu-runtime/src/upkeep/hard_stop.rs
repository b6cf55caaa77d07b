//! Agents that do not react: an unacknowledged order to stop ends the session after a while, and an agent that was
//! called and does not connect is given up.
//!
//! Counted in this process's own ticks, so that neither suspend nor a clock jump adds to it.

use std::collections::HashMap;
use std::time::Duration;

use matsu_core::chat::lines;
use matsu_core::id::NotificationId;
use matsu_core::limits::TICK;
use matsu_core::notification::NotificationAction;
use matsu_core::ports::store::{
    EndSession, GiveUpOnAgents, PendingInterrupt, PendingInterrupts, ReleaseChats, StoreError,
};
use matsu_core::session::{EndReason, SessionState};

use crate::runtime::{Outage, Runtime};

pub async fn run(runtime: &Runtime) {
    let mut outage = Outage::new("hard stop");
    let mut waited = HashMap::new();
    loop {
        runtime.clock().sleep(TICK).await;
        // The next tick comes soon enough.
        let _pause = outage.note(&tick(runtime, &mut waited).await);
    }
}

async fn tick(runtime: &Runtime, waited: &mut HashMap<NotificationId, u64>) -> Result<(), StoreError> {
    let store = runtime.store();
    let pending = store.run(PendingInterrupts { now: runtime.clock().now() }).await?;
    waited.retain(|id, _| pending.iter().any(|interrupt| interrupt.id == *id));
    for interrupt in &pending {
        let ticks = waited.entry(interrupt.id.clone()).or_default();
        *ticks += 1;
        if *ticks >= patience(runtime, interrupt).as_secs() {
            end(runtime, interrupt).await?;
        }
    }
    release_chats(runtime).await?;
    give_up_on_agents(runtime).await
}

fn patience(runtime: &Runtime, interrupt: &PendingInterrupt) -> Duration {
    let options = runtime.session_options();
    match interrupt.action {
        NotificationAction::Cancel => options.cancel_grace,
        NotificationAction::Pause
        | NotificationAction::Block
        | NotificationAction::Resume
        | NotificationAction::UserMessage => options.hold_grace,
    }
}

/// Its token opens nothing any more. A run of ours sees that its session is over and ends the whole tree.
async fn end(runtime: &Runtime, interrupt: &PendingInterrupt) -> Result<(), StoreError> {
    tracing::warn!(session = %interrupt.session_id, action = %interrupt.action, "an order to stop was not acknowledged");
    let (to, reason) = (SessionState::Ended, EndReason::NotAcknowledged);
    let (id, now) = (interrupt.session_id.clone(), runtime.clock().now());
    runtime.store().run(EndSession { id, to, reason, now }).await?;
    runtime.look_for_orders();
    Ok(())
}

/// A job that started an agent for a chat may end without releasing it: it ran too long, or broke.
async fn release_chats(runtime: &Runtime) -> Result<(), StoreError> {
    let (language, now) = (runtime.session_options().language, runtime.clock().now());
    for chat in runtime.store().run(ReleaseChats { language, now }).await? {
        tracing::warn!(%chat, "the job of a chat ended without releasing the chat; released it");
    }
    Ok(())
}

async fn give_up_on_agents(runtime: &Runtime) -> Result<(), StoreError> {
    let (now, options) = (runtime.clock().now(), runtime.session_options());
    let line = lines::no_show(options.language, options.connect_max);
    let chats = runtime
        .store()
        .run(GiveUpOnAgents { called_before: now.minus(options.connect_max), line: line.clone(), now })
        .await?;
    for chat in chats {
        tracing::info!(%chat, "agent did not connect in time");
    }
    Ok(())
}
