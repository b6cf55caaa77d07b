//! How much a caller may take, and how long. Each is a setting.

use std::time::Duration;

use matsu_core::limits::{CONNECTIONS_MAX, REQUEST_MAX, UNAUTHENTICATED_MAX, UNAUTHENTICATED_PER_ADDRESS_MAX};

#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// A whole request arrives within this time; a connection without one is closed after it.
    pub request: Duration,
    /// Connections without a key, from all addresses.
    pub unauthenticated: usize,
    /// Connections without a key from one address that is not this machine's.
    pub unauthenticated_per_address: usize,
    /// Connections in all.
    pub connections: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            request: REQUEST_MAX,
            unauthenticated: UNAUTHENTICATED_MAX,
            unauthenticated_per_address: UNAUTHENTICATED_PER_ADDRESS_MAX,
            connections: CONNECTIONS_MAX,
        }
    }
}
