//! The Markdown report: every bar with what was seen, the machine and the settings, then per row the tables, ratios
//! first, the charts and the notes.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result};

use crate::bench::{Bench, Size};
use crate::chart::Chart;
use crate::matsu_side::is_matsu;
use crate::measure::{Percentiles, Series, median};
use crate::verdict::Verdict;

/// One row of the contract, measured.
pub struct Section {
    pub title: String,
    pub bar: String,
    pub verdicts: Vec<Verdict>,
    pub tables: Vec<Table>,
    pub charts: Vec<Chart>,
    pub notes: Vec<String>,
}

pub struct Table {
    pub caption: String,
    pub header: Vec<String>,
    pub lines: Vec<Vec<String>>,
}

impl Section {
    pub fn new(title: &str, bar: &str) -> Self {
        Self {
            title: title.to_owned(),
            bar: bar.to_owned(),
            verdicts: Vec::new(),
            tables: Vec::new(),
            charts: Vec::new(),
            notes: Vec::new(),
        }
    }

    pub fn skipped(title: &str, bar: &str, why: &str) -> Self {
        let mut section = Self::new(title, bar);
        section.notes.push(format!("Not run: {why}."));
        section
    }

    /// Rates with the ratio to the first series and, where Matsu ran, Matsu's ratio to each.
    pub fn add_rates(&mut self, caption: &str, unit: &str, all: &[Series]) {
        let matsu = all.iter().find(|series| is_matsu(&series.name));
        let base = all.first().map(|series| series.name.as_str()).unwrap_or_default();
        let mut header = vec!["contender".to_owned()];
        header.extend(matsu.map(|_| "Matsu ÷ it".to_owned()));
        header.extend([format!("× {base}"), format!("median {unit}"), "lowest – highest".to_owned()]);
        let lines = all.iter().map(|series| rate_line(series, &all[0], matsu)).collect();
        self.tables.push(Table { caption: caption.to_owned(), header, lines });
        self.add_notes(caption, all);
    }

    pub fn add_latencies(&mut self, caption: &str, all: &[(String, Vec<u64>)]) -> Result<()> {
        let mut base = None;
        let mut lines = Vec::new();
        for (name, values) in all {
            if let Some(found) = Percentiles::of(values.iter().copied())? {
                let (_, base_p50) = *base.get_or_insert((name, found.p50_ns));
                let ratio = format!("{:.2}", found.p50_ns as f64 / base_p50.max(1) as f64);
                let times = [found.p50_ns, found.p99_ns, found.max_ns].map(|ns| format!("{:.1}", ns as f64 / 1e3));
                lines.push([vec![name.clone(), ratio], times.to_vec(), vec![found.count.to_string()]].concat());
            }
        }
        let base = base.map_or("–", |(name, _)| name.as_str());
        let header = ["contender", &format!("p50 × {base}"), "p50 µs", "p99 µs", "max µs", "samples"];
        let header = header.map(str::to_owned).to_vec();
        self.tables.push(Table { caption: caption.to_owned(), header, lines });
        Ok(())
    }

    /// What a contender said of itself, and what it could not do, in its own words.
    pub fn add_notes(&mut self, caption: &str, all: &[Series]) {
        for series in all {
            if let Some(note) = series.note() {
                self.notes.push(format!("{caption}, {}, last round: {note}.", series.name));
            }
            if let Some(excuse) = series.excuse() {
                self.notes.push(format!("{caption}, {}: {excuse}.", series.name));
            }
        }
    }
}

pub fn write(bench: &Bench, out: &Path, sections: &[Section]) -> Result<()> {
    let mut text = "# Benchmark report\n".to_owned();
    write_verdicts(&mut text, sections);
    text.push_str(&machine(bench));
    for section in sections {
        let _ = writeln!(text, "\n## {}\n\nBar: {}.", section.title, section.bar);
        for table in &section.tables {
            write_table(&mut text, table);
        }
        for chart in &section.charts {
            std::fs::write(bench.charts.join(&chart.file), chart.svg())?;
            let _ = writeln!(text, "\n![{}]({})", chart.title, chart.file);
        }
        if !section.notes.is_empty() {
            text.push('\n');
        }
        for note in &section.notes {
            let _ = writeln!(text, "- {note}");
        }
    }
    std::fs::write(out, text).with_context(|| format!("cannot write {}", out.display()))?;
    Ok(())
}

/// The answers before the numbers.
fn write_verdicts(text: &mut String, sections: &[Section]) {
    text.push_str("\n| bar | seen | |\n|---|---:|---|\n");
    for section in sections {
        for verdict in &section.verdicts {
            let _ = writeln!(text, "| {}: {} | {} | {} |", section.title, verdict.bar, verdict.seen, verdict.word());
        }
    }
}

fn machine(bench: &Bench) -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let mut text = format!(
        "\n{cores} cores, {}, scratch files on {}, {} rounds; load average {} at the start and {} at the end.\n",
        cpu_model(),
        file_system(bench.scratch()),
        bench.rounds,
        bench.load_at_start,
        load_average(),
    );
    if bench.size == Size::Quick {
        text.push_str("**Quick run: it shows that everything runs; the numbers mean little.**\n");
    }
    text.push_str(include_str!("settings.md"));
    text
}

/// Over one minute, as the kernel gives it.
pub fn load_average() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().filter(|load| !load.is_empty()).unwrap_or("unknown").to_owned()
}

fn rate_line(series: &Series, base: &Series, matsu: Option<&Series>) -> Vec<String> {
    let rates = series.rates();
    let ratio = |value: Option<f64>| value.map_or("–".to_owned(), |ratio| format!("{ratio:.2}"));
    let range = match (rates.iter().copied().reduce(f64::min), rates.iter().copied().reduce(f64::max)) {
        (Some(low), Some(high)) => format!("{} – {}", grouped(low), grouped(high)),
        _ => "–".to_owned(),
    };
    let middle = median(rates).map_or("–".to_owned(), grouped);
    let mut line = vec![series.name.clone()];
    line.extend(matsu.map(|matsu| ratio(matsu.ratio_to(series))));
    line.extend([ratio(series.ratio_to(base)), middle, range]);
    line
}

fn write_table(text: &mut String, table: &Table) {
    let _ = writeln!(text, "\n{}\n", table.caption);
    let _ = writeln!(text, "| {} |", table.header.join(" | "));
    let _ = writeln!(text, "|---{}|", "|---:".repeat(table.header.len().saturating_sub(1)));
    for line in &table.lines {
        let _ = writeln!(text, "| {} |", line.join(" | "));
    }
}

/// 12345.6 → "12,346".
pub fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn cpu_model() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find(|line| line.starts_with("model name")).and_then(|line| line.split_once(": "));
    model.map_or("unknown processor".to_owned(), |(_, name)| name.to_owned())
}

/// The type of the mount with the longest matching prefix.
fn file_system(path: &Path) -> String {
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap_or_default();
    let mut best = (0, "an unknown file system".to_owned());
    for line in mounts.lines() {
        let mut fields = line.split(' ');
        if let (Some(_), Some(place), Some(kind)) = (fields.next(), fields.next(), fields.next())
            && path.starts_with(place)
            && place.len() >= best.0
        {
            best = (place.len(), kind.to_owned());
        }
    }
    best.1
}
