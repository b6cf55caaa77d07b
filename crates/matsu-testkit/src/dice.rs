//! Random numbers that a test repeats by its seed.
#![expect(clippy::disallowed_methods, reason = "the environment names the seed to repeat")]

use matsu_core::clock::Clock;

/// The dice of one test; `None` if chaos was not asked for.
///
/// # Panics
/// `MATSU_CHAOS_SEED` is no number.
#[must_use]
pub fn dice(test: &str) -> Option<Dice> {
    if std::env::var("MATSU_CHAOS").is_ok_and(|value| value == "1") {
        let seed = match std::env::var("MATSU_CHAOS_SEED") {
            Ok(seed) => seed.parse().unwrap_or_else(|error| panic!("MATSU_CHAOS_SEED is {seed:?}: {error}")),
            Err(_) => Clock::system().nanos(),
        };
        println!("{test}: seed {seed}");
        return Some(Dice { seed });
    }
    println!("{test}: only with MATSU_CHAOS=1");
    None
}

/// SplitMix64: small, fast, and the same everywhere.
#[derive(Clone, Debug)]
pub struct Dice {
    seed: u64,
}

impl Dice {
    pub fn number(&mut self) -> u64 {
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.seed;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From zero up to, but without, `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.number() % bound
    }

    /// True once in `times`.
    pub fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// Dice for a thread of its own.
    pub fn another(&mut self) -> Self {
        Self { seed: self.number() }
    }
}
