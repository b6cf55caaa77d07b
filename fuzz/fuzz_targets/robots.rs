//! Runs the target `robots` of `matsu-fuzz` under libFuzzer.
#![no_main]
fuzz::target!("robots");
