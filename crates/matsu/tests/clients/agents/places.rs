//! Where the real command lines are tried: at every level of confinement, as root and as an ordinary user.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use matsu_testkit::skipped::skipped;

use super::programs;

const LEVELS: &[&str] = &["sealed", "fenced"];

#[derive(Clone)]
pub struct Place {
    pub programs: PathBuf,
    pub level: &'static str,
    /// `None`: the user of the tests.
    pub user: Option<u32>,
    /// What the daemon has in its environment besides.
    pub environment: Vec<(&'static str, String)>,
    is_root: bool,
}

impl Place {
    pub fn show(&self) -> String {
        format!("{} as {}", self.level, if self.is_root { "root" } else { "an ordinary user" })
    }

    pub fn with(&self, environment: Vec<(&'static str, String)>) -> Self {
        Self { environment, ..self.clone() }
    }

    pub fn is_sealed(&self) -> bool {
        self.level == "sealed"
    }
}

/// None if the command lines were not asked for. A place that cannot be had is named; one that the machine refuses fails
/// the test. `MATSU_TEST_LEVEL` tries one level alone.
pub fn places(test: &str) -> Vec<Place> {
    let Some(programs) = programs(test) else { return Vec::new() };
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|meta| meta.uid() == 0);
    let ordinary = named_user();
    let users: Vec<Option<u32>> =
        if is_root { [None].into_iter().chain(ordinary.map(Some)).collect() } else { vec![None] };
    if !is_root {
        skipped(&format!("only root can try {test} as root too"));
    }
    let wanted = std::env::var("MATSU_TEST_LEVEL").ok();
    let levels = LEVELS.iter().filter(|level| wanted.as_ref().is_none_or(|wanted| wanted == *level));
    let place = |level: &'static str, user: Option<u32>| Place {
        programs: programs.clone(),
        level,
        user,
        environment: Vec::new(),
        is_root: is_root && user.is_none(),
    };
    if is_root && ordinary.is_none() {
        skipped(&format!("this machine has no ordinary user to try {test} as"));
    }
    levels.flat_map(|level| users.iter().map(|user| place(level, *user))).collect()
}

/// An ordinary user of this machine: Qwen Code does not start for one without a name.
fn named_user() -> Option<u32> {
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let ids = users.lines().filter_map(|line| line.split(':').nth(2)?.parse::<u32>().ok());
    // Not the one that stands for users which a namespace does not know.
    ids.filter(|id| (1..65_534).contains(id)).max()
}
