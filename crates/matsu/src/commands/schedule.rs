//! `matsu schedule`: work that starts by itself.

use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};

use super::research::Research;
use super::run::{self as agent_run, Run};
use super::{Context, field, print_json, print_table, research};
use crate::cli::Global;
use crate::client::{Client, segment};

#[derive(Subcommand)]
pub enum ScheduleCommand {
    /// Add a schedule: `matsu schedule add "0 7 * * 1-5" run claude "what is new?"`
    Add(Box<Add>),
    /// List schedules
    List,
    /// Show the firings of a schedule and what they started, newest first
    History { name: String },
    /// Pause a schedule; it does not fire until it is resumed
    Pause { name: String },
    /// Resume a paused schedule; nothing is started for the times that passed meanwhile
    Resume { name: String },
    /// Remove a schedule; tasks that it started stay
    Remove { name: String },
}

#[derive(Args)]
pub struct Add {
    /// A cron expression of five fields: minute, hour, day, month, weekday
    #[arg(required_unless_present_any = ["every", "at"], conflicts_with_all = ["every", "at"])]
    cron: Option<String>,
    /// Fire repeatedly, each time after this time: 90s, 15m, 6h or 1d; at least a minute
    #[arg(long, value_name = "TIME", conflicts_with = "at", value_parser = seconds)]
    every: Option<u64>,
    /// Fire once, at this time: "2030-01-31 07:00", or RFC 3339
    #[arg(long, value_name = "TIME")]
    at: Option<String>,
    /// The time zone, such as Europe/Berlin (default: that of this machine)
    #[arg(long, value_name = "ZONE")]
    tz: Option<String>,
    /// A name for the schedule (default: the first words of its message or question)
    #[arg(long)]
    name: Option<String>,
    /// What to do if the work of the previous firing has not ended: skip or queue
    #[arg(long, value_name = "WORD")]
    overlap: Option<String>,
    /// Start nothing later for a time that passed while no daemon ran
    #[arg(long)]
    no_catch_up: bool,
    #[command(subcommand)]
    what: Work,
}

#[derive(Subcommand)]
enum Work {
    /// Start a run of an agent; read-only, unless --mode is given
    Run(Run),
    /// Start research
    Research(Research),
}

/// `90s`, `15m`, `6h`, `1d`, or seconds.
fn seconds(text: &str) -> Result<u64, String> {
    let number = text.trim_end_matches(char::is_alphabetic);
    let unit = match &text[number.len()..] {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        unit => return Err(format!("unknown unit {unit:?}; use s, m, h or d")),
    };
    let number: u64 =
        number.parse().map_err(|_| format!("{text:?} is not a time; expected a number and a unit, such as 15m"))?;
    number.checked_mul(unit).ok_or_else(|| format!("{text} is too long"))
}

