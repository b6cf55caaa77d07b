//! The pages read as the product reads them: by a pool of reader processes, as many as there are cores.

use std::fs;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result};
use matsu_adapters::reading::{ReaderLimits, Readers, document};
use matsu_core::clock::Clock;
use serde_json::{Map, json};

use crate::{pages, write};

/// Prints pages, seconds of CPU of this process and its readers together, and seconds on the clock.
pub fn read(folder: &str, out: &str) -> Result<()> {
    let pages = pages(folder)?;
    // None is replaced, so that all have their time counted.
    let limits = ReaderLimits { documents_max: u32::MAX, ..ReaderLimits::default() };
    let at_once = limits.processes_max;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let readers = Arc::new(Readers::new(std::env::current_exe()?, vec!["__read".to_owned()], limits, Clock::system()));
    let (cpu, clock) = (cpu_seconds("self")?, Instant::now());
    let texts = runtime.block_on(async {
        let turns = Arc::new(tokio::sync::Semaphore::new(at_once * 2));
        let mut work = tokio::task::JoinSet::new();
        for (id, body) in pages.iter().cloned() {
            let turn = Arc::clone(&turns).acquire_owned().await?;
            let readers = Arc::clone(&readers);
            work.spawn(async move {
                let _turn = turn;
                let read = document(&*readers, body, "text/html").await;
                (id, read.map(|document| document.text).unwrap_or_default())
            });
        }
        let texts = work.join_all().await.into_iter().map(|(id, text)| (id, text.into()));
        anyhow::Ok(texts.collect::<Map<_, _>>())
    })?;
    let wall = clock.elapsed().as_secs_f64();
    let mut seconds = cpu_seconds("self")? - cpu;
    let children = children()?;
    for child in &children {
        seconds += cpu_seconds(child)?;
    }
    println!(
        "{}",
        json!({"reader": "matsu-processes", "pages": pages.len(), "cpu_seconds": seconds, "wall_seconds": wall,
               "processes": children.len()})
    );
    write(out, &texts.into())
}

fn children() -> Result<Vec<String>> {
    let mut found = Vec::new();
    for task in fs::read_dir("/proc/self/task")? {
        let list = fs::read_to_string(task?.path().join("children")).unwrap_or_default();
        found.extend(list.split_whitespace().map(str::to_owned));
    }
    Ok(found)
}

/// Time that all threads of a process really ran.
fn cpu_seconds(process: &str) -> Result<f64> {
    let mut nanos = 0.0;
    for task in fs::read_dir(format!("/proc/{process}/task"))? {
        let stat = fs::read_to_string(task?.path().join("schedstat"))?;
        nanos += stat.split(' ').next().context("an empty schedstat")?.parse::<f64>()?;
    }
    Ok(nanos / 1e9)
}
