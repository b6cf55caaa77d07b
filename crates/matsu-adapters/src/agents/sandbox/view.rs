//! The file system as a sealed run sees it. Everything that is not named here does not exist for it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A view, built from nothing: the system folders first, then `entries` in their order. A later entry covers an
/// earlier one at the same place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct View {
    /// An empty folder on which the new root is built.
    pub root: PathBuf,
    /// What `/tmp` and `/var/tmp` are: a folder of this run alone, on disk.
    pub tmp: PathBuf,
    pub entries: Vec<Entry>,
    pub network: Network,
}

/// One thing in the view. Paths are absolute and have no links in them, unless stated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Entry {
    /// As on the machine, read-only, with everything mounted below it. Skipped if it does not exist.
    Read(PathBuf),
    /// As on the machine, writable. Skipped if it does not exist.
    Write(PathBuf),
    /// As on the machine. A run may have been able to write around it, so no link on the way to it is followed: that is
    /// an error. Skipped if it does not exist.
    Real { path: PathBuf, writes: bool },
    /// A folder or file of the machine, shown at another place.
    Place { source: PathBuf, target: PathBuf },
    /// Nothing: an empty read-only folder, or an empty file where the machine has a file. Only if something is there.
    Cover(PathBuf),
    /// What the machine has there can be read; what is written goes to `upper` and never to the machine.
    Layer { lower: PathBuf, upper: PathBuf, work: PathBuf, target: PathBuf },
    /// A symbolic link, unless something is there already.
    Link { path: PathBuf, target: PathBuf },
}

/// Which network a sealed process has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Network {
    /// The machine's, loopback included.
    Shared,
    /// None, not even loopback.
    None,
}

/// Folders of the system, shown read-only. What is a link in the root of the machine stays one.
pub const SYSTEM: &[&str] =
    &["usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "etc", "opt", "nix", "gnu", "sys"];
