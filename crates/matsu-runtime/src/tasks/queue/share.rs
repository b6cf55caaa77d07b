//! How much of a slot one node claims while others work on the same store. Pure.
//!
//! Up to its share it claims at once. Beyond that it first leaves the others a moment, so that work spreads over all
//! nodes with free capacity; it takes what no other node took in that moment. A node that is alone never waits.

use tokio::time::Instant;

use matsu_core::limits::SHARE_PAUSE;

#[derive(Debug, Default)]
pub struct Share {
    others_first_until: Option<Instant>,
}

impl Share {
    /// How many jobs to claim now, with `holding` of `limit` permits in use here and `nodes` at work.
    pub fn claimable(&mut self, limit: u32, holding: u32, nodes: u32, now: Instant) -> u32 {
        let free = limit.saturating_sub(holding);
        let share = limit.div_ceil(nodes.max(1));
        if free == 0 || nodes <= 1 {
            self.others_first_until = None;
            return free;
        }
        if holding < share {
            self.others_first_until = None;
            return share - holding;
        }
        match self.others_first_until {
            Some(until) if now >= until => {
                self.others_first_until = None;
                free
            }
            Some(_) => 0,
            None => {
                self.others_first_until = Some(now + SHARE_PAUSE);
                0
            }
        }
    }

    /// When to ask again although nothing else happens.
    pub fn next_look(&self) -> Option<Instant> {
        self.others_first_until
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use matsu_core::clock::Clock;

    #[test]
    fn a_node_that_is_alone_takes_everything_at_once() {
        let mut share = Share::default();
        let now = Clock::system().instant();
        assert_eq!(share.claimable(6, 0, 1, now), 6);
        assert_eq!(share.claimable(6, 5, 1, now), 1);
        assert_eq!(share.next_look(), None);
    }

    #[test]
    fn of_three_nodes_each_takes_a_third_and_the_rest_a_moment_later() {
        let mut share = Share::default();
        let now = Clock::system().instant();
        assert_eq!(share.claimable(6, 0, 3, now), 2);
        assert_eq!(share.claimable(6, 2, 3, now), 0, "the others first");
        let later = share.next_look().unwrap();
        assert_eq!(later, now + SHARE_PAUSE);
        assert_eq!(share.claimable(6, 2, 3, now), 0, "woken too early");
        assert_eq!(share.claimable(6, 2, 3, later), 4, "it was not taken");
        assert_eq!(share.claimable(6, 6, 3, later), 0);
        assert_eq!(share.claimable(6, 5, 3, later), 0, "and for what comes free, the others first again");
    }

    #[test]
    fn every_node_may_claim_in_a_slot_of_one() {
        let mut share = Share::default();
        assert_eq!(share.claimable(1, 0, 3, Clock::system().instant()), 1);
    }
}
