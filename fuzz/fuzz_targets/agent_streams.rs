#![no_main]
fuzz::target!("agent_streams");
