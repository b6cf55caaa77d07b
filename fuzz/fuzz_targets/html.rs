//! Runs the target `html` of `matsu-fuzz` under libFuzzer.
#![no_main]
fuzz::target!("html");
