//! Where Matsu itself joins the comparison.
//!
//! A contender is a `bench_peer::Queue` (enqueue single, batched and from many callers; run empty jobs with w workers;
//! enqueue-to-start samples; claim and status over a long history) named in `OPENERS`, and a `wake::WakeTarget` for the
//! HTTP rows. The lists are empty until the engine is linked in; every row then picks the names up from here.

use bench_peer::Opener;

/// Answered by this binary under `__order`.
pub const OPENERS: &[(&str, Opener)] = &[];

/// Names among `OPENERS` that take part in the SQLite rows.
pub const SQLITE: &[&str] = &[];

/// Names among `OPENERS` that take part in the Postgres rows.
pub const POSTGRES: &[&str] = &[];
