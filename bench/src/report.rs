//! The Markdown report: the machine, then per row the bar, the tables with ratios, the notes and the charts.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result};

use crate::bench::{Bench, Size};
use crate::chart::Chart;
use crate::matsu_side;
use crate::measure::{Percentiles, Series, median};

/// One row of the contract, measured.
pub struct Section {
    pub title: String,
    pub bar: String,
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
        Self { title: title.to_owned(), bar: bar.to_owned(), tables: Vec::new(), charts: Vec::new(), notes: Vec::new() }
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
        let mut header =
            vec!["contender".to_owned(), format!("median {unit}"), "lowest – highest".to_owned(), format!("× {base}")];
        header.extend(matsu.map(|_| "Matsu ÷ it".to_owned()));
        let lines = all.iter().map(|series| rate_line(series, &all[0], matsu)).collect();
        self.tables.push(Table { caption: caption.to_owned(), header, lines });
        self.add_notes(caption, all);
    }

    pub fn add_latencies(&mut self, caption: &str, all: &[(String, Vec<u64>)]) -> Result<()> {
        let header = ["contender", "p50 µs", "p99 µs", "max µs", "samples"].map(str::to_owned).to_vec();
        let mut lines = Vec::new();
        for (name, values) in all {
            if let Some(found) = Percentiles::of(values.iter().copied())? {
                let times = [found.p50_ns, found.p99_ns, found.max_ns].map(|ns| format!("{:.1}", ns as f64 / 1e3));
                lines.push([vec![name.clone()], times.to_vec(), vec![found.count.to_string()]].concat());
            }
        }
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
    let mut text = head(bench);
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

fn head(bench: &Bench) -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let mut text = format!(
        "# Benchmark report\n\n{cores} cores, {}, scratch files on {}, {} rounds.\n",
        cpu_model(),
        file_system(bench.scratch()),
        bench.rounds,
    );
    if bench.size == Size::Quick {
        text.push_str("**Quick run: it shows that everything runs; the numbers mean little.**\n");
    }
    if matsu_side::OPENERS.is_empty() {
        text.push_str("Matsu itself is not linked into this run: the tables hold its peers only.\n");
    }
    text.push_str(concat!(
        "\nContenders take turns within each round, each measurement in a fresh process on a fresh store; a ratio is the ",
        "median over rounds of measurements taken next to each other.\n",
        "Payloads are 100 bytes of text; every SQLite contender runs in WAL mode at the `synchronous` setting named, ",
        "with its other settings as its library leaves them.\n",
        "A throughput run ends when the last completion is committed, not when the last body returns.\n",
    ));
    text
}

fn rate_line(series: &Series, base: &Series, matsu: Option<&Series>) -> Vec<String> {
    let rates = series.rates();
    let ratio = |value: Option<f64>| value.map_or("–".to_owned(), |ratio| format!("{ratio:.2}"));
    let range = match (rates.iter().copied().reduce(f64::min), rates.iter().copied().reduce(f64::max)) {
        (Some(low), Some(high)) => format!("{} – {}", grouped(low), grouped(high)),
        _ => "–".to_owned(),
    };
    let middle = median(rates).map_or("–".to_owned(), grouped);
    let mut line = vec![series.name.clone(), middle, range, ratio(series.ratio_to(base))];
    line.extend(matsu.map(|matsu| ratio(matsu.ratio_to(series))));
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

fn is_matsu(name: &str) -> bool {
    matsu_side::OPENERS.iter().any(|(own, _)| *own == name)
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
