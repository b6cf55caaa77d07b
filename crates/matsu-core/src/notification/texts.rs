//! The sentences that reach agents, in every language. Nothing here is stored: a notification is put into words when
//! it is read, so a server that changes its language changes what it says.

use crate::language::Language;

use super::{Cause, Notification};

/// What every reply to a session says when there is nothing to read.
#[must_use]
pub fn none(language: Language) -> &'static str {
    match language {
        Language::English => "no notifications",
        Language::Japanese => "通知はありません",
        Language::Korean => "알림이 없습니다",
    }
}

/// What every reply to a session says when there is something to read.
#[must_use]
pub fn some(language: Language, unread: i64) -> String {
    match (language, unread) {
        (Language::English, 1) => "IMPORTANT: there is 1 notification. Call get_notifications to read it.".to_owned(),
        (Language::English, unread) => {
            format!("IMPORTANT: there are {unread} notifications. Call get_notifications to read them.")
        }
        (Language::Japanese, _) => {
            "【重要】通知があります。get_notifications を呼び出して確認してください。".to_owned()
        }
        (Language::Korean, unread) => {
            format!("【중요】 알림이 {unread}건 있습니다. get_notifications를 호출하여 확인하십시오.")
        }
    }
}

/// The whole reply under an unread interrupt, as text.
#[must_use]
pub fn interrupt(language: Language) -> &'static str {
    match language {
        Language::English => {
            "There is a notification.\n\n1. Call get_notifications to read it\n2. Follow its instruction"
        }
        Language::Japanese => {
            "通知があります。\n\n1. get_notifications() を呼び出して詳細を確認してください\n2. 通知の指示に従ってください"
        }
        Language::Korean => {
            "알림이 있습니다.\n\n1. get_notifications를 호출하여 내용을 확인하십시오\n2. 알림의 지시에 따르십시오"
        }
    }
}

/// The same on one line, for the structured half.
#[must_use]
pub fn interrupt_line(language: Language) -> &'static str {
    match language {
        Language::English => {
            "There is a notification. 1. Call get_notifications to read it. 2. Follow its instruction."
        }
        Language::Japanese => {
            "通知があります。1. get_notifications() を呼び出して詳細を確認してください。2. 通知の指示に従ってください。"
        }
        Language::Korean => {
            "알림이 있습니다. 1. get_notifications를 호출하여 내용을 확인하십시오. 2. 알림의 지시에 따르십시오."
        }
    }
}

/// For callers without a session: tasks of theirs have ended and the results are unread.
#[must_use]
pub fn news(language: Language, tasks: i64) -> String {
    match (language, tasks) {
        (Language::English, 1) => {
            "1 of your tasks has finished or asks a question; call get_task_status without arguments to see it."
                .to_owned()
        }
        (Language::English, tasks) => {
            format!(
                "{tasks} of your tasks have finished or ask a question; call get_task_status without arguments to \
                 see them."
            )
        }
        (Language::Japanese, tasks) => {
            format!(
                "完了または質問中のタスクが{tasks}件あります。引数なしで get_task_status を呼び出して確認してください。"
            )
        }
        (Language::Korean, tasks) => {
            format!(
                "완료되었거나 질문하는 작업이 {tasks}건 있습니다. 인수 없이 get_task_status를 호출하여 확인하십시오."
            )
        }
    }
}

/// What happened.
#[must_use]
pub fn message(language: Language, notification: &Notification) -> String {
    let said = notification.text.as_deref().unwrap_or_default();
    if notification.cause == Cause::Notice {
        return said.to_owned();
    }
    if notification.cause == Cause::PersonWrote {
        return person_wrote(language, said, notification.times);
    }
    happened(language, notification.cause).to_owned()
}

/// What to do about it.
#[must_use]
pub fn instruction(language: Language, notification: &Notification) -> String {
    match &notification.instruction {
        Some(own) => own.clone(),
        None => what_to_do(language, notification.cause).to_owned(),
    }
}

fn person_wrote(language: Language, said: &str, times: i64) -> String {
    match (language, times) {
        (Language::English, 1) => format!("A person wrote to you in the chat: {said}"),
        (Language::English, times) => format!("A person wrote to you in the chat {times} times:\n{said}"),
        (Language::Japanese, 1) => format!("ユーザーからチャットにメッセージがあります: {said}"),
        (Language::Japanese, times) => format!("ユーザーからチャットに{times}件のメッセージがあります:\n{said}"),
        (Language::Korean, 1) => format!("사용자가 채팅에 메시지를 남겼습니다: {said}"),
        (Language::Korean, times) => format!("사용자가 채팅에 메시지 {times}건을 남겼습니다:\n{said}"),
    }
}

