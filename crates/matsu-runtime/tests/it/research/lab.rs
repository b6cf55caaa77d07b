//! A runtime with a web in memory, and a client that checks every answer against its tool's schema.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use matsu_core::clock::Clock;
use matsu_core::ports::store::Store;
use matsu_core::principal::Principal;
use matsu_core::slot::SlotLimits;
use matsu_runtime::dispatch::{self, Reply};
use matsu_runtime::research::{ResearchKit, ResearchSettings, SearchJob, VerifyJob};
use matsu_runtime::tool::{ToolContext, reply_check};
use matsu_runtime::tools::TOOLS;
use matsu_runtime::{Bodies, InstanceId, Runtime, RuntimeOptions, Service};
use matsu_testkit::web::{CannedResponse, Web};

use crate::fixtures::{me, memory};

pub struct Lab {
    pub store: Arc<dyn Store>,
    pub clock: Clock,
    pub web: Web,
    pub runtime: Runtime,
}

/// A page about a subject: long enough for a passage of its own, and unlike any other.
pub fn text(claim: &str, subject: &str) -> CannedResponse {
    let more: String =
        (0..7).map(|n| format!(" More about {subject}, part {n}, which is {}.", subject.len() * 97 + n * 31)).collect();
    CannedResponse::Text(format!("{claim}{more}"))
}

impl Lab {
    pub async fn open() -> Self {
        let (store, clock) = memory().await;
        let web = Web::new(clock);
        let runtime = runtime(&store, clock, &web);
        Self { store, clock, web, runtime }
    }

    pub fn start(&self) -> Service {
        Service::start(&self.runtime)
    }

    pub fn client(&self, name: &str) -> Client {
        Client::of(&self.runtime, me(), name)
    }

    pub fn pass(&self, span: Duration) -> impl Future<Output = ()> {
        let clock = self.clock;
        async move { clock.sleep(span).await }
    }
}

pub fn runtime(store: &Arc<dyn Store>, clock: Clock, web: &Web) -> Runtime {
    runtime_with(store, clock, web, ResearchSettings::default())
}

pub fn runtime_with(store: &Arc<dyn Store>, clock: Clock, web: &Web, settings: ResearchSettings) -> Runtime {
    runtime_of(store, clock, kit(web).with_settings(settings))
}

/// Research with nothing but this web.
pub fn kit(web: &Web) -> ResearchKit {
    let part = Arc::new(web.clone());
    ResearchKit::new(vec![part.clone()], part.clone(), part.clone(), part.clone(), part)
}

pub fn runtime_of(store: &Arc<dyn Store>, clock: Clock, kit: ResearchKit) -> Runtime {
    let bodies = Bodies::default().with(SearchJob).with(VerifyJob);
    let mut options = RuntimeOptions::new(Arc::clone(store), clock, SlotLimits::for_cores(2), bodies);
    options.settings.research = Some(Arc::new(kit));
    Runtime::new(options)
}

#[derive(Clone)]
pub struct Client {
    cx: ToolContext,
}

impl Client {
    pub fn of(runtime: &Runtime, principal: Principal, name: &str) -> Self {
        let instance = Some(InstanceId::from_text(name));
        let cx = ToolContext { instance, ..ToolContext::new(runtime.clone(), principal) };
        Self { cx }
    }

    pub async fn call(&self, name: &str, arguments: Value) -> Value {
        let entry = TOOLS.iter().find(|tool| tool.name == name).expect("a tool of that name");
        let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
        match dispatch::call(entry, &self.cx, arguments).await {
            Reply::Done { body, is_error } => {
                if let Err(error) = reply_check::check(entry.output_schema(), &body) {
                    panic!("{name} answered {body}, which does not fit its schema: {error}");
                }
                assert_eq!(body["ok"], json!(!is_error));
                body
            }
            Reply::Interrupted { body, .. } => body,
            Reply::Task(id) => json!({ "native": id }),
        }
    }

    /// A task with this budget of pages, or the usual one.
    pub async fn task(&self, max_pages: Option<i64>) -> String {
        let config = max_pages.map_or(json!({}), |pages| json!({ "budget": { "max_pages": pages } }));
        let made = self.call("create_task", json!({ "query": "Is waiting cheap?", "config": config })).await;
        made["task_id"].as_str().expect("an id").to_owned()
    }

    pub async fn queue(&self, task: &str, queries: &[&str]) -> Value {
        self.call("queue_searches", json!({ "task_id": task, "queries": queries })).await
    }

    /// Waits until nothing of the task is left unfinished, or a login is needed.
    pub async fn all_done(&self, task: &str) -> Value {
        for _ in 0..200 {
            let said = self.call("get_status", json!({ "task_id": task, "wait": 50, "wait_for": "all" })).await;
            if said["returned_because"] != "timeout" && said["returned_because"] != "changed" {
                return self.status(task).await;
            }
        }
        panic!("the task never came to rest");
    }

    pub async fn status(&self, task: &str) -> Value {
        self.call("get_status", json!({ "task_id": task })).await
    }

    pub async fn materials(&self, task: &str) -> Value {
        self.call("get_materials", json!({ "task_id": task, "options": { "limit": 200, "detail": "full" } })).await
    }

    pub async fn report(&self, task: &str) -> Value {
        let report = matsu_runtime::tools::research_report::read(&self.cx, task).await.expect("a report");
        serde_json::to_value(report).expect("a report is JSON")
    }
}
