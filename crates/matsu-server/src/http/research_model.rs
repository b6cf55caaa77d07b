//! Which model research uses, and the one question about it.

use axum::Json;
use axum::extract::State;
use matsu_core::error_code::ErrorCode;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::app::App;
use crate::openapi::AnyObject;
use crate::problem::Problem;
use crate::resource::{Resource, operation};

pub fn routes() -> Resource {
    let read = operation("read_research_model", "Which model research uses, and whether a person is to choose one.");
    let choose = operation("choose_research_model", "Chooses the model that research uses, where the setting is auto.");
    Resource::default().get("/research/model", read.answers::<AnyObject>(), state).post(
        "/research/model",
        choose.body::<Choice>().answers::<AnyObject>().for_admins(),
        self::choose,
    )
}

/// `asks`: the setting is `auto` and nothing was chosen yet.
async fn state(State(app): State<App>) -> Json<Value> {
    let choice = app.runtime().research().and_then(|kit| kit.choice.clone());
    let Some(choice) = choice else {
        return Json(json!({ "asks": false, "is_auto": false, "chosen": null, "options": [] }));
    };
    let chosen = choice.chosen();
    Json(json!({ "asks": chosen.is_none(), "is_auto": true, "chosen": chosen, "options": choice.options().await }))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Choice {
    /// A name of `options`.
    #[schemars(length(min = 1, max = 100))]
    model: String,
}

async fn choose(State(app): State<App>, Json(body): Json<Choice>) -> Result<Json<Value>, Problem> {
    let kit = app.runtime().research();
    let Some((kit, choice)) = kit.and_then(|kit| kit.choice.clone().map(|choice| (kit, choice))) else {
        let message = "research.model names what is used; set it to auto to choose here";
        return Err(Problem::new(ErrorCode::InvalidParams, message));
    };
    let model = choice.choose(&body.model).await.map_err(Problem::invalid)?;
    kit.use_model(model);
    Ok(Json(json!({ "chosen": body.model })))
}
