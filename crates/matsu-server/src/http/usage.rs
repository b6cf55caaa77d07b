//! What runs have cost, in sums.

use std::time::Duration;

use axum::Json;
use axum::extract::{Query, State};
use matsu_core::clock::Timestamp;
use matsu_core::limits::SPENT_KEPT;
use matsu_core::usage::UsageBy;
use matsu_runtime::agents::{Agents, UsageSum, UsageWish};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::app::App;
use crate::auth::Caller;
use crate::problem::Problem;
use crate::resource::{Resource, operation};

/// Of a request that names no beginning.
const USUAL_SPAN: Duration = Duration::from_secs(7 * 24 * 3600);

pub fn routes() -> Resource {
    let read = operation("read_usage", "The cost of the runs of agents, in sums.").query::<UsageQuery>();
    Resource::default().get("/usage", read.answers::<UsageBody>(), read_usage)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct UsageQuery {
    /// RFC 3339. Absent: seven days ago.
    from: Option<String>,
    /// RFC 3339. Absent: now.
    until: Option<String>,
    /// The time zone of the days, such as Europe/Berlin. Absent: UTC.
    timezone: Option<String>,
    /// How the sums are grouped: day, agent, model, project, separated by commas. Absent: day,agent,model.
    by: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct UsageBody {
    items: Vec<SumBody>,
    total: SumBody,
}

#[derive(Serialize, JsonSchema)]
struct SumBody {
    #[serde(skip_serializing_if = "Option::is_none")]
    day: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    project: Option<String>,
    runs: u64,
    /// Runs whose program did not report the cost.
    unknown_runs: u64,
    input_tokens: u64,
    output_tokens: u64,
    /// Absent: not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_usd: Option<f64>,
    /// A part of the cost is computed from your prices.
    is_estimate: bool,
}

impl From<UsageSum> for SumBody {
    fn from(sum: UsageSum) -> Self {
        Self {
            day: sum.day,
            agent: sum.agent,
            model: sum.model,
            project: sum.project,
            runs: sum.runs,
            unknown_runs: sum.unknown_runs,
            input_tokens: sum.usage.input_tokens,
            output_tokens: sum.usage.output_tokens,
            cost_usd: sum.usage.cost_usd.map(|cost| (cost * 1e6).round() / 1e6),
            is_estimate: sum.is_estimate,
        }
    }
}

impl UsageQuery {
    fn wish(&self, now: Timestamp) -> Result<UsageWish, Problem> {
        let time = |name: &str, text: &Option<String>, usual: Timestamp| match text {
            None => Ok(usual),
            Some(text) => Timestamp::parse(text).ok_or_else(|| {
                Problem::invalid(format!("{name} must be a time such as 2026-01-31T03:00:00Z, got {text}"))
            }),
        };
        let until = time("until", &self.until, now.plus(Duration::from_secs(1)))?;
        let from = time("from", &self.from, until.minus(USUAL_SPAN))?.max(until.minus(SPENT_KEPT));
        let words = self.by.as_deref().unwrap_or("day,agent,model").split(',').map(str::trim);
        let by = words.map(|word| {
            UsageBy::parse(word).ok_or_else(|| {
                Problem::invalid(format!("by must contain only day, agent, model and project, got {word}"))
            })
        });
        let timezone = self.timezone.clone().unwrap_or_else(|| "UTC".to_owned());
        Ok(UsageWish { from, until, timezone, by: by.collect::<Result<_, _>>()? })
    }
}

async fn read_usage(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<UsageQuery>,
) -> Result<Json<UsageBody>, Problem> {
    let wish = query.wish(app.runtime().clock().now())?;
    let (items, total) = Agents::of(app.runtime()).usage(&caller.principal, &wish).await?;
    Ok(Json(UsageBody { items: items.into_iter().map(Into::into).collect(), total: total.into() }))
}
