//! The fixture of the official MCP conformance suite on Matsu's own server layer: the same listener, guard, Streamable
//! HTTP, stored tasks and views of them, with the suite's tools instead of Matsu's. A development program.
//!
//! ```text
//! matsu-conformance [PORT]      prints its address, then serves until it is killed
//! ```

mod answers;
mod data;
mod handler;
mod jobs;
mod rounds;

use std::sync::Arc;

use anyhow::{Context, Result};
use axum::extract::{Request, State};
use axum::http::{HeaderValue, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use matsu_core::clock::Clock;
use matsu_core::slot::SlotLimits;
use matsu_runtime::worker::Service;
use matsu_runtime::{Bodies, Runtime, RuntimeOptions};
use matsu_server::app::TestJobs;
use matsu_server::{App, AppOptions, guarded, listeners, mcp};
use matsu_store::{OpenOptions, Synchronous};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use answers::Answers;
use handler::Fixture;
use jobs::FixtureJob;

#[tokio::main]
async fn main() -> Result<()> {
    let port: u16 = std::env::args().nth(1).map_or(Ok(0), |port| port.parse()).context("the port is no number")?;
    let answers = Arc::new(Answers::default());
    let options = OpenOptions { synchronous: Synchronous::Full, clock: Clock::system() };
    let opened = matsu_store::open("memory:", options).await?;
    let bodies = Bodies::default().with(FixtureJob { answers: Arc::clone(&answers) });
    let limits = SlotLimits::for_cores(20);
    let runtime = Runtime::new(RuntimeOptions::new(opened.store, Clock::system(), limits, bodies));
    let _service = Service::start(&runtime);
    let app = App::new(AppOptions {
        runtime,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        store: "memory:".to_owned(),
        shutdown: CancellationToken::new(),
        metrics: Arc::new(String::new),
        test_jobs: TestJobs::Hidden,
    });
    let (_, secret) = app.tokens().make(matsu_server::auth::TokenWish::of_owner("conformance".to_owned())).await?;
    let key = HeaderValue::from_str(&format!("Bearer {secret}"))?;
    let fixture = Fixture::new(app.clone(), answers);
    let router = guarded(&app, mcp::http::serving(&app, move || fixture.clone()));
    let router = router.layer(from_fn_with_state(key, with_key));
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    println!("http://{}/mcp", listener.local_addr()?);
    listeners::serve_tcp_with(app, listener, router).await;
    Ok(())
}

/// The suite has no keys. Everything else is checked as ever.
async fn with_key(State(key): State<HeaderValue>, mut request: Request, next: Next) -> Response {
    request.headers_mut().insert(header::AUTHORIZATION, key);
    next.run(request).await
}
