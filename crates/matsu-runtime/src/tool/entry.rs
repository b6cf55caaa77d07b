//! Tools as a list can hold them: the type erased, the schemas made once.

use std::pin::Pin;
use std::sync::OnceLock;

use serde_json::{Map, Value, json};

use matsu_core::error_code::ErrorCode;
use matsu_core::ports::provider::{Danger, ToolSpec};

use super::rules::{Rules, SessionNeed};
use super::{Tool, ToolContext, ToolError, ToolReply, schema};

/// Which tools belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Toolset {
    Research,
    Agents,
    Sessions,
}

impl Toolset {
    pub const ALL: &'static [Self] = &[Self::Research, Self::Agents, Self::Sessions];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Research => "research",
            Self::Agents => "agents",
            Self::Sessions => "sessions",
        }
    }
}

/// Hints for clients that decide which calls need approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Annotations {
    /// Changes nothing that a later call or a person could notice.
    pub read_only: bool,
    /// May change or remove what exists. False: it only adds.
    pub destructive: bool,
    /// A repeated call with the same arguments changes nothing more.
    pub idempotent: bool,
    /// Reaches beyond Matsu: web sites, or agents that reach them.
    pub open_world: bool,
}

impl Annotations {
    pub const READS: Self = Self { read_only: true, destructive: false, idempotent: true, open_world: false };
    pub const ADDS: Self = Self { read_only: false, idempotent: false, ..Self::READS };

    fn danger(self) -> Danger {
        match self {
            Self { read_only: true, .. } => Danger::ReadOnly,
            Self { destructive: true, .. } => Danger::Destructive,
            Self { .. } => Danger::Writes,
        }
    }
}

type Called<'a> = Pin<Box<dyn Future<Output = Result<ToolReply<Map<String, Value>>, ToolError>> + Send + 'a>>;

pub struct ToolEntry {
    pub name: &'static str,
    pub title: &'static str,
    pub description: &'static str,
    pub toolset: Toolset,
    pub core: bool,
    pub annotations: Annotations,
    pub rules: Rules,
    input: Value,
    listed_input: Value,
    reply: Value,
    output: Value,
    spec: OnceLock<ToolSpec>,
    call: for<'a> fn(&'a ToolContext, Value) -> Called<'a>,
    reads: fn(Value) -> Result<(), ToolError>,
}

impl ToolEntry {
    #[must_use]
    pub fn of<T: Tool>() -> Self {
        let (takes, reply) = (schema::input::<T::Input>(), schema::reply::<T::Output>());
        Self {
            name: T::NAME,
            title: T::TITLE,
            description: T::DESCRIPTION,
            toolset: T::TOOLSET,
            core: T::CORE,
            annotations: T::ANNOTATIONS,
            rules: T::RULES,
            listed_input: schema::listed_input(&takes),
            input: takes,
            output: schema::listed_output(&reply),
            reply,
            spec: OnceLock::new(),
            call: |cx, arguments| Box::pin(call::<T>(cx, arguments)),
            reads: |arguments| input::<T>(arguments).map(drop),
        }
    }

    /// What arguments are checked against.
    #[must_use]
    pub fn input_schema(&self) -> &Value {
        &self.input
    }

    /// The tool as a model in a chat sees it.
    #[must_use]
    pub fn spec(&self) -> ToolSpec {
        let make = || ToolSpec::new(self.name, self.description, self.input.clone(), self.annotations.danger());
        self.spec.get_or_init(make).clone()
    }

    /// The input schema as clients list it: without bounds that no model needs to read, and with `session_token` for
    /// callers that get such a token from `authenticate`.
    #[must_use]
    pub fn listed_input(&self, with_token: bool) -> Value {
        let mut schema = self.listed_input.clone();
        if with_token
            && self.rules.session != SessionNeed::Ignored
            && let Some(properties) = schema["properties"].as_object_mut()
        {
            let token = json!({ "type": "string", "description": "From authenticate." });
            properties.insert("session_token".to_owned(), token);
        }
        schema
    }

    /// What every reply and every error looks like, as clients list it.
    #[must_use]
    pub fn output_schema(&self) -> &Value {
        &self.output
    }

    /// Whether these arguments, which were checked against its schema, are an input of the tool.
    ///
    /// # Errors
    /// What they lack.
    pub fn reads(&self, arguments: Value) -> Result<(), ToolError> {
        (self.reads)(arguments)
    }

    /// The complete schema of replies. The listed one is made from it by leaving out.
    #[must_use]
    pub fn reply_schema(&self) -> &Value {
        &self.reply
    }

    /// Whether a caller that may only read may call it.
    #[must_use]
    pub fn is_for_viewers(&self) -> bool {
        self.annotations.read_only
    }

    /// Runs the tool on arguments that were checked against its schema.
    pub async fn call(&self, cx: &ToolContext, arguments: Value) -> Result<ToolReply<Map<String, Value>>, ToolError> {
        (self.call)(cx, arguments).await
    }
}

/// The input that these arguments are.
fn input<T: Tool>(arguments: Value) -> Result<T::Input, ToolError> {
    serde_json::from_value(arguments).map_err(|error| ToolError::new(ErrorCode::InvalidParams, error.to_string()))
}

async fn call<T: Tool>(cx: &ToolContext, arguments: Value) -> Result<ToolReply<Map<String, Value>>, ToolError> {
    let answer = T::call(cx, input::<T>(arguments)?).await?;
    Ok(answer.map(|output| match serde_json::to_value(output) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    }))
}
