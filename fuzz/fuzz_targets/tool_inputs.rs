//! Runs the target `tool_inputs` of `matsu-fuzz` under libFuzzer.
#![no_main]
fuzz::target!("tool_inputs");
