//! `matsu user`: which other users may have tokens, and in which folders their agents may work.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;
use matsu_core::limits::LIST_PAGE_MAX;
use serde_json::json;

use super::{Context, field, print_json, print_table};
use crate::client::{Client, segment};

#[derive(Subcommand)]
pub enum UserCommand {
    /// Add a user, or replace the folders of a user, who then needs a token: `matsu token new NAME --user USER`
    Add {
        name: String,
        /// A folder in which the user's agents may work and which the user's research may read, with all folders
        /// below it; may be repeated. Without a folder, the user cannot start agents
        #[arg(long, value_name = "DIR")]
        root: Vec<PathBuf>,
    },
    /// List users
    List,
    /// Remove a user: its tokens are revoked and its sessions end; its tasks stay
    Remove { name: String },
}

pub async fn run(cx: &Context, what: UserCommand) -> Result<ExitCode> {
    let client = Client::connect(&cx.config).await?;
    match what {
        UserCommand::Add { name, root } => {
            let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
            let roots: Vec<PathBuf> = root.iter().map(absolute).collect();
            let user = client.post("/api/v1/users", json!({ "name": name, "roots": roots })).await?;
            if cx.json {
                print_json(&user);
            } else {
                say!("user {name}: {}", folders(&user));
                eprintln!("Make a token for it with: matsu token new NAME --user {name}");
            }
        }
        UserCommand::List => {
            let mut items = Vec::new();
            let mut after = Some(0);
            while let Some(place) = after {
                let page = client.get(&format!("/api/v1/users?limit={LIST_PAGE_MAX}&after={place}")).await?;
                items.extend(page["items"].as_array().cloned().unwrap_or_default());
                after = page["next"].as_i64();
            }
            if cx.json {
                print_json(&json!({ "items": items }));
            } else {
                let row =
                    |user: &serde_json::Value| vec![field(user, "name"), folders(user), field(user, "created_at")];
                let rows: Vec<Vec<String>> = items.iter().map(row).collect();
                print_table(&["USER", "FOLDERS", "ADDED"], &rows);
            }
        }
        UserCommand::Remove { name } => {
            let removed = client.delete(&format!("/api/v1/users/{}", segment(&name))).await?;
            if cx.json {
                print_json(&removed);
            } else {
                let (tokens, sessions) = (&removed["tokens"], &removed["sessions"]);
                say!("{name} is removed; {tokens} tokens revoked, {sessions} sessions ended");
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn folders(user: &serde_json::Value) -> String {
    let roots: Vec<&str> = user["roots"].as_array().into_iter().flatten().filter_map(|root| root.as_str()).collect();
    if roots.is_empty() { "no folders".to_owned() } else { roots.join(", ") }
}
