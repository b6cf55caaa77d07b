//! `create_task`: a research task with its budget. Nothing is searched yet.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use matsu_core::budget::{BudgetLine, BudgetUnit};
use matsu_core::error_code::ErrorCode;
use matsu_core::id::TaskId;
use matsu_core::limits::QUESTION_CHARS_MAX;
use matsu_core::research::domain_rule::DomainPattern;
use matsu_core::research::fingerprint::fingerprint;
use matsu_core::research::search::{PAGES_DEFAULT, ResearchConfig, SECONDS_DEFAULT};
use matsu_core::task::{IdempotencyKey, NewTask, TaskKind};

use super::research_access::{check_engines, check_searchable, stage};
use crate::research::DeliveredStatus;
use crate::tasks::Tasks;
use crate::tool::{Annotations, Tool, ToolContext, ToolError, ToolReply, Toolset, folders};

pub struct CreateTask;

#[derive(Deserialize, Serialize, JsonSchema)]
pub struct Input {
    /// The question to answer.
    #[schemars(length(min = 1, max = 2000))]
    query: String,
    /// Optional settings.
    config: Option<Config>,
    /// A repeated key returns the first task.
    #[schemars(length(min = 1, max = 200))]
    idempotency_key: Option<String>,
}

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Config {
    /// Limits for all searches together.
    budget: Option<Budget>,
    /// Domains whose pages are read first.
    #[schemars(length(max = 50))]
    priority_domains: Option<Vec<String>>,
    /// Language of pages, such as ja.
    #[schemars(length(min = 2, max = 35))]
    language: Option<String>,
    /// Search engines to use (default all).
    #[schemars(length(max = 20))]
    engines: Option<Vec<String>>,
}

#[derive(Default, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Budget {
    /// Pages (default 120).
    #[schemars(range(min = 0, max = 10000))]
    max_pages: Option<i64>,
    /// Seconds (default 1200).
    #[schemars(range(min = 1, max = 86400))]
    max_seconds: Option<i64>,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    task_id: String,
    query: String,
    created_at: String,
    budget: Granted,
    revision: i64,
    message: String,
    /// Where a person can watch it.
    #[serde(skip_serializing_if = "Option::is_none")]
    watch: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Granted {
    max_pages: i64,
    max_seconds: i64,
}

impl Tool for CreateTask {
    const NAME: &'static str = "create_task";
    const TITLE: &'static str = "Start a research task";
    const DESCRIPTION: &'static str = "Research: start a research task on a question; returns its task_id. It searches \
        nothing by itself: next call queue_searches, then get_status(wait=60, wait_for=all), then get_materials.";
    const TOOLSET: Toolset = Toolset::Research;
    const CORE: bool = true;
    const ANNOTATIONS: Annotations = Annotations::ADDS;
    type Input = Input;
    type Output = Output;

    async fn call(cx: &ToolContext, input: Input) -> Result<ToolReply<Output>, ToolError> {
        let question = check_question(&input.query)?;
        let config = input.config.as_ref();
        let stored = check_config(cx, config, question)?;
        let budget = config.and_then(|config| config.budget.as_ref());
        let max_pages = budget.and_then(|budget| budget.max_pages).unwrap_or(PAGES_DEFAULT);
        let max_seconds = budget.and_then(|budget| budget.max_seconds).unwrap_or(SECONDS_DEFAULT);
        let now = cx.runtime.clock().now();
        let line = |unit, limit| BudgetLine { unit, limit, used: 0 };
        let new = NewTask {
            id: TaskId::mint(now),
            kind: TaskKind::Research,
            owner: cx.principal.clone(),
            project_id: None,
            title: stored.question.clone(),
            config_json: serde_json::to_string(&stored).unwrap_or_else(|_| "{}".to_owned()),
            budget: vec![
                line(BudgetUnit::Pages, max_pages),
                line(BudgetUnit::Seconds, max_seconds),
                // Counted and not bounded: what models of this task use.
                line(BudgetUnit::Tokens, i64::MAX),
                line(BudgetUnit::MicroCost, i64::MAX),
            ],
            assignee: None,
            parent_id: None,
            depends_on: Vec::new(),
            jobs: Vec::new(),
            idempotency: idempotency(cx, &input),
            created_at: now,
        };
        let task = Tasks::of(&cx.runtime).submit(new).await?.task;
        stage(cx, &task.id, task.revision);
        cx.runtime.part::<DeliveredStatus>().note(&task.id, task.revision, task.updated_at, Vec::new());
        Ok(ToolReply::Done(Output {
            task_id: task.id.to_string(),
            query: stored.question,
            created_at: task.created_at.to_string(),
            budget: Granted { max_pages, max_seconds },
            revision: task.revision,
            message: "Task created. Call queue_searches with your queries.".to_owned(),
            watch: cx.watch_link(&task.id),
        }))
    }
}

/// Whether a call with these arguments would be taken at this moment. Nothing is stored.
///
/// # Errors
/// As those of the call.
pub fn check(cx: &ToolContext, arguments: Value) -> Result<(), ToolError> {
    let input: Input = serde_json::from_value(arguments)
        .map_err(|error| ToolError::new(ErrorCode::InvalidParams, format!("the arguments cannot be read: {error}")))?;
    check_config(cx, input.config.as_ref(), check_question(&input.query)?).map(drop)
}

fn check_question(query: &str) -> Result<String, ToolError> {
    let question = query.trim();
    let chars = question.chars().count();
    if (1..=QUESTION_CHARS_MAX).contains(&chars) {
        return Ok(question.to_owned());
    }
    let expected = format!("1 to {QUESTION_CHARS_MAX} characters");
    let message = format!("query is blank or too long: {chars} characters; expected {expected}");
    Err(ToolError::param("query", &expected, &format!("{chars} characters"), message))
}

fn check_config(cx: &ToolContext, config: Option<&Config>, question: String) -> Result<ResearchConfig, ToolError> {
    let none = Config::default();
    let config = config.unwrap_or(&none);
    let engines = config.engines.clone().unwrap_or_default();
    check_engines(cx, "config.engines", &engines)?;
    let priority_domains = config.priority_domains.clone().unwrap_or_default();
    for (at, domain) in priority_domains.iter().enumerate() {
        if let Err(error) = DomainPattern::parse(domain) {
            let field = format!("config.priority_domains[{at}]");
            let message = format!("{field} must be {error}, got {domain}");
            return Err(ToolError::param(&field, &error.to_string(), domain, message));
        }
    }
    if let Some(language) = &config.language
        && !language.split('-').all(|part| !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric()))
    {
        let message = format!("config.language must be a language tag such as en or pt-BR, got {language}");
        return Err(ToolError::param("config.language", "language tag", language, message));
    }
    let folders = folders::research(cx)?;
    check_searchable(cx, &engines, &folders)?;
    let (language, ends_when_done) = (config.language.clone(), cx.ends_when_done);
    let started_in = folders::project(cx, None);
    Ok(ResearchConfig { question, priority_domains, language, engines, folders, ends_when_done, started_in })
}

/// Bound to the arguments without the key itself.
fn idempotency(cx: &ToolContext, input: &Input) -> Option<IdempotencyKey> {
    let key = input.idempotency_key.clone()?;
    let body = serde_json::to_string(&(&input.query, &input.config)).unwrap_or_default();
    Some(IdempotencyKey {
        principal: cx.principal.clone(),
        tool: CreateTask::NAME.to_owned(),
        key,
        body_hash: fingerprint(body),
    })
}
