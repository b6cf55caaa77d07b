//! Search over the user's own documents at size.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::bench::Bench;
use crate::report::{Section, Table};
use crate::verdict::Verdict;

const TITLE: &str = "Local search";
const BAR: &str = "1 GB of text is indexed in bounded memory (≤ 256 MiB here); a question is answered in ≤ 50 ms p99";

pub fn run(bench: &Bench) -> Result<Section> {
    let mut section = Section::new(TITLE, BAR);
    let megabytes: &[u32] = bench.size.pick(&[10], &[10, 100, 1024]);
    let mut lines = Vec::new();
    for size in megabytes {
        let folder = bench.fresh_folder()?;
        let mut command = Command::new(bench.processes.reader()?);
        command.arg("local").arg(folder.join("text")).arg(folder.join("index.db")).arg(size.to_string());
        let ran = command.output()?;
        ensure!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        // A gigabyte of text and its index: gone before the next one is written.
        std::fs::remove_dir_all(&folder)?;
        let told: Value = serde_json::from_slice(&ran.stdout)?;
        let number = |key: &str| told[key].as_f64().context("no figure");
        lines.push(vec![
            size.to_string(),
            format!("{:.1}", number("index_seconds")?),
            format!("{:.0}", number("peak_mib")?),
            format!("{:.0}", number("index_mib")?),
            format!("{:.2}", number("p50_ms")?),
            format!("{:.2}", number("p99_ms")?),
        ]);
        if Some(size) == megabytes.last() {
            let peak = Some(number("peak_mib")?);
            section.verdicts.push(Verdict::at_most(format!("{size} MB in ≤ 256 MiB"), peak, 256.0, |seen| {
                format!("{seen:.0} MiB")
            }));
            let p99 = Some(number("p99_ms")?);
            section
                .verdicts
                .push(Verdict::at_most(format!("{size} MB, p99 ≤ 50 ms"), p99, 50.0, |seen| format!("{seen:.1} ms")));
        }
    }
    section.tables.push(Table {
        caption: "Text in three scripts, words as unequal as in real text; 300 questions of one to four words"
            .to_owned(),
        header: ["MB of text", "seconds to index", "peak MiB", "index MiB", "p50 ms", "p99 ms"]
            .map(str::to_owned)
            .to_vec(),
        lines,
    });
    Ok(section)
}