fn happened(language: Language, cause: Cause) -> &'static str {
    use Cause::{Notice, PersonWrote, TaskBlocked, TaskCancelled, TaskPaused, TaskReassigned, TaskResumed};
    match (language, cause) {
        (_, PersonWrote | Notice) => "",
        (Language::English, TaskBlocked) => "The task was blocked by a person.",
        (Language::English, TaskPaused) => "The task was paused by a person.",
        (Language::English, TaskCancelled) => "The task was cancelled by a person.",
        (Language::English, TaskReassigned) => "The task was given to another agent.",
        (Language::English, TaskResumed) => "The task was resumed by a person.",
        (Language::Japanese, TaskBlocked) => "タスクがユーザーによってブロックされました。",
        (Language::Japanese, TaskPaused) => "タスクがユーザーによって一時停止されました。",
        (Language::Japanese, TaskCancelled) => "タスクがユーザーによってキャンセルされました。",
        (Language::Japanese, TaskReassigned) => "タスクは別のエージェントに割り当てられました。",
        (Language::Japanese, TaskResumed) => "タスクがユーザーによって再開されました。",
        (Language::Korean, TaskBlocked) => "사용자가 작업을 차단했습니다.",
        (Language::Korean, TaskPaused) => "사용자가 작업을 일시 중지했습니다.",
        (Language::Korean, TaskCancelled) => "사용자가 작업을 취소했습니다.",
        (Language::Korean, TaskReassigned) => "작업이 다른 에이전트에게 배정되었습니다.",
        (Language::Korean, TaskResumed) => "사용자가 작업을 재개했습니다.",
    }
}

fn what_to_do(language: Language, cause: Cause) -> &'static str {
    use Cause::{Notice, PersonWrote, TaskBlocked, TaskCancelled, TaskPaused, TaskReassigned, TaskResumed};
    match (language, cause) {
        (Language::English, TaskBlocked | TaskPaused) => {
            "Stop the current work and call report_completed with result \"blocked\"."
        }
        (Language::English, TaskCancelled | TaskReassigned) => {
            "Stop the current work and call report_completed with result \"failed\"; its result is no longer wanted."
        }
        (Language::English, TaskResumed) => "Continue the task: call get_next_action.",
        (Language::English, PersonWrote) => {
            "Take it into account in your work. If it needs an answer, answer with send_message."
        }
        (Language::English, Notice) => "Take it into account in your work.",
        (Language::Japanese, TaskBlocked | TaskPaused) => {
            "現在の作業を中断し、report_completed を result=\"blocked\" で呼び出してください。"
        }
        (Language::Japanese, TaskCancelled | TaskReassigned) => {
            "現在の作業を中断し、report_completed を result=\"failed\" で呼び出してください。結果はもう必要ありません。"
        }
        (Language::Japanese, TaskResumed) => "作業を再開してください: get_next_action を呼び出してください。",
        (Language::Japanese, PersonWrote) => {
            "内容を作業に反映してください。返答が必要な場合は send_message で返答してください。"
        }
        (Language::Japanese, Notice) => "内容を作業に反映してください。",
        (Language::Korean, TaskBlocked | TaskPaused) => {
            "현재 작업을 중단하고 report_completed를 result=\"blocked\"로 호출하십시오."
        }
        (Language::Korean, TaskCancelled | TaskReassigned) => {
            "현재 작업을 중단하고 report_completed를 result=\"failed\"로 호출하십시오. 결과는 더 이상 필요하지 않습니다."
        }
        (Language::Korean, TaskResumed) => "작업을 계속하십시오: get_next_action을 호출하십시오.",
        (Language::Korean, PersonWrote) => "내용을 작업에 반영하십시오. 답변이 필요하면 send_message로 답하십시오.",
        (Language::Korean, Notice) => "내용을 작업에 반영하십시오.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_has_words_in_every_language() {
        for language in Language::ALL {
            for cause in Cause::ALL {
                assert!(!what_to_do(*language, *cause).is_empty(), "{language} {cause}");
                let has_text = !matches!(cause, Cause::PersonWrote | Cause::Notice);
                assert_eq!(!happened(*language, *cause).is_empty(), has_text, "{language} {cause}");
            }
            assert!(interrupt(*language).contains("get_notifications"));
            assert!(interrupt_line(*language).contains("get_notifications"));
            assert!(some(*language, 2).contains("get_notifications"));
            assert!(news(*language, 2).contains("get_task_status"));
        }
    }

    #[test]
    fn the_japanese_sentences_are_those_that_agents_know() {
        assert_eq!(none(Language::Japanese), "通知はありません");
        let some = some(Language::Japanese, 3);
        assert_eq!(some, "【重要】通知があります。get_notifications を呼び出して確認してください。");
        let lines: Vec<&str> = interrupt(Language::Japanese).lines().collect();
        assert_eq!(lines[0], "通知があります。");
        assert_eq!(lines[2], "1. get_notifications() を呼び出して詳細を確認してください");
        assert_eq!(lines[3], "2. 通知の指示に従ってください");
    }
}
