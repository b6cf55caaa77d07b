//! `matsu feedback`: what a person corrects, and the log of it.

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args;
use serde_json::json;

use super::{Context, field, print_json, print_table};
use crate::client::Client;

#[derive(Args)]
pub struct Feedback {
    /// domain_block, domain_unblock, domain_clear_override, claim_reject, claim_restore, edge_correct; without an
    /// action, the log is listed
    pub action: Option<String>,
    /// The domain pattern, claim or edge
    pub target: Option<String>,
    /// For edge_correct: supports, refutes or neutral
    #[arg(long, value_name = "RELATION")]
    pub relation: Option<String>,
    /// The reason; stored in the log
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<String>,
}

pub async fn run(cx: &Context, args: Feedback) -> Result<ExitCode> {
    let client = Client::connect(&cx.config).await?;
    let Some(action) = args.action else { return list(cx, &client).await };
    let name = match action.as_str() {
        "domain_block" | "domain_unblock" | "domain_clear_override" => "domain_pattern",
        "claim_reject" | "claim_restore" => "claim_id",
        "edge_correct" => "edge_id",
        other => bail!("there is no action {other}; see matsu feedback --help"),
    };
    let mut body = json!({ "action": action });
    for (name, value) in [(name, args.target), ("correct_relation", args.relation), ("reason", args.reason)] {
        if let Some(value) = value {
            body[name] = json!(value);
        }
    }
    let answer = client.post("/api/v1/feedback", body).await?;
    if cx.json {
        print_json(&answer);
    } else if let Some(confidence) = answer["claim"]["confidence"].as_f64() {
        let (before, after) = (field(&answer, "previous_relation"), field(&answer, "new_relation"));
        say!("{before} → {after}; the claim's confidence is now {confidence:.3}");
    } else {
        say!("Done. It takes effect at once.");
    }
    Ok(ExitCode::SUCCESS)
}

async fn list(cx: &Context, client: &Client) -> Result<ExitCode> {
    let log = client.get("/api/v1/feedback").await?;
    if cx.json {
        print_json(&log);
        return Ok(ExitCode::SUCCESS);
    }
    let rows: Vec<Vec<String>> = log["items"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|entry| ["at", "action", "target", "reason"].map(|name| field(entry, name)).to_vec())
        .collect();
    if rows.is_empty() {
        say!("Nothing has been corrected yet.");
    } else {
        print_table(&["AT", "ACTION", "TARGET", "REASON"], &rows);
    }
    Ok(ExitCode::SUCCESS)
}
