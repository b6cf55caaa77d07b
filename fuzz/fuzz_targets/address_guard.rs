//! Runs the target `address_guard` of `matsu-fuzz` under libFuzzer.
#![no_main]
fuzz::target!("address_guard");
