//! One task in the words of `get_task_status`: what it is, how far it is, what came out.

mod job_report;
mod parts;

use schemars::JsonSchema;
use serde::Serialize;

use matsu_core::clock::Timestamp;
use matsu_core::id::TaskId;
use matsu_core::job::{Job, JobKind, JobState};
use matsu_core::limits::{RESULT_HEAD_BYTES_MAX, RUN_PART_BYTES_MAX};
use matsu_core::page::PageRequest;
use matsu_core::ports::store::{
    JobFilter, ListJobs, OutputFrom, OutputRange, OutputSlice, OutputStream, ReadOutput, ReadTasks,
};
use matsu_core::run::{RunInput, RunOutput};
use matsu_core::task::{Task, TaskKind, TaskStatus};

use crate::agents::{Agents, OpenQuestion};
use crate::tool::{ToolContext, ToolError};

pub use job_report::JobReport;
pub use parts::{ChangesReport, LeftWorkReport, QuestionReport, ReceiptReport, TriedReport, UsageReport};

/// Jobs whose outcome one reply lists.
const RESULTS_MAX: u32 = 50;

#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct TaskReport {
    pub task_id: String,
    /// queued, running, input_required, paused, blocked, completed, failed, cancelled; idle for research with nothing
    /// queued; not_found if there is none.
    pub status: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_message: Option<String>,
    /// Seconds since it was started, while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elapsed_time: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<String>,
    /// Its question; answer with answer_question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<QuestionReport>,
    /// The result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// Completed without output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub empty: Option<bool>,
    /// Set if `result` is only a part: read on from here with output_offset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_output_offset: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_bytes: Option<u64>,
    /// The last lines of the output, if `tail` was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tail: Option<String>,
    /// With several jobs: the outcome of each so far.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<JobReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_count: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_code: Option<String>,
    /// Whether a later try may succeed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retryable: Option<bool>,
    /// How the run was confined.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confinement: Option<String>,
    /// What that confinement does not cover.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_covered: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdout_tail: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stderr_tail: Option<String>,
    /// Your name for the conversation, if it can be resumed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<UsageReport>,
    /// Its budget was used up, so it ended; nothing more is started for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub over_budget: Option<String>,
    /// What it changed on its branch; `matsu apply TASK` puts it into your tree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changes: Option<ChangesReport>,
    /// The agent that did the work, if the task was given to another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Agents that were tried before and did not do it, with the reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tried: Vec<TriedReport>,
    /// The outcome of the check of its last commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receipt: Option<ReceiptReport>,
    /// The end of what a failed check printed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check_output: Option<String>,
    /// What a person decided about its changes: applied, discarded or sent_back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub review: Option<String>,
    /// A folder of the run that is kept, because it contains work that could not be taken over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_work: Option<LeftWorkReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<i64>,
}

/// Which part of the output is wanted.
#[derive(Clone, Copy, Debug, Default)]
pub struct OutputWish {
    pub offset: u64,
    pub tail_lines: Option<u32>,
}

/// How detailed a report is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Status and progress: all there is to say while nothing has changed.
    Brief,
    /// Results too.
    Full,
}

impl TaskReport {
    pub fn not_found(id: &TaskId) -> Self {
        Self {
            task_id: id.to_string(),
            status: "not_found".to_owned(),
            error: Some("Task ID not found or expired.".to_owned()),
            ..Self::default()
        }
    }

    pub async fn of(cx: &ToolContext, task: &Task, detail: Detail, wish: OutputWish) -> Result<Self, ToolError> {
        let filter = JobFilter { task_id: Some(task.id.clone()), ..JobFilter::default() };
        // No more than there are: a short list is read without changing threads.
        let there = u32::try_from(task.counts.total()).unwrap_or(RESULTS_MAX);
        let page = PageRequest::new(None, Some(there.min(RESULTS_MAX)));
        let jobs = cx.runtime.store().run(ListJobs { filter: filter.clone(), page: page.clone() }).await?.items;
        let mut report = Self {
            task_id: task.id.to_string(),
            status: Self::status_of(task),
            status_message: task.status_message.clone(),
            revision: Some(task.revision),
            review: task.last_review().map(|review| review.state.to_string()),
            ..Self::default()
        };
        if task.kind == TaskKind::Research {
            report.status_message = Some(research_message(task));
            return Ok(report);
        }
        if matches!(task.status, TaskStatus::Running | TaskStatus::InputRequired) {
            let started = jobs.iter().filter_map(|job| job.started_at).min().unwrap_or(task.created_at);
            let elapsed = cx.runtime.clock().now().since(started).as_secs_f64();
            report.elapsed_time = Some((elapsed * 10.0).round() / 10.0);
            report.progress = jobs.iter().find(|job| job.state == JobState::Running).and_then(Job::progress_line);
        }
        if task.status == TaskStatus::Queued && report.status_message.is_none() {
            report.status_message = waits(cx, task, &jobs).await?;
        }
        let asked = Agents::of(&cx.runtime).still_open(&jobs).await?;
        report.question = asked.first().map(QuestionReport::of);
        // An answer is stored, and its run continues as soon as it has a permit.
        if task.status == TaskStatus::InputRequired && asked.is_empty() {
            report.status = TaskStatus::Running.to_string();
        }
        if detail == Detail::Full || wish.tail_lines.is_some() {
            report.add_outcome(cx, task, &jobs, &asked, detail, wish).await?;
        }
        if report.confinement.is_some() {
            let config: serde_json::Value = serde_json::from_str(&task.config_json).unwrap_or_default();
            report.not_covered = serde_json::from_value(config["not_covered"].clone()).unwrap_or_default();
        }
        Ok(report)
    }

