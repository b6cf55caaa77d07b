//! Following a task: its log as it comes, its questions, and its end; or until time is up or the person leaves. The
//! work itself goes on whatever happens here.

use std::io::Write;
use std::time::Duration;

use anyhow::Result;
use console::style;
use indicatif::{ProgressBar, ProgressStyle};
use matsu_core::clock::Clock;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::ending::Shown;
use super::plain_text::PlainText;
use super::question::{self, Question};
use crate::client::{Client, DaemonUnreachable, field, segment};
use crate::context::Context;

/// One call waits this long at most; the server may hold it shorter.
const ONE_WAIT_SECONDS: u64 = 50;

/// A log that grows need not change its task, so it is looked at this often.
const LOG_WAIT_SECONDS: u64 = 2;

/// Without a daemon a task is followed this long: a run starts another daemon sooner.
const ALONE_MAX: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// What is shown while the task is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Log {
    /// Only how far it is.
    No,
    /// Everything on stdout: that is what was asked for.
    Stdout,
    /// A result on stdout as it comes, what the run was doing on stderr.
    ResultOnStdout,
}

/// What is followed, and how.
pub struct Follow<'a> {
    pub cx: &'a Context,
    pub client: &'a Client,
    pub task: &'a str,
    pub agent: Option<&'a str>,
    pub log: Log,
    pub until: Option<Instant>,
}

/// Why it is followed no longer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Followed {
    Ended(Shown),
    /// It asks, and here is no terminal to ask it.
    Asks(Vec<Question>),
    TimeUp,
    /// The person has pressed Ctrl-C.
    Left,
    /// The daemon has ended, and no other one came.
    Alone,
}

/// What has been shown so far.
struct Progress {
    bar: ProgressBar,
    offset: u64,
    since: i64,
    text: PlainText,
    shown: Shown,
    /// What was shown last ended its line.
    ends_line: bool,
}

impl Progress {
    fn new() -> Self {
        Self { bar: spinner(), offset: 0, since: 0, text: PlainText::default(), shown: Shown::Nothing, ends_line: true }
    }
}

