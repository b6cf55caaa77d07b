//! What the contract asks, what was seen, and whether that is enough.

/// One bar of the contract against one measurement.
pub struct Verdict {
    pub bar: String,
    pub seen: String,
    /// `None`: it was not measured.
    pub is_met: Option<bool>,
}

impl Verdict {
    pub fn at_least(bar: impl Into<String>, seen: Option<f64>, least: f64, show: impl Fn(f64) -> String) -> Self {
        Self::new(bar, seen, show, |seen| seen >= least)
    }

    pub fn at_most(bar: impl Into<String>, seen: Option<f64>, most: f64, show: impl Fn(f64) -> String) -> Self {
        Self::new(bar, seen, show, |seen| seen <= most)
    }

    fn new(
        bar: impl Into<String>,
        seen: Option<f64>,
        show: impl Fn(f64) -> String,
        is_met: impl Fn(f64) -> bool,
    ) -> Self {
        let text = seen.map_or("not measured".to_owned(), show);
        Self { bar: bar.into(), seen: text, is_met: seen.map(is_met) }
    }

    pub fn word(&self) -> &'static str {
        match self.is_met {
            Some(true) => "met",
            Some(false) => "**not met**",
            None => "–",
        }
    }
}

pub fn times(ratio: f64) -> String {
    format!("{ratio:.2} ×")
}

pub fn milliseconds(ns: f64) -> String {
    format!("{:.3} ms", ns / 1e6)
}
