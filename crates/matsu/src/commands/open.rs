//! `matsu open`: the page of a running daemon, signed in by a link that works once.

use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::Args;
use hyper::Method;
use serde_json::json;

use super::{Context, print_json};
use crate::client::control;
use crate::config::Config;
use crate::daemon::announce;
use crate::process;

#[derive(Args)]
pub struct Open {
    /// Only print the link
    #[arg(long)]
    pub print: bool,
}

pub async fn run(cx: &Context, args: &Open) -> Result<ExitCode> {
    let link = link(&cx.config).await?;
    if cx.json {
        print_json(&json!({ "ok": true, "link": link }));
    } else if args.print || show(&cx.config, &link).is_err() {
        say!("{link}");
    } else {
        say!("opened in your browser; if it did not, `matsu open --print` prints the link");
    }
    Ok(ExitCode::SUCCESS)
}

async fn link(config: &Config) -> Result<String> {
    let server = announce::read_server_json(&config.paths).and_then(|server| server.address);
    let address = server.context("no server with a page is running here; start one with `matsu serve`")?;
    let made = control(config, Method::POST, "/control/login-code", None).await;
    let made = made.context("the server gave no login code; start one with `matsu serve`")?;
    let code = made["code"].as_str().context("the server gave no code; is it older than this program?")?;
    Ok(login_link(&address, code))
}

/// In the fragment, which no server, log or referrer ever sees.
pub fn login_link(address: &str, code: &str) -> String {
    format!("{address}/login#code={code}")
}

/// Leads the browser there by way of a private file: what stands on a command line every user of the machine can read.
pub fn show(config: &Config, link: &str) -> Result<()> {
    let file = config.paths.data_dir.join("open.html");
    let page = format!(
        "<!doctype html><meta charset=utf-8><title>Matsu</title><meta http-equiv=refresh content=\"0;url={link}\">"
    );
    announce::write_private(&file, &page)?;
    process::show_in_browser(&file)
}
