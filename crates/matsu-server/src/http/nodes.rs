//! Who works on the store, and how much may run at once.

use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
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
    let slots = app.runtime().store().slots().await?;
    let items = slots.iter().map(|slot| {
        let own = app.runtime().limits().of(slot.slot);
        json!({ "slot": slot.slot, "limit": slot.permits_max.unwrap_or(own), "taken": slot.taken, "running": slot.running })
    });
    Ok(Json(json!({ "items": items.collect::<Vec<_>>() })))
}
