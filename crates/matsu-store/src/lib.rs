//! Where Matsu keeps its state: memory, SQLite, PostgreSQL.
