//! Who works on the store, and how much may run at once.

use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use matsu_core::job::JobState;
use matsu_core::page::PageRequest;
use matsu_core::ports::store::JobFilter;
use matsu_core::slot::Slot;
use serde_json::{Value, json};

use crate::app::App;
use crate::auth::Caller;
use crate::problem::Problem;
use crate::wire::NodeBody;

pub fn routes() -> Router<App> {
    Router::new().route("/nodes", get(nodes)).route("/slots", get(slots))
}

async fn nodes(State(app): State<App>, _caller: Caller) -> Result<Json<Value>, Problem> {
    let nodes = app.runtime().store().nodes().await?;
    let items: Vec<NodeBody> = nodes.iter().map(NodeBody::from).collect();
    Ok(Json(json!({ "items": items, "this": app.runtime().node().as_str() })))
}

async fn slots(State(app): State<App>, _caller: Caller) -> Result<Json<Value>, Problem> {
    let mut items = Vec::new();
    for slot in Slot::FOR_JOBS {
        let filter = JobFilter { slot: Some(*slot), state: Some(JobState::Running), ..JobFilter::default() };
        let running = app.runtime().store().list_jobs(&filter, &PageRequest::new(None, Some(200))).await?;
        let limit = app.runtime().limits().of(*slot);
        items.push(json!({ "slot": slot, "limit": limit, "running": running.items.len() }));
    }
    Ok(Json(json!({ "items": items })))
}
