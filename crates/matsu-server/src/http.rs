//! The routes. One file per resource, one line each here.

mod agent_runs;
mod chats;
mod control;
mod doctor;
mod events;
mod health;
mod hooks;
mod jobs;
mod merges;
mod model_chats;
mod new_task;
mod nodes;
mod openapi;
mod projects;
mod push;
mod report;
mod research;
mod research_model;
mod reviews;
mod schedules;
mod session;
mod sessions;
mod summary;
mod task_wait;
mod tasks;
mod test_jobs;
mod tokens;
mod tool_body;
mod tool_call;
mod tools;
mod usage;
mod users;
mod webhooks;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Extension};
use axum::middleware::{from_fn, from_fn_with_state, map_response};
use matsu_core::error_code::ErrorCode;
use matsu_core::limits::BODY_BYTES_MAX;

pub use openapi::rest_description;

use crate::app::{App, TestJobs};
use crate::connections::unauthenticated;
use crate::guards;
use crate::mcp;
use crate::page;
use crate::peer::{self, Peer};
use crate::problem::{Problem, dress};
use crate::resource::Resource;

/// How requests reach a router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Any process of this machine may connect: Host, Origin and token are checked.
    Tcp,
    /// For commands and relays of this machine: a token is asked for here too.
    Socket,
    /// No listener: the routes run in the process that asks, which has opened the store itself.
    Here,
}

/// Every REST resource: one file, one line.
fn api() -> Resource {
    Resource::default()
        .merge(tasks::routes())
        .merge(new_task::routes())
        .merge(task_wait::routes())
        .merge(agent_runs::routes())
        .merge(reviews::routes())
        .merge(merges::routes())
        .merge(jobs::routes())
        .merge(nodes::routes())
        .merge(report::routes())
        .merge(research::routes())
        .merge(research_model::routes())
        .merge(summary::routes())
        .merge(tokens::routes())
        .merge(users::routes())
        .merge(tools::routes())
        .merge(events::routes())
        .merge(session::routes())
        .merge(doctor::routes())
        .merge(projects::routes())
        .merge(schedules::routes())
        .merge(webhooks::routes())
        .merge(push::routes())
        .merge(usage::routes())
        .merge(sessions::routes())
        .merge(chats::routes())
        .merge(model_chats::routes())
        .merge(openapi::routes())
}

/// All routes of one transport.
pub fn router(app: &App, transport: Transport) -> Router {
    let mut all = Router::new().nest("/api/v1", api().into_router()).merge(health::routes()).merge(page::routes());
    all = all.merge(hooks::routes());
    if app.test_jobs() == TestJobs::Offered {
        all = all.merge(test_jobs::routes());
    }
    if transport != Transport::Tcp {
        all = all.merge(control::routes());
    }
    // Said by name, so that it stays ours when other routes come beside these.
    let all = all.fallback(nowhere).layer(DefaultBodyLimit::max(BODY_BYTES_MAX)).layer(map_response(dress));
    match transport {
        // MCP has errors of its own, which no other layer may dress.
        Transport::Tcp => guarded(app, all.merge(mcp::http::routes(app))),
        Transport::Socket => all.layer(from_fn_with_state(app.clone(), guards::socket::socket)).with_state(app.clone()),
        Transport::Here => {
            let all = all.layer(from_fn(guards::socket::own_process)).layer(from_fn(peer::note));
            all.layer(Extension(Peer::default())).with_state(app.clone())
        }
    }
}

async fn nowhere() -> Problem {
    Problem::new(ErrorCode::ResourceNotFound, "there is no such route")
}

/// Routes behind the guard of the TCP listener.
pub fn guarded(app: &App, routes: Router<App>) -> Router {
    let classified = routes.layer(from_fn(unauthenticated::classify));
    classified.layer(from_fn_with_state(app.clone(), guards::requests::tcp)).with_state(app.clone())
}
