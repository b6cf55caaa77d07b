//! Runs the target `charsets` of `matsu-fuzz` under libFuzzer.
#![no_main]
fuzz::target!("charsets");
