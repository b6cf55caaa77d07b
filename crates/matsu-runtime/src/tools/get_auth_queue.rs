//! `get_auth_queue`: pages that wait for a person to log in or solve a challenge.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use matsu_core::job::Priority;
use matsu_core::limits::AUTH_LISTED_MAX;
use matsu_core::ports::store::{AuthFilter, ReadAuthItems};
use matsu_core::research::auth::AuthItem;

use super::research_access::research_task;
use crate::tool::{Annotations, Repeat, Tool, ToolContext, ToolError, ToolReply, Toolset};

pub struct GetAuthQueue;

#[derive(Deserialize, JsonSchema)]
pub struct Input {
    /// Only pages of this research task; default: of all your tasks.
    #[schemars(length(min = 1, max = 100))]
    task_id: Option<String>,
    /// Group the pages by domain or by type of obstacle (default none).
    group_by: Option<GroupBy>,
    /// Only pages of searches with this priority (default all).
    priority_filter: Option<PriorityFilter>,
}

#[derive(Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum GroupBy {
    None,
    Domain,
    Type,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum PriorityFilter {
    High,
    Medium,
    Low,
    All,
}

#[derive(Serialize, JsonSchema)]
pub struct Output {
    group_by: GroupBy,
    #[serde(skip_serializing_if = "Option::is_none")]
    items: Option<Vec<Item>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    groups: Option<BTreeMap<String, Vec<Item>>>,
    total_count: usize,
}

#[derive(Serialize, JsonSchema)]
struct Item {
    queue_id: String,
    url: String,
    domain: String,
    /// login, captcha, cloudflare, js_challenge, forbidden
    auth_type: String,
    priority: String,
    blocked: Vec<Blocked>,
    created_at: String,
    expires_at: String,
}

#[derive(Serialize, JsonSchema)]
struct Blocked {
    task_id: String,
    search_id: String,
}

impl Tool for GetAuthQueue {
    const NAME: &'static str = "get_auth_queue";
    const TITLE: &'static str = "Pages that need a person";
    const DESCRIPTION: &'static str = "Research: lists pages that a search could not read because they need a person: \
        a login, a CAPTCHA or another challenge. Tell the user which; never ask for passwords or cookies. The person \
        logs in on Matsu's page or with `matsu auth`; then call resolve_auth.";
    const TOOLSET: Toolset = Toolset::Research;
    const ANNOTATIONS: Annotations = Annotations::READS;
    const REPEAT: Repeat = Repeat::Harmless;
    type Input = Input;
    type Output = Output;

    async fn call(cx: &ToolContext, input: Input) -> Result<ToolReply<Output>, ToolError> {
        let task_id = match &input.task_id {
            Some(id) => Some(research_task(cx, id).await?.id),
            None => None,
        };
        let priority = match input.priority_filter {
            Some(PriorityFilter::High) => Some(Priority::High),
            Some(PriorityFilter::Medium) => Some(Priority::Medium),
            Some(PriorityFilter::Low) => Some(Priority::Low),
            Some(PriorityFilter::All) | None => None,
        };
        let filter = AuthFilter { owner: cx.principal.clone(), task_id, priority, rows_max: AUTH_LISTED_MAX };
        let items = cx.runtime.store().run(ReadAuthItems(filter.clone())).await?;
        let (total_count, group_by) = (items.len(), input.group_by.unwrap_or(GroupBy::None));
        let key = |item: &AuthItem| match group_by {
            GroupBy::None => None,
            GroupBy::Domain => Some(item.domain.clone()),
            GroupBy::Type => Some(item.auth_type.to_string()),
        };
        let (mut plain, mut groups) = (Vec::new(), BTreeMap::<String, Vec<Item>>::new());
        for item in &items {
            match key(item) {
                None => plain.push(Item::of(item)),
                Some(key) => groups.entry(key).or_default().push(Item::of(item)),
            }
        }
        let (items, groups) =
            if matches!(group_by, GroupBy::None) { (Some(plain), None) } else { (None, Some(groups)) };
        Ok(ToolReply::Done(Output { group_by, items, groups, total_count }))
    }
}

impl Item {
    fn of(item: &AuthItem) -> Self {
        let blocked = item
            .blocked
            .iter()
            .map(|blocked| Blocked { task_id: blocked.task_id.to_string(), search_id: blocked.search_id.to_string() });
        Self {
            queue_id: item.id.to_string(),
            url: item.url.clone(),
            domain: item.domain.clone(),
            auth_type: item.auth_type.to_string(),
            priority: item.priority.to_string(),
            blocked: blocked.collect(),
            created_at: item.created_at.to_string(),
            expires_at: item.expires_at.to_string(),
        }
    }
}
