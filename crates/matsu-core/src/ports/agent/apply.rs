//! What comes of bringing the changes of a run into the user's tree.

/// Files that a message names.
const NAMED_MAX: usize = 20;

/// The changes were written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// Files that the user and the run have both changed.
    pub conflicts: Vec<Conflict>,
}

/// A file that cannot be merged by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    pub path: String,
    pub kind: ConflictKind,
}

/// Why not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConflictKind {
    Lines,
    /// The base does not have it: the run made it, and the user has one that the run did not see.
    BothMade,
    YouDeleted,
    RunDeleted,
    NotText,
    Folder,
    Moved,
}

impl ConflictKind {
    /// Whether the file can be written with conflict markers.
    #[must_use]
    pub fn has_markers(self) -> bool {
        matches!(self, Self::Lines | Self::BothMade)
    }

    #[must_use]
    pub fn why(self) -> &'static str {
        match self {
            Self::Lines => "you and the run changed the same lines",
            Self::BothMade => "the run created it, and you have a different one that the run did not see",
            Self::YouDeleted => "you deleted it, and the run changed it",
            Self::RunDeleted => "the run deleted it, and you changed it",
            Self::NotText => "you and the run changed it, and it is not text",
            Self::Folder => "it is a file on one side and a folder on the other",
            Self::Moved => "you and the run moved it, or a folder above it, to different places",
        }
    }
}

/// Files with the reason of each, in words. Of many only some.
#[must_use]
pub fn conflict_words(conflicts: &[Conflict]) -> String {
    let one = |conflict: &Conflict| format!("{} ({})", conflict.path, conflict.kind.why());
    let mut named: Vec<String> = conflicts.iter().take(NAMED_MAX).map(one).collect();
    if conflicts.len() > NAMED_MAX {
        named.push(format!("and {} more", conflicts.len() - NAMED_MAX));
    }
    named.join(", ")
}

/// Nothing was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    #[error("the changes are in your tree already")]
    AlreadyThere,
    #[error("conflicts in {}", conflict_words(.0))]
    Conflicts(Vec<Conflict>),
    /// The run left conflict markers that neither its base nor the user's file has.
    #[error("the run left conflict markers in {}", .0.join(", "))]
    Markers(Vec<String>),
    #[error("{0}")]
    Failed(String),
}

impl From<String> for ApplyError {
    fn from(why: String) -> Self {
        Self::Failed(why)
    }
}
