//! The report of a research task, and its citations in their context.

use axum::Json;
use axum::extract::{Path, Query, State};
use matsu_core::id::TaskId;
use matsu_core::research::report::{Report, bibliography, html, markdown};
use matsu_runtime::tasks::Tasks;
use matsu_runtime::tool::ToolError;
use matsu_runtime::tools::research_report;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::tool_call::context;
use crate::app::App;
use crate::auth::Caller;
use crate::openapi::AnyObject;
use crate::peer::Peer;
use crate::problem::Problem;
use crate::resource::{Resource, operation};

pub fn routes() -> Resource {
    let whole =
        operation("read_report", "The report of a research task: answer, sections, citations, what was searched.");
    let one = operation("read_passage", "A passage that a report cites, between those before and after it.");
    Resource::default().get("/tasks/{id}/report", whole.query::<ReportQuery>().answers::<AnyObject>(), read).get(
        "/tasks/{id}/passages/{fragment}",
        one.query::<PassageQuery>().answers::<AnyObject>(),
        passage,
    )
}

/// The form of the report.
#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Format {
    /// Its parts as JSON, below `report`.
    #[default]
    Json,
    /// The other forms come as text, with the name and the type of the file to save it in.
    Markdown,
    Text,
    Html,
    Bibtex,
    Csl,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReportQuery {
    format: Option<Format>,
}

async fn read(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Query(query): Query<ReportQuery>,
) -> Result<Json<Value>, Problem> {
    let cx = context(&app, caller, Peer::default());
    let report = research_report::read(&cx, &id).await.map_err(problem)?;
    let task = Tasks::of(app.runtime()).read(&cx.principal, &TaskId::from_text(&id)).await?;
    Tasks::of(app.runtime()).note_read(&cx.principal, &[&task]).await;
    let (ending, media_type, text) = match query.format.unwrap_or_default() {
        Format::Json => return Ok(Json(json!({ "task_id": id, "report": report }))),
        Format::Markdown => ("md", "text/markdown", markdown::markdown(&report)),
        Format::Text => ("txt", "text/plain", markdown::plain(&report)),
        Format::Html => ("html", "text/html", html::html(&report)),
        Format::Bibtex => ("bib", "application/x-bibtex", bibliography::bibtex(&report)),
        Format::Csl => ("json", "application/vnd.citationstyles.csl+json", csl(&report)),
    };
    Ok(Json(json!({ "task_id": id, "name": format!("report-{id}.{ending}"), "media_type": media_type, "text": text })))
}

fn csl(report: &Report) -> String {
    format!("{:#}\n", bibliography::csl(report))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PassageQuery {
    /// The quote to mark. Absent: every quote of the passage.
    quote: Option<String>,
}

async fn passage(
    State(app): State<App>,
    caller: Caller,
    Path((id, fragment)): Path<(String, String)>,
    Query(query): Query<PassageQuery>,
) -> Result<Json<Value>, Problem> {
    let cx = context(&app, caller, Peer::default());
    let found = research_report::passage(&cx, &id, &fragment, query.quote.as_deref()).await.map_err(problem)?;
    Ok(Json(json!(found)))
}

fn problem(error: ToolError) -> Problem {
    Problem::new(error.code, error.message)
}
