//! What is broken and how to mend it: the same findings as `matsu doctor`.

use axum::Json;
use axum::extract::State;
use matsu_core::error_code::ErrorCode;
use serde_json::Value;

use crate::app::App;
use crate::auth::Caller;
use crate::openapi::AnyObject;
use crate::problem::Problem;
use crate::resource::{Resource, operation};

pub fn routes() -> Resource {
    let read_doctor = operation("read_doctor", "Runs all checks; each finding names what to do next.");
    Resource::default().get("/doctor", read_doctor.answers::<AnyObject>().for_admins(), read)
}

async fn read(State(app): State<App>, _caller: Caller) -> Result<Json<Value>, Problem> {
    let Some(doctor) = app.doctor() else {
        return Err(Problem::new(
            ErrorCode::ResourceNotFound,
            "this process runs no checks; run `matsu doctor` in a terminal",
        ));
    };
    Ok(Json(doctor().await))
}
