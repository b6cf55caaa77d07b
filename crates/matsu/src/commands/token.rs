//! `matsu token`: named tokens for clients.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand};
use matsu_core::limits::LIST_PAGE_MAX;
use serde_json::json;

use super::{Context, field, print_json, print_table};
use crate::client::{Client, segment};

#[derive(Subcommand)]
pub enum TokenCommand {
    /// Create a token; its secret is shown once
    New(NewToken),
    /// List tokens, including revoked ones
    List,
    /// Revoke a token; requests with it are refused from now on
    Revoke { id: String },
}

#[derive(Args)]
pub struct NewToken {
    /// What the token is for, in your own words
    name: String,
    /// The user to whom the token belongs (default: you). `matsu user add` adds users
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// What the token allows. admin: everything; member: the user's own work; viewer: only reading that work
    /// [default: admin, with --user member]
    #[arg(long, value_name = "ROLE", value_parser = ["admin", "member", "viewer"])]
    role: Option<String>,
    /// How long the token is valid, for instance 90m, 12h or 30d (default: until it is revoked)
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    expires: Option<u64>,
    /// Offer only these tools: core, all, or toolsets separated by commas
    #[arg(long, value_name = "SETS")]
    tools: Option<String>,
}

/// `30d`, `12h`, `90m`, `45s`.
fn seconds(text: &str) -> Result<u64, String> {
    let expected = "expected a number and a unit, for instance 90m, 12h or 30d";
    let (number, unit) = text.split_at(text.len() - text.chars().last().map_or(0, char::len_utf8));
    let unit: u64 = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => return Err(expected.to_owned()),
    };
    let number: u64 = number.parse().map_err(|_| expected.to_owned())?;
    number.checked_mul(unit).filter(|seconds| *seconds > 0).ok_or_else(|| expected.to_owned())
}

pub async fn run(cx: &Context, what: TokenCommand) -> Result<ExitCode> {
    let client = Client::connect(&cx.config).await?;
    match what {
        TokenCommand::New(new) => {
            let wish = json!({
                "name": new.name,
                "user": new.user,
                "role": new.role,
                "tools": new.tools,
                "expires_in_seconds": new.expires,
            });
            let made = client.post("/api/v1/tokens", wish).await?;
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
                let columns = ["id", "name", "user", "role", "tools", "created_at", "expires_at", "revoked_at"];
                let rows: Vec<Vec<String>> =
                    items.iter().map(|token| columns.iter().map(|name| field(token, name)).collect()).collect();
                let heads = ["TOKEN", "NAME", "USER", "ROLE", "TOOLS", "CREATED", "EXPIRES", "REVOKED"];
                print_table(&heads, &rows);
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

#[cfg(test)]
mod tests {
    use super::seconds;

    #[test]
    fn a_time_is_a_number_and_a_unit() {
        for (text, expected) in [("30d", 2_592_000), ("12h", 43_200), ("90m", 5_400), ("45s", 45)] {
            assert_eq!(seconds(text), Ok(expected));
        }
        for bad in ["", "30", "d", "-1d", "0d", "1w", "1.5h", "99999999999999999999d", "3é"] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
    }
}
