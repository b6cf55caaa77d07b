//! Tools over plain HTTP, for `matsu call`. The same dispatch, the same answers as over MCP.

use axum::Json;
use axum::extract::{Extension, Path, State};
use matsu_core::error_code::ErrorCode;
use matsu_runtime::dispatch::presets::Offer;
use matsu_runtime::dispatch::{self, Reply};
use matsu_runtime::tools::TOOLS;
use serde_json::{Map, Value, json};

use crate::app::App;
use crate::auth::Caller;
use crate::openapi::AnyObject;
use crate::peer::Peer;
use crate::problem::Problem;
use crate::resource::{Resource, operation};

pub fn routes() -> Resource {
    let call_tool = operation("call_tool", "Calls a tool; the reply is the same as over MCP.").body::<AnyObject>();
    Resource::default()
        .get(
            "/tools",
            operation("list_tools", "Every tool that the caller may call, with its schema.").answers::<AnyObject>(),
            list,
        )
        .post("/tools/{name}", call_tool.answers::<AnyObject>().for_viewers_too(), call)
}

async fn list(caller: Caller) -> Json<Value> {
    let offer = Offer::all().within(&caller.rights);
    let items = offer.tools().map(|tool| {
        json!({
            "name": tool.name,
            "title": tool.title,
            "toolset": tool.toolset.as_str(),
            "core": tool.core,
            "description": tool.description,
            "input_schema": tool.input_schema(),
            "output_schema": tool.output_schema(),
        })
    });
    Json(json!({ "items": items.collect::<Vec<_>>() }))
}

/// A refused call is an answer, with `ok: false`, as over MCP.
async fn call(
    State(app): State<App>,
    caller: Caller,
    peer: Option<Extension<Peer>>,
    Path(name): Path<String>,
    Json(arguments): Json<Map<String, Value>>,
) -> Result<Json<Value>, Problem> {
    let Some(entry) = TOOLS.iter().find(|tool| tool.name == name) else {
        let names = TOOLS.iter().map(|tool| tool.name).collect::<Vec<_>>().join(", ");
        return Err(Problem::new(
            ErrorCode::ResourceNotFound,
            format!("there is no tool {name}; the tools are {names}"),
        ));
    };
    let cx = super::tool_call::context(&app, caller, peer.unwrap_or_default().0);
    match dispatch::call(entry, &cx, arguments).await {
        Reply::Done { body, .. } | Reply::Interrupted { body, .. } => Ok(Json(body)),
        Reply::Task(id) => Ok(Json(json!({ "ok": true, "task_id": id }))),
    }
}
