//! Runs the target `sse` of `matsu-fuzz` under libFuzzer.
#![no_main]
fuzz::target!("sse");
