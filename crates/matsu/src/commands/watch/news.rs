//! Which changes are news, and how they read. A result that its parent read at once is none.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use anyhow::Result;
use matsu_core::clock::Clock;
use matsu_core::task::is_news_in;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::client::{Client, segment};
use crate::commands::field;
use crate::terminal::plain_text::plain_line;
use crate::terminal::question::{self, Question};

/// A client that waits for a task reads it within this time; then it is no news.
const READ_WITHIN: Duration = Duration::from_secs(2);

/// Without anything to print, time is looked at this often.
const IDLE: Duration = Duration::from_secs(3_600);

const TITLE_CHARS_MAX: usize = 120;
const QUESTION_CHARS_MAX: usize = 400;
const PRINTED_MAX: usize = 10_000;

pub struct News {
    is_json: bool,
    /// The only project whose tasks are news.
    folder: Option<String>,
    /// Tasks to look at, and when.
    due: BTreeMap<String, Instant>,
    /// What was printed: a task with its end, or a question.
    printed: HashSet<String>,
}

impl News {
    pub fn new(is_json: bool, folder: Option<String>) -> Self {
        Self { is_json, folder, due: BTreeMap::new(), printed: HashSet::new() }
    }

    /// A task has changed.
    pub fn take(&mut self, task: &Value) {
        let is_news = task["kind"] != "wait" && (is_asking(task) || is_unread(task));
        if is_news && is_news_in(task["started_in"].as_str(), self.folder.as_deref()) {
            self.due.entry(field(task, "task_id")).or_insert(Clock::system().instant() + READ_WITHIN);
        }
    }

    /// What ended or asked before this began.
    pub async fn take_list(&mut self, client: &Client) -> Result<()> {
        let page = client.get("/api/v1/tasks?limit=200").await?;
        page["items"].as_array().into_iter().flatten().for_each(|task| self.take(task));
        Ok(())
    }

    /// When the next task is to be looked at.
    pub fn due(&self) -> Instant {
        self.due.values().min().copied().unwrap_or_else(|| Clock::system().instant() + IDLE)
    }

    pub async fn print_due(&mut self, client: &Client) -> Result<()> {
        let now = Clock::system().instant();
        let due: Vec<String> = self.due.iter().filter(|(_, at)| **at <= now).map(|(id, _)| id.clone()).collect();
        for id in due {
            // Removed only when it was looked at: a daemon that ends meanwhile takes no news with it.
            let task = client.get(&format!("/api/v1/tasks/{}", segment(&id))).await;
            let questions = match &task {
                Ok(task) if is_asking(task) => question::open(client, &id).await?,
                _ => Vec::new(),
            };
            self.due.remove(&id);
            let Ok(task) = task else { continue };
            if is_unread(&task) && self.is_first(format!("{id} {}", task["finished_revision"])) {
                self.print_end(&task);
            }
            for question in questions {
                if self.is_first(format!("{id} {} {}", question.job, question.id)) {
                    self.print_question(&task, &question);
                }
            }
        }
        Ok(())
    }

    fn is_first(&mut self, what: String) -> bool {
        if self.printed.len() >= PRINTED_MAX {
            self.printed.clear();
        }
        self.printed.insert(what)
    }

    fn print_end(&self, task: &Value) {
        let (id, status) = (field(task, "task_id"), field(task, "status"));
        if self.is_json {
            say!("{}", json!({ "event": status, "task_id": id, "title": task["title"], "agents": task["agents"] }));
            return;
        }
        say!("{id} {status}: {}. Read it with get_task_status or: matsu result {id}", title(task));
    }

    fn print_question(&self, task: &Value, asked: &Question) {
        let id = field(task, "task_id");
        if self.is_json {
            let question = json!({ "job_id": asked.job, "id": asked.id, "text": asked.text, "options": asked.options });
            say!("{}", json!({ "event": "asks", "task_id": id, "agent": asked.agent, "question": question }));
            return;
        }
        let text: String = plain_line(&asked.text).chars().take(QUESTION_CHARS_MAX).collect();
        let options = plain_line(&asked.options.join(", "));
        let options = if options.is_empty() { options } else { format!(" [{options}]") };
        say!("{id} asks ({}): {text}{options}. Answer with: {}", asked.agent, asked.how(&id, true));
    }
}

fn is_unread(task: &Value) -> bool {
    task["finished_at"].is_string() && task["unread"] == true
}

fn is_asking(task: &Value) -> bool {
    task["status"] == "input_required"
}

/// Titles are text of others: one line, and short.
fn title(task: &Value) -> String {
    plain_line(&field(task, "title")).chars().take(TITLE_CHARS_MAX).collect()
}
