//! Tools as a list can hold them: the type erased, the schemas made once.

use std::pin::Pin;

use serde_json::{Map, Value, json};

use matsu_core::error_code::ErrorCode;

use super::rules::{Rules, SessionNeed};
use super::{Answer, Tool, ToolContext, ToolError};
use crate::dispatch::schema;

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

/// Hints for whoever approves calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Annotations {
    pub read_only: bool,
    pub destructive: bool,
    pub idempotent: bool,
}

type Called<'a> = Pin<Box<dyn Future<Output = Result<Answer<Map<String, Value>>, ToolError>> + Send + 'a>>;

pub struct ToolEntry {
    pub name: &'static str,
    pub description: &'static str,
    pub toolset: Toolset,
    pub annotations: Annotations,
    pub rules: Rules,
    input: Value,
    output: Value,
    call: for<'a> fn(&'a ToolContext, Value) -> Called<'a>,
    reads: fn(Value) -> Result<(), ToolError>,
}

impl ToolEntry {
    #[must_use]
    pub fn of<T: Tool>() -> Self {
        Self {
            name: T::NAME,
            description: T::DESCRIPTION,
            toolset: T::TOOLSET,
            annotations: T::ANNOTATIONS,
            rules: T::RULES,
            input: with_token(schema::input::<T::Input>(), T::RULES),
            output: schema::output::<T::Output>(),
            call: |cx, arguments| Box::pin(call::<T>(cx, arguments)),
            reads: |arguments| input::<T>(arguments).map(drop),
        }
    }

    /// What arguments must look like.
    #[must_use]
    pub fn input_schema(&self) -> &Value {
        &self.input
    }

    /// What every reply and every error looks like.
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

    /// Runs the tool on arguments that were checked against its schema.
    pub async fn call(&self, cx: &ToolContext, arguments: Value) -> Result<Answer<Map<String, Value>>, ToolError> {
        (self.call)(cx, arguments).await
    }
}

/// The input that these arguments are.
fn input<T: Tool>(arguments: Value) -> Result<T::Input, ToolError> {
    serde_json::from_value(arguments).map_err(|error| ToolError::new(ErrorCode::InvalidParams, error.to_string()))
}

/// Every tool accepts the token of the session that calls; the dispatch takes it out before the tool sees anything.
fn with_token(mut schema: Value, rules: Rules) -> Value {
    if rules.session != SessionNeed::Ignored
        && let Some(properties) = schema["properties"].as_object_mut()
    {
        properties.insert("session_token".to_owned(), json!({ "type": "string" }));
    }
    schema
}

async fn call<T: Tool>(cx: &ToolContext, arguments: Value) -> Result<Answer<Map<String, Value>>, ToolError> {
    let answer = T::call(cx, input::<T>(arguments)?).await?;
    Ok(answer.map(|output| match serde_json::to_value(output) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    }))
}
