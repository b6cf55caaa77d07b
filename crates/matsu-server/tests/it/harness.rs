//! A server on a store in memory, and requests to its router.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode, header};
use axum::response::Response;
use matsu_core::access::Role;
use matsu_core::clock::{Clock, Timestamp};
use matsu_core::principal::Principal;
use matsu_core::slot::SlotLimits;
use matsu_runtime::access::Access;
use matsu_runtime::bodies::{Noop, Sleep};
use matsu_runtime::{Bodies, Runtime, RuntimeOptions, Service};
use matsu_server::app::TestJobs;
use matsu_server::auth::TokenWish;
use matsu_server::{App, AppOptions, Transport, router};
use matsu_store::{OpenOptions, Synchronous};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

const BODY_MAX: usize = 16 * 1024 * 1024;

pub struct Server {
    pub app: App,
    router: Router,
    _service: Service,
}

/// What came back.
#[derive(Debug)]
pub struct Reply {
    pub status: StatusCode,
    pub kind: String,
    pub body: Value,
}

impl Server {
    pub async fn new() -> Self {
        let clock = Clock::starting_at(Timestamp::from_millis(1_800_000_000_000));
        let options = OpenOptions { synchronous: Synchronous::Normal, clock };
        let opened = matsu_store::open("memory:", options).await.expect("a store in memory opens");
        let bodies = Bodies::default().with(Noop).with(Sleep);
        let runtime = Runtime::new(RuntimeOptions::new(opened.store, clock, SlotLimits::for_cores(2), bodies));
        let service = Service::start(&runtime);
        let app = App::new(AppOptions {
            runtime,
            version: "1.2.3".to_owned(),
            store: "memory:".to_owned(),
            shutdown: CancellationToken::new(),
            metrics: Arc::new(String::new),
            test_jobs: TestJobs::Offered,
        });
        let router = router(&app, Transport::Tcp);
        Self { app, router, _service: service }
    }

    /// The secret of a new token of the local owner with this role, or of a user if one is named.
    pub async fn token(&self, role: Role, user: Option<&str>) -> String {
        let principal = user.map_or_else(Principal::local_user, Principal::user);
        if user.is_some() {
            Access::of(self.app.runtime()).put_user(&principal, &[]).await.expect("a user is added");
        }
        let name = format!("{}-{}", role.as_str(), user.unwrap_or("owner"));
        let wish = TokenWish { name, principal, role, tools: None, expires_in: None };
        self.app.tokens().make(wish).await.expect("a token is made").1
    }

    /// A reply whose body is not read yet.
    pub async fn stream(&self, request: Request<Body>) -> Response {
        self.router.clone().oneshot(request).await.expect("a router always answers")
    }

    pub async fn send(&self, request: Request<Body>) -> Reply {
        let response = self.stream(request).await;
        let status = response.status();
        let kind = response.headers().get(header::CONTENT_TYPE).map_or("", |kind| kind.to_str().unwrap()).to_owned();
        // A stream of events has no end.
        let bytes = if kind.starts_with("text/event-stream") {
            Default::default()
        } else {
            to_bytes(response.into_body(), BODY_MAX).await.expect("a body")
        };
        Reply { status, kind, body: serde_json::from_slice(&bytes).unwrap_or(Value::Null) }
    }

    pub async fn call(&self, method: &str, path: &str, token: Option<&str>, body: Option<&Value>) -> Reply {
        self.send(request(method, path, token, body)).await
    }

    pub async fn get(&self, path: &str, token: &str) -> Value {
        let reply = self.call("GET", path, Some(token), None).await;
        assert_eq!(reply.status, StatusCode::OK, "{path}: {reply:?}");
        reply.body
    }

    /// Every operation of the API, as its own description lists them.
    pub async fn operations(&self, token: &str) -> Vec<Operation> {
        let document = self.get("/api/v1/openapi.json", token).await;
        let paths = document["paths"].as_object().expect("paths");
        let mut operations = Vec::new();
        for (path, methods) in paths {
            for (method, described) in methods.as_object().expect("methods") {
                let roles = described["x-roles"].as_array().expect("roles").iter();
                operations.push(Operation {
                    id: described["operationId"].as_str().expect("an id").to_owned(),
                    method: method.to_uppercase(),
                    path: format!("/api/v1{}", path.replace(['{', '}'], "")),
                    roles: roles.map(|role| role.as_str().expect("a role").to_owned()).collect(),
                    is_open: described["security"].as_array().is_some_and(Vec::is_empty),
                    described: described.clone(),
                });
            }
        }
        assert!(operations.len() > 50, "{}", operations.len());
        operations
    }
}

/// One method of one path, with a name in place of each id.
#[derive(Debug)]
pub struct Operation {
    pub id: String,
    pub method: String,
    pub path: String,
    pub roles: Vec<String>,
    pub is_open: bool,
    pub described: Value,
}

pub fn request(method: &str, path: &str, token: Option<&str>, body: Option<&Value>) -> Request<Body> {
    let mut request = Request::builder().method(method).uri(path).header(header::HOST, "127.0.0.1:7878");
    if let Some(token) = token {
        request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
    }
    if body.is_some() {
        request = request.header(header::CONTENT_TYPE, "application/json");
    }
    request.body(body.map_or_else(Body::empty, |body| Body::from(body.to_string()))).expect("a request")
}
