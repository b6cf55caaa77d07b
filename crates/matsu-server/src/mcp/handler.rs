//! One connection's view of Matsu as an rmcp server: lists tools, calls them through the dispatch, shows progress.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use axum::http::request::Parts;
use matsu_core::id::ErrorId;
use matsu_core::principal::Principal;
use matsu_runtime::agents::RunHandle;
use matsu_runtime::chats::sessions::Delivery;
use matsu_runtime::dispatch::presets::Offer;
use matsu_runtime::dispatch::{self, Reply};
use matsu_runtime::tasks::Tasks;
use matsu_runtime::tool::native_task::NativeLookup;
use matsu_runtime::tool::{NativeTasks, ToolContext, ToolEntry, Workplace};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams, CancelledNotificationParam,
    CompleteRequestMethod, CompleteRequestParams, CompleteResult, ConstString, ContentBlock, CustomNotification,
    CustomRequest, CustomResult, ErrorCode, GetTaskParams, GetTaskResult, Implementation, InitializeResult, JsonObject,
    ListPromptsRequestMethod, ListPromptsResult, ListResourceTemplatesRequestMethod, ListResourceTemplatesResult,
    ListResourcesRequestMethod, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ProgressNotificationParam, ProtocolVersion, RequestId, ServerCapabilities, UpdateTaskParams,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ErrorData, Peer, RoleServer, ServerHandler};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::acknowledgement;
use super::instructions::INSTRUCTIONS;
use super::listing::{described, not_offered, result};
use super::native::NativeTaskCalls;
use super::request::{
    SESSION_META, call_key, caller_of, client_name, extension, follows_tasks, is_modern, legacy_session,
};
use crate::app::App;
use crate::auth::open_calls::OpenCall;
use crate::auth::{Caller, PresentedSession};
use crate::connections::disconnects::Carried;
use crate::limits::holds;

/// A call that takes longer sends progress, if its caller asked for it; and again this often.
const FIRST_PROGRESS: Duration = Duration::from_secs(1);
const PROGRESS_EVERY: Duration = Duration::from_secs(10);

/// What is answered here.
const METHODS: &[&str] =
    &["initialize", "ping", "server/discover", "tools/list", "tools/call", "tasks/get", "tasks/update", "tasks/cancel"];

/// Of these what the modern protocol has no more.
const LEGACY_METHODS: &[&str] = &["initialize", "ping"];

/// What a connection brings along. Over HTTP the caller comes with each request instead.
#[derive(Clone)]
pub struct Connection {
    pub caller: Option<Caller>,
    pub offer: Offer,
    pub hold_max: Option<Duration>,
    pub workplace: Arc<Workplace>,
    /// The session that everything on this connection belongs to.
    pub session_token: Option<Arc<str>>,
    /// Tells this connection from every other. Over HTTP, where connections say nothing, this process.
    pub id: Arc<str>,
    /// The run whose own socket the connection came over.
    pub run: Option<RunHandle>,
    /// Why nothing can be called here.
    pub refusal: Option<&'static str>,
    /// On the list of what is open under the token that was presented.
    pub call: Option<Arc<OpenCall>>,
    /// The relay says when its client has taken a reply: its results count as read only then.
    pub acknowledges: bool,
    /// Cancelled when the connection ends; calls that end with it were not given up by their client.
    pub ended: CancellationToken,
}

/// Replies that may yet turn out to be lost: a client can cancel a request that was already answered.
const REMEMBERED_MAX: usize = 64;

/// The last replies, oldest first, and what each of them delivered.
type Answered = VecDeque<(RequestId, Arc<Delivery>)>;

#[derive(Clone)]
pub struct McpHandler {
    app: App,
    connection: Arc<Connection>,
    answered: Arc<Mutex<Answered>>,
    peer: Arc<OnceLock<Peer<RoleServer>>>,
}

impl McpHandler {
    #[must_use]
    pub fn new(app: App, connection: Connection) -> Self {
        Self { app, connection: Arc::new(connection), answered: Arc::default(), peer: Arc::default() }
    }

    /// The client, once the SDK has passed on a tool call of this connection. Not over HTTP.
    pub(super) fn peer(&self) -> Option<&Peer<RoleServer>> {
        self.peer.get()
    }

