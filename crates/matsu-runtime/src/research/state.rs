//! Where a search stands: its checkpoint. Small enough to be written after every page.

use serde::{Deserialize, Serialize};

use matsu_core::clock::Timestamp;
use matsu_core::plain_text::plain_line;
use matsu_core::research::evidence::PageKey;
use matsu_core::research::merge::Hit;
use matsu_core::research::novelty::Novelty;
use matsu_core::research::search::SearchTally;

use super::selecting::domain_of;

/// How the note about a model begins that a search went on without.
pub const WITHOUT_MODEL: &str = "done without the model";

/// What stands in a note between a page and what its site said that asked for a pause.
pub const TOO_OFTEN: &str = ": 429, ";

/// Whether a note is about one page, and names it.
pub fn is_about_page(note: &str) -> bool {
    note.contains("://") && !note.starts_with(WITHOUT_MODEL)
}

/// The notes about pages that were skipped, at most so many, and how many more there are.
pub fn skipped(tally: &SearchTally, shown_max: usize) -> Vec<String> {
    let notes: Vec<&String> = tally.notes.iter().filter(|note| is_about_page(note)).collect();
    let more = notes.len().saturating_sub(shown_max) + usize::try_from(tally.notes_dropped).unwrap_or(0);
    let shown = notes.into_iter().take(shown_max).map(|note| plain_line(note));
    shown.chain((more > 0).then(|| format!("and {more} more that are not listed here"))).collect()
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SearchState {
    /// The engines have been asked and the list is made.
    pub is_selected: bool,
    /// What is left to be read, next one first.
    pub candidates: Vec<Candidate>,
    /// On their way right now.
    pub fetching: Vec<Candidate>,
    /// A page that was fetched and stored, but whose claims are not made yet.
    pub unread: Option<Unread>,
    /// Pages that were read and whose claims are picked when all are.
    pub read: Vec<Unread>,
    /// The claims of the pages above are made.
    pub is_picked: bool,
    /// The model failed: from then on claims were made without it.
    pub is_without_model: bool,
    /// Addresses that need a login.
    pub parked: Vec<Candidate>,
    /// How often it waited for engines that asked for a pause.
    pub engine_waits: u32,
    pub novelty: Novelty,
    pub tally: SearchTally,
    /// Nothing is left to be done.
    pub is_done: bool,
}

/// An address to be read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Candidate {
    pub hit: Hit,
    pub engines: Vec<String>,
    /// Tries that failed and may succeed another time.
    pub tries: u32,
    /// Its site said "too often": not before this.
    pub not_before: Option<Timestamp>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Unread {
    pub page: PageKey,
    pub domain: String,
    pub is_primary: bool,
}

impl SearchState {
    /// Reads a checkpoint; none, or one that cannot be read, begins anew. What was on its way then comes first.
    pub fn from_checkpoint(text: Option<&str>) -> Self {
        let mut state: Self = text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        let on_their_way = std::mem::take(&mut state.fetching);
        state.candidates.splice(0..0, on_their_way);
        state
    }

    pub fn to_checkpoint(&self) -> String {
        serde_json::to_string(self).unwrap_or_else(|_| "{}".to_owned())
    }

    /// The next address whose time has come and whose site is not being asked, taken from the list.
    pub fn take_next(&mut self, now: Timestamp) -> Option<Candidate> {
        let is_asked = |candidate: &Candidate| {
            self.fetching.iter().any(|under_way| domain_of(&under_way.hit) == domain_of(&candidate.hit))
        };
        let is_ready = |candidate: &Candidate| candidate.not_before.is_none_or(|at| at <= now) && !is_asked(candidate);
        let ready = self.candidates.iter().position(is_ready)?;
        Some(self.candidates.remove(ready))
    }

    /// When the first of those that must wait may be asked again.
    pub fn next_moment(&self) -> Option<Timestamp> {
        self.candidates.iter().filter_map(|candidate| candidate.not_before).min()
    }

    pub fn note_domain(&mut self, domain: &str, is_primary: bool) {
        if !self.tally.domains.iter().any(|known| known == domain) {
            self.tally.domains.push(domain.to_owned());
        }
        self.tally.has_primary_source |= is_primary;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_listed_is_counted() {
        let mut state = SearchState::default();
        for n in 0..40 {
            state.note(&format!("https://a.org/{n}: 404"));
        }
        state.note_always("the budget is used up");
        let (few, all) = (skipped(&state.tally, 3), skipped(&state.tally, usize::MAX));
        assert_eq!((few.len(), few[3].as_str()), (4, "and 37 more that are not listed here"));
        assert_eq!((all.len(), all[30].as_str()), (31, "and 10 more that are not listed here"));
        assert_eq!(state.tally.notes.last().map(String::as_str), Some("the budget is used up"), "it has its place");
        assert_eq!(skipped(&SearchTally::default(), 3), Vec::<String>::new());
    }
}
