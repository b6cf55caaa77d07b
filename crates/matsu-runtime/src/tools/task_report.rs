//! One task in the words of `get_task_status`: what it is, how far it is, what came out.

use schemars::JsonSchema;
use serde::Serialize;

use matsu_core::id::TaskId;
use matsu_core::job::{Job, JobState};
use matsu_core::limits::RESULT_HEAD_BYTES_MAX;
use matsu_core::page::PageRequest;
use matsu_core::ports::store::JobFilter;
use matsu_core::task::{Task, TaskStatus};

use crate::tool::{ToolContext, ToolError};

/// Jobs whose outcome one reply lists.
const RESULTS_MAX: u32 = 50;

#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct TaskReport {
    pub task_id: String,
    /// queued, running, input_required, paused, blocked, completed, failed, cancelled; not_found if there is none.
    pub status: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_message: Option<String>,
    /// Seconds since it was started, while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elapsed_time: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<String>,
    /// What came out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// Set if `result` is only a part: read on from here with output_offset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_output_offset: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_bytes: Option<usize>,
    /// The last lines of the output, if `tail` was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tail: Option<String>,
    /// Of a task with several jobs: each one's outcome so far.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<JobReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_count: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_code: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<i64>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct JobReport {
    job_id: String,
    status: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_code: Option<String>,
}

/// Which part of the output is wanted.
#[derive(Clone, Copy, Debug, Default)]
pub struct OutputWish {
    pub offset: usize,
    pub tail_lines: Option<u32>,
}

/// How much a report says.
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
        let page = PageRequest::new(None, Some(RESULTS_MAX));
        let jobs = cx.runtime.store().list_jobs(&filter, &page).await?.items;
        let mut report = Self {
            task_id: task.id.to_string(),
            status: task.status.to_string(),
            status_message: task.status_message.clone(),
            revision: Some(task.revision),
            ..Self::default()
        };
        if matches!(task.status, TaskStatus::Running | TaskStatus::InputRequired) {
            let started = jobs.iter().filter_map(|job| job.started_at).min().unwrap_or(task.created_at);
            let elapsed = cx.runtime.clock().now().since(started).as_secs_f64();
            report.elapsed_time = Some((elapsed * 10.0).round() / 10.0);
            report.progress = jobs.iter().find(|job| job.state.is_held()).and_then(|job| job.progress_json.clone());
        }
        if detail == Detail::Full || wish.tail_lines.is_some() {
            report.add_outcome(task, &jobs, wish);
        }
        Ok(report)
    }

    fn add_outcome(&mut self, task: &Task, jobs: &[Job], wish: OutputWish) {
        match jobs {
            [only] => {
                self.error.clone_from(&only.error_message);
                self.error_code.clone_from(&only.error_code);
                if let Some(output) = &only.output_json {
                    self.add_output(output, wish);
                }
            }
            several => {
                self.failed_count = (!several.is_empty()).then_some(task.counts.failed);
                let ended = several.iter().filter(|job| job.state.is_finished());
                self.results = ended.map(JobReport::of).collect();
            }
        }
    }

    fn add_output(&mut self, output: &str, wish: OutputWish) {
        if let Some(lines) = wish.tail_lines {
            let all: Vec<&str> = output.lines().collect();
            self.tail = Some(all[all.len().saturating_sub(lines as usize)..].join("\n"));
        }
        let (part, end) = part_of(output, wish.offset, RESULT_HEAD_BYTES_MAX);
        if end < output.len() || wish.offset > 0 {
            self.output_bytes = Some(output.len());
        }
        if end < output.len() {
            self.next_output_offset = Some(end);
            let left = output.len() - end;
            self.result = Some(format!("{part}\n[… {left} more bytes: call again with output_offset {end}]"));
        } else {
            self.result = Some(part.to_owned());
        }
    }
}

impl JobReport {
    fn of(job: &Job) -> Self {
        let output = job.output_json.as_deref();
        Self {
            job_id: job.id.to_string(),
            status: job.state.to_string(),
            result: output
                .filter(|_| job.state == JobState::Completed)
                .map(|output| part_of(output, 0, 1_000).0.to_owned()),
            error: job.error_message.clone(),
            error_code: job.error_code.clone(),
        }
    }
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
