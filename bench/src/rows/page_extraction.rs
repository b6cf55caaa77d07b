//! Main text of real pages: how right, and how fast on one core.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::bench::Bench;
use crate::report::{Section, Table};
use crate::research_data::{Data, python_with};
use crate::verdict::Verdict;

const TITLE: &str = "Page extraction";
const BAR: &str = "on sites the model was not trained on: shingle F1 ≥ 0.960 on 181 articles, wordset F1 on 1,358 pages of \
                   seven kinds 0.010 above rs-trafilatura, no kind worse; ≥ 100 pages/s on one core through reader \
                   processes";
/// The quickest counts, of every reader: what else the machine does can only take time away.
const TIMES: usize = 3;
/// What `scripts/train-extraction.py` needs.
const TRAINING: [&str; 2] = ["numpy==2.3.*", "lightgbm==4.6.*"];
const READERS: [&str; 4] = ["matsu", "rs-trafilatura", "dom_smoothie", "trafilatura"];
/// As the product reads: the time of the pool and of its processes together.
const PROCESSES: &str = "matsu-processes";
/// Its dependency justext needs what lxml no longer brings along.
const TRAFILATURA: [&str; 2] = ["trafilatura==2.0.0", "lxml_html_clean==0.4.*"];

struct Seen {
    shingle: f64,
    wordset: f64,
    pages_per_s: f64,
}

pub fn run(bench: &Bench) -> Result<Section> {
    let Some(data) = Data::find() else {
        return Ok(Section::skipped(
            TITLE,
            BAR,
            "the measuring pages are not there; MATSU_BENCH_DATA names their folder",
        ));
    };
    let mut section = Section::new(TITLE, BAR);
    let mut lines = Vec::new();
    let mut tell = |reader: &str, seen: &Seen| {
        eprintln!("  {reader}: {:.4}, {:.4}, {:.0} pages/s", seen.shingle, seen.wordset, seen.pages_per_s);
        lines.push(vec![
            reader.to_owned(),
            format!("{:.4}", seen.shingle),
            format!("{:.4}", seen.wordset),
            format!("{:.0}", seen.pages_per_s),
        ]);
    };
    match unseen(bench, &data) {
        Ok(unseen) => {
            tell("matsu, unseen sites, 1,539 pages", &unseen.seen);
            unseen.judge(&mut section);
        }
        Err(error) => section.notes.push(format!("The five-fold measurement did not run: {error:#}.")),
    }
    match measure(bench, &data, PROCESSES) {
        Ok(seen) => {
            tell("matsu, as trained, in reader processes", &seen);
            let rate = |value: f64| format!("{value:.0}/s");
            let claim = "≥ 100 pages/s on one core through reader processes";
            section.verdicts.push(Verdict::at_least(claim, Some(seen.pages_per_s), 100.0, rate));
        }
        Err(error) => section.notes.push(format!("The reader processes did not run: {error:#}.")),
    }
    for reader in READERS {
        match measure(bench, &data, reader) {
            Ok(seen) => tell(if reader == "matsu" { "matsu, as trained, in process" } else { reader }, &seen),
            Err(error) => section.notes.push(format!("{reader} did not run: {error:#}.")),
        }
    }
    let header = ["reader", "shingle F1, 181 articles", "wordset F1, 150 pages", "pages/s of CPU, all 331"];
    section.tables.push(Table {
        caption: "Main text against the truth".to_owned(),
        header: header.map(str::to_owned).to_vec(),
        lines,
    });
    section.notes.push(
        "Unseen sites: five-fold, all pages of a site in one fold, over 181 articles and 1,358 pages of seven kinds; every \
         page is read by the product's own code with a model that was trained without its site. The other rows are of 181 \
         articles and 150 pages, and for Matsu of the shipped model, which was trained on them. Of three runs the quickest \
         gives the rate. 43 of the 150 truths began as drafts by rs-trafilatura."
            .to_owned(),
    );
    Ok(section)
}

/// What folds show, and the difference to the peer by kind of page.
struct Unseen {
    seen: Seen,
    kinds: Vec<Kind>,
}

struct Kind {
    name: String,
    pages: f64,
    matsu: f64,
    peer: f64,
    low: f64,
    high: f64,
}

