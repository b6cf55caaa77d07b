//! `matsu usage`: what runs of agents have cost, by day, agent, model and project.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use matsu_core::clock::Clock;
use serde_json::Value;

use super::{Context, field, print_json, print_table};
use crate::client::Client;
use crate::terminal::plain_text::plain_line;

#[derive(Args)]
pub struct Usage {
    /// Days to look back
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=400))]
    pub days: u32,
    /// How to group the sums: by day, agent, model and project, separated by commas
    #[arg(long, value_name = "WORDS", default_value = "day,agent,model")]
    pub by: String,
}

pub async fn run(cx: &Context, args: &Usage) -> Result<ExitCode> {
    let client = Client::connect(&cx.config).await?;
    let zone = jiff::tz::TimeZone::system().iana_name().unwrap_or("UTC").to_owned();
    let from = Clock::system().now().minus(Duration::from_secs(u64::from(args.days) * 86_400));
    let path = format!("/api/v1/usage?from={from}&timezone={zone}&by={}", args.by.replace(' ', ""));
    let said = client.get(&path).await?;
    if cx.json {
        print_json(&said);
        return Ok(ExitCode::SUCCESS);
    }
    let items = said["items"].as_array().cloned().unwrap_or_default();
    if items.is_empty() {
        say!("No run of an agent has ended in the last {} days.", args.days);
        return Ok(ExitCode::SUCCESS);
    }
    let names: Vec<&str> = args.by.split(',').map(str::trim).collect();
    let row = |item: &Value| {
        let name = |name: &&str| if item[*name].is_null() { "-".to_owned() } else { plain_line(&field(item, name)) };
        names.iter().map(name).chain(figures(item)).collect::<Vec<_>>()
    };
    let mut rows: Vec<Vec<String>> = items.iter().map(row).collect();
    let blank = vec![String::new(); names.len().saturating_sub(1)];
    rows.push(std::iter::once("total".to_owned()).chain(blank).chain(figures(&said["total"])).collect());
    let titles: Vec<String> = names.iter().map(|name| name.to_uppercase()).collect();
    let mut titles: Vec<&str> = titles.iter().map(String::as_str).collect();
    titles.extend(["RUNS", "INPUT", "OUTPUT", "COST"]);
    print_table(&titles, &rows);
    let unknown = said["total"]["unknown_runs"].as_u64().unwrap_or(0);
    if unknown > 0 {
        say!("{unknown} of the runs reported no token usage; they count as 0.");
    }
    if said["total"]["is_estimate"] == true {
        say!("~: computed from the prices in your configuration.");
    }
    Ok(ExitCode::SUCCESS)
}

fn figures(item: &Value) -> Vec<String> {
    let cost = match item["cost_usd"].as_f64() {
        Some(cost) => format!("{}${cost:.2}", if item["is_estimate"] == true { "~" } else { "" }),
        None => "-".to_owned(),
    };
    vec![item["runs"].to_string(), item["input_tokens"].to_string(), item["output_tokens"].to_string(), cost]
}
