//! The nodes that work on the store, and how much may run at once.

use axum::Json;
use axum::extract::State;
use matsu_core::slot::Slot;
use matsu_runtime::tasks::queue::Queue;
use schemars::JsonSchema;
use serde::Serialize;

use crate::app::App;
use crate::auth::Caller;
use crate::problem::Problem;
use crate::resource::{Resource, operation};
use crate::wire::{ListBody, NodeBody};

pub fn routes() -> Resource {
    Resource::default()
        .get(
            "/nodes",
            operation("list_nodes", "The processes that share this store.").answers::<NodesBody>().for_admins(),
            nodes,
        )
        .get(
            "/slots",
            operation("list_slots", "The slots, with the permits in use and the limit.")
                .answers::<ListBody<SlotBody>>()
                .for_admins(),
            slots,
        )
}

#[derive(Serialize, JsonSchema)]
struct NodesBody {
    items: Vec<NodeBody>,
    /// The one that answers.
    this: String,
}

async fn nodes(State(app): State<App>, _caller: Caller) -> Result<Json<NodesBody>, Problem> {
    let nodes = Queue::of(app.runtime()).nodes().await?;
    let items = nodes.iter().map(NodeBody::from).collect();
    Ok(Json(NodesBody { items, this: app.runtime().node().to_string() }))
}

#[derive(Serialize, JsonSchema)]
struct SlotBody {
    slot: Slot,
    /// What all nodes together allow.
    limit: u32,
    /// Permits in use.
    taken: u32,
    running: u32,
}

async fn slots(State(app): State<App>, _caller: Caller) -> Result<Json<ListBody<SlotBody>>, Problem> {
    let slots = Queue::of(app.runtime()).slots().await?;
    let items = slots.into_iter().map(|slot| {
        let own = app.runtime().limits().of(slot.slot);
        let limit = slot.permits_max.unwrap_or(own);
        SlotBody { slot: slot.slot, limit, taken: slot.taken, running: slot.running }
    });
    Ok(Json(ListBody { items: items.collect() }))
}
