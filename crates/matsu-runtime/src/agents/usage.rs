//! What runs have cost, summed by day, agent, model and project.

use std::collections::BTreeMap;

use jiff::tz::TimeZone;

use matsu_core::clock::Timestamp;
use matsu_core::limits::SPENT_RUNS_MAX;
use matsu_core::ports::store::ReadSpent;
use matsu_core::principal::Principal;
use matsu_core::usage::{Price, Spent, Usage, UsageBy};

use crate::tasks::TaskError;

use super::Agents;

/// Which runs are summed, and how.
#[derive(Clone, Debug)]
pub struct UsageWish {
    pub from: Timestamp,
    pub until: Timestamp,
    /// Where days begin.
    pub timezone: String,
    pub by: Vec<UsageBy>,
}

/// One sum. What the sums are not kept apart by is absent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UsageSum {
    pub day: Option<String>,
    pub agent: Option<String>,
    /// Absent also where no run said it.
    pub model: Option<String>,
    /// Absent also for runs without a directory.
    pub project: Option<String>,
    pub runs: u64,
    /// Runs whose program did not say what it cost.
    pub unknown_runs: u64,
    pub usage: Usage,
    /// Some of the cost follows from the prices in the configuration.
    pub is_estimate: bool,
}

type Key = (Option<String>, Option<String>, Option<String>, Option<String>);

impl Agents<'_> {
    /// The sums in the order of days and names, and the sum of everything.
    ///
    /// # Errors
    /// `Invalid` for an unknown time zone, and for a span with too many runs.
    pub async fn usage(self, owner: &Principal, wish: &UsageWish) -> Result<(Vec<UsageSum>, UsageSum), TaskError> {
        let unknown = |_| {
            let name = &wish.timezone;
            TaskError::Invalid(format!("timezone must be a name such as Europe/Berlin or UTC, got {name}"))
        };
        let zone = TimeZone::get(&wish.timezone).map_err(unknown)?;
        let spent = self
            .runtime
            .store()
            .run(ReadSpent { owner: owner.clone(), from: wish.from, until: wish.until, rows_max: SPENT_RUNS_MAX + 1 })
            .await?;
        if spent.len() > SPENT_RUNS_MAX as usize {
            let message = format!("more than {SPENT_RUNS_MAX} runs ended in this span; ask for a shorter one");
            return Err(TaskError::Invalid(message));
        }
        Ok(sums(&spent, &wish.by, &zone, &self.runtime.prices()))
    }
}

fn sums(
    spent: &[Spent],
    by: &[UsageBy],
    zone: &TimeZone,
    prices: &BTreeMap<String, Price>,
) -> (Vec<UsageSum>, UsageSum) {
    let mut found: BTreeMap<Key, UsageSum> = BTreeMap::new();
    let mut total = UsageSum::default();
    for run in spent {
        let has = |what: UsageBy| by.contains(&what);
        let day = has(UsageBy::Day).then(|| day(run.at, zone));
        let agent = has(UsageBy::Agent).then(|| run.agent.clone());
        let model = run.model.clone().filter(|_| has(UsageBy::Model));
        let project = run.project.clone().filter(|_| has(UsageBy::Project));
        let key = (day, agent, model, project);
        let sum = found.entry(key.clone()).or_insert_with(|| {
            let (day, agent, model, project) = key;
            UsageSum { day, agent, model, project, ..UsageSum::default() }
        });
        let (usage, is_estimate) = priced(run, prices);
        add(sum, usage, is_estimate);
        add(&mut total, usage, is_estimate);
    }
    (found.into_values().collect(), total)
}

fn add(sum: &mut UsageSum, usage: Option<Usage>, is_estimate: bool) {
    sum.runs += 1;
    sum.unknown_runs += u64::from(usage.is_none());
    sum.usage = sum.usage.plus(usage.unwrap_or_default());
    sum.is_estimate |= is_estimate;
}

/// What a run has cost; by the user's prices, if its program does not say. `true`: by the prices.
pub(super) fn priced(run: &Spent, prices: &BTreeMap<String, Price>) -> (Option<Usage>, bool) {
    let Some(usage) = run.usage.filter(|usage| usage.cost_usd.is_none()) else { return (run.usage, false) };
    let cost_usd = price(prices, &run.agent, run.model.as_deref()).map(|price| price.of(usage));
    (Some(Usage { cost_usd, ..usage }), cost_usd.is_some())
}

/// That of the model, or of the agent.
pub(super) fn price<'a>(prices: &'a BTreeMap<String, Price>, agent: &str, model: Option<&str>) -> Option<&'a Price> {
    model.and_then(|model| prices.get(model)).or_else(|| prices.get(agent))
}

fn day(at: Timestamp, zone: &TimeZone) -> String {
    let at = jiff::Timestamp::from_millisecond(at.as_millis()).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    at.to_zoned(zone.clone()).date().to_string()
}

#[cfg(test)]
mod tests {
    use matsu_core::id::RunId;

    use super::*;

    fn run(at: &str, agent: &str, model: Option<&str>, usage: Option<(u64, Option<f64>)>) -> Spent {
        Spent {
            run_id: RunId::from_text("run_1"),
            owner: Principal::local_user(),
            at: Timestamp::parse(at).unwrap(),
            agent: agent.to_owned(),
            model: model.map(str::to_owned),
            project: None,
            usage: usage.map(|(input_tokens, cost_usd)| Usage { input_tokens, output_tokens: 1, cost_usd }),
        }
    }

    #[test]
    fn days_begin_where_the_user_is_and_prices_fill_in_what_programs_do_not_say() {
        let spent = [
            run("2026-01-31T22:30:00Z", "claude", Some("opus"), Some((10, Some(0.5)))),
            run("2026-01-31T23:30:00Z", "codex", Some("gpt"), Some((1_000_000, None))),
            run("2026-02-01T10:00:00Z", "codex", Some("gpt"), None),
            run("2026-02-01T11:00:00Z", "other", None, Some((5, None))),
        ];
        let prices = [("gpt".to_owned(), Price { input: 2.0, output: 0.0 })].into();
        let berlin = TimeZone::get("Europe/Berlin").unwrap();
        let (found, total) = sums(&spent, &[UsageBy::Day, UsageBy::Agent], &berlin, &prices);
        let shown: Vec<_> = found
            .iter()
            .map(|sum| {
                let (day, agent) = (sum.day.as_deref().unwrap(), sum.agent.as_deref().unwrap());
                (day, agent, sum.runs, sum.unknown_runs, sum.usage.cost_usd, sum.is_estimate)
            })
            .collect();
        let expected = [
            ("2026-01-31", "claude", 1, 0, Some(0.5), false),
            ("2026-02-01", "codex", 2, 1, Some(2.0), true),
            ("2026-02-01", "other", 1, 0, None, false),
        ];
        assert_eq!(shown, expected);
        assert_eq!((total.runs, total.usage.input_tokens, total.usage.cost_usd), (4, 1_000_015, Some(2.5)));
        let (by_model, _) = sums(&spent, &[UsageBy::Model], &berlin, &prices);
        assert_eq!(by_model.iter().map(|sum| sum.runs).collect::<Vec<_>>(), [1, 2, 1], "none, gpt, opus");
    }
}
