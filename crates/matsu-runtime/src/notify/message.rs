//! A notice in words: what happened, and what to do next.

use matsu_core::clock::Timestamp;
use matsu_core::error_code::ErrorCode;
use matsu_core::job::JobState;
use matsu_core::limits::NOTICE_TEXT_CHARS_MAX;
use matsu_core::notify::{
    AnswerCode, Button, NoticeContent, NoticeEvent, NoticeMessage, NoticeRow, NoticeRules, question_key,
};
use matsu_core::page::PageRequest;
use matsu_core::ports::notice_channel::NoticeChannel;
use matsu_core::ports::store::{JobFilter, ListJobSummaries, PutCodes, ReadTask, TaskLookup};
use matsu_core::receipt::CONSENT_QUESTION;
use matsu_core::secret;
use matsu_core::task::{StopReason, Task, TaskStatus};

use crate::agents::{Agents, OpenQuestion};
use crate::runtime::Runtime;
use crate::tasks::TaskError;
use crate::tool::ToolContext;
use crate::tools::{Detail, OutputWish, TaskReport};

/// Lines of a message about several tasks.
const LINES_MAX: usize = 10;

/// As many options as a message has buttons for; with more, it has a link.
const BUTTONS_MAX: usize = 3;

/// What is to be sent; `None` if the result was read, the question was answered or the rules leave it out. A notice that
/// is bundled needs its title only.
pub async fn of(
    runtime: &Runtime,
    channel: &dyn NoticeChannel,
    notice: &NoticeRow,
    is_bundled: bool,
) -> Result<Option<NoticeMessage>, TaskError> {
    let rules = channel.rules();
    let TaskLookup::Found(task) = runtime.store().run(ReadTask(notice.task_id.clone())).await? else { return Ok(None) };
    let cause = cause(runtime, notice.event, &task).await?;
    if !rules.allow(notice.event, cause, &task) {
        return Ok(None);
    }
    let mut buttons = Vec::new();
    let detail = match notice.event {
        NoticeEvent::Asks => {
            let open = Agents::of(runtime).open_questions(&task.id).await?;
            let is_meant = |asked: &&OpenQuestion| question_key(&asked.job.id, &asked.question.id) == notice.key;
            let Some(asked) = open.iter().find(is_meant) else { return Ok(None) };
            if channel.has_replies() && rules.content == NoticeContent::Full && !is_bundled {
                buttons = make_buttons(runtime, channel, &task, asked).await?;
            }
            question(asked)
        }
        NoticeEvent::Quota => match back_at(notice).filter(|back| *back > runtime.clock().now()) {
            Some(back) if !task.status.is_terminal() => {
                format!("The agent is out of quota. The task continues at {back}.")
            }
            _ => return Ok(None),
        },
        NoticeEvent::Done | NoticeEvent::Failed | NoticeEvent::Budget
            if task.first_read_at.is_some() && !rules.include_read =>
        {
            return Ok(None);
        }
        NoticeEvent::Done | NoticeEvent::Failed | NoticeEvent::Budget if is_bundled => String::new(),
        NoticeEvent::Done | NoticeEvent::Failed | NoticeEvent::Budget => outcome(runtime, rules, &task).await?,
    };
    let event = cause.unwrap_or(notice.event);
    let (title, text) = worded(rules.content, event, &task, &detail);
    Ok(Some(NoticeMessage {
        id: notice.id.to_string(),
        event,
        task_id: Some(task.id.to_string()),
        title,
        text,
        link: runtime.watch_link(&task.id),
        at: notice.created_at,
        buttons,
    }))
}

/// When a quota is back, by the key of its notice.
fn back_at(notice: &NoticeRow) -> Option<Timestamp> {
    notice.key.rsplit(':').next()?.parse().ok().map(Timestamp::from_millis)
}

