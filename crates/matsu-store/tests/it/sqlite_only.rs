//! What only SQLite can show.
