//! Runs the target `cookies` of `matsu-fuzz` under libFuzzer.
#![no_main]
fuzz::target!("cookies");
