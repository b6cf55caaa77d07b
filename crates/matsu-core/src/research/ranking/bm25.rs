//! BM25 over texts of one size (sentences, passages, documents), for one form of their terms.

use super::words::{Form, Terms};

const K1: f64 = 1.2;
const B: f64 = 0.75;

/// The weight of the question's terms among these texts: the rarer, the greater.
pub struct Statistics {
    form: Form,
    length_mean: f64,
    /// Of each of the question's terms; 0 for those that stand in no text.
    pub weights: Vec<f64>,
    total: f64,
}

impl Statistics {
    #[must_use]
    pub fn over(form: Form, texts: &[&Terms]) -> Self {
        let (count, length) = (number(texts.len()), texts.iter().map(|text| text.length(form)).sum::<f64>());
        let terms = texts.first().map_or(0, |text| text.counts(form).len());
        let mut with = vec![0.0; terms];
        for text in texts {
            with.iter_mut().zip(text.counts(form)).filter(|(_, n)| **n > 0.0).for_each(|(with, _)| *with += 1.0);
        }
        let weight = |with: f64| if with > 0.0 { (1.0 + (count - with + 0.5) / (with + 0.5)).ln() } else { 0.0 };
        let weights: Vec<f64> = with.into_iter().map(weight).collect();
        let total = weights.iter().sum();
        Self { form, length_mean: (length / count.max(1.0)).max(1.0), weights, total }
    }

    /// BM25 of a text, as a share of what a text with all the question's terms could have.
    #[must_use]
    pub fn score(&self, text: &Terms) -> f64 {
        if self.total <= 0.0 {
            return 0.0;
        }
        let norm = K1 * (1.0 - B + B * text.length(self.form) / self.length_mean);
        let terms = self.weights.iter().zip(text.counts(self.form));
        terms.map(|(weight, count)| weight * count * (K1 + 1.0) / (count + norm)).sum::<f64>() / self.total
    }

    /// The share of the question's weight whose terms the text has.
    #[must_use]
    pub fn coverage(&self, text: &Terms) -> f64 {
        if self.total <= 0.0 {
            return 0.0;
        }
        let terms = self.weights.iter().zip(text.counts(self.form)).filter(|(_, count)| **count > 0.0);
        terms.map(|(weight, _)| weight).sum::<f64>() / self.total
    }
}

/// A count as a number to reckon with.
#[must_use]
pub fn number(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}
