//! Who a request comes from: by its token, its page session, or its socket. What a revoked token had open ends.

pub mod page_session;
pub mod requests;
pub mod revocation;
pub mod socket;
