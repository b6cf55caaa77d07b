//! The queue as it is.

use axum::Json;
use axum::extract::{Query, State};
use matsu_core::job::JobState;
use matsu_core::page::PageRequest;
use matsu_core::ports::store::{JobFilter, JobOrder};
use matsu_core::slot::Slot;
use matsu_runtime::tasks::queue::Queue;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::app::App;
use crate::auth::Caller;
use crate::problem::Problem;
use crate::resource::{Resource, operation};
use crate::wire::{JobBody, PageBody};

pub fn routes() -> Resource {
    let list_jobs = operation("list_jobs", "The jobs of the caller's tasks.").query::<ListQuery>();
    Resource::default().get("/jobs", list_jobs.answers::<PageBody<JobBody>>(), list)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    state: Option<JobState>,
    slot: Option<Slot>,
    /// The order, by insertion. Absent: the oldest first.
    #[serde(default)]
    order: OrderWord,
    /// `next` of the previous page.
    after: Option<i64>,
    limit: Option<u32>,
}

#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum OrderWord {
    #[default]
    Oldest,
    Newest,
}

async fn list(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<ListQuery>,
) -> Result<Json<PageBody<JobBody>>, Problem> {
    let order = match query.order {
        OrderWord::Oldest => JobOrder::OldestFirst,
        OrderWord::Newest => JobOrder::NewestFirst,
    };
    let filter = JobFilter {
        owner: Some(caller.principal),
        state: query.state,
        slot: query.slot,
        order,
        ..JobFilter::default()
    };
    let page = PageRequest::new(query.after, query.limit);
    Ok(Json(PageBody::of(Queue::of(app.runtime()).jobs(&filter, &page).await?)))
}