/// Whether a budget or a quota ended the task.
async fn cause(runtime: &Runtime, event: NoticeEvent, task: &Task) -> Result<Option<NoticeEvent>, TaskError> {
    if !matches!(event, NoticeEvent::Done | NoticeEvent::Failed) {
        return Ok(None);
    }
    if task.stop.is_some_and(|stop| stop.reason == StopReason::BudgetExhausted) {
        return Ok(Some(NoticeEvent::Budget));
    }
    let filter = JobFilter { task_id: Some(task.id.clone()), state: Some(JobState::Failed), ..JobFilter::default() };
    let failed =
        runtime.store().run(ListJobSummaries { filter: filter.clone(), page: PageRequest::default() }).await?.items;
    let has = |code: ErrorCode| failed.iter().any(|job| job.error_code.as_deref() == Some(code.as_str()));
    let is_failed = event == NoticeEvent::Failed;
    Ok(match (has(ErrorCode::BudgetExhausted), has(ErrorCode::AgentQuota)) {
        (true, _) => Some(NoticeEvent::Budget),
        (_, true) if is_failed => Some(NoticeEvent::Quota),
        _ => None,
    })
}

fn question(asked: &OpenQuestion) -> String {
    let options = asked.question.options.join(", ");
    let options = if options.is_empty() { options } else { format!(" [{options}]") };
    format!("{}{options}", asked.question.text)
}

/// One code for each option, stored before it can come back. None for a question that is answered elsewhere.
async fn make_buttons(
    runtime: &Runtime,
    channel: &dyn NoticeChannel,
    task: &Task,
    asked: &OpenQuestion,
) -> Result<Vec<Button>, TaskError> {
    let options = &asked.question.options;
    if options.len() > BUTTONS_MAX || asked.question.id == CONSENT_QUESTION {
        return Ok(Vec::new());
    }
    let button = |option: &String| Button { option: option.clone(), code: secret::code() };
    let buttons: Vec<Button> = options.iter().map(button).collect();
    let stored = |button: &Button| AnswerCode {
        hash: secret::hash(&button.code),
        channel: channel.name().to_owned(),
        task_id: task.id.clone(),
        job_id: asked.job.id.clone(),
        question_id: asked.question.id.clone(),
        option: button.option.clone(),
    };
    let codes: Vec<AnswerCode> = buttons.iter().map(stored).collect();
    runtime.store().run(PutCodes { codes: codes.clone(), now: runtime.clock().now() }).await?;
    Ok(buttons)
}

/// The result or the error, without marking it as read.
async fn outcome(runtime: &Runtime, rules: &NoticeRules, task: &Task) -> Result<String, TaskError> {
    if rules.content != NoticeContent::Full {
        return Ok(String::new());
    }
    let cx = ToolContext::new(runtime.clone(), rules.owner.clone());
    let report = TaskReport::of(&cx, task, Detail::Full, OutputWish::default()).await;
    let report = report.map_err(|error| TaskError::Invalid(error.message))?;
    Ok(match task.status {
        TaskStatus::Failed => report.error.unwrap_or_default(),
        _ => report.result.unwrap_or_default(),
    })
}

/// What the rules let through.
fn worded(content: NoticeContent, event: NoticeEvent, task: &Task, detail: &str) -> (String, String) {
    let (word, sentence, next) = match event {
        NoticeEvent::Done => ("done", "a task is done", format!("Read it: matsu result {}", task.id)),
        NoticeEvent::Failed => ("failed", "a task failed", format!("See why: matsu status {}", task.id)),
        NoticeEvent::Budget => {
            ("budget", "a task has used up its budget", format!("See what it has: matsu status {}", task.id))
        }
        NoticeEvent::Quota if task.status.is_terminal() => {
            ("quota", "a task failed because its agent is out of quota", format!("Later: matsu retry {}", task.id))
        }
        NoticeEvent::Quota => {
            ("quota", "a task waits for the quota of its agent", format!("See when: matsu status {}", task.id))
        }
        NoticeEvent::Asks => ("asks", "a task asks a question", format!("Answer: matsu answer {}", task.id)),
    };
    let title = match content {
        NoticeContent::None => format!("Matsu: {sentence}"),
        NoticeContent::Title | NoticeContent::Full => format!("{word}: {}", one_line(&task.title, 120)),
    };
    let text = match content {
        NoticeContent::Full if !detail.trim().is_empty() => format!("{}\n{next}", cut(detail)),
        _ => next,
    };
    (title, text)
}

