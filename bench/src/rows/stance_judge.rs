//! The embedded judge on pairs of claim and evidence that its weights have not seen.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::bench::Bench;
use crate::report::{Section, Table};
use crate::research_data::{Data, python_with};
use crate::verdict::Verdict;

const TITLE: &str = "Embedded stance judge";
const BAR: &str = "macro-F1 at least 0.15 ahead of the majority answer on held-out pairs";
const PACKAGES: [&str; 2] = ["numpy==2.3.*", "scipy==1.16.*"];

pub fn run(bench: &Bench) -> Result<Section> {
    let Some(data) = Data::find() else {
        return Ok(Section::skipped(
            TITLE,
            BAR,
            "the measuring pairs are not there; MATSU_BENCH_DATA names their folder",
        ));
    };
    let mut section = Section::new(TITLE, BAR);
    let folder = bench.fresh_folder()?;
    let predictions = folder.join("held-out.jsonl");
    let python = python_with(&bench.processes.target().join("judge-python"), &PACKAGES)?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/train-judge.py");
    let mut command = Command::new(python);
    command.arg(script).arg("--data").arg(data.path("")).arg("--reader").arg(bench.processes.reader()?);
    command.arg("--out").arg(folder.join("weights.txt")).arg("--predictions").arg(&predictions);
    let ran = command.output()?;
    ensure!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));

    let three = data.score("score_stance.py", &[&predictions], &[], &folder.join("three.json"))?;
    let known = folder.join("known.jsonl");
    let text = std::fs::read_to_string(&predictions)?;
    let lines: Vec<&str> = text.lines().filter(|line| !line.contains("-neutral\"")).collect();
    std::fs::write(&known, lines.join("\n"))?;
    let two = data.score("score_stance.py", &[&known], &[], &folder.join("two.json"))?;
    let mut rows = Vec::new();
    for (name, report) in [("supports, refutes, made neutral", &three), ("supports, refutes", &two)] {
        let figure = |key: &str| report["figures"][key].as_f64().context("no figure");
        let majority = majority(report)?;
        let macro_f1 = figure("macro_f1")?;
        rows.push(vec![
            name.to_owned(),
            format!("{macro_f1:.3}"),
            format!("{majority:.3}"),
            format!("{:.3}", figure("brier")?),
            format!("{:.3}", figure("ece")?),
            report["lines"].to_string(),
        ]);
        let ahead = Some(macro_f1 - majority);
        section
            .verdicts
            .push(Verdict::at_least(format!("{name}: ahead by ≥ 0.15"), ahead, 0.15, |seen| format!("{seen:+.3}")));
    }
    section.tables.push(Table {
        caption: "Ten-fold by group: no pair is judged by weights that have seen its claim".to_owned(),
        header: ["labels", "macro-F1", "majority", "Brier", "ECE", "pairs"].map(str::to_owned).to_vec(),
        lines: rows,
    });
    section.notes.push(
        "SciFact has no neutral pairs: each claim was matched with evidence of another group, half of them with the \
         evidence most like it. On two labels the judge may still say neutral, which counts as wrong."
            .to_owned(),
    );
    Ok(section)
}

/// Macro-F1 of always giving the commonest label.
fn majority(report: &Value) -> Result<f64> {
    let labels = report["labels"].as_object().context("no labels")?;
    let counts: Vec<f64> = labels.values().filter_map(|label| label["gold"].as_f64()).collect();
    let (all, most) = (counts.iter().sum::<f64>(), counts.iter().copied().fold(0.0, f64::max));
    Ok(2.0 * most / (all + most) / counts.len() as f64)
}
