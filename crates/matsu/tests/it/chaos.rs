//! The long tests: Matsu under a steady load while its processes, its database, its clock and its time itself are
//! taken away. They run with `MATSU_CHAOS=1` only, print what they counted, and repeat themselves by
//! `MATSU_CHAOS_SEED`.

mod audit;
mod clock;
mod database;
mod kill;
mod load;
mod nodes;
mod page;
mod sleep;

use matsu_testkit::dice::{Dice, dice};
