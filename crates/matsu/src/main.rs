//! Matsu: asynchronous work for AI agents over MCP.

fn main() {}
