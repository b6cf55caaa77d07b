//! The list of tasks as a table: fitted to the terminal, coloured by state.

use console::{Style, measure_text_width, pad_str, truncate_str};
use matsu_core::clock::Timestamp;
use serde_json::Value;

use super::plain_text::plain_line;
use crate::client::field;

/// Columns that a title keeps, however narrow the terminal is.
const TITLE_MIN: usize = 12;

/// One line of the table. The last cell is what the width is taken from.
pub struct Row {
    pub cells: Vec<String>,
    pub state: String,
}

/// What a task shows of itself. Ages are counted from `now`; without it the time of creation is shown.
pub fn row(task: &Value, now: Option<Timestamp>) -> Row {
    let state = field(task, "status");
    let agents = task["agents"].as_array().into_iter().flatten().filter_map(Value::as_str).collect::<Vec<_>>();
    let assignee = field(task, "assignee");
    let agent = match (agents.is_empty(), assignee.is_empty()) {
        (false, _) => agents.join(","),
        (true, false) => assignee,
        (true, true) => field(task, "kind"),
    };
    let created = field(task, "created_at");
    let created = match (now, Timestamp::parse(&created)) {
        (Some(now), Some(created)) => age(now.since(created).as_secs()),
        _ => created,
    };
    let title = plain_line(&field(task, "title"));
    // Titles of runs begin with their agents, which have a column of their own.
    let title = title.strip_prefix(&format!("{}: ", agents.join(", "))).unwrap_or(&title).to_owned();
    let cells = vec![field(task, "task_id"), state.clone(), created, plain_line(&agent), waits_for(task), title];
    Row { cells, state }
}

/// What has to happen before the task can go on.
fn waits_for(task: &Value) -> String {
    let count = |state: &str| task["jobs"][state].as_i64().unwrap_or(0);
    let (running, queued) = (count("running"), count("queued"));
    match task["status"].as_str() {
        Some("input_required") if count("awaiting_auth") > 0 && count("awaiting_input") == 0 => "a login".to_owned(),
        Some("input_required") => "your answer".to_owned(),
        Some("paused" | "blocked") => plain_line(&field(task, "status_message")),
        // For a free slot, for other tasks or for its time: `matsu status` says which.
        Some("queued") if queued > 0 => "its turn".to_owned(),
        Some("running") if count("awaiting_auth") > 0 && running + queued == 0 => "a login".to_owned(),
        Some("running") if running + queued > 1 => format!("{} jobs", running + queued),
        Some(_) if task["review"].is_string() => field(task, "review"),
        Some("completed" | "failed" | "cancelled") if task["unread"] == true => "unread".to_owned(),
        _ => String::new(),
    }
}

/// A span as one number with its unit.
pub fn age(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min", seconds / 60),
        3_600..86_400 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// The lines of a table. With a width, the last column is cut to fit; with colours, each line has that of its state.
pub fn lines(head: &[&str], rows: &[Row], width: Option<usize>, has_colours: bool) -> Vec<String> {
    let last = head.len().saturating_sub(1);
    let cells = |column: usize| rows.iter().filter_map(move |row| row.cells.get(column));
    let widest = |column: usize| {
        cells(column).map(|cell| measure_text_width(cell)).chain([head[column].len()]).max().unwrap_or(0)
    };
    // A column without anything in it is left out.
    let columns: Vec<usize> = (0..head.len()).filter(|at| cells(*at).any(|cell| !cell.is_empty())).collect();
    let widths: Vec<usize> = columns.iter().map(|at| widest(*at)).collect();
    let before: usize = columns.iter().zip(&widths).filter(|(at, _)| **at != last).map(|(_, width)| width + 2).sum();
    let title_width = width.map(|width| width.saturating_sub(before).max(TITLE_MIN));
    let line = |cells: &[String]| {
        let shown = columns.iter().zip(&widths).map(|(at, width)| match title_width {
            Some(title_width) if *at == last => truncate_str(&cells[*at], title_width, "…").into_owned(),
            _ => pad_str(&cells[*at], *width, console::Alignment::Left, None).into_owned(),
        });
        shown.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let heading: Vec<String> = head.iter().map(|&word| word.to_owned()).collect();
    let mut lines = vec![line(&heading)];
    for row in rows {
        let text = line(&row.cells);
        lines.push(if has_colours { colour(&row.state).apply_to(text).to_string() } else { text });
    }
    lines
}

fn colour(state: &str) -> Style {
    let style = Style::new().force_styling(true);
    match state {
        "failed" => style.red(),
        "input_required" => style.yellow().bold(),
        "running" => style.green(),
        "cancelled" => style.dim(),
        "queued" | "paused" | "blocked" => style.cyan(),
        _ => style,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn task(status: &str, title: &str) -> Value {
        json!({
            "task_id": "task_1", "status": status, "kind": "agent", "agents": ["claude"], "assignee": null,
            "created_at": "2026-01-02T03:04:05.000Z", "title": title, "unread": false,
            "jobs": { "queued": 0, "running": 1, "awaiting_auth": 0, "awaiting_input": 0 },
        })
    }

    #[test]
    fn a_line_is_never_wider_than_the_terminal_and_obeys_no_title() {
        let long = format!("claude: \u{1b}[2J{}", "待つ ".repeat(100));
        let rows = [row(&task("failed", &long), None), row(&task("running", "claude: short"), None)];
        let head = ["TASK", "STATE", "CREATED", "AGENT", "WAITS FOR", "TITLE"];
        for width in [60, 80, 200] {
            for line in lines(&head, &rows, Some(width), false) {
                assert!(measure_text_width(&line) <= width.max(64), "{width}: {line}");
                assert!(!line.contains('\u{1b}'), "{line:?}");
            }
        }
        let whole = lines(&head, &rows, None, false);
        assert!(whole[1].ends_with("待つ") && whole[2].ends_with("  short"), "{whole:?}");
        assert!(!whole[0].contains("WAITS FOR"), "an empty column is left out: {whole:?}");
        let coloured = lines(&head, &rows, None, true);
        assert!(coloured[1].starts_with("\u{1b}[31m") && coloured[2].starts_with("\u{1b}[32m"), "{coloured:?}");
    }

    #[test]
    fn what_a_task_waits_for_and_its_age_are_said() {
        let mut asks = task("input_required", "x");
        asks["jobs"]["awaiting_input"] = json!(1);
        assert_eq!(row(&asks, None).cells[4], "your answer");
        let now = Timestamp::parse("2026-01-02T04:04:05.000Z").unwrap();
        assert_eq!(row(&asks, Some(now)).cells[2], "1 h");
        assert_eq!((age(59), age(61), age(200_000)), ("59 s".to_owned(), "1 min".to_owned(), "2 d".to_owned()));
    }
}
