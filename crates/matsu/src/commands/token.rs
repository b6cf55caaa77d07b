//! `matsu token`: named tokens for clients.

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;
use matsu_core::limits::LIST_PAGE_MAX;
use serde_json::json;

use super::{Context, field, print_json, print_table};
use crate::client::{Client, segment};

#[derive(Subcommand)]
pub enum TokenCommand {
    /// Make a token; its secret is shown once
    New { name: String },
    /// List tokens, revoked ones too
    List,
    /// Revoke a token; it opens nothing from now on
    Revoke { id: String },
}

pub async fn run(cx: &Context, what: TokenCommand) -> Result<ExitCode> {
    let client = Client::connect(&cx.config).await?;
    match what {
        TokenCommand::New { name } => {
            let made = client.post("/api/v1/tokens", json!({ "name": name })).await?;
            if cx.json {
                print_json(&made);
            } else {
                say!("{}", field(&made, "secret"));
                eprintln!("This is shown once. Revoke it with: matsu token revoke {}", field(&made["token"], "id"));
            }
        }
        TokenCommand::List => {
            let mut items = Vec::new();
            let mut after = Some(0);
            while let Some(place) = after {
                let page = client.get(&format!("/api/v1/tokens?limit={LIST_PAGE_MAX}&after={place}")).await?;
                items.extend(page["items"].as_array().cloned().unwrap_or_default());
                after = page["next"].as_i64();
            }
            if cx.json {
                print_json(&json!({ "items": items }));
            } else {
                let columns = ["id", "name", "created_at", "revoked_at"];
                let rows: Vec<Vec<String>> =
                    items.iter().map(|token| columns.iter().map(|name| field(token, name)).collect()).collect();
                print_table(&["TOKEN", "NAME", "CREATED", "REVOKED"], &rows);
            }
        }
        TokenCommand::Revoke { id } => {
            client.delete(&format!("/api/v1/tokens/{}", segment(&id))).await?;
            if cx.json {
                print_json(&json!({ "ok": true, "revoked": id }));
            } else {
                say!("{id} is revoked");
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
