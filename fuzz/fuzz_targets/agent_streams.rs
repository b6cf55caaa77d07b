//! Runs the target `agent_streams` of `matsu-fuzz` under libFuzzer.
#![no_main]
fuzz::target!("agent_streams");
