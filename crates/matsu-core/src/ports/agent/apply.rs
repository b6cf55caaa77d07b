//! What comes of bringing the changes of a run into the user's tree.

/// The changes were written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// Files that were written with conflict markers.
    pub conflicts: Vec<String>,
}

/// Nothing was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    #[error("the changes are in your tree already")]
    AlreadyThere,
    #[error("you and the run changed the same lines of {}", .0.join(", "))]
    Conflicts(Vec<String>),
    #[error("{0}")]
    Failed(String),
}

impl From<String> for ApplyError {
    fn from(why: String) -> Self {
        Self::Failed(why)
    }
}
