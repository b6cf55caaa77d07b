//! `matsu token`: named tokens for clients.

use std::process::ExitCode;

use anyhow::Result;
use serde_json::json;

use super::{Context, field, print_json, print_table};
use crate::cli::TokenCommand;
use crate::client::{Client, segment};

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
            let list = client.get("/api/v1/tokens").await?;
            if cx.json {
                print_json(&list);
            } else {
                let items = list["items"].as_array().cloned().unwrap_or_default();
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
