//! A project: what agents work in. A store is born with one, `default`.

use serde::Serialize;

use crate::clock::Timestamp;
use crate::id::ProjectId;
use crate::words::words;

/// The one that a store is born with.
pub const DEFAULT_PROJECT: &str = "default";

words! {
    /// Whether agents may come.
    pub enum ProjectStatus {
        Active = "active",
        Paused = "paused",
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Project {
    pub id: ProjectId,
    pub name: String,
    pub working_directory: Option<String>,
    pub status: ProjectStatus,
    pub created_at: Timestamp,
    /// Position in the list of all projects.
    pub seq: i64,
}

#[derive(Clone, Debug)]
pub struct NewProject {
    pub id: ProjectId,
    pub name: String,
    pub working_directory: Option<String>,
    pub created_at: Timestamp,
}

/// Whether a name that a person gave can serve as an id: it stands in URLs and topics.
#[must_use]
pub fn is_usable_id(text: &str) -> bool {
    let usable = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    (1..=64).contains(&text.len()) && text.chars().all(usable)
}

#[cfg(test)]
mod tests {
    use super::is_usable_id;

    #[test]
    fn ids_that_people_give_fit_into_a_url() {
        for good in ["default", "worker-01", "a_b.c", "A"] {
            assert!(is_usable_id(good), "{good}");
        }
        for bad in ["", "a/b", "a b", "待つ", &"x".repeat(65)] {
            assert!(!is_usable_id(bad), "{bad}");
        }
    }
}
