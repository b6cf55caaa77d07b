//! A wall clock that jumps by an hour, forwards and backwards, in mid-work. Monotonic time stays as it is, as on a
//! machine whose clock is set.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::audit::Audit;
use super::kill::wide_home;
use super::load::{Endpoint, Load};
use super::{Dice, dice};
use crate::home::{Backend, Daemon, Home};
use crate::stores;

/// Debian's package `libfaketime`, which `make chaos` installs.
fn faketime() -> PathBuf {
    let folders = std::fs::read_dir("/usr/lib").unwrap().map(|entry| entry.unwrap().path());
    let found = folders.map(|folder| folder.join("faketime/libfaketimeMT.so.1")).find(|library| library.exists());
    found.expect("libfaketime is not installed; `make chaos` installs it")
}

/// By rename: a half-written file would be a jump of its own.
fn set_clock(file: &Path, offset: &str) {
    let fresh = file.with_extension("new");
    std::fs::write(&fresh, offset).unwrap();
    std::fs::rename(&fresh, file).unwrap();
}

fn jumps_do_no_harm(backend: Backend, mut dice: Dice) {
    let home = wide_home(Home::new(backend));
    let clock = home.path("clock");
    set_clock(&clock, "+0");
    let home = home
        .with_variable("LD_PRELOAD", faketime().to_str().unwrap())
        .with_variable("FAKETIME_TIMESTAMP_FILE", clock.to_str().unwrap())
        .with_variable("FAKETIME_NO_CACHE", "1")
        .with_variable("FAKETIME_DONT_FAKE_MONOTONIC", "1")
        .with_variable("FAKETIME_DISABLE_SHM", "1");
    let daemon: Daemon = home.serve();
    let honest = home.neighbour_with_a_right_clock();
    let _worker = (backend == Backend::Postgres).then(|| honest.work());
    let endpoint = Endpoint::default();
    endpoint.open(&daemon.api);
    let load = Load::start(&endpoint, &mut dice);
    for offset in ["+1h", "+0", "-1h", "+0", "-1h", "+1h", "+0"] {
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(4) {
            std::thread::sleep(Duration::from_millis(50));
        }
        set_clock(&clock, offset);
    }
    let book = load.stop();
    let audit = Audit::of(&daemon.api, &home.store, &book, Duration::from_secs(30));
    let spread = stores::ask(&home.store, "SELECT (max(created_at) - min(created_at)) / 60000 FROM tasks");
    println!("{backend:?}: creation times of tasks are {} minutes apart", spread[0]);
    audit.assert_clean(&book);
    assert!(spread[0].parse::<f64>().unwrap() >= 119.0, "the clock did jump");
    assert_eq!(audit.begun_again, 0, "no node was considered dead");
}

impl Home {
    /// The same store and settings, without the clock that jumps.
    fn neighbour_with_a_right_clock(&self) -> Self {
        wide_home(Self::with_store(self.store.clone()))
    }
}

#[test]
fn jumps_of_an_hour_do_no_harm_on_sqlite() {
    if let Some(dice) = dice("clock jumps on SQLite") {
        jumps_do_no_harm(Backend::Sqlite, dice);
    }
}

#[test]
fn jumps_of_an_hour_do_no_harm_on_postgres() {
    if let Some(dice) = dice("clock jumps on PostgreSQL") {
        jumps_do_no_harm(Backend::Postgres, dice);
    }
}
