//! How far a run can reach.

use crate::words::words;

words! {
    /// How a run is kept from reaching what it was not given.
    pub enum Confinement {
        /// In namespaces, with a view of the machine that holds only what it needs.
        Sealed = "sealed",
        /// By Landlock.
        Fenced = "fenced",
        /// Not at all.
        Open = "open",
    }
}

/// A level and what it does not cover, in the words that every report uses.
#[must_use]
pub fn show_confinement(level: &str, not_covered: &[String]) -> String {
    format!("{level}; not covered: {}", not_covered.join("; "))
}
