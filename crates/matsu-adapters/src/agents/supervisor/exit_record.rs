//! How a run ended, written by its supervisor when every process is gone.

use std::io;

use serde::{Deserialize, Serialize};

use crate::agents::runs_folder::{RunFolder, write_private};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExitRecord {
    pub code: Option<i32>,
    pub signal: Option<i32>,
    /// How many processes had to be ended; the program itself counts if it had not ended by then.
    pub processes: u32,
    /// It was ended because its time was over while no daemon lived.
    #[serde(default)]
    pub timed_out: bool,
    /// It was ended because it had printed nothing for so many seconds.
    #[serde(default)]
    pub stalled: Option<u32>,
    /// How much the program printed to stdout. Absent: written by a supervisor that did not count.
    #[serde(default)]
    pub out_bytes: Option<u64>,
    /// Milliseconds since 1970.
    #[serde(default)]
    pub at: i64,
    /// Nothing was started, and why.
    #[serde(default)]
    pub error: Option<String>,
}

impl ExitRecord {
    /// The file appears whole or not at all.
    ///
    /// # Errors
    /// The folder is gone or the disk is full.
    pub fn write(&self, folder: &RunFolder) -> io::Result<()> {
        let text = serde_json::to_string(self).map_err(io::Error::other)?;
        let path = folder.exit_record();
        let unfinished = path.with_added_extension("new");
        write_private(&unfinished, &text)?;
        std::fs::rename(unfinished, path)
    }

    #[must_use]
    pub fn read(folder: &RunFolder) -> Option<Self> {
        serde_json::from_str(&std::fs::read_to_string(folder.exit_record()).ok()?).ok()
    }
}
