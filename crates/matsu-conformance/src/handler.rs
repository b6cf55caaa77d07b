//! The suite's server: lists from the data, rounds, and tasks as views of stored rows.

#![expect(deprecated, reason = "the suite still asks for what the newest protocol has given up")]

mod tools;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use matsu_core::id::TaskId;
use matsu_core::job::Job;
use matsu_core::page::PageRequest;
use matsu_core::ports::store::{JobFilter, ListJobs};
use matsu_core::task::{Task, TaskStatus};
use matsu_runtime::tool::native_task::NativeLookup;
use matsu_server::App;
use matsu_server::mcp::caller_of;
use matsu_server::mcp::native::NativeTaskCalls;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, GetPromptRequestParams, GetPromptResponse,
    GetPromptResult, GetTaskParams, GetTaskResult, Implementation, InitializeResult, InputRequests, JsonObject,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, ServerCapabilities,
    SetLevelRequestParams, SubscribeRequestParams, TaskPayload, Tool, UnsubscribeRequestParams, UpdateTaskParams,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Value, json};

use crate::answers::Answers;
use crate::data::{self, DATA};
use crate::rounds::{Round, Seal, round};
use tools::{broken, capabilities, said};

type Context = RequestContext<RoleServer>;

#[derive(Clone)]
pub struct Fixture {
    pub app: App,
    answers: Arc<Answers>,
    seal: Arc<Seal>,
    subscribed: Arc<Mutex<BTreeSet<String>>>,
}

impl Fixture {
    pub fn new(app: App, answers: Arc<Answers>) -> Self {
        let seal = Arc::new(Seal::new(app.runtime().clock().now()));
        Self { app, answers, seal, subscribed: Arc::default() }
    }

    pub fn native_tasks(&self, cx: &Context) -> Result<NativeTaskCalls, ErrorData> {
        Ok(NativeTaskCalls::new(self.app.clone(), caller_of(cx)?, cx.ct.clone()))
    }

    async fn job_of(&self, task: &TaskId) -> Result<Job, ErrorData> {
        let filter = JobFilter { task_id: Some(task.clone()), ..JobFilter::default() };
        let jobs = self
            .app
            .runtime()
            .store()
            .run(ListJobs { filter: filter.clone(), page: PageRequest::new(None, Some(1)) })
            .await;
        jobs.map_err(broken)?.items.pop().ok_or_else(|| broken("a task without a job"))
    }

    /// What came of a task is what its job left behind.
    async fn outcome(&self, task: &Task) -> Result<TaskPayload, ErrorData> {
        let job = self.job_of(&task.id).await?;
        let read = |text: Option<String>| serde_json::from_str::<JsonObject>(text.as_deref().unwrap_or("{}"));
        Ok(match task.status {
            TaskStatus::Completed => TaskPayload::Completed { result: read(job.output_json).map_err(broken)? },
            TaskStatus::Failed => {
                let error = json!({ "code": -32603, "message": job.error_message.unwrap_or_default() });
                TaskPayload::Failed { error: read(Some(error.to_string())).map_err(broken)? }
            }
            TaskStatus::Cancelled => TaskPayload::Cancelled,
            TaskStatus::InputRequired => self.open_questions(&task.id, job.progress_json.as_deref()),
            _ => TaskPayload::Working,
        })
    }

    fn open_questions(&self, task: &TaskId, asked: Option<&str>) -> TaskPayload {
        let asked: InputRequests = asked.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        let input_requests = self.answers.open(task, &asked);
        if input_requests.is_empty() { TaskPayload::Working } else { TaskPayload::InputRequired { input_requests } }
    }
}

impl ServerHandler for Fixture {
    fn get_info(&self) -> InitializeResult {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_prompts()
            .enable_resources()
            .enable_completions()
            .enable_logging()
            .enable_tasks()
            .build();
        InitializeResult::new(capabilities)
            .with_server_info(Implementation::new("matsu-conformance", self.app.version()))
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        const VERSIONS: &[ProtocolVersion] =
            &[ProtocolVersion::V_2025_06_18, ProtocolVersion::V_2025_11_25, ProtocolVersion::V_2026_07_28];
        Cow::Borrowed(VERSIONS)
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        DATA.tools.iter().find(|tool| tool.name == name).cloned()
    }

