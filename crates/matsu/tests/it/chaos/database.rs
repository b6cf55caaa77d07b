//! A database that is killed and comes back, and connections that are cut, in mid-work.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use super::audit::Audit;
use super::dice;
use super::kill::wide_home;
use super::load::{Endpoint, Load};
use crate::home::{Home, run};
use crate::stores;

/// A server of this test's own, which it may kill.
pub struct Server {
    scratch: tempfile::TempDir,
    pub url: String,
}

impl Server {
    pub fn start() -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let started = run(Self::script(&scratch, "start")).good();
        let url = started.out.trim().to_owned();
        Self { scratch, url }
    }

    fn script(scratch: &tempfile::TempDir, verb: &str) -> Command {
        let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../scripts/postgres.sh");
        let mut command = Command::new(script);
        // The script notes its server below this folder; the server of the other tests must not be found.
        command.arg(verb).env("CARGO_TARGET_DIR", scratch.path());
        command.env_remove("MATSU_TEST_POSTGRES").env_remove("MATSU_TEST_POSTGRES_DIR");
        command
    }

    pub fn restart(&self) {
        run(Self::script(&self.scratch, "restart")).good();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = Self::script(&self.scratch, "stop").output();
    }
}

const CUT_SOME: &str = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
    WHERE application_name = 'matsu' AND pid % 2 = ";

#[test]
fn a_database_that_comes_and_goes_costs_nothing() {
    let Some(mut dice) = dice("restarts and cut connections of PostgreSQL") else { return };
    let server = Server::start();
    let home = wide_home(Home::with_store(stores::fresh_schema_on(&server.url)));
    let daemon = home.serve();
    let mut workers = [0, 1].map(|_| home.work());
    let endpoint = Endpoint::default();
    endpoint.open(&daemon.api);
    let load = Load::start(&endpoint, &mut dice);
    let began = Instant::now();
    let (mut restarts, mut cut) = (0, 0);
    while began.elapsed() < Duration::from_secs(40) {
        std::thread::sleep(Duration::from_millis(200 + dice.below(1_500)));
        if dice.once_in(5) {
            server.restart();
            restarts += 1;
        } else {
            let sql = format!("{CUT_SOME}{}", dice.below(2));
            // The server may still be starting up, or be out of connections for a moment.
            cut += stores::ask_postgres(&home.store, &sql).map_or(0, |cut| cut.len());
        }
    }
    let book = load.stop();
    let audit = Audit::of(&daemon.api, &home.store, &book, Duration::from_secs(60));
    println!("{restarts} restarts of the server, {cut} connections cut");
    audit.assert_clean(&book);
    assert!(restarts > 0 && cut > 0);
    assert!(workers.iter_mut().all(|worker| worker.has_ended().is_none()), "no wait gave up");
    assert_eq!(audit.begun_again, 0, "no node was considered dead");
}

/// Holds a lock that every caller needs, until all connections of the pool wait for it, and longer than a caller waits
/// for a connection.
const STARVE: &str = "BEGIN; LOCK TABLE jobs IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep(7); COMMIT";

#[test]
fn a_pool_without_a_free_connection_costs_time_and_nothing_else() {
    let Some(mut dice) = dice("all connections of the pool taken") else { return };
    let home = wide_home(Home::new(crate::home::Backend::Postgres));
    let daemon = home.serve();
    let mut worker = home.work();
    let endpoint = Endpoint::default();
    endpoint.open(&daemon.api);
    let load = Load::start(&endpoint, &mut dice);
    let mut refused = 0;
    for _ in 0..3 {
        std::thread::sleep(Duration::from_millis(500 + dice.below(1_500)));
        let store = home.store.clone();
        let starving = std::thread::spawn(move || stores::ask_postgres(&store, STARVE).unwrap());
        // More callers than connections; each gets a clear error that it is not possible now.
        std::thread::sleep(Duration::from_millis(300));
        let callers: Vec<_> = (0..40)
            .map(|_| {
                let api = daemon.api.clone();
                std::thread::spawn(move || api.send("GET", "/api/v1/jobs?state=queued", None).map(|reply| reply.status))
            })
            .collect();
        for caller in callers {
            match caller.join().unwrap().expect("an answer") {
                200 => {}
                503 => refused += 1,
                other => panic!("{other}"),
            }
        }
        starving.join().unwrap();
    }
    let book = load.stop();
    let audit = Audit::of(&daemon.api, &home.store, &book, Duration::from_secs(60));
    println!("{refused} callers were asked to try again");
    audit.assert_clean(&book);
    assert!(refused > 0);
    assert!(worker.has_ended().is_none(), "no wait gave up");
    assert_eq!(audit.begun_again, 0, "no node was considered dead");
}
