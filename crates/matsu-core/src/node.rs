//! Nodes, and the decision when one of them is dead where only its heartbeat can be seen.
//!
//! No wall clock is compared. An observer counts its own one-second ticks during which a beat did not move;
//! when the observer itself slept, or lost the database, the count starts again.

use std::collections::HashMap;
use std::time::Duration;

use serde::Serialize;
use tokio::time::Instant;

use crate::clock::Timestamp;
use crate::id::NodeId;
use crate::limits::{BEATLESS_TICKS_MAX, TICK_GAP_MAX};
use crate::words::words;

words! {
    /// What a node is there for.
    pub enum NodeRole {
        Serve = "serve",
        Worker = "worker",
        /// Has the store open and runs no jobs: a command, or a client's own server beside a daemon.
        Command = "command",
        /// It is gone, and a run that it started may still be at work. Takes part in nothing.
        Left = "left",
    }
}

/// One process that has the store open, as the others see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Node {
    pub id: NodeId,
    pub role: NodeRole,
    pub host: String,
    pub pid: u32,
    pub version: String,
    pub beat: i64,
    pub started_at: Timestamp,
}

/// Remembers when each beat was last seen to move.
#[derive(Debug, Default)]
pub struct BeatWatch {
    seen: HashMap<NodeId, Observed>,
    last_tick: Option<Instant>,
}

#[derive(Debug)]
struct Observed {
    beat: i64,
    still_ticks: u32,
}

impl BeatWatch {
    /// One tick: takes the beats as they are now, and returns the nodes whose beat has not moved for too long.
    pub fn tick(&mut self, at: Instant, beats: &[(NodeId, i64)]) -> Vec<NodeId> {
        let gap = self.last_tick.map_or(Duration::ZERO, |last| at.saturating_duration_since(last));
        self.last_tick = Some(at);
        if gap > TICK_GAP_MAX {
            // This process slept. A node whose beat did not move may just have slept as well.
            self.seen.clear();
        }
        let mut dead = Vec::new();
        let mut seen = HashMap::with_capacity(beats.len());
        for (id, beat) in beats {
            let still_ticks = match self.seen.get(id) {
                Some(observed) if observed.beat == *beat => observed.still_ticks + 1,
                _ => 0,
            };
            if still_ticks >= BEATLESS_TICKS_MAX {
                dead.push(id.clone());
            }
            seen.insert(id.clone(), Observed { beat: *beat, still_ticks });
        }
        self.seen = seen;
        dead
    }

    /// The store could not be read: beats may have moved unseen.
    pub fn interrupted(&mut self) {
        self.seen.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch_for(ticks: u32, mut beat_at: impl FnMut(u32) -> i64, gap_at: Option<u32>) -> Option<u32> {
        let mut watch = BeatWatch::default();
        let id = NodeId::from_text("node_a");
        let start = crate::clock::Clock::system().instant();
        let mut at = start;
        for tick in 0..ticks {
            at += if gap_at == Some(tick) { Duration::from_secs(60) } else { Duration::from_secs(1) };
            if !watch.tick(at, &[(id.clone(), beat_at(tick))]).is_empty() {
                return Some(tick);
            }
        }
        None
    }

    #[test]
    fn a_beat_that_stands_still_for_thirty_ticks_is_dead() {
        assert_eq!(watch_for(60, |_| 7, None), Some(30));
    }

    #[test]
    fn a_beat_that_moves_every_ten_seconds_lives() {
        assert_eq!(watch_for(600, |tick| i64::from(tick / 10), None), None);
    }

    #[test]
    fn an_observer_that_slept_starts_counting_again() {
        assert_eq!(watch_for(60, |_| 7, Some(29)), Some(59));
    }

    #[test]
    fn a_lost_database_starts_the_count_again() {
        let mut watch = BeatWatch::default();
        let id = NodeId::from_text("node_a");
        let mut at = crate::clock::Clock::system().instant();
        for tick in 0..45 {
            at += Duration::from_secs(1);
            if tick == 20 {
                watch.interrupted();
            }
            assert!(watch.tick(at, &[(id.clone(), 1)]).is_empty(), "tick {tick}");
        }
    }
}