/// The id of a message about several notices: that of the first, with their number.
pub fn bundle_id(first: &NoticeMessage, count: usize) -> String {
    format!("{}.{count}", first.id)
}

/// Several notices as one message with this id; `None`: there are none.
pub fn bundle(id: &str, messages: &[NoticeMessage]) -> Option<NoticeMessage> {
    let first = messages.first()?;
    let of = |event| messages.iter().filter(|message| message.event == event).count();
    let words = [
        (NoticeEvent::Asks, "ask"),
        (NoticeEvent::Quota, "out of quota"),
        (NoticeEvent::Budget, "out of budget"),
        (NoticeEvent::Failed, "failed"),
        (NoticeEvent::Done, "done"),
    ];
    let counts = words.map(|(event, word)| (of(event), word));
    let counts = counts.iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}"));
    let mut urgent: Vec<&NoticeMessage> = messages.iter().collect();
    urgent.sort_by_key(|message| std::cmp::Reverse(message.event));
    let mut lines: Vec<String> = urgent.iter().take(LINES_MAX).map(|message| message.title.clone()).collect();
    if messages.len() > LINES_MAX {
        lines.push(format!("and {} more", messages.len() - LINES_MAX));
    }
    // The page of one task is one level below that of all.
    let link = first.link.as_ref().and_then(|link| link.rsplit_once('/')).map(|(tasks, _)| tasks.to_owned());
    let tasks = if messages.len() == 1 { "task" } else { "tasks" };
    Some(NoticeMessage {
        id: id.to_owned(),
        event: urgent[0].event,
        task_id: None,
        title: format!("Matsu: {} {tasks} ({})", messages.len(), counts.collect::<Vec<_>>().join(", ")),
        text: lines.join("\n"),
        link,
        at: first.at,
        buttons: Vec::new(),
    })
}

fn one_line(text: &str, chars_max: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().filter(|character| !character.is_control()).take(chars_max).collect()
}

fn cut(text: &str) -> String {
    let text = text.trim();
    let shown = |character: &char| !character.is_control() || *character == '\n';
    let kept: String = text.chars().filter(shown).take(NOTICE_TEXT_CHARS_MAX).collect();
    if text.chars().count() > NOTICE_TEXT_CHARS_MAX { format!("{kept}…") } else { kept }
}

#[cfg(test)]
mod tests {
    use super::*;
    use matsu_core::clock::Timestamp;

    #[test]
    fn many_notices_are_one_message_that_counts_them_and_names_questions_first() {
        let message = |n: usize, event| NoticeMessage {
            id: format!("no_{n}"),
            event,
            task_id: Some(format!("task_{n}")),
            title: format!("{event}: number {n}"),
            text: String::new(),
            link: Some(format!("http://x/tasks/task_{n}")),
            at: Timestamp::from_millis(0),
            buttons: Vec::new(),
        };
        let mut all: Vec<_> = (0..14).map(|n| message(n, NoticeEvent::Done)).collect();
        all.push(message(14, NoticeEvent::Asks));
        let id = bundle_id(&all[0], all.len());
        let one = bundle(&id, &all).unwrap();
        assert_eq!(one.title, "Matsu: 15 tasks (1 ask, 14 done)");
        assert_eq!((one.text.lines().count(), one.event), (11, NoticeEvent::Asks));
        assert!(one.text.starts_with("asks: number 14\ndone: number 0\n"), "{}", one.text);
        assert_eq!((one.link.as_deref(), one.id.as_str()), (Some("http://x/tasks"), "no_0.15"));
        let left = bundle(&id, &all[..1]).unwrap();
        assert_eq!((left.title.as_str(), left.id), ("Matsu: 1 task (1 done)", id.clone()), "it was tried with more");
        assert_eq!(bundle(&id, &[]), None);
    }

    #[test]
    fn text_of_a_task_is_bounded_and_has_no_control_characters() {
        assert_eq!(one_line("a\u{1b}[31m\n b", 20), "a[31m b");
        assert_eq!(cut("a\u{7}b\nc"), "ab\nc");
        assert_eq!(cut(&"x".repeat(NOTICE_TEXT_CHARS_MAX + 1)).chars().count(), NOTICE_TEXT_CHARS_MAX + 1);
    }
}
