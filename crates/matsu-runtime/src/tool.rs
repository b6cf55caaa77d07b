//! A tool: one file with its name, description, input, output and call. The same tools are called by MCP, by the
//! built-in loop and by `matsu call`; nothing here knows a transport.

pub mod context;
pub mod entry;
pub(crate) mod envelope;
pub mod error;
pub mod folders;
pub mod native_task;
pub mod reply_check;
pub mod rules;
pub(crate) mod schema;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use matsu_core::id::TaskId;

pub use context::{NativeTasks, ToolContext, Watched, Workplace};
pub use entry::{Annotations, ToolEntry, Toolset};
pub use error::ToolError;
pub use rules::Rules;

/// What a model can call.
pub trait Tool: Send + Sync + 'static {
    /// The name on the wire; also the name of its file.
    const NAME: &'static str;
    /// What a person reads in a list of tools.
    const TITLE: &'static str;
    /// What the model reads, at most 600 characters, beginning with the domain: what the tool does, when to use it
    /// and which tool instead, what comes back.
    const DESCRIPTION: &'static str;
    const TOOLSET: Toolset;
    /// Whether the default preset `core` has it.
    const CORE: bool = false;
    const ANNOTATIONS: Annotations;
    /// What it asks of its caller.
    const RULES: Rules = Rules::ORDINARY;
    /// Whether a relay sends a call again when the daemon that had it has ended.
    const REPEAT: Repeat = Repeat::Never;
    /// The argument with the seconds that a call waits. A call that is sent again waits for the rest of them.
    const WAIT_ARGUMENT: Option<&'static str> = None;
    /// Its schema is what arguments are checked against, so what it says holds.
    type Input: DeserializeOwned + JsonSchema + Send;
    type Output: Serialize + JsonSchema + Send;

    fn call(
        cx: &ToolContext,
        input: Self::Input,
    ) -> impl Future<Output = Result<ToolReply<Self::Output>, ToolError>> + Send;
}

/// Whether a call whose answer was lost is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// It could be done twice.
    Never,
    /// A second call changes nothing more.
    Harmless,
    /// The relay adds a key by which the daemon finds what the first call has started.
    WithKey,
}

/// What a relay must know of a tool. A constant, because a relay starts without making the schemas.
#[derive(Clone, Copy, Debug)]
pub struct RelayedTool {
    pub name: &'static str,
    pub repeat: Repeat,
    pub wait_argument: Option<&'static str>,
}

impl RelayedTool {
    #[must_use]
    pub const fn of<T: Tool>() -> Self {
        Self { name: T::NAME, repeat: T::REPEAT, wait_argument: T::WAIT_ARGUMENT }
    }
}

/// How a call is answered.
#[derive(Debug)]
pub enum ToolReply<T> {
    Done(T),
    /// It goes on as a task of its own; only for callers that said they can follow one.
    Deferred(TaskId),
}

impl<T> ToolReply<T> {
    pub(crate) fn map<U>(self, change: impl FnOnce(T) -> U) -> ToolReply<U> {
        match self {
            Self::Done(value) => ToolReply::Done(change(value)),
            Self::Deferred(id) => ToolReply::Deferred(id),
        }
    }
}
