//! Runs the target `devtools` of `matsu-fuzz` under libFuzzer.
#![no_main]
fuzz::target!("devtools");
