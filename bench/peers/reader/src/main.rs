//! Reads the measuring pages with Matsu's extractor and with the crates beside it, and shows Matsu's own features to the
//! scripts that train on them.
//!
//!     bench-peer-reader read READER HTML-FOLDER OUT.json [TRUTH-FOLDER]   texts by page; prints pages, seconds of CPU
//!     bench-peer-reader rows HTML-FOLDER OUT.json                         blocks of every page, with their features
//!     bench-peer-reader texts HTML-FOLDER PROBABILITIES.json OUT.json     what would be read by these probabilities of
//!                                                                          the blocks: text, seconds
//!     bench-peer-reader stance-rows PAIRS.json OUT.json                   features of claim and evidence
//!     bench-peer-reader stances PAIRS.json OUT.json                       the judge's three probabilities
//!     bench-peer-reader answer-rows FOLDER QUESTIONS.jsonl OUT.jsonl       sentences for each question, with their features
//!     bench-peer-reader local FOLDER INDEX MEGABYTES                       writes that much text, indexes and asks it
//!
//!     bench-peer-reader __read                                             a reader process, started by this program
//!
//! READER is `matsu`, `matsu-processes`, `rs-trafilatura` or `dom_smoothie`. TRUTH-FOLDER gives pages the address they were
//! fetched from, which rs-trafilatura gets.

mod answers;
mod local;
mod processes;

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use matsu_adapters::judge;
use matsu_reader::html::{Reading, Verdict, read_by};
use matsu_reader::features;
use serde_json::{Map, Value, json};

fn main() -> Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let given: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if given == ["__read"] {
        return Ok(matsu_adapters::reading::child::run());
    }
    command(&given)?;
    Ok(ExitCode::SUCCESS)
}

fn command(given: &[&str]) -> Result<()> {
    match *given {
        ["read", "matsu-processes", pages, out] | ["read", "matsu-processes", pages, out, _] => processes::read(pages, out),
        ["read", reader, pages, out] => read(reader, pages, out, None),
        ["read", reader, pages, out, truth] => read(reader, pages, out, Some(truth)),
        ["rows", pages, out] => write(out, &of_pages(pages, |_, reading| {
            let texts: Vec<&str> = reading.blocks.blocks.iter().map(|block| block.text.as_str()).collect();
            Ok(json!({"texts": texts, "rows": features::rows(&reading.blocks, &reading.facts())}))
        })?),
        ["texts", pages, probabilities, out] => texts_by(pages, probabilities, out),
        ["stance-rows", pairs, out] => write(out, &of_pairs(pairs, |claim, text| json!(judge::features::row(claim, text).to_vec()))?),
        ["stances", pairs, out] => write(out, &of_pairs(pairs, |claim, text| json!(judge::stance(claim, text)))?),
        ["answer-rows", folder, questions, out] => answers::rows(folder, questions, out),
        ["local", folder, index, megabytes] => local::measure(folder.as_ref(), index.as_ref(), megabytes.parse()?),
        _ => bail!("see the head of bench/peers/reader/src/main.rs"),
    }
}

fn write(out: &str, value: &Value) -> Result<()> {
    Ok(fs::write(out, serde_json::to_vec(value)?)?)
}

fn of_pairs(pairs: &str, judge: impl Fn(&str, &str) -> Value) -> Result<Value> {
    let pairs: Vec<(String, String)> = serde_json::from_slice(&fs::read(pairs)?)?;
    Ok(pairs.iter().map(|(claim, text)| judge(claim, text)).collect())
}

fn of_pages(folder: &str, make: impl Fn(&str, &Reading) -> Result<Value>) -> Result<Value> {
    let mut found = Map::new();
    for (id, body) in pages(folder)? {
        let reading = Reading::of(&matsu_reader::decode(&body, Some("text/html")));
        found.insert(id.clone(), make(&id, &reading)?);
    }
    Ok(Value::Object(found))
}

fn pages(folder: &str) -> Result<Vec<(String, Vec<u8>)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let id = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.split('.').next());
        let mut body = Vec::new();
        flate2::read::GzDecoder::new(fs::File::open(&path)?).read_to_end(&mut body)?;
        found.push((id.context("a page without a name")?.to_owned(), body));
    }
    found.sort();
    Ok(found)
}

fn read(reader: &str, folder: &str, out: &str, truth: Option<&str>) -> Result<()> {
    let pages = pages(folder)?;
    let addresses: Vec<Option<String>> = pages.iter().map(|(id, _)| address(truth?, id)).collect();
    let mut texts = Map::new();
    let began = cpu_seconds()?;
    for ((id, body), url) in pages.iter().zip(&addresses) {
        texts.insert(id.clone(), text(reader, body, url.as_deref())?.into());
    }
    let seconds = cpu_seconds()? - began;
    println!("{}", json!({"reader": reader, "pages": pages.len(), "cpu_seconds": seconds}));
    write(out, &Value::Object(texts))
}

fn text(reader: &str, body: &[u8], url: Option<&str>) -> Result<String> {
    Ok(match reader {
        "matsu" => matsu_reader::read(body, "text/html").map(|document| document.text).unwrap_or_default(),
        "rs-trafilatura" => {
            let options = rs_trafilatura::Options { url: url.map(str::to_owned), ..Default::default() };
            rs_trafilatura::extract_bytes_with_options(body, &options).map(|found| found.content_text).unwrap_or_default()
        }
        "dom_smoothie" => {
            let html = matsu_reader::decode(body, Some("text/html"));
            let read = dom_smoothie::Readability::new(html, None, None).ok().and_then(|mut page| page.parse().ok());
            read.map(|page| page.text_content.to_string()).unwrap_or_default()
        }
        other => bail!("no reader is called {other}"),
    })
}

/// As a model that has not seen the pages would have them read. The shipped model is asked too, for the time it takes.
fn texts_by(folder: &str, probabilities: &str, out: &str) -> Result<()> {
    let probabilities: BTreeMap<String, Vec<f32>> = serde_json::from_slice(&fs::read(probabilities)?)?;
    let mut found = Map::new();
    for (id, body) in pages(folder)? {
        let judged = probabilities.get(&id).context("a page that was not judged")?.clone();
        let began = cpu_seconds()?;
        let html = matsu_reader::decode(&body, Some("text/html"));
        let reading = Reading::of(&html);
        std::hint::black_box(reading.verdict());
        let verdict = Verdict::of(&reading.blocks, judged);
        let text = read_by(&verdict, reading).map(|document| document.text).unwrap_or_default();
        let seconds = cpu_seconds()? - began;
        found.insert(id, json!({"text": text, "seconds": seconds}));
    }
    write(out, &Value::Object(found))
}

fn address(truth: &str, id: &str) -> Option<String> {
    let record: Value = serde_json::from_slice(&fs::read(Path::new(truth).join(format!("{id}.json"))).ok()?).ok()?;
    record["url"].as_str().map(str::to_owned)
}

/// Time this thread really ran, so that a busy machine does not count.
fn cpu_seconds() -> Result<f64> {
    let stat = fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanos: f64 = stat.split(' ').next().context("an empty schedstat")?.parse()?;
    Ok(nanos / 1e9)
}
