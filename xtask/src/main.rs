//! Checks and generators for the workspace.

fn main() {}
