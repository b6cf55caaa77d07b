//! The engine over local documents at size: a folder of text whose words are as unequal as in real text, in three
//! scripts; how long and in how much memory it is indexed, and how fast questions are answered.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result};
use matsu_adapters::engines::local::LocalEngine;
use matsu_adapters::reading::{ReaderLimits, Readers};
use matsu_core::clock::Clock;
use matsu_core::ports::search_engine::{EngineRequest, SearchEngine};
use matsu_core::principal::Principal;
use serde_json::json;

const FILE_BYTES: usize = 64 * 1024;
const WORDS: u64 = 200_000;
const QUESTIONS: u64 = 300;
/// Files of one folder, so that no folder is absurd.
const FILES_PER_FOLDER: usize = 200;

/// A small generator of numbers; the same text in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A word's number: word n is about n times as rare as the first.
    fn word(&mut self) -> u64 {
        let unit = (self.roll() >> 11) as f64 / (1_u64 << 53) as f64;
        ((WORDS as f64).powf(unit) as u64).min(WORDS) - 1
    }
}

/// The word of a number: two thirds Latin, the rest Japanese and Korean.
fn spell(number: u64) -> String {
    let pick = |first: u32, count: u64, value: u64| char::from_u32(first + (value % count) as u32).unwrap_or('a');
    match number % 6 {
        4 => [pick(0x4e00, 2_000, number / 6), pick(0x4e00, 2_000, number / 7 + 13)].iter().collect(),
        5 => [pick(0xac00, 2_000, number / 6), pick(0xac00, 2_000, number / 5 + 7)].iter().collect(),
        _ => {
            let mut value = number + 30;
            let mut word = String::new();
            while value > 0 {
                word.push(pick(u32::from('a'), 26, value));
                value /= 26;
            }
            word
        }
    }
}

fn write_corpus(folder: &Path, megabytes: usize) -> Result<()> {
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    for number in 0..megabytes * 1024 * 1024 / FILE_BYTES {
        let below = folder.join(format!("{:04}", number / FILES_PER_FOLDER));
        fs::create_dir_all(&below)?;
        let mut text = String::with_capacity(FILE_BYTES + 100);
        while text.len() < FILE_BYTES {
            for _ in 0..12 {
                text.push_str(&spell(dice.word()));
                text.push(' ');
            }
            text.push_str(".\n");
        }
        fs::File::create(below.join(format!("{number}.txt")))?.write_all(text.as_bytes())?;
    }
    Ok(())
}

pub fn measure(folder: &Path, index: &Path, megabytes: usize) -> Result<()> {
    if !folder.exists() {
        write_corpus(folder, megabytes)?;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    // As in the product, by reader processes.
    let (limits, clock) = (ReaderLimits::default(), Clock::system());
    let readers = Readers::new(std::env::current_exe()?, vec!["__read".to_owned()], limits, clock);
    let engine = LocalEngine::open(index, Vec::new(), Arc::new(readers), clock).context("no index")?;
    let ask = |query: String| EngineRequest {
        query,
        language: None,
        hits_max: 10,
        owner: Principal::local_user(),
        folders: vec![folder.display().to_string()],
    };
    let began = Instant::now();
    runtime.block_on(engine.read_folders(&[folder.canonicalize()?]))?;
    let index_seconds = began.elapsed().as_secs_f64();
    let mut dice = Dice(42);
    let mut millis = Vec::new();
    let mut found = 0;
    for _ in 0..QUESTIONS {
        let words: Vec<String> = (0..1 + dice.roll() % 4).map(|_| spell(dice.word())).collect();
        let began = Instant::now();
        found += runtime.block_on(engine.search(&ask(words.join(" "))))?.hits.len();
        millis.push(began.elapsed().as_secs_f64() * 1e3);
    }
    millis.sort_by(f64::total_cmp);
    let at = |share: f64| millis[((millis.len() - 1) as f64 * share) as usize];
    println!(
        "{}",
        json!({
            "megabytes": megabytes, "index_seconds": index_seconds, "peak_mib": peak_mib()?, "hits": found,
            "index_mib": fs::metadata(index)?.len() / 1024 / 1024, "p50_ms": at(0.5), "p99_ms": at(0.99), "max_ms": at(1.0),
        })
    );
    Ok(())
}

fn peak_mib() -> Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).context("no VmHWM")?;
    let kib: u64 = line.split_whitespace().nth(1).context("no number")?.parse()?;
    Ok(kib / 1024)
}
