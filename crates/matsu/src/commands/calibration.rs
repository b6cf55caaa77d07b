//! `matsu calibration`: how far the judges can be trusted, and the way back to an earlier version.

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;
use serde_json::json;

use super::{Context, field, print_json, print_table};
use crate::client::Client;

#[derive(Subcommand)]
pub enum Calibration {
    /// Show judges, versions and scores
    Show,
    /// Use an earlier version again
    #[command(disable_version_flag = true)]
    Rollback {
        /// The name of the judge
        source: String,
        /// The version; by default the previous one
        #[arg(long)]
        version: Option<u32>,
        /// The reason; stored in the log
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
}

pub async fn run(cx: &Context, what: Calibration) -> Result<ExitCode> {
    let client = Client::connect(&cx.config).await?;
    let answer = match &what {
        Calibration::Show => client.get("/api/v1/calibration").await?,
        Calibration::Rollback { source, version, reason } => {
            let mut body = json!({ "source": source });
            if let Some(version) = version {
                body["version"] = json!(version);
            }
            if let Some(reason) = reason {
                body["reason"] = json!(reason);
            }
            client.post("/api/v1/calibration/rollback", body).await?
        }
    };
    if cx.json {
        print_json(&answer);
        return Ok(ExitCode::SUCCESS);
    }
    if let Calibration::Rollback { .. } = what {
        let (from, to) = (&answer["previous_version"], &answer["rolled_back_to"]);
        say!("{}: version {to} is active again (before: {from})", field(&answer, "source"));
        return Ok(ExitCode::SUCCESS);
    }
    let rows: Vec<Vec<String>> = answer["stats"]["sources"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, stats)| {
            let names = ["version_in_force", "method", "brier_before", "brier_after", "samples_total", "rollbacks"];
            [name.clone()].into_iter().chain(names.map(|name| field(stats, name))).collect()
        })
        .collect();
    print_table(&["JUDGE", "VERSION", "METHOD", "BRIER BEFORE", "AFTER", "SAMPLES", "ROLLBACKS"], &rows);
    Ok(ExitCode::SUCCESS)
}
