//! `matsu research "question"`: the whole flow in the terminal. Progress per search, then the report.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use matsu_core::limits::QUERY_CHARS_MAX;
use serde_json::{Map, Value, json};

use super::export::{all_claims, report};
use super::{Context, field, print_json};
use crate::client::{Client, DaemonUnreachable, segment};
use crate::terminal::ending::NOT_ENDED;
use crate::terminal::follow::Followed;
use crate::terminal::model_question;

#[derive(Args)]
pub struct Research {
    /// The question
    pub question: String,
    /// What to search for; may be repeated. Without it, the question itself
    #[arg(long = "query", value_name = "QUERY")]
    pub queries: Vec<String>,
    /// Search the documents in this folder; may be repeated
    #[arg(long = "dir", value_name = "DOCS")]
    pub folders: Vec<PathBuf>,
    /// Use only this engine; may be repeated
    #[arg(long = "engine", value_name = "NAME")]
    pub engines: Vec<String>,
    /// Continue this research task instead of starting one; the question is what to search for
    #[arg(long, value_name = "TASK", conflicts_with_all = ["folders", "engines", "max_pages"])]
    pub task: Option<String>,
    /// Read at most this many pages
    #[arg(long, value_name = "N")]
    pub max_pages: Option<u32>,
    /// Write the report to this file: as HTML, BibTeX or CSL-JSON if it ends in .html, .bib or .json, else as Markdown
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

impl Research {
    fn searches(&self) -> Vec<String> {
        if self.queries.is_empty() { vec![query_of(&self.question)] } else { self.queries.clone() }
    }
}

/// What is searched for by default: the question, as far as a search takes it.
fn query_of(question: &str) -> String {
    let Some((limit, _)) = question.char_indices().nth(QUERY_CHARS_MAX) else { return question.to_owned() };
    let cut = question[..limit].rfind(char::is_whitespace).filter(|cut| *cut > 0).unwrap_or(limit);
    question[..cut].trim_end().to_owned()
}

/// One call waits this long at most; the server may hold it shorter.
const ONE_WAIT_SECONDS: u64 = 50;

/// The exit code of a command that a person interrupted, as shells have it.
const INTERRUPTED: u8 = 130;

pub async fn run(cx: &Context, args: Research) -> Result<ExitCode> {
    if let Some(out) = &args.out {
        can_be_written(out).with_context(|| format!("cannot write {}", out.display()))?;
    }
    let mut client = Client::at_work(&cx.config).await?;
    if !cx.json {
        model_question::ask_once(&client).await?;
    }
    let task = match &args.task {
        Some(task) => queue(&client, task.clone(), &args).await?,
        None => begin(&client, &args).await?,
    };
    let followed = tokio::select! {
        biased;
        _ = tokio::signal::ctrl_c() => None,
        ended = to_its_end(cx, &mut client, &task, &args) => Some(ended),
    };
    match followed {
        Some(ended) => ended,
        None => {
            say_left(cx, &client, &task);
            Ok(ExitCode::from(INTERRUPTED))
        }
    }
}

/// A person has pressed Ctrl-C: whether the work goes on without this command, and how to come back to it.
fn say_left(cx: &Context, client: &Client, task: &str) {
    if client.works_here() && cx.config.store_url().starts_with("memory:") {
        eprintln!("\nStopped. {task} ends with this command: its store is in memory");
        return;
    }
    let goes_on = if client.has_daemon() {
        "it continues in the daemon"
    } else if client.works_here() {
        "it is kept, and continues when a daemon runs (`matsu serve`)"
    } else {
        "it continues in the process that serves this store"
    };
    eprintln!(
        "\nStopped watching {task}; {goes_on}. `matsu export {task}` shows the report, `matsu stop {task}` ends it"
    );
}

/// Follows the searches to their end and prints what came of them.
async fn to_its_end(cx: &Context, client: &mut Client, task: &str, args: &Research) -> Result<ExitCode> {
    let Some(status) = over_daemons(cx, client, task).await? else {
        Followed::Alone.say_what_goes_on(client, task);
        return Ok(ExitCode::from(NOT_ENDED));
    };
    let closing = json!({ "status": "completed" });
    client.patch(&format!("/api/v1/tasks/{}", segment(task)), closing).await?;
    let claims = all_claims(client, task).await?;
    if let Some(out) = &args.out {
        let text = report(client, task, format_of(out)).await?;
        let kept = || {
            let out = out.display();
            format!("cannot write {out}. The research is done and kept: matsu export {task} --out FILE writes it")
        };
        std::fs::write(out, text).with_context(kept)?;
    }
    if cx.json {
        print_json(&json!({ "task_id": task, "status": status, "claims": claims }));
        // Its jobs are read with it, so that it is no news any more.
        client.get(&format!("/api/v1/tasks/{}/jobs?limit=1", segment(task))).await?;
    } else {
        let warnings = status["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str);
        warnings.for_each(|warning| tell!("{}", warning.trim_start_matches("[warning] ")));
        tell!("{}", report(client, task, "text").await?.trim_end());
        tell!("\nTask {task}. Read it again with: matsu export {task}");
    }
    Ok(if claims.is_empty() && has_failures(&status) { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Whether a file can be written, without changing one that is there or leaving one that was not.
fn can_be_written(file: &Path) -> std::io::Result<()> {
    let is_new = !file.exists();
    std::fs::OpenOptions::new().append(true).create(true).open(file)?;
    if is_new { std::fs::remove_file(file) } else { Ok(()) }
}

async fn begin(client: &Client, args: &Research) -> Result<String> {
    let (body, _) = wish(args)?;
    let made = client.post("/api/v1/tasks", Value::Object(body)).await?;
    queue(client, field(&made, "task_id"), args).await
}

/// The body of the request that begins a task, and its searches.
pub fn wish(args: &Research) -> Result<(Map<String, Value>, Vec<String>)> {
    let mut config = json!({});
    if !args.engines.is_empty() {
        config["engines"] = json!(args.engines);
    }
    if let Some(pages) = args.max_pages {
        config["budget"] = json!({ "max_pages": pages });
    }
    let folders: Vec<String> = args
        .folders
        .iter()
        .map(|folder| {
            let found = folder.canonicalize().with_context(|| format!("cannot open {}", folder.display()))?;
            if !found.is_dir() {
                let parent = found.parent().unwrap_or(&found).display();
                bail!(
                    "{} is a file, and --dir takes a folder: name the one it is in, --dir {parent}",
                    folder.display()
                );
            }
            Ok(found.display().to_string())
        })
        .collect::<Result<_>>()?;
    let body =
        [("kind", json!("research")), ("query", json!(args.question)), ("config", config), ("folders", json!(folders))];
    Ok((body.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(), args.searches()))
}

/// Hands the searches over to a task; one that has ended because it was done goes on.
async fn queue(client: &Client, task: String, args: &Research) -> Result<String> {
    let body = json!({ "queries": args.searches() });
    client.post(&format!("/api/v1/tasks/{}/searches", segment(&task)), body).await?;
    Ok(task)
}

/// The form of a report that a file's name asks for.
fn format_of(file: &Path) -> &'static str {
    match file.extension().and_then(|ending| ending.to_str()) {
        Some("html" | "htm") => "html",
        Some("bib") => "bibtex",
        Some("json") => "csl",
        Some("txt") => "text",
        _ => "markdown",
    }
}

/// Whether a search failed, or ended without an engine or for a reason that it names.
fn has_failures(status: &Value) -> bool {
    let searches = status["searches"].as_array();
    searches.into_iter().flatten().any(|search| search["status"] == "failed" || !search["error_code"].is_null())
}

/// Follows the searches when their daemon ends: by the next daemon, or by this process, which then does the work.
/// `None`: a person has ended the daemon.
async fn over_daemons(cx: &Context, client: &mut Client, task: &str) -> Result<Option<Value>> {
    loop {
        match follow(cx, client, task).await {
            Err(error) if error.is::<DaemonUnreachable>() => {
                if cx.config.paths.stopped().exists() {
                    return Ok(None);
                }
                *client = Client::at_work(&cx.config).await?;
            }
            followed => return followed.map(Some),
        }
    }
}

/// Waits until nothing is left to do, and shows how far each search is.
async fn follow(cx: &Context, client: &Client, task: &str) -> Result<Value> {
    let bars = Bars::new();
    let mut since = 0;
    loop {
        let path =
            format!("/api/v1/tasks/{}/searches?wait={ONE_WAIT_SECONDS}&wait_for=any&since={since}", segment(task));
        let status = client.get(&path).await?;
        bars.show(&status);
        since = status["next"]["since"].as_i64().unwrap_or(since);
        let awaiting = status["searches_by_status"]["awaiting_auth"].as_i64().unwrap_or(0);
        let open = status["waiting_for"].as_array().map_or(0, Vec::len);
        let only_logins = awaiting > 0 && open == 1;
        if open == 0 || only_logins {
            bars.close();
            if only_logins && !cx.json {
                tell!("{awaiting} searches wait for a login: see matsu auth list");
            }
            return client.get(&format!("/api/v1/tasks/{}/searches", segment(task))).await;
        }
    }
}

/// One line per search. Hidden by itself where there is no terminal.
struct Bars {
    all: MultiProgress,
    by_id: std::cell::RefCell<HashMap<String, ProgressBar>>,
}

impl Bars {
    fn new() -> Self {
        Self { all: MultiProgress::new(), by_id: std::cell::RefCell::default() }
    }

    fn show(&self, status: &Value) {
        for item in status["queue"]["items"].as_array().into_iter().flatten() {
            let mut by_id = self.by_id.borrow_mut();
            let bar = by_id.entry(field(item, "id")).or_insert_with(|| {
                let bar = self.all.add(ProgressBar::new_spinner());
                if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed:>4} {msg}") {
                    bar.set_style(style);
                }
                bar
            });
            let (word, progress) = (field(item, "status"), field(item, "progress"));
            bar.set_message(format!("{word:<13} {} {progress}", field(item, "query")));
            bar.tick();
        }
    }

    fn close(&self) {
        for bar in self.by_id.borrow().values() {
            bar.finish();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_question_is_searched_for_as_far_as_a_search_takes_it() {
        assert_eq!(query_of("short?"), "short?");
        let words = "word ".repeat(400);
        assert_eq!(query_of(&words), "word ".repeat(100).trim_end());
        let unspaced = "質".repeat(2_000);
        assert_eq!(query_of(&unspaced).chars().count(), QUERY_CHARS_MAX);
    }
}
