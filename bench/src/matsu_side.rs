//! The names under which Matsu takes part; `peers/matsu` answers to them.

/// In the SQLite rows, through its runtime in process.
pub const SQLITE: &[&str] = &["Matsu"];

/// In the Postgres rows, likewise.
pub const POSTGRES: &[&str] = &["Matsu on Postgres"];

pub fn is_matsu(name: &str) -> bool {
    name.starts_with("Matsu")
}
