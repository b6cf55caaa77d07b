//! Runs the target `provider_formats` of `matsu-fuzz` under libFuzzer.
#![no_main]
fuzz::target!("provider_formats");