    /// The status in a reply. A research task without any search is `idle`: nothing will change by itself.
    pub fn status_of(task: &Task) -> String {
        if task.kind == TaskKind::Research && task.status == TaskStatus::Queued && task.is_idle() {
            return "idle".to_owned();
        }
        task.status.to_string()
    }

    async fn add_outcome(
        &mut self,
        cx: &ToolContext,
        task: &Task,
        jobs: &[Job],
        asked: &[OpenQuestion],
        detail: Detail,
        wish: OutputWish,
    ) -> Result<(), ToolError> {
        match last_of_each(jobs).as_slice() {
            [only] => {
                if detail == Detail::Full {
                    self.error.clone_from(&only.error_message);
                    self.error_code.clone_from(&only.error_code);
                }
                match run_output(only) {
                    Some(run) => self.add_run(cx, only, &run, detail, wish).await?,
                    None if only.kind == JobKind::AgentRun && is_run(only) => {
                        self.add_text(cx, only, detail, wish).await?;
                    }
                    None => self.add_output(only.output_json.as_deref(), wish),
                }
            }
            several => {
                self.failed_count = (!several.is_empty()).then_some(task.counts.failed);
                for job in several {
                    let question = asked.iter().find(|asked| asked.job.id == job.id).map(QuestionReport::of);
                    self.results.push(JobReport { question, ..JobReport::of(cx, task, job).await? });
                }
            }
        }
        Ok(())
    }

    /// What is known of a run, and its output.
    async fn add_run(
        &mut self,
        cx: &ToolContext,
        job: &Job,
        run: &RunOutput,
        detail: Detail,
        wish: OutputWish,
    ) -> Result<(), ToolError> {
        if detail == Detail::Full {
            self.session_id.clone_from(&run.session_id);
            let usage = run.usage;
            self.usage = usage.map(|usage| UsageReport {
                input_tokens: usage.input_tokens,
                output_tokens: usage.output_tokens,
                cost_usd: usage.cost_usd,
            });
            self.over_budget.clone_from(&run.over_budget);
            self.confinement = run.confinement.map(|level| level.to_string());
            self.tried = run.tried.iter().map(TriedReport::of).collect();
            self.agent = Some(run.agent.clone()).filter(|_| !run.tried.is_empty());
            self.receipt = run.receipt.as_deref().map(ReceiptReport::of);
            self.check_output = Some(run.check_output.clone()).filter(|output| !output.is_empty());
            self.changes = run.changes.as_ref().map(|changes| ChangesReport::of(job, changes, None));
            self.left_work = run.left_work.as_ref().map(LeftWorkReport::of);
            self.empty = run.empty.then_some(true);
        }
        if detail == Detail::Full && matches!(job.state, JobState::Failed | JobState::Cancelled) {
            self.retryable = Some(run.retryable || retryable(job));
            self.exit_code = run.exit_code;
            let some = |text: &String| (!text.is_empty()).then(|| text.clone());
            self.stdout_tail = some(&run.stdout_tail);
            self.stderr_tail = some(&run.stderr_tail);
        }
        self.add_text(cx, job, detail, wish).await
    }

    /// The result from where the reader is, and the last lines of what the run was doing.
    async fn add_text(
        &mut self,
        cx: &ToolContext,
        job: &Job,
        detail: Detail,
        wish: OutputWish,
    ) -> Result<(), ToolError> {
        if job.state == JobState::Failed && self.retryable.is_none() {
            self.retryable = Some(retryable(job));
        }
        if let Some(lines) = wish.tail_lines {
            self.tail = Some(tail(cx, job, lines).await?);
        }
        let is_wanted = job.state.is_finished() || wish.offset > 0;
        if detail == Detail::Brief || !is_wanted {
            return Ok(());
        }
        let from = OutputFrom::Byte(wish.offset);
        let slice = read(cx, job, OutputStream::Result, from, RESULT_HEAD_BYTES_MAX).await?;
        if slice.end < slice.total || wish.offset > 0 {
            self.output_bytes = Some(slice.total);
        }
        let is_shown = job.state == JobState::Completed || slice.total > 0;
        self.result = is_shown.then(|| marked(slice.marked(), slice.end, slice.total, &mut self.next_output_offset));
        Ok(())
    }

