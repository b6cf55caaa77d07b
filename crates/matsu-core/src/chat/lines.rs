//! System messages in a chat whose agent is started by Matsu.

use std::time::Duration;

use crate::job::end::clip;
use crate::language::Language;

/// Characters of a reason that are shown.
const REASON_CHARS_MAX: usize = 1_000;

/// It failed, and is tried again by itself or by the next message.
#[must_use]
pub fn failed(language: Language, why: &str, again_in: Option<Duration>) -> String {
    let why = clip(why, REASON_CHARS_MAX);
    match (language, again_in.map(|pause| pause.as_secs())) {
        (Language::English, Some(seconds)) => {
            format!("The agent could not answer: {why}. It is started again in {seconds} s.")
        }
        (Language::English, None) => format!("The agent could not answer: {why}. Write again to call it again."),
        (Language::Japanese, Some(seconds)) => {
            format!("エージェントは応答できませんでした: {why}。{seconds}秒後に再起動します。")
        }
        (Language::Japanese, None) => {
            format!("エージェントは応答できませんでした: {why}。もう一度送信すると再度呼び出します。")
        }
        (Language::Korean, Some(seconds)) => {
            format!("에이전트가 응답하지 못했습니다: {why}. {seconds}초 후에 다시 시작합니다.")
        }
        (Language::Korean, None) => {
            format!("에이전트가 응답하지 못했습니다: {why}. 다시 메시지를 보내면 다시 호출합니다.")
        }
    }
}

/// The program ended successfully without an answer.
#[must_use]
pub fn no_answer(language: Language) -> String {
    match language {
        Language::English => "The agent ended without an answer.",
        Language::Japanese => "エージェントは応答せずに終了しました。",
        Language::Korean => "에이전트가 응답 없이 종료되었습니다.",
    }
    .to_owned()
}

/// What the agent has asked and a person has answered.
#[must_use]
pub fn answered(language: Language, question: &str, answer: &str) -> String {
    let (question, answer) = (clip(question, REASON_CHARS_MAX), clip(answer, REASON_CHARS_MAX));
    match language {
        Language::English => format!("The agent asked: {question}\nThe answer was: {answer}"),
        Language::Japanese => format!("エージェントの質問: {question}\n回答: {answer}"),
        Language::Korean => format!("에이전트의 질문: {question}\n답변: {answer}"),
    }
}

/// A person has stopped it.
#[must_use]
pub fn called_off(language: Language) -> String {
    match language {
        Language::English => "The agent was stopped.",
        Language::Japanese => "エージェントを停止しました。",
        Language::Korean => "에이전트를 중지했습니다.",
    }
    .to_owned()
}

/// Appended to the last message that is kept of a very long answer.
#[must_use]
pub fn cut(language: Language) -> &'static str {
    match language {
        Language::English => "[The answer is longer; the rest was not kept.]",
        Language::Japanese => "[応答はここまで保存されています。]",
        Language::Korean => "[응답은 여기까지만 보관됩니다.]",
    }
}

/// It was started and made no call: a reason, to be put into a sentence.
#[must_use]
pub fn never_came(language: Language, within: Duration) -> String {
    let seconds = within.as_secs();
    match language {
        Language::English => format!("it was started and did not connect within {seconds} s"),
        Language::Japanese => format!("起動しましたが、{seconds}秒以内に接続しませんでした"),
        Language::Korean => format!("시작되었지만 {seconds}초 안에 연결하지 않았습니다"),
    }
}

/// It was called and did not connect in time.
#[must_use]
pub fn no_show(language: Language, after: Duration) -> String {
    let seconds = after.as_secs();
    match language {
        Language::English => {
            format!("The agent has not connected within {seconds} seconds. Write again to call it again.")
        }
        Language::Japanese => {
            format!("エージェントが{seconds}秒以内に接続しませんでした。もう一度送信すると再度呼び出します。")
        }
        Language::Korean => {
            format!("에이전트가 {seconds}초 안에 연결하지 않았습니다. 다시 메시지를 보내면 다시 호출합니다.")
        }
    }
}