    async fn list_tools(&self, _: Option<PaginatedRequestParams>, _: Context) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(DATA.tools.clone()))
    }

    async fn call_tool(&self, request: CallToolRequestParams, cx: Context) -> Result<CallToolResponse, ErrorData> {
        let (name, arguments) = (request.name.as_ref(), request.arguments.unwrap_or_default());
        let Some(asks) = DATA.asks.get(name) else { return self.call(name, arguments, &cx).await };
        let (given, state) = (request.input_responses, request.request_state.as_deref());
        match round(&self.seal, name, asks, given, state, &capabilities(&cx))? {
            Round::Ask(result) => Ok(result.into()),
            Round::Answered(answers) if name == "test_tool_with_task" => self.start(name, json!(answers), &cx).await,
            Round::Answered(answers) => {
                let user = answers.get("user_name").map(|answer| &answer["content"]["name"]);
                let hello = user.and_then(Value::as_str).map(|name| format!("Hello, {name}! ")).unwrap_or_default();
                let state = if asks.stateful { "state-ok " } else { "" };
                Ok(said(format!("{hello}{state}{}", json!(answers))).into())
            }
        }
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(DATA.prompts.clone()))
    }

    async fn get_prompt(&self, request: GetPromptRequestParams, cx: Context) -> Result<GetPromptResponse, ErrorData> {
        let name = request.name.as_str();
        if let Some(asks) = DATA.asks.get(name) {
            let (given, state) = (request.input_responses, request.request_state.as_deref());
            if let Round::Ask(result) = round(&self.seal, name, asks, given, state, &capabilities(&cx))? {
                return Ok(result.into());
            }
        }
        let messages = data::messages(name, &request.arguments.unwrap_or_default());
        let messages = messages.ok_or_else(|| ErrorData::invalid_params(format!("there is no prompt {name}"), None))?;
        Ok(GetPromptResult::new(messages).into())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(DATA.resources.clone()))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(DATA.templates.clone()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: Context,
    ) -> Result<ReadResourceResponse, ErrorData> {
        match data::contents(&request.uri) {
            Some(contents) => Ok(ReadResourceResult::new(vec![contents]).into()),
            None => {
                Err(ErrorData::resource_not_found("there is no such resource", Some(json!({ "uri": request.uri }))))
            }
        }
    }

    async fn set_level(&self, _: SetLevelRequestParams, _: Context) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn subscribe(&self, request: SubscribeRequestParams, _: Context) -> Result<(), ErrorData> {
        self.subscribed.lock().unwrap_or_else(PoisonError::into_inner).insert(request.uri);
        Ok(())
    }

    async fn unsubscribe(&self, request: UnsubscribeRequestParams, _: Context) -> Result<(), ErrorData> {
        self.subscribed.lock().unwrap_or_else(PoisonError::into_inner).remove(&request.uri);
        Ok(())
    }

    async fn get_task(&self, request: GetTaskParams, cx: Context) -> Result<GetTaskResult, ErrorData> {
        let native_tasks = self.native_tasks(&cx)?;
        match native_tasks.find(&request.task_id).await? {
            NativeLookup::Found(native) => {
                let outcome = self.outcome(&native.task).await?;
                Ok(native_tasks.shown(&native.task, outcome).await)
            }
            NativeLookup::Expired(status) => Ok(native_tasks.expired(&request.task_id, status)),
        }
    }

    async fn update_task(&self, request: UpdateTaskParams, cx: Context) -> Result<(), ErrorData> {
        self.native_tasks(&cx)?.find(&request.task_id).await?;
        self.answers.add(&TaskId::from_text(request.task_id), request.input_responses);
        Ok(())
    }

    async fn cancel_task(&self, request: CancelTaskParams, cx: Context) -> Result<(), ErrorData> {
        self.native_tasks(&cx)?.cancel(&request.task_id).await
    }
}