impl Follow<'_> {
    pub async fn run(&self) -> Result<Followed> {
        let clock = Clock::system();
        let mut progress = Progress::new();
        let bar = progress.bar.clone();
        let time_up = async {
            match self.until {
                Some(until) => clock.sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        let followed = tokio::select! {
            biased;
            _ = tokio::signal::ctrl_c() => Ok(Followed::Left),
            followed = self.over_daemons(&mut progress) => followed,
            () = time_up => Ok(Followed::TimeUp),
        };
        bar.finish_and_clear();
        if !progress.ends_line {
            // What comes next is not part of the result; the result itself stays as it is.
            eprintln!();
        }
        followed
    }

    /// Shows what is in the log now, and waits for nothing. Returns whether that was the result.
    pub async fn everything_so_far(&self) -> Result<Shown> {
        let mut progress = Progress::new();
        self.show_log(&mut progress).await?;
        progress.bar.finish_and_clear();
        Ok(progress.shown)
    }

    /// A daemon may end and another one take its place; the task is the same.
    async fn over_daemons(&self, progress: &mut Progress) -> Result<Followed> {
        loop {
            match self.to_its_end(progress).await {
                Err(error) if error.is::<DaemonUnreachable>() || self.is_ending(&error) => {
                    if !self.another_comes().await {
                        return Ok(Followed::Alone);
                    }
                }
                followed => return followed,
            }
        }
    }

    /// Whether a daemon has said this that a person is just ending: it has closed its store.
    fn is_ending(&self, error: &anyhow::Error) -> bool {
        self.cx.config.paths.stopped().exists() && error.to_string().ends_with("(STORE_UNAVAILABLE)")
    }

    /// A run without a daemon starts one itself, unless a person has ended the last one.
    async fn another_comes(&self) -> bool {
        let clock = Clock::system();
        let deadline = clock.instant() + ALONE_MAX;
        while clock.instant() < deadline && !self.cx.config.paths.stopped().exists() {
            match self.client.get(&format!("/api/v1/tasks/{}", segment(self.task))).await {
                Err(error) if error.is::<DaemonUnreachable>() => clock.sleep(LOOK_EVERY).await,
                _ => return true,
            }
        }
        false
    }

    async fn to_its_end(&self, progress: &mut Progress) -> Result<Followed> {
        let clock = Clock::system();
        loop {
            let ended_before = self.log == Log::No || self.show_log(progress).await?;
            let seconds = if self.log == Log::No { ONE_WAIT_SECONDS } else { LOG_WAIT_SECONDS };
            let (task, since) = (segment(self.task), progress.since);
            let path = format!("/api/v1/tasks/{task}/wait?timeout={seconds}&since={since}&wait_for=any");
            let reply = self.client.get(&path).await?;
            let task = &reply["task"];
            progress.bar.set_message(status_line(task));
            if self.log == Log::No {
                progress.since = reply["next"]["since"].as_i64().unwrap_or(progress.since);
            }
            let ended = matches!(task["status"].as_str(), Some("completed" | "finished" | "failed" | "cancelled"));
            if ended && ended_before {
                return Ok(Followed::Ended(progress.shown));
            }
            if task["status"] == "input_required" {
                let asked = question::open(self.client, self.task).await?;
                if !asked.is_empty() && !self.ask(progress, &asked).await? {
                    return Ok(Followed::Asks(asked));
                }
            }
            if reply["returned_because"] == "idle" && !ended {
                // Nothing is left to run, yet the task stays open: look again at a calm pace.
                clock.sleep(Duration::from_secs(1)).await;
            }
        }
    }

    /// Shows what is new in the log. Returns whether the task had ended when everything was read.
    async fn show_log(&self, progress: &mut Progress) -> Result<bool> {
        let agent = self.agent.map(|agent| format!("&agent={}", segment(agent))).unwrap_or_default();
        loop {
            let path = format!("/api/v1/tasks/{}/log?offset={}{agent}", segment(self.task), progress.offset);
            let part = self.client.get(&path).await?;
            let ends_line = progress.bar.suspend(|| self.show(&part, &mut progress.text));
            progress.ends_line = ends_line.unwrap_or(progress.ends_line);
            if part["total"].as_u64() > Some(0) {
                progress.shown = if part["is_result"] == true { Shown::Result } else { Shown::Nothing };
            }
            progress.offset = part["next_offset"].as_u64().unwrap_or(progress.offset);
            progress.since = part["revision"].as_i64().unwrap_or(progress.since);
            if part["total"].as_u64().unwrap_or(0) <= progress.offset {
                return Ok(matches!(part["status"].as_str(), Some("completed" | "failed" | "cancelled")));
            }
        }
    }

    /// Whether what was shown ended its line; `None`: nothing was shown.
    fn show(&self, part: &Value, text: &mut PlainText) -> Option<bool> {
        let words = part["text"].as_str().unwrap_or_default();
        if words.is_empty() {
            return None;
        }
        if self.cx.json {
            let is_result = &part["is_result"];
            show!("{}", json!({ "event": "log", "text": words, "offset": part["offset"], "is_result": is_result }));
            return None;
        }
        let shown = text.next(words);
        if self.log == Log::Stdout || part["is_result"] == true {
            let _ = std::io::stdout().write_all(shown.as_bytes());
            let _ = std::io::stdout().flush();
        } else {
            eprint!("{}", style(&shown).for_stderr().dim());
        }
        (!shown.is_empty()).then(|| shown.ends_with('\n'))
    }

    /// Asks the person here, one question after the other. False: nothing can be asked here.
    async fn ask(&self, progress: &Progress, asked: &[Question]) -> Result<bool> {
        if self.cx.json || !question::can_ask() {
            return Ok(false);
        }
        // A moving spinner would write over what is typed.
        progress.bar.disable_steady_tick();
        progress.bar.finish_and_clear();
        for question in asked {
            if question.is_consent() {
                question.show();
                self.until_closed(question).await?;
                continue;
            }
            tokio::select! {
                answer = question.ask() => {
                    let Some(answer) = answer else { return Ok(false) };
                    if let Err(error) = question::send(self.client, self.task, answer).await {
                        eprintln!("The answer was not accepted: {error}");
                    }
                }
                closed = self.until_closed(question) => {
                    closed?;
                    eprintln!("\nThe question is closed: it was answered elsewhere, or the task has ended.");
                }
            }
        }
        progress.bar.reset();
        progress.bar.enable_steady_tick(TICK);
        Ok(true)
    }

    /// Returns when the question is not open any more.
    async fn until_closed(&self, question: &Question) -> Result<()> {
        let mut since = 0;
        loop {
            if !question::open(self.client, self.task).await?.contains(question) {
                return Ok(());
            }
            let path = format!("/api/v1/tasks/{}/wait?timeout=5&since={since}&wait_for=any", segment(self.task));
            let reply = self.client.get(&path).await?;
            since = reply["next"]["since"].as_i64().unwrap_or(since);
        }
    }
}

impl Followed {
    /// Prints that the work goes on and how to come back to it, where that is so.
    pub fn say_what_goes_on(&self, client: &Client, task: &str) {
        let why = match self {
            Self::TimeUp => "Time is up",
            Self::Left => "Stopped watching",
            Self::Alone => {
                eprintln!("\nThe daemon has ended. {task} is kept. Follow it again: matsu status {task} --wait");
                return;
            }
            Self::Ended(_) | Self::Asks(_) => return,
        };
        if !client.works_here() {
            eprintln!(
                "\n{why}; {task} continues. Follow it again: matsu status {task} --wait. Stop it: matsu stop {task}"
            );
        } else {
            eprintln!("\n{why}. {task} ends with this command: its store is in memory");
        }
    }
}

const TICK: Duration = Duration::from_millis(120);

/// Hidden by itself where there is no terminal.
fn spinner() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed} {msg}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(TICK);
    bar
}

fn status_line(task: &Value) -> String {
    format!("{} {}", field(task, "status"), counts(task))
}

/// How many jobs there are in each state.
pub fn counts(task: &Value) -> String {
    let jobs = &task["jobs"];
    let names = ["queued", "running", "awaiting_auth", "awaiting_input", "completed", "failed", "cancelled"];
    let some = names.iter().filter(|name| jobs[**name].as_i64().is_some_and(|jobs| jobs > 0));
    some.map(|name| format!("{} {name}", jobs[*name])).collect::<Vec<_>>().join(", ")
}
