//! What the end of an agent's run means for the chat it was started for.

use matsu_core::chat::{lines, split_content};
use matsu_core::clock::Timestamp;
use matsu_core::job::JobEnd;
use matsu_core::job::end::pause_before_retry;
use matsu_core::limits::{CHAT_ANSWER_MESSAGES_MAX, CHAT_STARTS_MAX, MESSAGE_CHARS_MAX};
use matsu_core::ports::store::{
    Conversation, OutputFrom, OutputRange, OutputStream, ReadChat, ReadOutput, ReadSession, StoreError, Turn,
    TurnOutcome,
};
use matsu_core::run::RunOutput;
use matsu_core::session::{EndReason, Session};

use crate::runtime::context::JobContext;

/// A turn: its final words are the answer.
pub async fn of_turn(cx: &JobContext, turn: &Turn, end: &JobEnd) -> Result<TurnOutcome, StoreError> {
    match end {
        JobEnd::Completed { output_json } => answered(cx, turn, output_json).await,
        JobEnd::Failed { message, .. } => Ok(failed(cx, turn, message, true, conversation_after(turn))),
        _ => Ok(called_off(cx, turn)),
    }
}

/// A stay: it is over when the agent left; what it should have answered and did not is a failure.
pub async fn of_stay(cx: &JobContext, turn: &Turn, session: &Session, end: &JobEnd) -> Result<TurnOutcome, StoreError> {
    let store = cx.runtime().store();
    let (session, chat) =
        (store.run(ReadSession(session.id.clone())).await?, store.run(ReadChat(turn.chat.id.clone())).await?);
    match session.end_reason {
        Some(EndReason::ClosedByPerson | EndReason::NotAcknowledged) => return Ok(called_off(cx, turn)),
        Some(EndReason::Idle | EndReason::LoggedOut) if chat.acked_seq >= last_seq(turn) => {
            return Ok(TurnOutcome::Left);
        }
        _ => {}
    }
    let why = match end {
        JobEnd::Failed { message, .. } => message.as_str(),
        _ => "the program ended before the chat",
    };
    if chat.acked_seq < last_seq(turn) {
        return Ok(failed(cx, turn, why, true, conversation_after(turn)));
    }
    // It had answered; what is unread by now is for the next one, and nothing is reported.
    tracing::info!(chat = %turn.chat.id, why, "the program of a chat ended after it had answered");
    Ok(TurnOutcome::Left)
}

/// It was started and made no call.
pub fn never_came(cx: &JobContext, turn: &Turn) -> TurnOutcome {
    let options = cx.runtime().session_options();
    let why = lines::never_came(options.language, options.connect_max);
    failed(cx, turn, &why, true, conversation_after(turn))
}

fn called_off(cx: &JobContext, turn: &Turn) -> TurnOutcome {
    let line = lines::called_off(cx.runtime().session_options().language);
    TurnOutcome::CalledOff { upto_seq: last_seq(turn), line }
}

fn last_seq(turn: &Turn) -> i64 {
    turn.messages.last().map_or(0, |taken| taken.message.seq)
}

async fn answered(cx: &JobContext, turn: &Turn, output_json: &str) -> Result<TurnOutcome, StoreError> {
    let language = cx.runtime().session_options().language;
    let known: RunOutput = serde_json::from_str(output_json).unwrap_or_default();
    let text = if known.empty {
        String::new()
    } else {
        let bytes_max = (CHAT_ANSWER_MESSAGES_MAX + 1) * MESSAGE_CHARS_MAX * 4;
        let wish = OutputRange { stream: OutputStream::Result, from: OutputFrom::Byte(0), bytes_max };
        cx.runtime().store().run(ReadOutput { job: cx.lease.job_id.clone(), wish }).await?.marked()
    };
    let (mut said, is_cut) = split_content(&text, CHAT_ANSWER_MESSAGES_MAX);
    if is_cut {
        said.push(lines::cut(language).to_owned());
    }
    let Some(last) = turn.messages.last() else { return Ok(TurnOutcome::Left) };
    let (to, upto_seq) = (last.message.id.clone(), last.message.seq);
    let (replied_seq, if_silent) = (turn.chat.last_reply_seq, lines::no_answer(language));
    Ok(TurnOutcome::Answered { said, to, upto_seq, replied_seq, if_silent })
}

/// Tried again a few times, later and later; then a person decides.
pub fn failed(
    cx: &JobContext,
    turn: &Turn,
    why: &str,
    is_worth_a_retry: bool,
    conversation: Conversation,
) -> TurnOutcome {
    let failures = turn.failures + 1;
    let again_in = (is_worth_a_retry && failures < CHAT_STARTS_MAX).then(|| pause_before_retry(failures));
    let line = lines::failed(cx.runtime().session_options().language, why, again_in);
    let retry_at: Option<Timestamp> = again_in.map(|pause| cx.runtime().clock().now().plus(pause));
    TurnOutcome::Failed { line, retry_at, conversation }
}

/// A conversation in which the agent fails again and again may be gone on the program's side.
fn conversation_after(turn: &Turn) -> Conversation {
    if turn.failures > 0 { Conversation::BeginsAnew } else { Conversation::GoesOn }
}
