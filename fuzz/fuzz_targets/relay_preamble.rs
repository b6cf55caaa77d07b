//! Runs the target `relay_preamble` of `matsu-fuzz` under libFuzzer.
#![no_main]
fuzz::target!("relay_preamble");
