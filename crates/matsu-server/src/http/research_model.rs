//! Which model research uses, and the one question about it.

use axum::Json;
use axum::extract::State;
use matsu_runtime::research::Research;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::app::App;
use crate::openapi::AnyObject;
use crate::problem::Problem;
use crate::resource::{Resource, operation};

pub fn routes() -> Resource {
    let read = operation("read_research_model", "The model that research uses, and whether a person must choose one.");
    let choose = operation("choose_research_model", "Chooses the model that research uses, if the setting is auto.");
    Resource::default().get("/research/model", read.answers::<AnyObject>(), state).post(
        "/research/model",
        choose.body::<Choice>().answers::<AnyObject>().for_admins(),
        self::choose,
    )
}

/// `asks`: the setting is `auto` and nothing was chosen yet.
async fn state(State(app): State<App>) -> Json<Value> {
    let choice = Research::of(app.runtime()).model_choice();
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
    Research::of(app.runtime()).choose_model(&body.model).await.map_err(Problem::invalid)?;
    Ok(Json(json!({ "chosen": body.model })))
}