    /// The caller: the connection's own, or the one whose token came with this request.
    fn caller(&self, context: &RequestContext<RoleServer>) -> Result<Caller, ErrorData> {
        if let Some(refusal) = self.connection.refusal {
            return Err(ErrorData::invalid_request(refusal, None));
        }
        self.connection.caller.clone().map_or_else(|| caller_of(context), Ok)
    }

    fn check_writer(&self, context: &RequestContext<RoleServer>) -> Result<(), ErrorData> {
        let checked = self.caller(context)?.check_writer();
        checked.map_err(|problem| ErrorData::invalid_request(problem.detail().to_owned(), None))
    }

    fn native_tasks(&self, context: &RequestContext<RoleServer>) -> Result<NativeTaskCalls, ErrorData> {
        let can_ask = context.meta.client_capabilities().is_some_and(|client| client.elicitation.is_some());
        Ok(NativeTaskCalls::new(self.app.clone(), self.caller(context)?, context.ct.clone()).with_questions(can_ask))
    }

    fn tool_context(&self, context: &RequestContext<RoleServer>) -> Result<ToolContext, ErrorData> {
        let Caller { principal, instance, rights } = self.caller(context)?;
        Ok(ToolContext {
            delivery: self.delivery(&principal),
            instance: Some(instance),
            caller: context.ct.clone(),
            hold_max: self.hold_max(context),
            workplace: Arc::clone(&self.connection.workplace),
            session_token: self.presented(context),
            connection: self.connection_of(context),
            tasks: if follows_tasks(context) { NativeTasks::Understood } else { NativeTasks::Unknown },
            call_key: call_key(context),
            run: self.connection.run.clone(),
            rights,
            ..ToolContext::new(self.app.runtime().clone(), principal)
        })
    }

    /// What a reply to this caller hands over.
    fn delivery(&self, caller: &Principal) -> Arc<Delivery> {
        Arc::new(if self.connection.acknowledges {
            Delivery::acknowledged_by(caller.clone())
        } else {
            Delivery::by_connection()
        })
    }

    /// A session token outside the arguments: the connection's own, the bearer, or the request's metadata.
    fn presented(&self, context: &RequestContext<RoleServer>) -> Option<Arc<str>> {
        let bearer = || extension::<PresentedSession>(context).map(|session| session.token.into());
        let meta = || context.meta.0.get(SESSION_META).and_then(Value::as_str).map(Arc::from);
        self.connection.session_token.clone().or_else(bearer).or_else(meta)
    }

    fn connection_of(&self, context: &RequestContext<RoleServer>) -> Arc<str> {
        match legacy_session(context) {
            Some(session) => format!("{}/{session}", self.connection.id).into(),
            None => Arc::clone(&self.connection.id),
        }
    }

    /// What this request may see: the connection's tools, those its address asks for, or what its session was granted.
    fn offer(&self, context: &RequestContext<RoleServer>) -> Result<Offer, ErrorData> {
        if let Some(grants) = extension::<PresentedSession>(context).and_then(|session| session.grants) {
            return Ok(Offer::granted(&grants));
        }
        // Over HTTP the token, and so what it is limited to, comes with each request.
        let rights = self.connection.caller.as_ref().map(|caller| Arc::clone(&caller.rights));
        let rights = rights.or_else(|| extension::<Caller>(context).map(|caller| caller.rights));
        let within = |offer: Offer| rights.as_ref().map_or(offer.clone(), |rights| offer.within(rights));
        let query = context.extensions.get::<Parts>().and_then(|parts| parts.uri.query());
        let asked = query.and_then(|query| query.split('&').find_map(|pair| pair.strip_prefix("tools=")));
        match asked {
            Some(tools) => {
                let tools = tools.replace("%2C", ",").replace("%2c", ",");
                Offer::parse(&tools).map(within).map_err(|error| ErrorData::invalid_params(error, None))
            }
            None => Ok(within(self.connection.offer.clone())),
        }
    }

