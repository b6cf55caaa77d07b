//! Ends the wait for logins that expired, and finds searches that parked in the moment their login was done.

use matsu_core::limits::SAFETY_READ_EVERY;
use matsu_core::ports::store::ExpireAuth;

use crate::runtime::{Outage, Runtime};

pub async fn run(runtime: &Runtime) {
    let mut outage = Outage::new("auth queue");
    loop {
        runtime.clock().sleep(SAFETY_READ_EVERY).await;
        let swept = runtime.store().run(ExpireAuth(runtime.clock().now())).await.map(drop);
        let _pause = outage.note(&swept);
    }
}
