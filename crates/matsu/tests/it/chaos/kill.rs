//! kill -9 at a thousand random points, also in mid-start, with a restart after each.

use std::time::{Duration, Instant};

use super::audit::Audit;
use super::load::{Endpoint, Load};
use super::{Dice, dice};
use crate::home::{Backend, Daemon, Home, announced_by};
use crate::process::Process;

const KILLS: usize = 1_000;

/// Wide slots: on PostgreSQL the jobs of a killed node hold their permits until its heart has been missed for long.
pub fn wide_home(home: Home) -> Home {
    ["AGENT_CLI", "CPU", "NETWORK_CLIENT"]
        .iter()
        .fold(home, |home, slot| home.with_variable(&format!("MATSU_SLOTS_{slot}"), "900"))
}

/// The processes of a store: the first one serves.
pub struct Crowd<'a> {
    home: &'a Home,
    pub endpoint: Endpoint,
    processes: Vec<Process>,
}

impl<'a> Crowd<'a> {
    pub fn of(home: &'a Home, nodes: usize) -> Self {
        let mut crowd = Self { home, endpoint: Endpoint::default(), processes: Vec::new() };
        crowd.processes = (0..nodes).map(|nth| crowd.start(nth)).collect();
        crowd
    }

    fn start(&self, nth: usize) -> Process {
        if nth == 0 { self.home.start(&["serve", "--test-jobs", "--port", "0"]) } else { self.home.work() }
    }

    pub fn kill_and_restart(&mut self, nth: usize) {
        if nth == 0 {
            self.endpoint.close();
        }
        self.processes[nth].kill();
        self.processes[nth] = self.start(nth);
    }

    /// Lets real time go by, and connects as soon as there is a daemon.
    pub fn live_for(&self, span: Duration) {
        let began = Instant::now();
        while began.elapsed() < span {
            if let Some(api) = announced_by(&self.home.data_dir(), self.processes[0].pid()) {
                self.endpoint.open(&api);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// The process that serves, once it can be reached. The others go on until the crowd is dropped.
    pub fn serving(&mut self) -> Daemon {
        let serving = self.processes.remove(0);
        let daemon = Daemon::announced(serving, &self.home.data_dir());
        self.endpoint.open(&daemon.api);
        daemon
    }
}

fn kills_lose_nothing(backend: Backend, mut dice: Dice) {
    let home = wide_home(Home::new(backend));
    let nodes = if backend == Backend::Sqlite { 1 } else { 3 };
    let mut crowd = Crowd::of(&home, nodes);
    let load = Load::start(&crowd.endpoint, &mut dice);
    for _ in 0..KILLS {
        // Some die while they start, most at work.
        let life = if dice.once_in(8) { dice.below(60) } else { 100 + dice.below(600) };
        crowd.live_for(Duration::from_millis(life));
        crowd.kill_and_restart(dice.below(nodes as u64) as usize);
    }
    let daemon = crowd.serving();
    let book = load.stop();
    let audit = Audit::of(&daemon.api, &home.store, &book, Duration::from_secs(90));
    println!("{KILLS} kills on {backend:?}");
    audit.assert_clean(&book);
    assert!(audit.begun_again > 0, "some kill hit a running job");
}

#[test]
fn a_thousand_kills_lose_nothing_on_sqlite() {
    if let Some(dice) = dice("kills on SQLite") {
        kills_lose_nothing(Backend::Sqlite, dice);
    }
}

#[test]
fn a_thousand_kills_lose_nothing_on_postgres() {
    if let Some(dice) = dice("kills on PostgreSQL") {
        kills_lose_nothing(Backend::Postgres, dice);
    }
}
