//! The languages that people and agents are spoken to in.

use crate::words::words;

words! {
    /// The language of sentences; codes and field names are the same in all.
    pub enum Language {
        English = "en",
        Japanese = "ja",
        Korean = "ko",
    }
}
