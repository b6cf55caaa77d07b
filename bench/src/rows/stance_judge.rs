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
const BAR: &str = "where it takes a side: precision at least 0.8 at a recall of at least 0.1, by folds over groups";
const PACKAGES: [&str; 2] = ["numpy==2.3.*", "scipy==1.16.*"];
const LABELS: [&str; 2] = ["supports", "refutes"];

pub fn run(bench: &Bench) -> Result<Section> {
    let Some(data) = Data::find() else {
        return Ok(Section::skipped(
            TITLE,
            BAR,
            "the measuring pairs are not there; MATSU_BENCH_DATA names their folder",
        ));
    };
    let mut section = Section::new(TITLE, BAR);
    let figures = bench.fresh_folder()?.join("figures.json");
    let python = python_with(&bench.processes.target().join("judge-python"), &PACKAGES)?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/train-judge.py");
    let mut command = Command::new(python);
    command.arg(script).arg("--data").arg(data.path("")).arg("--reader").arg(bench.processes.reader()?);
    command.arg("--figures").arg(&figures);
    let ran = command.output()?;
    ensure!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));

    let sets: Vec<Value> = serde_json::from_slice(&std::fs::read(&figures)?)?;
    let mut lines = Vec::new();
    for set in &sets {
        let (language, name) = (text(set, "language")?, text(set, "set")?);
        let mut line = vec![language.clone(), name.clone(), set["pairs"].to_string()];
        for figure in ["macro_f1", "majority_f1", "ece"] {
            line.push(format!("{:.3}", number(&set[figure])?));
        }
        for label in LABELS {
            let seen = &set["labels"][label];
            let (precision, recall) = (number(&seen["precision"])?, number(&seen["recall"])?);
            let is_on = seen["is_on"] == true;
            line.push(format!("{precision:.3} / {recall:.3} ({})", if is_on { "on" } else { "off" }));
            if is_on {
                let what = format!("{name}, {label}: precision ≥ 0.8");
                section.verdicts.push(Verdict::at_least(what, Some(precision), 0.8, |seen| format!("{seen:.3}")));
                let what = format!("{name}, {label}: recall ≥ 0.1");
                section.verdicts.push(Verdict::at_least(what, Some(recall), 0.1, |seen| format!("{seen:.3}")));
            }
        }
        lines.push(line);
    }
    section.tables.push(Table {
        caption: "Ten-fold by group: neither weights nor thresholds have seen the claim that they judge".to_owned(),
        header: [
            "language",
            "set",
            "pairs",
            "macro-F1",
            "majority F1",
            "ECE",
            "supports: precision / recall",
            "refutes: precision / recall",
        ]
        .map(str::to_owned)
        .to_vec(),
        lines,
    });
    section.notes.push(
        "A label is on if it reaches the bar in every set of its language; off, the judge never says it, and the claims \
         stay unverified. Precision and recall are those of what it would say with thresholds chosen on the other folds. \
         SciFact has no neutral pairs: each claim was matched with evidence of another group, half of them with the \
         evidence most like it."
            .to_owned(),
    );
    Ok(section)
}

fn text(set: &Value, name: &str) -> Result<String> {
    Ok(set[name].as_str().with_context(|| format!("no {name}"))?.to_owned())
}

fn number(value: &Value) -> Result<f64> {
    value.as_f64().context("no figure")
}
