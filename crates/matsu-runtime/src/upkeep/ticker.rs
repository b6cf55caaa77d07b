//! One tick a second for the clocks of the running bodies. It never waits for the store, so that a store which is
//! away cannot stop the time of the bodies.

use matsu_core::limits::TICK;

use crate::runtime::Runtime;

pub async fn run(runtime: &Runtime) {
    loop {
        // Slept anew each time: ticks that were missed while the process was stopped are not made up for.
        runtime.clock().sleep(TICK).await;
        runtime.running().tick();
    }
}
