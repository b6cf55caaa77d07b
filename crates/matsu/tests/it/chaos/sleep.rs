//! A minute of sleep for all processes: longer than any heart may stand still.

use std::time::Duration;

use super::dice;
use crate::home::Backend;
use crate::suspend::sleep_through;

#[test]
fn a_minute_of_sleep_does_no_harm() {
    if dice("sixty seconds of SIGSTOP").is_none() {
        return;
    }
    let sleepers = [Backend::Sqlite, Backend::Postgres]
        .map(|backend| (backend, std::thread::spawn(move || sleep_through(backend, Duration::from_secs(60)))));
    for (backend, sleeper) in sleepers {
        let slept = sleeper.join().expect("the sleeper woke up");
        println!("  {backend:?}: {slept:?}");
        assert_eq!((slept.jobs, slept.failed, slept.repeated), (15, 0, 0), "{backend:?}");
    }
}