impl Unseen {
    fn judge(&self, section: &mut Section) {
        let score = |value: f64| format!("{value:.4}");
        section.verdicts.push(Verdict::at_least("shingle F1 ≥ 0.960", Some(self.seen.shingle), 0.960, score));
        let all = self.kinds.iter().find(|kind| kind.name == "all").map(|kind| kind.matsu - kind.peer);
        section.verdicts.push(Verdict::at_least("wordset F1 0.010 above rs-trafilatura", all, 0.010, score));
        let highest = self.kinds.iter().map(|kind| kind.high).reduce(f64::min);
        section.verdicts.push(Verdict::at_least("no kind of page is worse (95 %)", highest, 0.0, score));
        let line = |kind: &Kind| {
            let difference = format!("{:+.4} ({:+.4} to {:+.4})", kind.matsu - kind.peer, kind.low, kind.high);
            let scores = [kind.matsu, kind.peer].map(|value| format!("{value:.4}")).to_vec();
            [vec![kind.name.clone(), format!("{:.0}", kind.pages)], scores, vec![difference]].concat()
        };
        section.tables.push(Table {
            caption: "Wordset F1 by kind of page, unseen sites".to_owned(),
            header: ["kind", "pages", "matsu", "rs-trafilatura", "difference (95 %)"].map(str::to_owned).to_vec(),
            lines: self.kinds.iter().map(line).collect(),
        });
    }
}

fn unseen(bench: &Bench, data: &Data) -> Result<Unseen> {
    let folder = bench.fresh_folder()?;
    let python = python_with(&bench.processes.target().join("extraction-python"), &TRAINING)?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/train-extraction.py");
    let mut command = Command::new(python);
    command.arg(script).arg("--data").arg(data.path("")).arg("--reader").arg(bench.processes.reader()?);
    let ran = command.arg("--held-out").arg(&folder).output()?;
    ensure!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr).lines().last().unwrap_or("no message"));
    let figures: Value = serde_json::from_slice(&std::fs::read(folder.join("figures.json"))?)?;
    let figure = |key: &str| figures[key].as_f64().with_context(|| format!("no figure {key}"));
    let seen = Seen { shingle: figure("articles")?, wordset: figure("wcxb")?, pages_per_s: figure("pages_per_s")? };
    let kinds = figures["kinds"].as_object().context("no figures by kind")?.iter().map(|(name, row)| {
        let number = |key: &str| row[key].as_f64().with_context(|| format!("no figure {key} of {name}"));
        Ok(Kind {
            name: name.clone(),
            pages: number("pages")?,
            matsu: number("matsu")?,
            peer: number("rs-trafilatura")?,
            low: number("low")?,
            high: number("high")?,
        })
    });
    Ok(Unseen { seen, kinds: kinds.collect::<Result<_>>()? })
}

fn measure(bench: &Bench, data: &Data, reader: &str) -> Result<Seen> {
    let truth = data.path("extraction/wcxb-dev-150/truth");
    let (articles, first) = texts(bench, reader, &data.path("extraction/articles/html"), None)?;
    let (kinds, second) = texts(bench, reader, &data.path("extraction/wcxb-dev-150/html"), Some(&truth))?;
    let (mut first, mut second) = (first, second);
    for _ in 1..TIMES {
        let again = texts(bench, reader, &data.path("extraction/articles/html"), None)?.1;
        first.1 = first.1.min(again.1);
        let again = texts(bench, reader, &data.path("extraction/wcxb-dev-150/html"), Some(&truth))?.1;
        second.1 = second.1.min(again.1);
    }
    let out = bench.fresh_folder()?.join("score.json");
    let shingle = data.score(
        "score_extraction.py",
        &[&articles, &data.path("extraction/articles/ground-truth.json")],
        &[],
        &out,
    )?;
    let wordset = data.score("score_extraction.py", &[&kinds, &truth], &["--metric", "wordset"], &out)?;
    let f1 = |report: &Value, metric: &str| report["metrics"][metric]["figures"]["f1"].as_f64().context("no F1");
    let pages = first.0 + second.0;
    Ok(Seen {
        shingle: f1(&shingle, "shingle")?,
        wordset: f1(&wordset, "wordset")?,
        pages_per_s: pages / (first.1 + second.1),
    })
}

/// The texts a reader finds in a folder of pages, and how many pages took how many seconds of CPU.
fn texts(bench: &Bench, reader: &str, pages: &Path, truth: Option<&Path>) -> Result<(PathBuf, (f64, f64))> {
    let out = bench.fresh_folder()?.join("texts.json");
    let mut command = if reader == "trafilatura" {
        let python = python_with(&bench.processes.target().join("trafilatura"), &TRAFILATURA)?;
        let mut command = Command::new(python);
        command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/read_with_trafilatura.py"));
        command
    } else {
        let mut command = Command::new(bench.processes.reader()?);
        command.args(["read", reader]);
        command
    };
    let ran = command.arg(pages).arg(&out).args(truth).output()?;
    ensure!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr).lines().last().unwrap_or("no message"));
    let told: Value = serde_json::from_slice(&ran.stdout)?;
    let number = |key: &str| told[key].as_f64().context("no time");
    Ok((out, (number("pages")?, number("cpu_seconds")?)))
}
