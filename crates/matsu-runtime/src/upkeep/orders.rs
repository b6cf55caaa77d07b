//! Reads the orders to running bodies: once a second, and soon after a wake-up. Also works off what bodies left to be
//! mended, and progress that waited for its turn.

use matsu_core::change::Topic;
use matsu_core::limits::{ORDERS_PAUSE, TICK};
use matsu_core::ports::store::{ReadOrders, StoreError};
use matsu_core::slot::Slot;

use crate::runtime::context::{fill_meter, mend, write_due_progress};
use crate::runtime::{Outage, Runtime};

pub async fn run(runtime: &Runtime) {
    let topics: Vec<Topic> = Slot::FOR_JOBS.iter().copied().map(Topic::queue).collect();
    let subscription = runtime.hub().subscribe(&topics);
    let mut outage = Outage::new("orders");
    loop {
        let looked = look(runtime).await;
        let pause = outage.note(&looked).unwrap_or(ORDERS_PAUSE);
        // Queues are woken by every enqueue; a look for each would cost more than the work itself.
        runtime.clock().sleep(pause).await;
        tokio::select! {
            biased;
            () = subscription.woken() => {}
            () = runtime.asked_to_look() => {}
            () = runtime.clock().sleep(TICK) => {}
        }
    }
}

async fn look(runtime: &Runtime) -> Result<(), StoreError> {
    for (lease, notes) in runtime.running().to_mend() {
        // What could not be mended is tried again at the next look.
        let _is_left = mend(runtime, &lease, &notes).await;
    }
    for (lease, notes) in runtime.running().metered() {
        fill_meter(runtime, &lease, &notes).await;
    }
    write_due_progress(runtime).await;
    let leases = runtime.running().leases();
    if leases.is_empty() {
        return Ok(());
    }
    let orders = runtime.store().run(ReadOrders(leases.clone())).await?;
    runtime.running().apply(&orders);
    Ok(())
}
