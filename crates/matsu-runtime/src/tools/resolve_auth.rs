//! `resolve_auth`: a person has logged in at a page, or will not. Cookies are never an argument.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use matsu_core::error_code::ErrorCode;
use matsu_core::id::AuthItemId;
use matsu_core::limits::AUTH_LISTED_MAX;
use matsu_core::ports::store::{
    AuthFilter, AuthOutcome, AuthTarget, ReadAuthItems, ResolveAuth as Resolve, StoreError,
};

use crate::tool::{Annotations, Rules, Tool, ToolContext, ToolError, ToolReply, Toolset};

pub struct ResolveAuth;

#[derive(Deserialize, JsonSchema)]
pub struct Input {
    /// What to settle: one page, item (default), or all pages of a domain.
    target: Option<Target>,
    /// The page, from get_auth_queue; required for target item.
    #[schemars(length(min = 1, max = 100))]
    queue_id: Option<String>,
    /// The domain; required for target domain.
    #[schemars(length(min = 1, max = 253))]
    domain: Option<String>,
    /// complete: the person is done, read the page again; skip: leave it out.
    action: Action,
    /// With complete: false if the person could not log in (default true).
    success: Option<bool>,
}

#[derive(Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Target {
    Item,
    Domain,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Action {
    Complete,
    Skip,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    target: Target,
    #[serde(skip_serializing_if = "Option::is_none")]
    queue_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    domain: Option<String>,
    action: Action,
    success: bool,
    resolved_count: usize,
    /// Searches that continue now.
    requeued_jobs: Vec<String>,
}

impl Tool for ResolveAuth {
    const NAME: &'static str = "resolve_auth";
    const TITLE: &'static str = "Settle a page that needed a person";
    const DESCRIPTION: &'static str = "Research: report the outcome of a page from get_auth_queue: complete after the \
        person has logged in, skip if the page should be left out. Waiting searches continue at once; their ids are \
        returned. With target=domain it settles all pages of a domain.";
    const TOOLSET: Toolset = Toolset::Research;
    const ANNOTATIONS: Annotations = Annotations { open_world: true, ..Annotations::ADDS };
    const RULES: Rules = Rules::PERSON;
    type Input = Input;
    type Output = Output;

    async fn call(cx: &ToolContext, input: Input) -> Result<ToolReply<Output>, ToolError> {
        let kind = input.target.unwrap_or(Target::Item);
        let target = match (kind, &input.queue_id, &input.domain) {
            (Target::Item, Some(id), None) => AuthTarget::Item(AuthItemId::from_text(id)),
            (Target::Domain, None, Some(domain)) => AuthTarget::Domain(domain.trim().to_lowercase()),
            (Target::Item, _, _) => return Err(wrong("queue_id", "item", "domain")),
            (Target::Domain, _, _) => return Err(wrong("domain", "domain", "queue_id")),
        };
        let success = input.success.unwrap_or(true);
        if input.action == Action::Skip && input.success == Some(true) {
            let message = "success is for action complete only; leave it out with action skip";
            return Err(ToolError::param("success", "absent with action skip", "true", message));
        }
        let opened = input.action == Action::Complete && success;
        if opened {
            collect_cookies(cx, &target).await?;
        }
        let outcome = if opened { AuthOutcome::Opened } else { AuthOutcome::Skipped };
        let (owner, now) = (cx.principal.clone(), cx.runtime.clock().now());
        let resolved = cx.runtime.store().run(Resolve { owner, target, outcome, now }).await;
        let resolved = resolved.map_err(unknown)?;
        Ok(ToolReply::Done(Output {
            target: kind,
            queue_id: input.queue_id,
            domain: input.domain,
            action: input.action,
            success: opened,
            resolved_count: resolved.items.len(),
            requeued_jobs: resolved.requeued.iter().map(ToString::to_string).collect(),
        }))
    }
}

fn wrong(needed: &str, target: &str, other: &str) -> ToolError {
    let message = format!("target {target} needs {needed} and no {other}");
    ToolError::param(needed, &format!("{needed} alone"), "something else", message)
}

fn unknown(error: StoreError) -> ToolError {
    match error {
        StoreError::NotFound { what: "auth item", id } => ToolError {
            details: serde_json::json!({ "resource_type": "auth_item", "resource_id": id }),
            ..ToolError::new(ErrorCode::ResourceNotFound, format!("no page waits under {id}; see get_auth_queue"))
        },
        error => error.into(),
    }
}

/// What the person's own browser has by now. Best effort: the page may need none, or they were pasted.
async fn collect_cookies(cx: &ToolContext, target: &AuthTarget) -> Result<(), ToolError> {
    let Some(vault) = cx.runtime.research().and_then(|kit| kit.cookies.clone()) else { return Ok(()) };
    let filter = AuthFilter { owner: cx.principal.clone(), task_id: None, priority: None, rows_max: AUTH_LISTED_MAX };
    let items = cx.runtime.store().run(ReadAuthItems(filter.clone())).await?;
    let meant = items.iter().filter(|item| match target {
        AuthTarget::Item(id) => item.id == *id,
        AuthTarget::Domain(domain) => item.domain == *domain,
    });
    let mut domains: Vec<&str> = meant.map(|item| item.domain.as_str()).collect();
    domains.sort_unstable();
    domains.dedup();
    for domain in domains {
        if let Err(error) = vault.collect(&cx.principal, domain).await {
            tracing::debug!(domain, %error, "cookies could not be read from the browser");
        }
    }
    Ok(())
}
