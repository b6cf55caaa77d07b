//! Projects and agents: who works where. They are the installation's: admins make them and see them. An agent's passkey is shown once, in the answer that made it.

use axum::Json;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use matsu_runtime::chats::Chats;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::app::App;
use crate::auth::Caller;
use crate::problem::Problem;
use crate::resource::{Resource, operation};
use crate::wire::people::{AgentBody, ProjectBody};
use crate::wire::{PageBody, PageQuery};

pub fn routes() -> Resource {
    let projects = operation("list_projects", "Projects, oldest first.").query::<PageQuery>();
    let make_project = operation("make_project", "Creates a project.").body::<ProjectWish>();
    let agents = operation("list_named_agents", "Agents with a name, oldest first.").query::<PageQuery>();
    let make_agent = operation("make_agent", "Creates an agent; its passkey is shown once.").body::<AgentWish>();
    Resource::default()
        .get("/projects", projects.answers::<PageBody<ProjectBody>>(), list_projects)
        .post("/projects", make_project.creates::<ProjectBody>().for_admins(), make_a_project)
        .get("/agents", agents.answers::<PageBody<AgentBody>>(), list_agents)
        .post("/agents", make_agent.creates::<MadeAgent>().for_admins(), make_an_agent)
}

async fn list_projects(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<PageQuery>,
) -> Result<Json<PageBody<ProjectBody>>, Problem> {
    if caller.only_own().is_some() {
        return Ok(Json(PageBody { items: Vec::new(), next: None }));
    }
    Ok(Json(PageBody::of(Chats::of(app.runtime()).projects(&query.page()).await?)))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ProjectWish {
    #[schemars(length(min = 1, max = 64), regex(pattern = r"^[A-Za-z0-9._-]+$"))]
    id: String,
    /// Absent: the id.
    #[schemars(length(min = 1, max = 100), regex(pattern = r"\S"))]
    name: Option<String>,
    working_directory: Option<String>,
}

async fn make_a_project(
    State(app): State<App>,
    Json(wish): Json<ProjectWish>,
) -> Result<(StatusCode, Json<ProjectBody>), Problem> {
    let name = wish.name.unwrap_or_else(|| wish.id.clone());
    check_name(&name)?;
    let project = Chats::of(app.runtime()).make_project(&wish.id, name, wish.working_directory).await?;
    Ok((StatusCode::CREATED, Json(ProjectBody::from(&project))))
}

async fn list_agents(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<PageQuery>,
) -> Result<Json<PageBody<AgentBody>>, Problem> {
    if caller.only_own().is_some() {
        return Ok(Json(PageBody { items: Vec::new(), next: None }));
    }
    Ok(Json(PageBody::of(Chats::of(app.runtime()).agents(&query.page()).await?)))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AgentWish {
    #[schemars(length(min = 1, max = 64), regex(pattern = r"^[A-Za-z0-9._-]+$"))]
    id: String,
    /// Absent: the id.
    #[schemars(length(min = 1, max = 100), regex(pattern = r"\S"))]
    name: Option<String>,
    /// The definition of the program that is started for it. Absent: nothing is started; the agent connects by itself.
    definition: Option<String>,
    system_prompt: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct MadeAgent {
    agent: AgentBody,
    /// Shown this once; only a hash is kept.
    passkey: String,
}

async fn make_an_agent(
    State(app): State<App>,
    Json(wish): Json<AgentWish>,
) -> Result<(StatusCode, Json<MadeAgent>), Problem> {
    let name = wish.name.unwrap_or_else(|| wish.id.clone());
    check_name(&name)?;
    let (agent, passkey) =
        Chats::of(app.runtime()).make_agent(&wish.id, name, wish.definition, wish.system_prompt).await?;
    Ok((StatusCode::CREATED, Json(MadeAgent { agent: AgentBody::from(&agent), passkey })))
}

fn check_name(name: &str) -> Result<(), Problem> {
    if name.trim().is_empty() || name.chars().count() > 100 {
        return Err(Problem::invalid("name must have 1 to 100 characters"));
    }
    Ok(())
}
