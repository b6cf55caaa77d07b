//! Who works on the store, and how much may run at once.

use axum::Json;
use axum::extract::State;
use matsu_core::job::JobState;
use matsu_core::page::PageRequest;
use matsu_core::ports::store::JobFilter;
use matsu_core::slot::Slot;
use schemars::JsonSchema;
use serde::Serialize;

use crate::app::App;
use crate::auth::Caller;
use crate::problem::Problem;
use crate::resource::{Resource, says};
use crate::wire::{ListBody, NodeBody};

pub fn routes() -> Resource {
    Resource::default()
        .get("/nodes", says("list_nodes", "The processes that share this store.").answers::<NodesBody>(), nodes)
        .get("/slots", says("list_slots", "How much runs, and how much may.").answers::<ListBody<SlotBody>>(), slots)
}

#[derive(Serialize, JsonSchema)]
struct NodesBody {
    items: Vec<NodeBody>,
    /// The one that answers.
    this: String,
}

async fn nodes(State(app): State<App>, _caller: Caller) -> Result<Json<NodesBody>, Problem> {
    let nodes = app.runtime().store().nodes().await?;
    let items = nodes.iter().map(NodeBody::from).collect();
    Ok(Json(NodesBody { items, this: app.runtime().node().to_string() }))
}

#[derive(Serialize, JsonSchema)]
struct SlotBody {
    slot: Slot,
    limit: u32,
    running: usize,
}

async fn slots(State(app): State<App>, _caller: Caller) -> Result<Json<ListBody<SlotBody>>, Problem> {
    let mut items = Vec::new();
    for slot in Slot::FOR_JOBS {
        let filter = JobFilter { slot: Some(*slot), state: Some(JobState::Running), ..JobFilter::default() };
        let running = app.runtime().store().list_jobs(&filter, &PageRequest::new(None, Some(200))).await?;
        items.push(SlotBody { slot: *slot, limit: app.runtime().limits().of(*slot), running: running.items.len() });
    }
    Ok(Json(ListBody { items }))
}
