//! Honker as a peer process: a queue of SQL functions on SQLite, driven through its own Rust crate.

mod honker_queue;

fn main() -> anyhow::Result<()> {
    bench_peer::serve(&[("honker", honker_queue::open_single), ("honker batch 10", honker_queue::open_batched)])
}
