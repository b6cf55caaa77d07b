//! The queue as it is.

use axum::extract::{Query, State};
use axum::routing::get;
use axum::{Json, Router};
use matsu_core::job::JobState;
use matsu_core::page::PageRequest;
use matsu_core::ports::store::JobFilter;
use matsu_core::slot::Slot;
use serde::Deserialize;

use crate::app::App;
use crate::auth::Caller;
use crate::problem::Problem;
use crate::wire::{JobBody, PageBody};

pub fn routes() -> Router<App> {
    Router::new().route("/jobs", get(list))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    state: Option<JobState>,
    slot: Option<Slot>,
    after: Option<i64>,
    limit: Option<u32>,
}

async fn list(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<ListQuery>,
) -> Result<Json<PageBody<JobBody>>, Problem> {
    let filter = JobFilter { owner: Some(caller.principal), task_id: None, state: query.state, slot: query.slot };
    let page = PageRequest::new(query.after, query.limit);
    Ok(Json(PageBody::of(app.runtime().store().job_summaries(&filter, &page).await?)))
}
