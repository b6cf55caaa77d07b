//! Search over the user's own documents at size.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::bench::Bench;
use crate::report::{Section, Table};
use crate::verdict::Verdict;

const TITLE: &str = "Local search";
const BAR: &str =
    "1 GB of text is indexed in ≤ 256 MiB and ≤ 240 s; a question is answered in ≤ 50 ms p99, of 100 MB in ≤ 20 ms";

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
        let is_largest = Some(size) == megabytes.last();
        if is_largest {
            let (peak, seconds) = (Some(number("peak_mib")?), Some(number("index_seconds")?));
            let indexed = format!("{size} MB indexed in");
            let mib = |seen: f64| format!("{seen:.0} MiB");
            section.verdicts.push(Verdict::at_most(format!("{indexed} ≤ 256 MiB"), peak, 256.0, mib));
            section
                .verdicts
                .push(Verdict::at_most(format!("{indexed} ≤ 240 s"), seconds, 240.0, |s| format!("{s:.0} s")));
        }
        let p99_max = if is_largest { 50.0 } else { 20.0 };
        let (p99, bar) = (Some(number("p99_ms")?), format!("{size} MB, p99 ≤ {p99_max} ms"));
        section.verdicts.push(Verdict::at_most(bar, p99, p99_max, |seen| format!("{seen:.1} ms")));
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
