//! Runs the target `client_config` of `matsu-fuzz` under libFuzzer.
#![no_main]
fuzz::target!("client_config");
