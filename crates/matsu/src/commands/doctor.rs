//! `matsu doctor`: what was found, printed.

use std::process::ExitCode;

use anyhow::Result;
use matsu_core::ports::agent::ProbeDepth;

use super::{Context, print_json};
use crate::doctor;

pub async fn run(cx: &Context) -> Result<ExitCode> {
    let findings = doctor::look(&cx.config, ProbeDepth::Login).await;
    if cx.json {
        print_json(&findings.json());
    } else {
        for line in findings.lines() {
            say!("{line}");
        }
    }
    Ok(if findings.is_broken() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
