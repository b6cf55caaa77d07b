//! The peers that stand on sqlx, as one peer process: apalis on SQLite and Postgres, and graphile_worker.

mod apalis_postgres;
mod apalis_sqlite;
mod body;
mod graphile;
mod scratch_database;

fn main() -> anyhow::Result<()> {
    bench_peer::serve(&[
        ("apalis-sqlite", apalis_sqlite::open),
        ("apalis-postgres", apalis_postgres::open_default),
        ("apalis-postgres batch 100", apalis_postgres::open_batched),
        ("graphile_worker", graphile::open_default),
        ("graphile_worker local queue", graphile::open_local_queue),
    ])
}
