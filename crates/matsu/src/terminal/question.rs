//! Questions of runs: how they are shown, and how what a person typed becomes an answer.

use anyhow::{Result, bail};
use console::style;
use matsu_core::receipt::CONSENT_QUESTION;
use serde_json::{Value, json};

use super::plain_text::plain;
use super::prompt;
use crate::client::{Client, segment};

/// A question that waits for its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    pub job: String,
    pub agent: String,
    pub id: String,
    pub text: String,
    pub options: Vec<String>,
}

impl Question {
    fn of(value: &Value) -> Self {
        let text = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
        let options = value["options"].as_array().into_iter().flatten();
        Self {
            job: text("job_id"),
            agent: text("agent"),
            id: text("id"),
            text: text("text"),
            options: options.filter_map(Value::as_str).map(str::to_owned).collect(),
        }
    }

    /// The agent, its question, and what can be answered.
    pub fn show(&self) {
        let asks = format!("{} asks:", if self.agent.is_empty() { "The task" } else { &self.agent });
        eprintln!("{} {}", style(asks).for_stderr().yellow().bold(), plain(&self.text).trim_end());
        for (n, option) in self.options.iter().enumerate() {
            eprintln!("  {}) {}", n + 1, plain(option));
        }
    }

    /// Whether it is about a file of a repository: that is allowed by its own command, and by nothing else.
    pub fn is_consent(&self) -> bool {
        self.id == CONSENT_QUESTION
    }

    /// The command that answers it.
    pub fn how(&self, task: &str, several: bool) -> String {
        if self.is_consent() {
            return "matsu allow".to_owned();
        }
        let job = if several { format!(" --job {}", self.job) } else { String::new() };
        let given = match self.options.first() {
            Some(option) => quoted(&plain(option)),
            None => "\"your answer\"".to_owned(),
        };
        format!("matsu answer {task} {given}{job}")
    }

    /// What was typed, as the answer: the number of an option, an option, or text where there are no options.
    pub fn answer(&self, typed: &str) -> Result<Value> {
        let typed = typed.trim();
        if self.options.is_empty() {
            return self.in_words(typed);
        }
        let named = self.options.iter().find(|option| option.eq_ignore_ascii_case(typed));
        let numbered = || typed.parse::<usize>().ok()?.checked_sub(1).and_then(|at| self.options.get(at));
        match named.or_else(numbered) {
            Some(option) => Ok(json!({ "id": self.id, "job_id": self.job, "option": option })),
            None => bail!(
                "{typed:?} is not one of the options: {}; answer with one of them or its number, or in your own words with --text",
                self.options.join(", ")
            ),
        }
    }

    /// An answer in a person's own words.
    pub fn in_words(&self, text: &str) -> Result<Value> {
        let text = text.trim();
        anyhow::ensure!(!text.is_empty(), "the answer is empty; type any text");
        Ok(json!({ "id": self.id, "job_id": self.job, "text": text }))
    }

    /// Asks the person at the terminal until the answer is one. `None`: nothing can be typed any more.
    pub async fn ask(&self) -> Option<Value> {
        self.show();
        let words = if self.options.is_empty() { "Answer: " } else { "Answer (number or option): " };
        loop {
            match self.answer(&prompt::line(words).await?) {
                Ok(answer) => return Some(answer),
                Err(error) => eprintln!("{error}"),
            }
        }
    }
}

/// A word as a shell takes it.
fn quoted(text: &str) -> String {
    let is_plain = !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    if is_plain { text.to_owned() } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

/// Whether a person can be asked here.
pub fn can_ask() -> bool {
    prompt::is_possible()
}

/// What the runs of a task ask at the moment.
pub async fn open(client: &Client, task: &str) -> Result<Vec<Question>> {
    let list = client.get(&format!("/api/v1/tasks/{}/questions", segment(task))).await?;
    Ok(list["items"].as_array().into_iter().flatten().map(Question::of).collect())
}

pub async fn send(client: &Client, task: &str, answer: Value) -> Result<()> {
    client.post(&format!("/api/v1/tasks/{}/answer", segment(task)), answer).await.map(drop)
}

/// Shows what is asked and how it is answered.
pub fn show_all(task: &str, questions: &[Question]) {
    for question in questions {
        question.show();
        if !question.is_consent() {
            eprintln!("Answer with: {}", question.how(task, questions.len() > 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(options: &[&str]) -> Question {
        let options: Vec<String> = options.iter().map(|&option| option.to_owned()).collect();
        let (job, agent) = ("j_1".to_owned(), "claude".to_owned());
        Question { job, agent, id: "q1".to_owned(), text: "Go on?".to_owned(), options }
    }

    #[test]
    fn what_was_typed_is_an_option_a_number_or_text() {
        let choice = question(&["Allow", "Deny it", "1"]);
        for (typed, option) in [("allow", "Allow"), (" 2 ", "Deny it"), ("1", "1"), ("3", "1")] {
            assert_eq!(choice.answer(typed).unwrap()["option"], option, "{typed}");
        }
        for typed in ["", "4", "0", "perhaps", "-1"] {
            assert!(choice.answer(typed).unwrap_err().to_string().contains("Allow, Deny it"), "{typed}");
        }
        let free = question(&[]);
        assert_eq!(free.answer("2").unwrap(), json!({ "id": "q1", "job_id": "j_1", "text": "2" }));
        assert!(free.answer("  ").is_err());
    }

    #[test]
    fn the_command_that_answers_is_one_that_a_shell_takes() {
        assert_eq!(question(&["yes"]).how("task_1", false), "matsu answer task_1 yes");
        assert_eq!(question(&["it's ok"]).how("task_1", true), "matsu answer task_1 'it'\\''s ok' --job j_1");
        assert_eq!(question(&[]).how("task_1", false), "matsu answer task_1 \"your answer\"");
        let consent = Question { id: CONSENT_QUESTION.to_owned(), ..question(&[]) };
        assert_eq!(consent.how("task_1", false), "matsu allow");
    }
}
