//! The loop behind work that starts by itself: look when something changed, and when the next thing is due.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use matsu_core::change::Topic;
use matsu_core::clock::Timestamp;
use matsu_core::limits::SAFETY_READ_EVERY;

use crate::runtime::Runtime;
use crate::tasks::TaskError;

/// Looks are at least this far apart, however much changes.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Repeats a step at each change of the topic and when the step's own pause is over, until it is cancelled.
pub async fn repeat<S, F>(runtime: &Runtime, topic: Topic, until: &CancellationToken, step: S)
where
    S: Fn() -> F,
    F: Future<Output = Result<Duration, TaskError>>,
{
    // Before the first look, so that nothing falls between.
    let subscription = runtime.hub().subscribe(std::slice::from_ref(&topic));
    let work = async {
        loop {
            let pause = step().await.unwrap_or_else(|error| {
                tracing::debug!(%error, topic = topic.as_str(), "due starts could not be read; trying again");
                SAFETY_READ_EVERY
            });
            runtime.clock().sleep(LOOK_EVERY).await;
            tokio::select! {
                () = subscription.woken() => {}
                () = runtime.clock().sleep(pause) => {}
            }
        }
    };
    let _ended: Option<()> = until.run_until_cancelled(work).await;
}

/// How long nothing is due. The clock of the machine may be set meanwhile, so the pause is short.
pub fn pause_until(runtime: &Runtime, next: Option<Timestamp>) -> Duration {
    next.map_or(SAFETY_READ_EVERY, |next| next.since(runtime.clock().now()).min(SAFETY_READ_EVERY))
}
