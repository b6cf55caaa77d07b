//! `matsu limits`: every bound of the system.

use std::process::ExitCode;

use anyhow::Result;
use matsu_core::limits;

use super::{Context, print_json, print_table};

pub fn run(cx: &Context) -> Result<ExitCode> {
    let all = limits::all();
    if cx.json {
        print_json(&serde_json::to_value(&all)?);
        return Ok(ExitCode::SUCCESS);
    }
    let rows: Vec<Vec<String>> =
        all.into_iter().map(|limit| vec![limit.name.to_lowercase(), limit.value, limit.meaning.to_owned()]).collect();
    print_table(&["LIMIT", "VALUE", "MEANING"], &rows);
    Ok(ExitCode::SUCCESS)
}
