//! Answers that come back through a channel: a code that is used once chooses one option of one question.

use std::time::Duration;

use matsu_core::limits::{NOTICE_KEPT, NOTICE_RETRY_FIRST, NOTICE_RETRY_MAX};
use matsu_core::notify::CodeUse;
use matsu_core::ports::notice_channel::{NoticeChannel, Reply};
use matsu_core::ports::store::{LeaseReplies, SetReplyPosition, UseCode};
use matsu_core::run::Answer;
use matsu_core::secret;

use crate::agents::Agents;
use crate::runtime::Runtime;

/// One node reads the answers of a channel; another one takes over after this long.
const LEASE: Duration = Duration::from_secs(150);

/// How often a node that does not read them looks whether the one that does is gone.
const OTHER_READS: Duration = Duration::from_secs(5);

/// A server that does not hold a request until something comes is not asked more often.
const READ_EVERY_MIN: Duration = Duration::from_secs(1);

/// Reads the answers of one channel for as long as it is polled.
pub async fn run(runtime: &Runtime, channel: &dyn NoticeChannel, topic: &str) {
    let mut pause = NOTICE_RETRY_FIRST;
    loop {
        let began = runtime.clock().instant();
        match read(runtime, channel, topic).await {
            Ok(Some(codes)) => {
                pause = NOTICE_RETRY_FIRST;
                let spent = runtime.clock().instant() - began;
                if codes == 0 && spent < READ_EVERY_MIN {
                    runtime.clock().sleep(READ_EVERY_MIN - spent).await;
                }
            }
            Ok(None) => runtime.clock().sleep(OTHER_READS).await,
            Err(error) => {
                tracing::warn!(channel = channel.name(), error, "answers could not be read; trying again");
                runtime.clock().sleep(pause).await;
                pause = (pause * 2).min(NOTICE_RETRY_MAX);
            }
        }
    }
}

/// How many answers have come; `None`: another node reads them.
async fn read(runtime: &Runtime, channel: &dyn NoticeChannel, topic: &str) -> Result<Option<usize>, String> {
    let (store, now) = (runtime.store(), runtime.clock().now());
    let lease = store
        .run(LeaseReplies { channel: channel.name().to_owned(), node: runtime.node(), until: now.plus(LEASE), now })
        .await;
    let Some(position) = lease.map_err(|error| error.to_string())? else { return Ok(None) };
    let replies = channel.replies(topic, position.as_deref()).await?;
    for reply in &replies.codes {
        let text = take(runtime, channel, reply).await;
        channel.acknowledge(reply, &text).await;
    }
    // After the answers: a process that ends in between reads them again, and each code still counts once.
    if let Some(position) = replies.position.filter(|new| position.as_ref() != Some(new)) {
        let stored =
            store.run(SetReplyPosition { channel: channel.name().to_owned(), position: position.clone() }).await;
        stored.map_err(|error| error.to_string())?;
    }
    Ok(Some(replies.codes.len()))
}

/// Gives the answer of a code. Returns what the person is shown.
async fn take(runtime: &Runtime, channel: &dyn NoticeChannel, reply: &Reply) -> String {
    let now = runtime.clock().now();
    let hash = secret::hash(reply.code.trim());
    let used = runtime
        .store()
        .run(UseCode {
            channel: channel.name().to_owned(),
            hash: hash.clone(),
            made_after: now.minus(NOTICE_KEPT),
            now,
        })
        .await;
    let code = match used {
        Ok(CodeUse::First(code)) => code,
        Ok(CodeUse::Repeated) => {
            tracing::info!(channel = channel.name(), "an answer came with a code that was used before; it was ignored");
            return "This was answered already.".to_owned();
        }
        Ok(CodeUse::Unknown) => {
            tracing::warn!(channel = channel.name(), "an answer came with an unknown or old code; it was ignored");
            return "This button is no longer valid.".to_owned();
        }
        Err(error) => {
            tracing::warn!(channel = channel.name(), %error, "an answer could not be checked");
            return "The answer could not be stored. Answer on the page.".to_owned();
        }
    };
    let owner = &channel.rules().owner;
    let answer = Answer { id: code.question_id.clone(), option: Some(code.option.clone()), text: None };
    match Agents::of(runtime).answer(owner, &code.task_id, Some(&code.job_id), &answer).await {
        Ok(()) => {
            tracing::info!(channel = channel.name(), task = %code.task_id, "a question was answered");
            format!("Answered: {}", code.option)
        }
        Err(error) => {
            tracing::info!(channel = channel.name(), task = %code.task_id, %error, "an answer came too late");
            "This was answered already, or the task has ended.".to_owned()
        }
    }
}
