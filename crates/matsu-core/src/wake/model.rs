//! The one idea under every order of its steps: subscribe, read, and only then sleep. Shuttle runs every interleaving
//! of a writer and its sleepers, and calls it a deadlock when one of them is never woken.
//!
//! Each step of the hub is atomic by its lock, so orders of whole steps are all there are. What the store holds is a
//! number here.

use std::panic::{AssertUnwindSafe, catch_unwind};

use shuttle::future::block_on;
use shuttle::sync::Arc;
use shuttle::sync::atomic::{AtomicU64, Ordering};
use shuttle::thread;

use super::Hub;
use crate::change::Topic;

const SCHEDULES_MAX: usize = 200_000;

/// A store, and where its sleepers wait. The hub's own handle is not shuttle's: it counts references, no more.
#[derive(Clone)]
struct World {
    store: Arc<AtomicU64>,
    hub: std::sync::Arc<Hub>,
}

impl World {
    fn new() -> Self {
        Self { store: Arc::new(AtomicU64::new(0)), hub: Hub::new() }
    }

    fn topic() -> Topic {
        Topic::from_text("task/a")
    }

    fn read(&self) -> u64 {
        self.store.load(Ordering::SeqCst)
    }

    /// As a store does it: the commit first, the publication afterwards.
    fn write(&self, value: u64) {
        self.store.store(value, Ordering::SeqCst);
        thread::yield_now();
        self.hub.publish([&Self::topic()]);
    }

    /// As `wait_until` does it.
    fn wait_for(&self, value: u64) {
        let subscription = self.hub.subscribe(&[Self::topic()]);
        thread::yield_now();
        while self.read() < value {
            block_on(subscription.woken());
        }
    }

    /// In the wrong order: what is published between the read and the subscription is missed.
    fn wait_carelessly_for(&self, value: u64) {
        while self.read() < value {
            thread::yield_now();
            let subscription = self.hub.subscribe(&[Self::topic()]);
            block_on(subscription.woken());
        }
    }
}

fn every_order(steps: impl Fn() + Send + Sync + 'static) {
    shuttle::check_dfs(steps, Some(SCHEDULES_MAX));
}

#[test]
fn no_order_of_steps_loses_a_wake_up() {
    every_order(|| {
        let world = World::new();
        let sleeper = world.clone();
        let sleeper = thread::spawn(move || sleeper.wait_for(2));
        world.write(1);
        world.write(2);
        sleeper.join().unwrap();
        assert_eq!(world.hub.sleepers(), 0, "nothing is left behind");
    });
}

#[test]
fn two_sleepers_and_a_writer_all_come_to_their_end() {
    every_order(|| {
        let world = World::new();
        let sleepers = [1, 1].map(|value| {
            let world = world.clone();
            thread::spawn(move || world.wait_for(value))
        });
        world.write(1);
        sleepers.into_iter().for_each(|sleeper| sleeper.join().unwrap());
        assert_eq!(world.hub.sleepers(), 0);
    });
}

#[test]
fn a_subscriber_woken_without_a_change_reads_and_sleeps_again() {
    every_order(|| {
        let world = World::new();
        let (sleeper, publisher) = (world.clone(), world.clone());
        let sleeper = thread::spawn(move || sleeper.wait_for(1));
        // Something was missed, and it is not known what: every subscriber is woken, before or after the change.
        let publisher = thread::spawn(move || publisher.hub.publish_all());
        world.write(1);
        sleeper.join().unwrap();
        publisher.join().unwrap();
    });
}

#[test]
fn a_read_that_counts_as_fresh_has_seen_all_that_was_published() {
    every_order(|| {
        let world = World::new();
        let is_published = Arc::new(AtomicU64::new(0));
        let (writer, tells) = (world.clone(), Arc::clone(&is_published));
        let writer = thread::spawn(move || {
            writer.write(1);
            tells.store(1, Ordering::SeqCst);
        });
        let _subscription = world.hub.subscribe(&[World::topic()]);
        // As a shared read does it: the number first, the read afterwards.
        let number = world.hub.published();
        thread::yield_now();
        let found = world.read();
        let was_published = is_published.load(Ordering::SeqCst) == 1;
        let is_fresh = number >= world.hub.published_on(&World::topic());
        assert!(found == 1 || !was_published || !is_fresh, "a stale read was taken for a fresh one");
        writer.join().unwrap();
    });
}

/// The model can fail: it finds the order that the careful way is made for.
#[test]
fn reading_before_subscribing_is_found_out() {
    let found = catch_unwind(AssertUnwindSafe(|| {
        every_order(|| {
            let world = World::new();
            let sleeper = world.clone();
            let sleeper = thread::spawn(move || sleeper.wait_carelessly_for(1));
            world.write(1);
            sleeper.join().unwrap();
        });
    }));
    assert!(found.is_err(), "no order was found in which the sleeper sleeps for ever");
}
