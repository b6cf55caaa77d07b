//! How sure a commit is of the disk.

/// How hard SQLite makes sure that a commit has reached the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Synchronous {
    /// Every commit survives a power cut.
    #[default]
    Full,
    /// Every commit survives a crash of the process; a power cut may lose the last ones, never the file.
    Normal,
}