    /// A reply to a caller that is gone has delivered nothing; of others that may still turn out.
    async fn answered(&self, context: &RequestContext<RoleServer>, delivery: &Arc<Delivery>) {
        if delivery.is_empty() {
            return;
        }
        let runtime = self.app.runtime();
        let carried = extension::<Carried>(context);
        if let Some(session) = legacy_session(context) {
            self.app.resumable().remember(session, &context.id.to_string(), delivery.shown());
        }
        if context.ct.is_cancelled() || carried.as_ref().is_some_and(Carried::is_over) {
            return delivery.take_back(runtime).await;
        }
        delivery.sent(runtime).await;
        // It may have ended meanwhile.
        if carried.is_some_and(|carried| !carried.carries(delivery)) {
            return delivery.take_back(runtime).await;
        }
        let mut answered = self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        if answered.len() >= REMEMBERED_MAX {
            answered.pop_front();
        }
        answered.push_back((context.id.clone(), Arc::clone(delivery)));
    }

    /// The limit of this very client comes first. Others are held longer if progress keeps their calls alive.
    fn hold_max(&self, context: &RequestContext<RoleServer>) -> Option<Duration> {
        let fed = || context.meta.get_progress_token().map(|_| self.app.runtime().hold_max_progress());
        // Over HTTP a proxy may end a call sooner than the client would.
        let Some(caller) = &self.connection.caller else { return self.connection.hold_max.or_else(fed) };
        let client = client_name(context);
        let set = self.connection.hold_max.or_else(|| holds::known(&client)).or_else(fed);
        match self.app.holds().bound(&caller.principal, &client) {
            Some(bound) => Some(set.unwrap_or_else(|| self.app.runtime().hold_max()).min(bound)),
            None => set,
        }
    }

    /// A call that its client gave up while the connection lasts.
    fn note_cut(&self, context: &RequestContext<RoleServer>, after: Duration) {
        let gave_up = context.ct.is_cancelled() && !self.connection.ended.is_cancelled();
        if let Some(caller) = self.connection.caller.as_ref().filter(|_| gave_up) {
            self.app.holds().cut(&caller.principal, &client_name(context), after);
        }
    }

    /// Runs the call, and sends progress while it lasts if the caller asked for it.
    async fn call_with_progress(
        &self,
        entry: &ToolEntry,
        cx: &ToolContext,
        arguments: JsonObject,
        context: &RequestContext<RoleServer>,
    ) -> Reply {
        let call = dispatch::call(entry, cx, arguments);
        tokio::pin!(call);
        let Some(token) = context.meta.get_progress_token() else { return call.await };
        let clock = *self.app.runtime().clock();
        let mut pause = FIRST_PROGRESS;
        let mut step = 0.0;
        loop {
            tokio::select! {
                reply = &mut call => return reply,
                () = clock.sleep(pause) => {
                    step += 1.0;
                    pause = PROGRESS_EVERY;
                    let words = cx.watched.in_words(self.app.runtime()).await;
                    let params = ProgressNotificationParam::new(token.clone(), step).with_message(words);
                    // A caller that cannot receive it is noticed by the call itself.
                    let _ = context.peer.notify_progress(params).await;
                }
            }
        }
    }
}

fn not_found(method: &str) -> ErrorData {
    let message = format!("there is no method {method}; this server has tools and tasks only");
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None)
}

