//! Matsu as a peer process: its runtime in process, on the store the order names, with no tuning but the workers.

mod dispatching;
mod long_history;
mod matsu_queue;
mod queue_runtime;
mod scratch_database;

fn main() -> anyhow::Result<()> {
    bench_peer::serve(&[
        ("Matsu", matsu_queue::open_sqlite),
        ("Matsu on Postgres", matsu_queue::open_postgres),
        ("Matsu in memory", matsu_queue::open_memory),
    ])
}
