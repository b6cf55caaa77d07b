//! `matsu auth`: pages that need a person. Cookies come in through standard input, never as an argument.

use std::io::Read;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::{Context, field, print_json, print_table};
use crate::client::Client;

#[derive(Subcommand)]
pub enum Auth {
    /// List pages that wait for a person
    List,
    /// Mark a login as done; its searches are resumed
    Done(AuthTarget),
    /// Skip a page or all pages of a domain; its searches are resumed without them
    Skip(AuthTarget),
    /// Store cookies for a domain; they are read from standard input: a Cookie header or a cookies.txt
    Cookies {
        /// The registrable domain, such as example.org
        domain: String,
    },
}

#[derive(Args)]
pub struct AuthTarget {
    /// An item's id (iq_…) or a domain
    pub target: String,
}

pub async fn run(cx: &Context, what: Auth) -> Result<ExitCode> {
    let client = Client::connect(&cx.config).await?;
    let answer = match what {
        Auth::List => client.get("/api/v1/auth-queue").await?,
        Auth::Done(target) => settle(&client, &target.target, "complete").await?,
        Auth::Skip(target) => settle(&client, &target.target, "skip").await?,
        Auth::Cookies { domain } => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).context("cannot read the cookies from standard input")?;
            if text.trim().is_empty() {
                bail!("standard input is empty; paste a Cookie header, or pass a cookies.txt with <");
            }
            client.post("/api/v1/auth-queue/cookies", json!({ "domain": domain, "cookies": text })).await?
        }
    };
    if cx.json {
        print_json(&answer);
    } else {
        show(&answer);
    }
    Ok(ExitCode::SUCCESS)
}

async fn settle(client: &Client, target: &str, action: &str) -> Result<Value> {
    let body = if target.starts_with("iq_") {
        json!({ "target": "item", "queue_id": target, "action": action })
    } else {
        json!({ "target": "domain", "domain": target, "action": action })
    };
    client.post("/api/v1/auth-queue/resolve", body).await
}

fn show(answer: &Value) {
    if let Some(items) = answer["items"].as_array() {
        if items.is_empty() {
            say!("No page waits for a person.");
            return;
        }
        let rows: Vec<Vec<String>> = items
            .iter()
            .map(|item| {
                let blocked = item["blocked"].as_array().map_or(0, Vec::len);
                let fields = ["queue_id", "auth_type", "priority", "domain"].map(|name| field(item, name));
                fields.into_iter().chain([blocked.to_string(), field(item, "url")]).collect()
            })
            .collect();
        print_table(&["ITEM", "TYPE", "PRIORITY", "DOMAIN", "SEARCHES", "URL"], &rows);
        say!("\nLog in with your browser, then: matsu auth done ITEM (or DOMAIN); or: matsu auth skip ITEM");
    } else if let Some(kept) = answer["kept"].as_u64() {
        let domain = field(answer, "domain");
        say!("{kept} cookies stored for {domain}; next: matsu auth done {domain}");
    } else {
        let requeued = answer["requeued_jobs"].as_array().map_or(0, Vec::len);
        say!("{} logins settled; {requeued} searches continue", answer["resolved_count"]);
    }
}
