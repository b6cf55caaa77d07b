//! Runs the target `pdf` of `matsu-fuzz` under libFuzzer.
#![no_main]
fuzz::target!("pdf");
