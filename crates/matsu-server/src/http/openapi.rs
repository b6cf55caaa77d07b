//! The description of this API, made from the routes themselves.

use std::sync::OnceLock;

use axum::Json;
use axum::extract::State;
use serde_json::Value;

use crate::app::App;
use crate::auth::Caller;
use crate::openapi::{AnyObject, document};
use crate::resource::{Resource, operation};

pub fn routes() -> Resource {
    Resource::default().get("/openapi.json", operation("openapi", "This document.").answers::<AnyObject>(), read)
}

async fn read(State(app): State<App>, _caller: Caller) -> Json<&'static Value> {
    static DOCUMENT: OnceLock<Value> = OnceLock::new();
    Json(DOCUMENT.get_or_init(|| rest_description(app.version())))
}

/// The OpenAPI document, without a server.
#[must_use]
pub fn rest_description(version: &str) -> Value {
    document(version, super::api().operations())
}
