//! Whether research shows the sentence that answers, asked of the program itself, with BM25 over sentences beside it.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::bench::Bench;
use crate::report::{Section, Table};
use crate::research_data::{Data, python_with};
use crate::verdict::Verdict;

const TITLE: &str = "Answers";
const BAR: &str = "of the questions that BM25 misses at least 40 % are answered among the first five and 12 % at the first \
                   place, per language, unwrapped and wrapped at 72; whole sentences ≥ 0.97";
const PACKAGES: [&str; 1] = ["numpy==2.3.*"];
/// Questions per language: enough to see a bar missed by ten percent, and asked in minutes.
const SAMPLE: &str = "200";
const SEED: &str = "matsu";
/// If it is set, every question is asked.
const ALL: &str = "MATSU_BENCH_ANSWERS_ALL";
/// The share of BM25's misses that must be gone.
const GONE_AT_FIVE: f64 = 0.40;
const GONE_AT_ONE: f64 = 0.12;

pub fn run(bench: &Bench) -> Result<Section> {
    let Some(data) = Data::find() else {
        return Ok(Section::skipped(
            TITLE,
            BAR,
            "the measuring questions are not there; MATSU_BENCH_DATA names their folder",
        ));
    };
    let mut section = Section::new(TITLE, BAR);
    let folder = bench.fresh_folder()?;
    let weights = folder.join("weights");
    let python = python_with(&bench.processes.target().join("ranking-python"), &PACKAGES)?;
    let mut train = Command::new(&python);
    train.arg(script("train-ranking.py")).arg("--data").arg(data.path(""));
    train.arg("--reader").arg(bench.processes.reader()?).arg("--folds").arg(&weights);
    finished(train)?;
    let mut lines = Vec::new();
    for (name, weights) in [("unseen documents", Some(&weights)), ("shipped weights", None)] {
        let out = folder.join(name.replace(' ', "-"));
        let mut ask = Command::new(&python);
        ask.arg(script("measure-answers.py")).arg("--binary").arg(bench.processes.server()?).arg("--data");
        ask.arg(data.path("")).arg("--out").arg(&out);
        if let Some(weights) = weights {
            ask.arg("--weights").arg(weights);
        }
        match std::env::var(ALL) {
            Ok(_) => ask.arg("--all"),
            Err(_) => ask.args(["--seed", SEED, "--sample", bench.size.pick("5", SAMPLE)]),
        };
        finished(ask)?;
        let report: Vec<Value> = serde_json::from_slice(&std::fs::read(out.join("report.json"))?)?;
        for row in &report {
            lines.push(line(name, row)?);
            if weights.is_some() {
                judge(&mut section, row)?;
            }
        }
    }
    section.tables.push(Table {
        caption: format!(
            "Asked over MCP, BM25 over the unwrapped sentences in the same run; a sample of the questions (seed \
             {SEED:?}), or all of them with `{ALL}=1`, which takes hours"
        ),
        header: ["weights", "language", "wrap", "hit@1", "hit@5", "whole", "BM25 hit@1", "BM25 hit@5", "questions"]
            .map(str::to_owned)
            .to_vec(),
        lines,
    });
    Ok(section)
}

fn script(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts").join(name)
}

fn finished(mut command: Command) -> Result<()> {
    let ran = command.output()?;
    ensure!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    Ok(())
}

fn figure(row: &Value, system: &str, name: &str) -> Result<f64> {
    row[system][name].as_f64().with_context(|| format!("no {name} of {system}"))
}

fn line(weights: &str, row: &Value) -> Result<Vec<String>> {
    let mut cells = vec![weights.to_owned(), row["language"].as_str().unwrap_or_default().to_owned()];
    cells.push(row["wrap"].to_string());
    for (system, name) in
        [("matsu", "hit@1"), ("matsu", "hit@5"), ("matsu", "whole"), ("bm25", "hit@1"), ("bm25", "hit@5")]
    {
        cells.push(format!("{:.3}", figure(row, system, name)?));
    }
    cells.push(format!("{} of {}", row["questions"], row["of"]));
    Ok(cells)
}

fn judge(section: &mut Section, row: &Value) -> Result<()> {
    let of = format!("{}, wrap {}", row["language"].as_str().unwrap_or_default(), row["wrap"]);
    for (name, least) in [("hit@5", GONE_AT_FIVE), ("hit@1", GONE_AT_ONE)] {
        let (ours, theirs) = (figure(row, "matsu", name)?, figure(row, "bm25", name)?);
        let gone = (ours - theirs) / (1.0 - theirs).max(f64::EPSILON);
        let bar = format!("{of}: ≥ {:.0} % of BM25's misses at {name} gone", least * 100.0);
        section.verdicts.push(Verdict::at_least(bar, Some(gone), least, |seen| format!("{:.0} %", seen * 100.0)));
    }
    let whole = Some(figure(row, "matsu", "whole")?);
    section.verdicts.push(Verdict::at_least(format!("{of}: whole ≥ 0.97"), whole, 0.97, |seen| format!("{seen:.3}")));
    Ok(())
}