impl ServerHandler for McpHandler {
    fn get_info(&self) -> InitializeResult {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_tasks().build();
        InitializeResult::new(capabilities)
            .with_server_info(Implementation::new("matsu", self.app.version()).with_title("Matsu"))
            .with_instructions(INSTRUCTIONS)
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        const VERSIONS: &[ProtocolVersion] =
            &[ProtocolVersion::V_2025_06_18, ProtocolVersion::V_2025_11_25, ProtocolVersion::V_2026_07_28];
        Cow::Borrowed(VERSIONS)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let offer = self.offer(&context)?;
        // A caller with a session presents its token with the connection or the request; others get one from a tool.
        let with_token = self.presented(&context).is_none() && offer.find("authenticate").is_some();
        Ok(ListToolsResult::with_all_items(offer.tools().map(|entry| described(entry, with_token)).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if let Some(refusal) = self.connection.refusal {
            let error_id = ErrorId::mint(self.app.runtime().clock().now());
            let details = json!({ "retryable": false });
            let body = json!({
                "ok": false, "error_code": "UNAUTHORIZED", "error": refusal, "error_id": error_id.as_str(), "details": details,
            });
            return Ok(CallToolResponse::Complete(result(body, true)));
        }
        let Some(entry) = self.offer(&context)?.find(&request.name) else {
            return Err(ErrorData::invalid_params(not_offered(&request.name), None));
        };
        // Over HTTP each request has a peer of its own.
        if self.connection.caller.is_some() {
            self.peer.get_or_init(|| context.peer.clone());
        }
        let cx = self.tool_context(&context)?;
        let arguments = request.arguments.unwrap_or_default();
        let clock = *self.app.runtime().clock();
        let began = clock.instant();
        let reply = self.call_with_progress(entry, &cx, arguments, &context).await;
        self.note_cut(&context, clock.instant() - began);
        self.answered(&context, &cx.delivery).await;
        match reply {
            Reply::Done { body, is_error } => {
                let mut result = result(body, is_error);
                result.meta = acknowledgement::wish(&cx.delivery);
                Ok(CallToolResponse::Complete(result))
            }
            Reply::Interrupted { text, body } => {
                let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
                result.structured_content = Some(body);
                Ok(CallToolResponse::Complete(result))
            }
            Reply::Task(id) => self.native_tasks(&context)?.created(&id).await,
        }
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        let native_tasks = self.native_tasks(&context)?;
        match native_tasks.find(&request.task_id).await? {
            NativeLookup::Found(native) => {
                let delivery = self.delivery(&self.caller(&context)?.principal);
                let outcome = native_tasks.outcome(&native, &delivery).await;
                self.answered(&context, &delivery).await;
                let mut shown = native_tasks.shown(&native.task, outcome).await;
                shown.meta = acknowledgement::wish(&delivery);
                Ok(shown)
            }
            NativeLookup::Expired(status) => Ok(native_tasks.expired(&request.task_id, status)),
        }
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.check_writer(&context)?;
        self.native_tasks(&context)?.answer(&request.task_id, &request.input_responses).await
    }

    /// Cancelled after it was answered: the client has not taken the answer.
    async fn on_cancelled(&self, cancelled: CancelledNotificationParam, _context: NotificationContext<RoleServer>) {
        let found = {
            let mut answered = self.answered.lock().unwrap_or_else(PoisonError::into_inner);
            let at = answered.iter().position(|(id, _)| Some(id) == cancelled.request_id.as_ref());
            at.and_then(|at| answered.remove(at))
        };
        if let Some((_, delivery)) = found {
            delivery.take_back(self.app.runtime()).await;
        }
    }

    /// The relay's client has taken replies. Whose results they show is checked: a client ends its own news only.
    async fn on_custom_notification(&self, sent: CustomNotification, _context: NotificationContext<RoleServer>) {
        let Some(caller) = self.connection.caller.as_ref().filter(|_| sent.method == acknowledgement::METHOD) else {
            return;
        };
        let ids = acknowledgement::named(sent.params.as_ref());
        if let Err(error) = Tasks::of(self.app.runtime()).acknowledge(&caller.principal, ids).await {
            tracing::debug!(%error, "could not store that results were read");
        }
    }

    /// Unknown methods, and methods of ours whose params have the wrong shape.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let method = request.method;
        let is_legacy_only = LEGACY_METHODS.contains(&method.as_str()) && is_modern(&context);
        if METHODS.contains(&method.as_str()) && !is_legacy_only {
            return Err(ErrorData::invalid_params(format!("the params of {method} have the wrong shape"), None));
        }
        Err(not_found(&method))
    }

    // Prompts, resources and completions are not declared, so their methods do not exist; the SDK would answer them
    // with empty lists.

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Err(not_found(ListPromptsRequestMethod::VALUE))
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Err(not_found(ListResourcesRequestMethod::VALUE))
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Err(not_found(ListResourceTemplatesRequestMethod::VALUE))
    }

    async fn complete(
        &self,
        _request: CompleteRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Err(not_found(CompleteRequestMethod::VALUE))
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.check_writer(&context)?;
        self.native_tasks(&context)?.cancel(&request.task_id).await
    }
}
