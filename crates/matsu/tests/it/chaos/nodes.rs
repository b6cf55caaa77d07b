//! Five nodes on one PostgreSQL at work for half an hour, while nodes are killed and the server is restarted.

use std::time::{Duration, Instant};

use super::audit::Audit;
use super::database::Server;
use super::dice;
use super::kill::{Crowd, wide_home};
use super::load::Load;
use crate::home::Home;
use crate::stores;

const NODES: usize = 5;
/// `MATSU_CHAOS_NODES_SECONDS` says another time.
const SECONDS: u64 = 1_800;

#[test]
fn five_nodes_lose_nothing_while_nodes_and_the_database_are_ended() {
    let Some(mut dice) = dice("five nodes on one PostgreSQL") else { return };
    let seconds = std::env::var("MATSU_CHAOS_NODES_SECONDS").map_or(SECONDS, |text| text.parse().expect("a number"));
    let server = Server::start();
    let home = wide_home(Home::with_store(stores::fresh_schema_on(&server.url)));
    let mut crowd = Crowd::of(&home, NODES);
    let load = Load::start(&crowd.endpoint, &mut dice);
    let began = Instant::now();
    let (mut kills, mut restarts) = (0, 0);
    while began.elapsed() < Duration::from_secs(seconds) {
        crowd.live_for(Duration::from_millis(500 + dice.below(5_000)));
        if dice.once_in(10) {
            server.restart();
            restarts += 1;
        } else {
            crowd.kill_and_restart(dice.below(NODES as u64) as usize);
            kills += 1;
        }
    }
    let daemon = crowd.serving();
    let book = load.stop();
    let audit = Audit::of(&daemon.api, &home.store, &book, Duration::from_secs(120));
    println!("{NODES} nodes for {:?}: {kills} killed, {restarts} restarts of the server", began.elapsed());
    audit.assert_clean(&book);
    assert!(kills > 0 && restarts > 0 && audit.begun_again > 0, "the faults hit running jobs");
}
