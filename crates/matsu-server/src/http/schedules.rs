//! Schedules: work that starts by itself. Each user has its own.

use axum::Json;
use axum::extract::{Path, Query, State};
use matsu_core::schedule::{Firing, FiringState, Overlap, Plan, Rule, Schedule};
use matsu_runtime::notify::schedules::{ScheduleWish, Schedules, rule};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::app::App;
use crate::auth::Caller;
use crate::problem::Problem;
use crate::resource::{Resource, operation};
use crate::wire::{PageBody, PageQuery, PauseBody, time};

pub fn routes() -> Resource {
    let list = operation("list_schedules", "Schedules, oldest first.").query::<PageQuery>();
    let add = operation("add_schedule", "Adds a schedule: work that starts at certain times.").body::<NewBody>();
    let pause = operation("pause_schedule", "Pauses or resumes a schedule.").body::<PauseBody>();
    let remove = operation("remove_schedule", "Removes a schedule; tasks that it started stay.");
    let firings = operation("list_firings", "Outcome of each firing of a schedule, newest first.").query::<PageQuery>();
    Resource::default()
        .get("/schedules", list.answers::<PageBody<ScheduleBody>>(), self::list)
        .post("/schedules", add.answers::<ScheduleBody>(), self::add)
        .post("/schedules/{id}/pause", pause.answers::<ScheduleBody>(), self::pause)
        .delete("/schedules/{id}", remove.answers::<ScheduleBody>(), self::remove)
        .get("/schedules/{id}/firings", firings.answers::<PageBody<FiringBody>>(), self::firings)
}

/// Exactly one of `cron`, `every` and `at`, and one of `run` and `research`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewBody {
    /// A name that none of your schedules has.
    #[schemars(length(min = 1, max = 64))]
    name: String,
    /// A cron expression of five fields: minute, hour, day, month, weekday.
    cron: Option<String>,
    /// Seconds between two times, at least 60.
    every: Option<u64>,
    /// Once, at this time: RFC 3339, or a date and a time in `timezone`.
    at: Option<String>,
    /// A name such as Europe/Berlin. Absent: UTC.
    timezone: Option<String>,
    /// A run of an agent: the arguments of use_agent. It is read-only unless `mode` says otherwise.
    run: Option<Map<String, Value>>,
    /// Research: the arguments of create_task.
    research: Option<Map<String, Value>>,
    /// The searches of the research.
    #[serde(default)]
    searches: Vec<String>,
    /// The folder to work in.
    directory: Option<String>,
    /// What happens if the previous work has not ended. Absent: skip.
    overlap: Option<Overlap>,
    /// Whether a time that passed while no daemon ran is made up for, once. Absent: yes.
    catch_up: Option<bool>,
}

impl NewBody {
    fn wish(self) -> Result<ScheduleWish, Problem> {
        let timezone = self.timezone.unwrap_or_else(|| "UTC".to_owned());
        let rule = match (self.cron, self.every, self.at) {
            (Some(expression), None, None) => Rule::Cron { expression, timezone },
            (None, Some(seconds), None) => Rule::Every { seconds },
            (None, None, Some(at)) => Rule::At { at: rule::point(&at, &timezone).map_err(Problem::invalid)? },
            _ => return Err(Problem::invalid("exactly one of cron, every and at is needed")),
        };
        let plan = match (self.run, self.research) {
            (Some(arguments), None) => Plan::Run(arguments),
            (None, Some(task)) => Plan::Research { task, searches: self.searches },
            _ => return Err(Problem::invalid("exactly one of run and research is needed")),
        };
        Ok(ScheduleWish {
            name: self.name,
            rule,
            plan,
            directory: self.directory,
            overlap: self.overlap.unwrap_or(Overlap::Skip),
            catch_up: self.catch_up.unwrap_or(true),
        })
    }
}

#[derive(Serialize, JsonSchema)]
struct ScheduleBody {
    schedule_id: String,
    name: String,
    /// When it fires, in one line.
    rule: String,
    /// What it starts, in one line.
    starts: String,
    directory: Option<String>,
    overlap: Overlap,
    catch_up: bool,
    /// Why it does not fire at the moment. Absent: it fires.
    paused: Option<String>,
    /// Absent: never again.
    next_at: Option<String>,
    created_at: String,
}

impl From<&Schedule> for ScheduleBody {
    fn from(schedule: &Schedule) -> Self {
        let rule = match &schedule.rule {
            Rule::Cron { expression, timezone } => format!("{expression} ({timezone})"),
            Rule::Every { seconds } => format!("every {seconds} s"),
            Rule::At { at } => format!("once at {}", time(*at)),
        };
        let word =
            |arguments: &Map<String, Value>, name| arguments.get(name).and_then(Value::as_str).map(str::to_owned);
        let starts = match &schedule.plan {
            Plan::Run(run) => {
                let of = |name| word(run, name).unwrap_or_default();
                format!("run {} ({}): {}", of("cli_name"), of("mode"), of("message"))
            }
            Plan::Research { task, .. } => format!("research: {}", word(task, "query").unwrap_or_default()),
        };
        Self {
            schedule_id: schedule.id.to_string(),
            name: schedule.name.clone(),
            rule,
            starts,
            directory: schedule.directory.clone(),
            overlap: schedule.overlap,
            catch_up: schedule.catch_up,
            paused: schedule.paused.clone(),
            next_at: schedule.next_at.filter(|_| schedule.paused.is_none()).map(time),
            created_at: time(schedule.created_at),
        }
    }
}

#[derive(Serialize, JsonSchema)]
struct FiringBody {
    due_at: String,
    state: FiringState,
    task_id: Option<String>,
    /// Why nothing was started.
    note: Option<String>,
}

impl From<&Firing> for FiringBody {
    fn from(firing: &Firing) -> Self {
        Self {
            due_at: time(firing.due_at),
            state: firing.state,
            task_id: firing.task_id.as_ref().map(ToString::to_string),
            note: firing.note.clone(),
        }
    }
}

async fn list(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<PageQuery>,
) -> Result<Json<PageBody<ScheduleBody>>, Problem> {
    Ok(Json(PageBody::of(Schedules::of(app.runtime()).schedules(&caller.principal, &query.page()).await?)))
}

async fn add(State(app): State<App>, caller: Caller, Json(body): Json<NewBody>) -> Result<Json<ScheduleBody>, Problem> {
    let added = Schedules::of(app.runtime()).add_schedule(&caller.principal, body.wish()?).await?;
    Ok(Json(ScheduleBody::from(&added)))
}

async fn pause(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Json(body): Json<PauseBody>,
) -> Result<Json<ScheduleBody>, Problem> {
    let changed = Schedules::of(app.runtime()).pause_schedule(&caller.principal, &id, body.paused).await?;
    Ok(Json(ScheduleBody::from(&changed)))
}

async fn remove(State(app): State<App>, caller: Caller, Path(id): Path<String>) -> Result<Json<ScheduleBody>, Problem> {
    let removed = Schedules::of(app.runtime()).remove_schedule(&caller.principal, &id).await?;
    Ok(Json(ScheduleBody::from(&removed)))
}

async fn firings(
    State(app): State<App>,
    caller: Caller,
    Path(id): Path<String>,
    Query(query): Query<PageQuery>,
) -> Result<Json<PageBody<FiringBody>>, Problem> {
    Ok(Json(PageBody::of(Schedules::of(app.runtime()).firings(&caller.principal, &id, &query.page()).await?)))
}