    /// The output of a job that is no run.
    fn add_output(&mut self, output: Option<&str>, wish: OutputWish) {
        let Some(output) = output else { return };
        if let Some(lines) = wish.tail_lines {
            self.tail = Some(last_lines(output, lines));
        }
        let offset = usize::try_from(wish.offset).unwrap_or(usize::MAX);
        let (part, end) = part_of(output, offset, RESULT_HEAD_BYTES_MAX);
        if end < output.len() || wish.offset > 0 {
            self.output_bytes = Some(output.len() as u64);
        }
        let (end, total) = (end as u64, output.len() as u64);
        self.result = Some(marked(part.to_owned(), end, total, &mut self.next_output_offset));
    }
}

/// Why a queued task does not begin: other tasks, a time, or what its last attempt said about the next.
async fn waits(cx: &ToolContext, task: &Task, jobs: &[Job]) -> Result<Option<String>, ToolError> {
    let before = cx.runtime.store().run(ReadTasks(task.depends_on())).await?;
    let open: Vec<String> = before
        .iter()
        .filter(|task| !task.status.is_over())
        .map(|task| format!("{} ({})", task.id, task.status))
        .collect();
    if !open.is_empty() {
        return Ok(Some(format!("waits for {}", open.join(", "))));
    }
    let now = cx.runtime.clock().now();
    let Some(job) = jobs.iter().find(|job| job.state == JobState::Queued && job.run_at > now) else { return Ok(None) };
    let input: Option<RunInput> = serde_json::from_str(&job.input_json).ok();
    let at = input.and_then(|input| input.not_before).map(Timestamp::from_millis).filter(|at| *at > now);
    Ok(at.map(|at| format!("starts at {at}")).or_else(|| job.progress_line()))
}

/// A part says that it is one, and how to read on.
fn marked(part: String, end: u64, total: u64, next: &mut Option<u64>) -> String {
    if end >= total {
        return part;
    }
    *next = Some(end);
    format!("{part}\n[… {} more bytes: call again with output_offset {end}]", total - end)
}

/// A research task has its own tools for results; this says what to do next.
fn research_message(task: &Task) -> String {
    let counts = &task.counts;
    let (total, unfinished) = (counts.total(), counts.unfinished());
    let done = format!("{} of {total} jobs done", total - unfinished);
    match (task.status.is_terminal(), unfinished, total) {
        (true, ..) => format!("{done}; call get_materials for the results"),
        (false, 0, 0) => "nothing is queued: call queue_searches".to_owned(),
        (false, 0, _) => format!(
            "{done}, nothing is queued: call get_materials for the results, queue_searches for more, stop_task to end"
        ),
        (false, ..) => format!("{done}; get_status has the details"),
    }
}

fn is_run(job: &Job) -> bool {
    serde_json::from_str::<RunInput>(&job.input_json).is_ok()
}

fn run_output(job: &Job) -> Option<RunOutput> {
    let output = job.output_json.as_deref().filter(|_| job.kind == JobKind::AgentRun && is_run(job))?;
    serde_json::from_str(output).ok()
}

fn retryable(job: &Job) -> bool {
    job.error_code.as_deref().and_then(matsu_core::error_code::ErrorCode::parse).is_some_and(|code| code.is_retryable())
}

/// A run that a pause has ended is shown by the one that took it up again.
fn last_of_each(jobs: &[Job]) -> Vec<&Job> {
    let is_replaced = |job: &Job| jobs.iter().any(|later| later.cause_id.as_deref() == Some(job.id.as_str()));
    jobs.iter().filter(|job| !is_replaced(job)).collect()
}

async fn read(
    cx: &ToolContext,
    job: &Job,
    stream: OutputStream,
    from: OutputFrom,
    bytes_max: usize,
) -> Result<OutputSlice, ToolError> {
    Ok(cx
        .runtime
        .store()
        .run(ReadOutput { job: job.id.clone(), wish: OutputRange { stream, from, bytes_max } })
        .await?)
}

/// Of the log if the run keeps one, else of the result itself.
async fn tail(cx: &ToolContext, job: &Job, lines: u32) -> Result<String, ToolError> {
    let mut slice = read(cx, job, OutputStream::Log, OutputFrom::End, RUN_PART_BYTES_MAX).await?;
    if slice.total == 0 {
        slice = read(cx, job, OutputStream::Result, OutputFrom::End, RUN_PART_BYTES_MAX).await?;
    }
    Ok(last_lines(&slice.marked(), lines))
}

fn last_lines(text: &str, lines: u32) -> String {
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines as usize)..].join("\n")
}

/// At most `bytes_max` bytes from `offset`, both moved to character borders, and where the part ends.
fn part_of(text: &str, offset: usize, bytes_max: usize) -> (&str, usize) {
    let start = text.ceil_char_boundary(offset.min(text.len()));
    let end = text.floor_char_boundary((start + bytes_max).min(text.len()));
    (&text[start..end], end)
}

#[cfg(test)]
mod tests {
    use super::part_of;

    #[test]
    fn a_part_is_cut_on_character_borders_and_none_is_lost() {
        let text = "待つ".repeat(100);
        let mut read = String::new();
        let mut offset = 0;
        while offset < text.len() {
            let (part, end) = part_of(&text, offset, 10);
            read.push_str(part);
            offset = end;
        }
        assert_eq!(read, text);
        assert_eq!(part_of("abc", 99, 10), ("", 3));
    }
}
