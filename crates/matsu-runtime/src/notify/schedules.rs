//! Work that starts by itself: schedules, and the loop that fires them.
//!
//! A time is stored as fired before its work is started, and the work carries the id of that time as its idempotency
//! key: a node that dies between the two loses nothing and doubles nothing.

pub(crate) mod repeat;
pub mod rule;
mod runner;
pub(crate) mod start;

use serde_json::{Map, Value};

use matsu_core::limits::SCHEDULES_MAX;
use matsu_core::page::{Page, PageRequest};
use matsu_core::ports::store::{
    AddSchedule, ListFirings, ListSchedules, ReadSchedule, RemoveSchedule, SetSchedule, StoreError,
};
use matsu_core::principal::Principal;
use matsu_core::schedule::{Firing, NewSchedule, Overlap, Plan, Rule, Schedule};

use crate::dispatch::check;
use crate::runtime::{Runtime, service};
use crate::tasks::TaskError;
use crate::tool::ToolError;
use crate::tools::{TOOLS, check_research, check_run};

pub use runner::run;

/// What a person asks for.
pub struct ScheduleWish {
    pub name: String,
    pub rule: Rule,
    pub plan: Plan,
    pub directory: Option<String>,
    pub overlap: Overlap,
    pub catch_up: bool,
}

service! {
    /// The schedules of a principal.
    Schedules
}

impl Schedules<'_> {
    /// # Errors
    /// What is asked for cannot be started or never fires, or the store refuses.
    pub async fn add_schedule(self, owner: &Principal, wish: ScheduleWish) -> Result<Schedule, TaskError> {
        if wish.name.is_empty() || wish.name.len() > 64 {
            return Err(TaskError::Invalid("the name of a schedule must have 1 to 64 bytes".to_owned()));
        }
        let now = self.runtime.clock().now();
        let next_at = rule::first_after(&wish.rule, now).map_err(TaskError::Invalid)?;
        let plan = checked(self.runtime, owner, wish.directory.as_deref(), wish.plan).await?;
        let have =
            self.runtime.store().run(ListSchedules(owner.clone(), PageRequest::new(None, Some(SCHEDULES_MAX)))).await?;
        if have.items.len() >= SCHEDULES_MAX as usize {
            return Err(TaskError::LimitExceeded(format!("one user has at most {SCHEDULES_MAX} schedules")));
        }
        let ScheduleWish { name, rule, directory, overlap, catch_up, .. } = wish;
        let new = NewSchedule { owner: owner.clone(), name, rule, plan, directory, overlap, catch_up, next_at };
        Ok(self.runtime.store().run(AddSchedule { new: new.clone(), now }).await?)
    }

    /// # Errors
    /// As the store's.
    pub async fn schedules(self, owner: &Principal, page: &PageRequest) -> Result<Page<Schedule>, TaskError> {
        Ok(self.runtime.store().run(ListSchedules(owner.clone(), page.clone())).await?)
    }

    /// Pauses a schedule, or lets it go on from now. Times that passed meanwhile are not made up for.
    ///
    /// # Errors
    /// There is none of that name, or it would never fire.
    pub async fn pause_schedule(self, owner: &Principal, key: &str, is_paused: bool) -> Result<Schedule, TaskError> {
        let found = self.runtime.store().run(ReadSchedule(owner.clone(), key.to_owned())).await?;
        let (paused, next_at) = if is_paused {
            (Some("paused by its owner"), found.next_at)
        } else {
            let next = rule::first_after(&found.rule, self.runtime.clock().now()).map_err(TaskError::Invalid)?;
            (None, Some(next))
        };
        self.runtime
            .store()
            .run(SetSchedule { id: found.id.clone(), paused: paused.map(str::to_owned), next_at })
            .await?;
        Ok(self.runtime.store().run(ReadSchedule(owner.clone(), found.id.as_str().to_owned())).await?)
    }

    /// # Errors
    /// There is none of that name.
    pub async fn remove_schedule(self, owner: &Principal, key: &str) -> Result<Schedule, TaskError> {
        Ok(self.runtime.store().run(RemoveSchedule(owner.clone(), key.to_owned())).await?)
    }

    /// What came of its times, newest first.
    ///
    /// # Errors
    /// There is none of that name.
    pub async fn firings(self, owner: &Principal, key: &str, page: &PageRequest) -> Result<Page<Firing>, TaskError> {
        let found = self.runtime.store().run(ReadSchedule(owner.clone(), key.to_owned())).await?;
        Ok(self.runtime.store().run(ListFirings(found.id.clone(), page.clone())).await?)
    }
}

/// The arguments of a run without a person, as `use_agent` will get them. It is read-only unless it says otherwise. What
/// would be refused now is refused, so that its owner learns of it before its time has come.
pub(crate) async fn checked_run(
    runtime: &Runtime,
    owner: &Principal,
    directory: Option<&str>,
    mut arguments: Map<String, Value>,
) -> Result<Map<String, Value>, TaskError> {
    arguments.entry("mode").or_insert_with(|| "read-only".into());
    arguments.insert("run_async".to_owned(), true.into());
    check_against("use_agent", &arguments)?;
    check_folder(directory)?;
    let cx = start::context(runtime, owner, directory).await?;
    check_run(&cx, Value::Object(arguments.clone())).await.map_err(refused)?;
    Ok(arguments)
}

/// The arguments as the tools will get them, checked as the tools check theirs.
async fn checked(runtime: &Runtime, owner: &Principal, directory: Option<&str>, plan: Plan) -> Result<Plan, TaskError> {
    match plan {
        Plan::Run(arguments) => Ok(Plan::Run(checked_run(runtime, owner, directory, arguments).await?)),
        Plan::Research { task, searches } => {
            if searches.is_empty() {
                return Err(TaskError::Invalid("research needs at least one search".to_owned()));
            }
            check_against("create_task", &task)?;
            check_folder(directory)?;
            let cx = start::context(runtime, owner, directory).await?;
            check_research(&cx, Value::Object(task.clone())).map_err(refused)?;
            Ok(Plan::Research { task, searches })
        }
    }
}

fn check_folder(directory: Option<&str>) -> Result<(), TaskError> {
    start::check_folder(directory).map_err(|refused| TaskError::Invalid(refused.why))
}

/// The refusal of a tool, with its code.
fn refused(error: ToolError) -> TaskError {
    TaskError::Store(StoreError::Refused { code: error.code, message: error.message })
}

fn check_against(tool: &str, arguments: &Map<String, Value>) -> Result<(), TaskError> {
    if arguments.contains_key("idempotency_key") {
        return Err(TaskError::Invalid("idempotency_key is set for each start; leave it out".to_owned()));
    }
    let Some(entry) = TOOLS.iter().find(|entry| entry.name == tool) else { return Ok(()) };
    let arguments = Value::Object(arguments.clone());
    let checked = check::arguments(entry.input_schema(), &arguments).and_then(|()| entry.reads(arguments));
    checked.map_err(|error| TaskError::Invalid(error.message))
}
