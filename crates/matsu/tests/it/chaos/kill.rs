//! kill -9 at a hundred random points, also in mid-start, with a restart after each.

use std::time::{Duration, Instant};

use super::audit::Audit;
use super::load::{Endpoint, Load};
use super::{Dice, dice};
use crate::home::{Backend, Daemon, Home, announced_by};
use crate::process::Process;

const KILLS: usize = 100;

/// Wide slots: on PostgreSQL the jobs of a killed node hold their permits until its heart has been missed for long.
pub fn wide_home(home: Home) -> Home {
    ["AGENT_CLI", "CPU", "NETWORK_CLIENT"]
        .iter()
        .fold(home, |home, slot| home.with_variable(&format!("MATSU_SLOTS_{slot}"), "900"))
}

/// The processes of a store: the first one serves.
struct Crowd<'a> {
    home: &'a Home,
    endpoint: Endpoint,
    processes: Vec<Process>,
}

impl Crowd<'_> {
    fn start(&self, nth: usize) -> Process {
        if nth == 0 { self.home.start(&["serve", "--test-jobs", "--port", "0"]) } else { self.home.work() }
    }

    fn kill_and_restart(&mut self, nth: usize) {
        if nth == 0 {
            self.endpoint.close();
        }
        self.processes[nth].kill();
        self.processes[nth] = self.start(nth);
    }

    /// Lets real time go by, and connects as soon as there is a daemon.
    fn live_for(&self, span: Duration) {
        let began = Instant::now();
        while began.elapsed() < span {
            if let Some(api) = announced_by(&self.home.data_dir(), self.processes[0].pid()) {
                self.endpoint.open(&api);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

fn kills_lose_nothing(backend: Backend, mut dice: Dice) {
    let home = wide_home(Home::new(backend));
    let nodes = if backend == Backend::Sqlite { 1 } else { 3 };
    let mut crowd = Crowd { home: &home, endpoint: Endpoint::default(), processes: Vec::new() };
    for nth in 0..nodes {
        let process = crowd.start(nth);
        crowd.processes.push(process);
    }
    let load = Load::start(&crowd.endpoint, &mut dice);
    for _ in 0..KILLS {
        // Some die while they start, most at work.
        let life = if dice.once_in(8) { dice.below(60) } else { 100 + dice.below(600) };
        crowd.live_for(Duration::from_millis(life));
        crowd.kill_and_restart(dice.below(nodes as u64) as usize);
    }
    let serving = crowd.processes.remove(0);
    let daemon = Daemon::announced(serving, &home.data_dir());
    crowd.endpoint.open(&daemon.api);
    let book = load.stop();
    let audit = Audit::of(&daemon.api, &home.store, &book, Duration::from_secs(90));
    println!("{KILLS} kills on {backend:?}");
    audit.assert_clean(&book);
    assert!(audit.begun_again > 0, "some kill hit a running job");
}

#[test]
fn a_hundred_kills_lose_nothing_on_sqlite() {
    if let Some(dice) = dice("kills on SQLite") {
        kills_lose_nothing(Backend::Sqlite, dice);
    }
}

#[test]
fn a_hundred_kills_lose_nothing_on_postgres() {
    if let Some(dice) = dice("kills on PostgreSQL") {
        kills_lose_nothing(Backend::Postgres, dice);
    }
}
