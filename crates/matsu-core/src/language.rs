//! The languages of the texts for people and agents.

use crate::words::words;

words! {
    /// The language of sentences; codes and field names are the same in all.
    pub enum Language {
        English = "en",
        Japanese = "ja",
        Korean = "ko",
    }
}
