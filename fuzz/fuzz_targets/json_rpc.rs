//! Runs the target `json_rpc` of `matsu-fuzz` under libFuzzer.
#![no_main]
fuzz::target!("json_rpc");