pub async fn run(cx: &Context, global: &Global, what: ScheduleCommand) -> Result<ExitCode> {
    let client = Client::with_daemon(&cx.config, global).await?;
    let path = |name: &str, more: &str| format!("/api/v1/schedules/{}{more}", segment(name));
    match what {
        ScheduleCommand::Add(add) => {
            let added = client.post("/api/v1/schedules", body(*add)?).await?;
            tell(cx, &added, &format!("{} fires next at {}", field(&added, "name"), field(&added, "next_at")));
        }
        ScheduleCommand::List => list(cx, &client).await?,
        ScheduleCommand::History { name } => history(cx, &client, &path(&name, "/firings")).await?,
        ScheduleCommand::Pause { name } => {
            let changed = client.post(&path(&name, "/pause"), json!({ "paused": true })).await?;
            tell(cx, &changed, &format!("{name} is paused"));
        }
        ScheduleCommand::Resume { name } => {
            let changed = client.post(&path(&name, "/pause"), json!({ "paused": false })).await?;
            tell(cx, &changed, &format!("{name} fires next at {}", field(&changed, "next_at")));
        }
        ScheduleCommand::Remove { name } => {
            let removed = client.delete(&path(&name, "")).await?;
            tell(cx, &removed, &format!("{name} is removed"));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn tell(cx: &Context, body: &Value, line: &str) {
    if cx.json {
        print_json(body);
    } else {
        say!("{line}");
    }
}

fn body(add: Add) -> Result<Value> {
    let here = || jiff::tz::TimeZone::system().iana_name().unwrap_or("UTC").to_owned();
    let directory = std::env::current_dir().context("cannot find the current directory")?;
    let Some(directory) = directory.to_str() else {
        bail!("the name of the current directory is not UTF-8: {}; use another one", directory.display());
    };
    let mut body = json!({ "timezone": add.tz.unwrap_or_else(here), "directory": directory });
    let (title, work) = match add.what {
        Work::Run(args) => {
            let mut wish = agent_run::wish(args)?;
            wish.remove("kind");
            (field(&Value::Object(wish.clone()), "message"), json!({ "run": wish }))
        }
        Work::Research(args) => {
            let (mut wish, searches) = research::wish(&args)?;
            wish.remove("kind");
            wish.remove("folders");
            match args.folders.as_slice() {
                [] => {}
                [folder] => body["directory"] = json!(folder.canonicalize()?),
                _ => bail!("scheduled research searches the documents of one folder; give --dir once"),
            }
            (args.question.clone(), json!({ "research": wish, "searches": searches }))
        }
    };
    let short = || title.split_whitespace().take(5).collect::<Vec<_>>().join(" ").chars().take(40).collect::<String>();
    let optional = [
        ("cron", json!(add.cron)),
        ("every", json!(add.every)),
        ("at", json!(add.at)),
        ("overlap", json!(add.overlap)),
        ("catch_up", json!(add.no_catch_up.then_some(false))),
        ("name", json!(add.name.clone().unwrap_or_else(short))),
    ];
    let mut all: Map<String, Value> = body.as_object().cloned().unwrap_or_default();
    all.extend(
        optional.into_iter().filter(|(_, value)| !value.is_null()).map(|(name, value)| (name.to_owned(), value)),
    );
    all.extend(work.as_object().cloned().unwrap_or_default());
    Ok(Value::Object(all))
}

async fn list(cx: &Context, client: &Client) -> Result<()> {
    let page = client.get("/api/v1/schedules?limit=200").await?;
    if cx.json {
        print_json(&page);
        return Ok(());
    }
    let row = |schedule: &Value| {
        let next = if schedule["paused"].is_null() { "next_at" } else { "paused" };
        ["name", "rule", next, "starts"].map(|name| field(schedule, name)).to_vec()
    };
    let rows: Vec<Vec<String>> = page["items"].as_array().into_iter().flatten().map(row).collect();
    print_table(&["SCHEDULE", "WHEN", "NEXT", "STARTS"], &rows);
    if !rows.is_empty() && !client.has_daemon() {
        eprintln!("No daemon runs, so nothing is started. Start one: matsu serve");
    }
    Ok(())
}

async fn history(cx: &Context, client: &Client, path: &str) -> Result<()> {
    let page = client.get(path).await?;
    if cx.json {
        print_json(&page);
        return Ok(());
    }
    let row = |firing: &Value| ["due_at", "state", "task_id", "note"].map(|name| field(firing, name)).to_vec();
    let rows: Vec<Vec<String>> = page["items"].as_array().into_iter().flatten().map(row).collect();
    print_table(&["TIME", "STATE", "TASK", "NOTE"], &rows);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::seconds;

    #[test]
    fn a_time_between_two_firings_is_read_with_its_unit() {
        for (text, expected) in [("90", 90), ("90s", 90), ("15m", 900), ("6h", 21_600), ("1d", 86_400)] {
            assert_eq!(seconds(text), Ok(expected));
        }
        for bad in ["", "m", "5w", "-1m", "99999999999999999999d"] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
    }
}
